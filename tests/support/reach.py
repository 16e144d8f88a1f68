"""A benchmark full of things to find, and the places from which a reviewer or an agent may look for them.

Each marker is a random word, planted in one thing that nobody may see. A place runs a shell script as a
program under test would, and gives what it printed.
"""

from __future__ import annotations

import os
import secrets
import shlex
import subprocess
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from support.images import BASE_IMAGE

from pytest_crbench.core.model import Dataset, Instance, Review, Revision
from pytest_crbench.core.settings import Settings
from pytest_crbench.datasets import open_dataset
from pytest_crbench.evaluation.evaluator import Evaluator
from pytest_crbench.run import assemble, programs
from pytest_crbench.run.settings import read
from pytest_crbench.text.printable import decode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

INSTANCE = "quagga-4711"
OTHER = "ibis-0815"
#: What markers are planted in.
PLANTED = ("hidden", "fixed", "other", "comment", "verdict", "later", "dangling", "host", "key", "head")
#: Variables of the host that hold a key.
KEYS = (
    *("OPENAI_API_KEY", "CRBENCH_API_KEY", "ANTHROPIC_API_KEY", "GITHUB_TOKEN", "AWS_SECRET_ACCESS_KEY"),
    "UV_INDEX_VENDOR_PASSWORD",
)

_TOML = """
schema = 1
id = "{id}"
language = "Python"
origin = "pull_request"

[source]
kind = "git"
url = "file://{url}"
base = "{base}"
head = "{head}"
fixed = "{fixed}"

[pull_request]
title = "Add prices"
body = "Adds prices."

[environment]
python = ">=3.8"
runner = "pytest"
import_roots = ["."]
install = "none"
requirements = []

[[comment]]
id = "price"
level = "inline"
path = "shop.py"
lines = [2, 2]
kind = "behavioral"
category = "Security"
body = "The price is wrong. {comment}"
test = "test_price.py"
"""


def git(repo: Path, *arguments: str) -> str:
    """Run git in a repository, without the machine's configuration."""
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(repo),
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        **{
            f"GIT_{who}_{what}": "t@example.com"
            for who in ("AUTHOR", "COMMITTER")
            for what in ("NAME", "EMAIL")
        },
    }
    done = subprocess.run(["git", *arguments], cwd=repo, env=env, capture_output=True, check=True)
    return done.stdout.decode().strip()


@dataclass(frozen=True)
class Origin:
    """Upstream's repository: base, head, the fix that came later, and what else repositories gather."""

    path: Path
    base: str
    head: str
    fixed: str
    dangling: str
    fixed_blob: str


def make_origin(path: Path, marks: Mapping[str, str]) -> Origin:
    """Make a repository whose later states hold the markers ``fixed``, ``later`` and ``dangling``."""
    path.mkdir(parents=True)
    git(path, "init", "-q", "-b", "main")

    def commit(message: str, text: str) -> str:
        (path / "shop.py").write_text(text)
        git(path, "add", "-A")
        git(path, "commit", "-qm", message)
        return git(path, "rev-parse", "HEAD")

    # Everybody may see this one. Without it a workspace, kept by content, could be another session's.
    salt = f"# {marks['head']}\n"
    base = commit("Start", f"def price():\n    return 'none'\n{salt}")
    head = commit("Add prices", f"def price():\n    return 'wrong'\n{salt}")
    dangling = commit(f"Try {marks['dangling']}", f"# {marks['dangling']}\n")
    git(path, "reset", "-q", "--hard", head)
    fixed = commit(f"Fix {marks['later']}", f"def price():\n    return 'price'  # {marks['fixed']}\n")
    blob = git(path, "rev-parse", "HEAD:shop.py")
    git(path, "tag", "-a", "v2", "-m", f"Release {marks['later']}")
    git(path, "notes", "add", "-m", f"note {marks['later']}", head)
    (path / "shop.py").write_text(f"# stashed {marks['later']}\n")
    git(path, "stash", "-q")
    return Origin(path, base, head, fixed, dangling, blob)


def make_dataset(folder: Path, origin: Origin, marks: Mapping[str, str]) -> Path:
    """Write two instances; hidden tests, comments and the other instance's test hold markers."""
    folder.mkdir(parents=True)
    (folder / "dataset.toml").write_text(
        'schema = 1\nname = "savanna"\ntitle = "Savanna"\nnotice = "Tests."\n'
    )
    for name, mark, value in ((INSTANCE, marks["hidden"], "price"), (OTHER, marks["other"], "price")):
        place = folder / name
        place.mkdir()
        ids = {"url": origin.path, "base": origin.base, "head": origin.head, "fixed": origin.fixed}
        (place / "instance.toml").write_text(_TOML.format(id=name, comment=marks["comment"], **ids))
        (place / "test_price.py").write_text(
            f"from shop import price\n\n\ndef test_price():\n"
            f"    print('{marks['verdict']}')\n    assert price() == '{value}', '{mark}'\n"
        )
    return folder


@dataclass
class Says:
    """A reviewer that has one thing to say, not what the human reviewer said."""

    name: str = "says"
    shareable: bool = False
    fingerprint: dict[str, Any] = field(default_factory=lambda: {"kind": "says"})

    def review(self, task: Any) -> Review:
        from pytest_crbench.core.model import ReviewComment

        return Review(
            comments=(ReviewComment(id="c1", body="Look at it.", path="shop.py"),), reviewer=self.name
        )


@dataclass
class Idle:
    """An agent that changes nothing."""

    name: str = "idle"
    fingerprint: dict[str, Any] = field(default_factory=lambda: {"kind": "idle"})
    runs_on_clean_review: bool = True

    def revise(self, task: Any) -> Revision:
        return Revision(patch=b"", agent=self.name, stop_reason="finished")


@dataclass
class Savanna:
    """The benchmark on the vendor's machine: dataset, upstream, cache, run directory, keys."""

    root: Path
    cache: Path
    marks: dict[str, str] = field(
        default_factory=lambda: {name: f"m{secrets.token_hex(12)}" for name in PLANTED}
    )
    session: str = field(default_factory=lambda: secrets.token_hex(8))
    began: float = field(default_factory=lambda: time.time() - 2)

    @cached_property
    def origin(self) -> Origin:
        return make_origin(self.vendor / "upstream", self.marks)

    @property
    def vendor(self) -> Path:
        return self.root / "vendor"

    @property
    def run(self) -> Path:
        return self.vendor / ".crbench" / "runs" / "one"

    @cached_property
    def data(self) -> Path:
        return make_dataset(self.vendor / "savanna", self.origin, self.marks)

    @cached_property
    def dataset(self) -> Dataset:
        return open_dataset(str(self.data))

    @property
    def instance(self) -> Instance:
        return next(one for one in self.dataset.instances if one.id == INSTANCE)

    @property
    def other(self) -> Instance:
        return next(one for one in self.dataset.instances if one.id == OTHER)

    def settings(self, **given: Any) -> Settings:
        wanted = {
            "cache": str(self.cache),
            "run_dir": str(self.run.parent),
            "base_image": BASE_IMAGE,
            "dataset": [str(self.data)],
            **given,
        }
        return read(wanted.get, self.vendor)

    def evaluator(
        self, sandbox: str, reviewer: Any = None, agent: Any = None, run: Path | None = None, **given: Any
    ) -> Evaluator:
        """Put an evaluator together as a run does."""
        settings = self.settings(**given)
        backend = assemble.make_backend(settings, sandbox, self.session, lambda _line: None)
        invocation = assemble.Invocation(run or self.run, self.session, sandbox)
        return assemble.make_evaluator(settings, invocation, reviewer or Says(), agent or Idle(), backend)

    def furnish(self) -> None:
        """Leave what runs leave: fixed trees, another instance's verdict and its log, a vendor's file."""
        self.vendor.mkdir(parents=True, exist_ok=True)
        (self.vendor / "notes.txt").write_text(self.marks["host"])
        evaluator = self.evaluator("local")
        # As `crbench validate` does.
        evaluator.at(self.instance).fixed()
        for check in self.other.checks:
            evaluator.verdict(self.other, check)

    def found(self, text: str) -> set[str]:
        """Which markers a text holds, but for the one of head."""
        return {name for name, mark in self.marks.items() if mark in text and name != "head"}

    @property
    def scan(self) -> str:
        """A script that shows every marker in every file that can be read.

        A file that holds one was made, or changed, after the markers were thrown: nothing can set that time.
        """
        words = " ".join(f"-e {mark}" for mark in self.marks.values())
        fresh = f"-newerct @{int(self.began)} -type f -print0"
        return (
            f"find / \\( -path /proc -o -path /sys \\) -prune -o {fresh} 2>/dev/null | "
            f"xargs -0 grep -aoHF {words} 2>/dev/null; true"
        )


@dataclass
class Place:
    """Somewhere a program under test runs; ``look`` runs a script there and gives all that it printed."""

    name: str
    look: Callable[[str], str]
    local: bool = False
    seen: dict[str, str] = field(default_factory=dict)

    def once(self, script: str) -> str:
        """Look, or tell what was seen when it was looked before."""
        if script not in self.seen:
            self.seen[script] = self.look(script)
        return self.seen[script]


def agents_place(savanna: Savanna, sandbox: str, stack: ExitStack) -> Place:
    """The sandbox of a coding agent, opened by the evaluation; it stays open until ``stack`` is closed."""
    evaluator = savanna.evaluator(sandbox, run=savanna.run)
    opened = stack.enter_context(evaluator.at(savanna.instance).agent_task().sandbox())

    def look(script: str) -> str:
        done = opened.exec(["sh", "-c", script], timeout=60)
        return decode(done.stdout + done.stderr)

    return Place(f"agent in {sandbox}", look, local=sandbox == "local")


def reviewers_place(
    savanna: Savanna, _name: str = "", _stack: ExitStack | None = None, **given: Any
) -> Place:
    """A reviewer out of an image, called by the evaluation; each script is a review of its own."""
    numbers: Iterator[int] = iter(range(1000, 2000))

    def look(script: str) -> str:
        text = script.replace("{", "{{").replace("}", "}}")
        whole = "{{ " + text + "\n}} >&2 2>&1; echo '[]'"
        spec = f"cmd:sh -c {shlex.quote(whole)}"
        settings = savanna.settings(reviewer=spec, reviewer_image=BASE_IMAGE, **given)
        reviewer = programs.make_reviewer(settings, session=savanna.session)
        evaluation = savanna.evaluator("local", reviewer).at(savanna.instance, next(numbers))
        assert evaluation.review.comments == ()
        return (evaluation.directory / "review.stderr").read_text("utf-8", "replace")

    return Place("reviewer in an image", look)
