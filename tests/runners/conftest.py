"""A real local sandbox and a small tree, to see what a hidden test's run does."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pytest_crbench.core.model import Check, Environment, File, ReviewComment, Tree
from pytest_crbench.core.runner import Observation
from pytest_crbench.core.sandbox import Limits, SandboxSettings
from pytest_crbench.host import digest
from pytest_crbench.host.indexes import settings_from_environment
from pytest_crbench.sandbox.choose import choose
from pytest_crbench.scoring.tests.pytest_runner import PytestRunner

HIDDEN = "from shop.tax import tax\n\n\ndef test_tax():\n    assert tax() == 'right'\n"
RIGHT = "def tax():\n    return 'right'\n"


@dataclass(frozen=True)
class Bench:
    """Runs a hidden test over a tree with changes."""

    observe: Callable[..., Observation]
    head: Path


@pytest.fixture(scope="session")
def backend(cache: Path) -> Iterator[object]:
    """The local backend, with bubblewrap where the machine has it."""
    session = secrets.token_hex(8)
    settings = settings_from_environment(SandboxSettings(cache=cache, session=session))
    backend = choose("local", settings)
    yield backend
    backend.reap(session)


@pytest.fixture
def bench(tmp_path: Path, backend: object) -> Bench:
    """A tree whose ``shop.tax.tax`` is wrong."""
    head = tmp_path / "head"
    for name, text in (("__init__.py", ""), ("tax.py", "def tax():\n    return 'wrong'\n")):
        (head / "shop").mkdir(parents=True, exist_ok=True)
        (head / "shop" / name).write_text(text)

    def observe(
        *changed: File | tuple[str, str],
        deleted: tuple[str, ...] = (),
        test: str = HIDDEN,
        kind: str = "behavioral",
        timeout: float = 60.0,
        backend: Any = backend,
    ) -> Observation:
        environment = Environment(python=">=3.8")
        tree = Tree(head, digest.of_tree(head))
        comment = ReviewComment(id="tax", body="wrong")
        check = Check("tax", comment, kind, "Security", test, digest.of(test))  # type: ignore[arg-type]
        files = [f if isinstance(f, File) else File(f[0], f[1].encode()) for f in changed]
        with backend.open(backend.environment(environment), tree, limits=Limits()) as sandbox:
            return PytestRunner().run(
                sandbox,
                check,
                environment,
                tops=("shop",),
                changed=files,
                deleted=deleted,
                timeout=timeout,
            )

    return Bench(observe, head)
