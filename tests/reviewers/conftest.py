# ruff: noqa: E501
"""A small pull request, as a two-commit repository, and the task of reviewing it."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from pytest_crbench.core.model import (
    Check,
    Environment,
    Instance,
    PullRequest,
    ReviewComment,
    Source,
)
from pytest_crbench.core.reviewer import ReviewTask
from pytest_crbench.reviewers.formats import HeadFiles, ParseContext

FIXTURES = Path(__file__).parents[2] / "fixtures"

BASE = {
    "app/core.py": "import os\n\n\ndef name():\n    return os.name\n\n\ndef old():\n    return 1\n",
    "gone.py": "x = 1\n",
    "data.bin": "a\0b",
}
HEAD = {
    "app/core.py": 'import os\nimport sys\n\n\ndef name(x):\n    if x == None:\n        return ""\n    return os.name\n',
    "app/täst.py": 'a = "äö"; b = 1\nprint(a)\n',
    "data.bin": "a\0c",
}


def write(root: Path, files: dict[str, str]) -> None:
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(text.encode())


def git(root: Path, *arguments: str) -> bytes:
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=base"]
    return subprocess.run(
        ["git", "-C", str(root), *identity, *arguments], check=True, capture_output=True
    ).stdout


@dataclass
class Project:
    """The repository, and what the harness would say of it."""

    root: Path
    base: str
    head: str
    diff: bytes
    logged: list[str] = field(default_factory=list)
    checkouts: int = 0

    def checkout(self, destination: Path) -> None:
        self.checkouts += 1
        git(self.root, "clone", "-q", "--no-hardlinks", str(self.root), str(destination))

    def task(self, directory: Path, **changes: Any) -> ReviewTask:
        directory.mkdir(parents=True, exist_ok=True)
        values: dict[str, Any] = {
            "instance": instance(),
            "pull_request": PullRequest(
                "Title; $(touch pwned)", "Body {x} 'q'", self.base, self.head, self.diff.decode(), "Python"
            ),
            "diff": self.diff,
            "checkout": self.checkout,
            "directory": directory,
            "repeat": 1,
            "log": self.logged.append,
        }
        return ReviewTask(**{**values, **changes})


def instance(*comments: ReviewComment) -> Instance:
    return Instance(
        dataset="own",
        id="one",
        language="Python",
        origin="release",
        source=Source("tree", Path("base"), Path("head")),
        title="Title",
        body="",
        environment=Environment(),
        checks=tuple(
            Check(c.id, c, "behavioral", "Robustness", "def test(): pass\n", "0" * 64) for c in comments
        ),
        digest="0" * 64,
    )


@pytest.fixture(scope="session")
def repository(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, str, bytes]:
    root = tmp_path_factory.mktemp("project")
    git(root, "init", "-q")
    write(root, BASE)
    git(root, "add", ".")
    git(root, "commit", "-qm", "base")
    base = git(root, "rev-parse", "HEAD").decode().strip()
    git(root, "checkout", "-qb", "head")
    git(root, "rm", "-q", "gone.py")
    write(root, HEAD)
    git(root, "add", ".")
    git(root, "commit", "-qm", "head")
    head = git(root, "rev-parse", "HEAD").decode().strip()
    return root, base, head, git(root, "diff", base, head)


@pytest.fixture
def project(repository: tuple[Path, str, str, bytes]) -> Project:
    return Project(*repository)


@pytest.fixture
def context(project: Project) -> ParseContext:
    return ParseContext(project.root, HeadFiles(lambda: project.root), ("gone.py",))


@pytest.fixture
def tool_output() -> Path:
    return FIXTURES / "tool-outputs"
