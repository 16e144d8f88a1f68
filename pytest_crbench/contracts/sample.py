"""The pull requests that the suites show to a part: one plain, one with all that is odd in real ones."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

from ..core.model import PullRequest
from ..core.sandbox import Limits
from ..datasets import open_dataset
from ..run.assemble import trees_of
from ..workspace.repository import build

if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import AbstractContextManager

    from ..core.model import Dataset, Instance, Trees
    from ..core.sandbox import Backend, Sandbox
    from ..core.settings import Settings
    from ..workspace.repository import Workspace

_TAX = 'RATE = 0.2\n\n\ndef tax(price):\n    """Return the tax."""\n    return price {} RATE\n'
_SIDES: dict[str, dict[str, dict[str, str]]] = {
    "plain": {
        "base": {"shop/__init__.py": "", "shop/tax.py": "RATE = 0.2\n"},
        "head": {
            "shop/__init__.py": "",
            "shop/tax.py": _TAX.format("+"),
        },
        "fixed": {
            "shop/__init__.py": "",
            "shop/tax.py": _TAX.format("*"),
        },
    },
    "odd": {
        "base": {
            "shop/__init__.py": "",
            "shop/size.py": "def size(text):\n    return len(text)\n",
            "old name.py": "".join(f"LINE_{n} = {n}\n" for n in range(20)),
            "gone.txt": "gone\n",
            "data.bin": "a\0b",
        },
        "head": {
            "shop/__init__.py": "",
            "shop/size.py": "def size(text):\r\n    return len(text) - 1\r\n",
            "new näme.py": "".join(f"LINE_{n} = {n}\n" for n in range(20)),
            "data.bin": "a\0c",
            "no newline": "end",
            "-dash; $(touch pwned)": "x\n",
            ".gitattributes": "*.py filter=nothing\n",
        },
        "fixed": {
            "shop/__init__.py": "",
            "shop/size.py": "def size(text):\r\n    return len(text)\r\n",
            "new näme.py": "".join(f"LINE_{n} = {n}\n" for n in range(20)),
        },
    },
}
_TESTS = {
    "plain": "from shop.tax import tax\n\n\ndef test_tax():\n    assert tax(100) == 20\n",
    "odd": "from shop.size import size\n\n\ndef test_size():\n    assert size('four') == 4\n",
}
_TITLES = {"plain": "Add the tax", "odd": "Sizes: $(touch pwned) `x` {base}\\u202e"}
_INSTANCE = """\
schema = 1
id = "{id}"
language = "Python"
origin = "pull_request"
source = {{ kind = "tree", base = "base", head = "head", fixed = "fixed" }}
pull_request = {{ title = "{title}", body = "As discussed." }}
environment = {{ python = ">=3.8" }}

[[comment]]
id = "first"
path = "{path}"
lines = [{line}, {line}]
kind = "behavioral"
category = "Functional Correctness"
body = "This is wrong."
suggestion = '''{suggestion}
'''
test = "test_it.py"
"""
_PLACES = {
    "plain": ("shop/tax.py", 6, "    return price * RATE"),
    "odd": ("shop/size.py", 2, "    return len(text)"),
}


@dataclass(frozen=True)
class Pull:
    """One pull request, fetched."""

    instance: Instance
    trees: Trees
    workspace: Workspace

    @property
    def request(self) -> PullRequest:
        """What reviewers and agents are told of it."""
        made, instance = self.workspace, self.instance
        diff = made.diff.decode("utf-8", "replace")
        return PullRequest(instance.title, instance.body, made.base, made.head, diff, instance.language)

    def open(self, backend: Backend) -> AbstractContextManager[Sandbox]:
        """Open a sandbox that holds head and the repository."""
        made = backend.environment(self.instance.environment)
        return backend.open(made, self.trees.head, limits=Limits(lifetime=900), git=self.workspace.git_dir)


def write_dataset(folder: Path) -> Path:
    """Write both pull requests as a native dataset; return its folder."""
    folder.mkdir(parents=True)
    (folder / "dataset.toml").write_text('schema = 1\nname = "contracts"\ntitle = "Contracts"\n')
    for name, sides in _SIDES.items():
        path, line, suggestion = _PLACES[name]
        for side, files in sides.items():
            for file, text in files.items():
                place = folder / name / side / file
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(text.encode())
        (folder / name / "instance.toml").write_text(
            _INSTANCE.format(id=name, title=_TITLES[name], path=path, line=line, suggestion=suggestion)
        )
        (folder / name / "test_it.py").write_text(_TESTS[name])
    return folder


def pulls_of(dataset: Dataset, settings: Settings) -> dict[str, Pull]:
    """Fetch the pull requests of a dataset, with their fixed trees where there are any; by id."""
    found = {}
    fetch = trees_of(settings)
    for instance in dataset.instances:
        trees = fetch(instance, instance.source.fixed is not None, print)
        made = build(trees, title=instance.title, body=instance.body, cache=settings.cache)
        found[instance.id] = Pull(instance, trees, made)
    return found


def dataset_at(folder: Path) -> Dataset:
    """Load the dataset that `write_dataset` wrote."""
    return open_dataset(f"native:{folder}")


def fails(message: str) -> NoReturn:
    """Fail the test with a message alone, whatever led there."""
    raise pytest.fail.Exception(message, pytrace=False) from None


def plain(value: Any) -> Any:
    """Return a value as JSON gives it back; fails where that is another one."""
    try:
        back = json.loads(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError) as error:
        fails(f"is no plain JSON ({error}): {value!r}")
    if back != value:
        fails(f"is other than what JSON gives back (names are text, sequences lists): {value!r}")
    return back


def is_text(value: Any, what: str) -> None:
    """Assert that a value is one line of text that a table can show."""
    if not isinstance(value, str) or not value.strip() or not value.isprintable():
        fails(f"{what} must be a line of printable text, found {value!r}")


def is_measure(value: Mapping[str, float], seconds: float, what: str) -> None:
    """Assert that usage and duration are numbers of 0 or more."""
    for name, number in {**value, "duration": seconds}.items():
        right = isinstance(number, int | float) and not isinstance(number, bool)
        if not isinstance(name, str) or not right or not math.isfinite(number) or number < 0:
            fails(f"{what}: {name!r} must be a number of 0 or more, found {number!r}")
