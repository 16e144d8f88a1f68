# ruff: noqa: E501
"""AACR-Bench's files, as somebody may have changed them."""

from __future__ import annotations

from pathlib import Path

from pytest_crbench.core.errors import UsageError
from pytest_crbench.datasets import notes_of
from pytest_crbench.datasets.aacr import NEGATIVES, POSITIVES, load

from .shapes import json_text, mutated, sometimes, table
from .source import Maker, Source, either, listed, one_of, text, whole
from .target import Target, refused

_COMMENT = table(
    {
        "is_ai_comment": one_of(True, False), "note": either(one_of("Say why.", "Say why. \n"), text), "path": one_of("a.c", "b/c.c"),
        "side": one_of("right", "left"), "source_model": text, "from_line": whole(1, 4), "to_line": whole(1, 4),
        "category": one_of("Code Defect", "Performance"), "context": one_of("Diff Level", "Repo Level"),
    },
    80,
)  # fmt: skip
_PULL = table(
    {
        "change_line_count": whole(0, 900), "project_main_language": one_of("C", "Go"), "source_commit": one_of("1" * 40),
        "target_commit": one_of("2" * 40, "3" * 40), "category": text, "comments": listed(sometimes(_COMMENT, 80), 4),
        "githubPrUrl": one_of(*(f"https://github.com/{name}/pull/{n}" for n in (1, 2, 3, 4) for name in ("a/b", "a-b/c"))),
    },
    60,
)  # fmt: skip
_FILE = json_text(listed(sometimes(_PULL, 60), 4, 1))
_SOUND = (
    b'[{"change_line_count": 1, "project_main_language": "C", "source_commit": "%b", "target_commit": "%b", '
    b'"githubPrUrl": "https://github.com/a/b/pull/1", "comments": [{"is_ai_comment": true, "note": "n", "path": '
    b'"a.c", "side": "right", "source_model": "", "from_line": 1, "to_line": 1, "category": "Code Defect", '
    b'"context": "Diff Level"}]}]' % (b"1" * 40, b"2" * 40)
)  # fmt: skip


def targets() -> list[Target]:
    """Reading the two files of the dataset."""
    return [Target("aacr-files", _files, _load, cost=2)]


def _files(source: Source) -> tuple[bytes, bytes]:
    one: Maker = either(_FILE, _FILE, mutated([_SOUND]))
    return one(source), source.pick([_SOUND, b"", one(source)])


def _load(files: tuple[bytes, bytes], folder: Path) -> None:
    """What is loaded has ids of its own for all that it holds, and notes on it can be made."""
    (folder / POSITIVES).write_bytes(files[0])
    beside = folder / NEGATIVES
    beside.unlink(missing_ok=True)
    if files[1]:
        beside.write_bytes(files[1])
    with refused(UsageError):
        found = load(folder)
        assert found == load(folder)
        assert len({i.id.casefold() for i in found.instances}) == len(found.instances)
        for instance in found.instances:
            assert instance.checks
            for comments in ([c.comment for c in instance.checks], instance.rejected):
                assert len({c.id for c in comments}) == len(comments)
                assert all(c.lines and 1 <= c.lines[0] <= c.lines[1] for c in comments)
                assert all(c.body == c.body.rstrip() != "" for c in comments)
        for note in notes_of(f"aacr:{folder}", found):
            assert note.where
            "".join(note.where).encode()
