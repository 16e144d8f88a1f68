"""A kind of dataset of another package, end to end: it touches no file of ours."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from support.benchmarks import run
from support.foreign import install

if TYPE_CHECKING:
    from pathlib import Path

KIND = '''
from pathlib import Path

from pytest_crbench import Check, Dataset, DatasetKind, Environment, Instance, Note, ReviewComment, Source


class Lines(DatasetKind):
    """One line for each check: the pull request, the path, the line and what a reviewer said."""

    def load(self, path):
        found = {}
        for number, line in enumerate(path.read_text().splitlines(), 1):
            pull, file, at, body = line.split("|")
            comment = ReviewComment(id=f"c{number}", body=body, path=file, lines=(int(at), int(at)))
            check = Check(comment.id, comment, "behavioral", "Security", "", body)
            found.setdefault(pull, []).append(check)
        return Dataset(
            name="lines",
            title="lines",
            notice="",
            instances=tuple(
                Instance(
                    *("lines", pull, "Python", "pull_request", Source("tree", path), pull, "", Environment()),
                    *(tuple(checks), pull),
                )
                for pull, checks in found.items()
            ),
            digest="d",
            path=path.parent,
            scoring="matching",
        )

    def folder(self, path):
        return path.parent

    def notes(self, path, dataset):
        return [Note("short", "that is all right", ("a line",))]


LINES = Lines()
'''


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    install(tmp_path / "site", monkeypatch, "lines_kind", KIND, ("datasets", "lines = lines_kind:LINES"))
    file = tmp_path / "reviews.txt"
    file.write_text("one|a.py|3|too slow\none|a.py|9|too fast\ntwo|b.py|1|wrong\n")
    return file


def test_it_is_measured_as_ours_are(folder: Path, data: Path, cache: Path) -> None:
    (folder / "two.json").write_text('{"comments": [{"path": "b.py", "line": 1, "body": "wrong"}]}')
    (folder / "one.json").write_text('{"comments": [], "done": true}')
    asked = ["--crbench-reviewer=file:{instance}.json", "--crbench-offline", "--crbench-matcher=exact"]
    done = run(folder, f"lines:{data}", cache, *asked, "--crbench-fail-under=0.3", "-n", "2")  # type: ignore[arg-type]
    assert done.status == 0, done.output
    assert done.outcomes() == {"passed": 1, "missed": 2}
    assert done.verdict.startswith("crbench: PASSED, overall 0.333 >= 0.3")


def test_the_commands_know_it(data: Path) -> None:
    command = [sys.executable, "-m", "pytest_crbench.cli", "instances", "check", f"lines:{data}"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "lines: 2 instances, 3 checks, matched to references" in said
    assert "1  short" in said
