"""Tasks for coding agents: a real two-commit repository, a real capture, and a sandbox.

`CopySandbox` is the least that keeps the promises of `core.sandbox.Sandbox` to an agent: commands run for
real, in a copy of the tree, with a time limit that kills what they started. It isolates nothing.
"""

from __future__ import annotations

import shutil
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_crbench.core.agent import AgentTask
from pytest_crbench.core.errors import InfraError
from pytest_crbench.core.model import PullRequest, Review, ReviewComment, Tree, Trees
from pytest_crbench.core.sandbox import ExecResult, File
from pytest_crbench.host import digest, processes
from pytest_crbench.workspace.repository import build
from pytest_crbench.workspace.revision import capture

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from pytest_crbench.core.sandbox import Sandbox

Files = dict[str, "bytes | str"]


class CopySandbox:
    """Commands on a temporary copy of a tree."""

    def __init__(self, tree: Path, place: Path) -> None:
        self.workdir = str(place / "tree")
        self.scratch = str(place / "scratch")
        self.python = sys.executable
        self.commands: list[Sequence[str]] = []
        shutil.copytree(tree, self.workdir, symlinks=True)
        Path(self.scratch).mkdir()

    def exec(
        self,
        argv: Sequence[str],
        *,
        timeout: float,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
    ) -> ExecResult:
        self.commands.append(argv)
        done = processes.run(
            argv,
            cwd=Path(cwd or self.workdir),
            env={
                "PATH": "/usr/local/bin:/usr/bin:/bin",
                "LC_ALL": "C.UTF-8",
                "HOME": self.scratch,
                **(env or {}),
            },
            timeout=timeout,
        )
        return ExecResult(
            done.returncode,
            done.stdout,
            done.stderr,
            timed_out=done.timed_out,
            truncated=done.truncated,
            duration=done.duration,
        )

    def put(self, files: Iterable[File], destination: str) -> None:
        for file in files:
            place = Path(destination) / file.path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(file.content)

    def get(self, path: str, limit: int = 16 * 1024**2) -> bytes:
        place = Path(path)
        if place.is_symlink() or not place.is_file():
            raise FileNotFoundError(path)
        if place.stat().st_size > limit:
            raise InfraError(f"{path} has more than {limit} bytes", reason="too-large")
        return place.read_bytes()

    def export(self, destination: Path, limit: int = 1024**3) -> None:
        shutil.copytree(
            self.workdir,
            destination,
            symlinks=True,
            dirs_exist_ok=True,
            ignore=lambda folder, names: [".git"] if folder == self.workdir else [],
        )

    def close(self) -> None:
        shutil.rmtree(Path(self.workdir).parent, ignore_errors=True)


def write_tree(root: Path, files: Files) -> Tree:
    """Write files (a text is UTF-8) below a new folder."""
    for path, content in files.items():
        place = root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content.encode() if isinstance(content, str) else content)
    root.mkdir(parents=True, exist_ok=True)
    return Tree(root, digest.of_tree(root))


def make_task(
    place: Path,
    head: Files,
    comments: Iterable[ReviewComment],
    *,
    base: Files | None = None,
    fixed: Files | None = None,
    sandbox: Callable[[Tree], AbstractContextManager[Sandbox]] | None = None,
    title: str = "Change things",
    body: str = "As discussed.",
    **changes: Any,
) -> AgentTask:
    """Build a task below ``place``; its sandbox is a `CopySandbox` unless one is given."""
    trees = Trees(write_tree(place / "base", base or {}), write_tree(place / "head", head))
    workspace = build(trees, title=title, body=body, cache=place / "cache")

    @contextmanager
    def copy() -> Iterator[Sandbox]:
        folder = place / "sandbox"
        opened = CopySandbox(trees.head.path, folder)
        try:
            yield opened
        finally:
            opened.close()

    values: dict[str, Any] = {
        "pull_request": PullRequest(
            title, body, workspace.base, workspace.head, workspace.diff.decode("utf-8", "replace"), "Python"
        ),
        "review": Review(tuple(comments), reviewer="test"),
        "diff": workspace.diff,
        "head": trees.head,
        "checkout": workspace.copy_to,
        "sandbox": copy if sandbox is None else lambda: sandbox(trees.head),
        "capture": lambda edited: capture(trees.head, edited),
        "fixed": lambda: write_tree(place / "fixed", fixed or {}),
        "directory": place / "run",
        "repeat": 1,
        "log": lambda _line: None,
        **changes,
    }
    return AgentTask(**values)
