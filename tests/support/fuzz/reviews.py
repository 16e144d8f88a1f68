"""Reviews in every format: what a tool writes becomes comments, or is said to be unreadable."""

from __future__ import annotations

import json
import re
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from pytest_crbench.agents.command import native as as_native
from pytest_crbench.core.model import ReviewComment
from pytest_crbench.core.records import from_row
from pytest_crbench.evaluation.records import comment_to
from pytest_crbench.reviewers.formats import (
    PARSERS,
    HeadFiles,
    ParseContext,
    Parsed,
    Unreadable,
    parse,
    tagged,
)
from pytest_crbench.reviewers.formats.edits import Edit, Lines, as_lines
from pytest_crbench.reviewers.formats.paths import from_uri, repository_path
from pytest_crbench.reviewers.llm.prompt import locate
from pytest_crbench.reviewers.reading import normalise
from pytest_crbench.text.diffs import DiffMap
from pytest_crbench.text.hunks import hunks

from .review_shapes import DIFF, GRAMMARS, HEAD, PATH, SAMPLES
from .shapes import altered, anything, json_text, mutated, sometimes
from .source import Maker, Source, either, listed, text
from .target import Target, refused

_ROOT = Path(__file__).parents[3]
#: A review may hold this much text once it is read, whatever references and templates make of its input.
_MOST_TEXT = 80 * 1024**2


def targets() -> list[Target]:
    """One target for each format, and one for each of the parts that they share."""
    return [
        *(Target(f"review-{name}", _documents(name), partial(read, name)) for name in PARSERS),
        Target("review-round-trip", listed(_comment, 6), _round_trip),
        Target("review-paths", sometimes(either(PATH, text, _odd_path)), _path),
        Target("review-edits", _edits, _edit),
        Target("review-answer", GRAMMARS["tagged-hunk"], _answer),
    ]


def _documents(name: str) -> Maker:
    texts, values = _corpus()
    own = [GRAMMARS[name]] if name in GRAMMARS else list(GRAMMARS.values())
    rest = (json_text(altered(values)), mutated(texts), json_text(anything), lambda s: s.octets(s.below(60)))
    return either(*own * (5 // len(own)), *rest)


def read(name: str, raw: bytes, folder: Path) -> None:
    """Read one document by one parser, and look at what came of it."""
    context = _context(folder)
    with refused(Unreadable):
        parsed = parse(raw, name, context)
        assert isinstance(parsed, Parsed)
        _examine(parsed)


def _answer(raw: bytes, _folder: Path) -> None:
    """A model's answer about a hunk: blocks that are whole, each at a place of the hunk or at none."""
    found, notes = hunks(DIFF)
    assert not notes
    with refused(Unreadable):
        answer = tagged.read(raw.decode("utf-8", "replace"), tagged.HUNK_FIELDS)
        assert answer.blocks or not answer.half
        for block in answer.blocks:
            assert block["note"].strip()
            for hunk in found:
                for side, shown in (("left", hunk.left), ("right", hunk.right)):
                    lines, why = locate(block["diff"], hunk, side)
                    assert (lines is None) == bool(why)
                    if lines is not None:
                        assert {lines[0], lines[1]} <= {number for number, _ in shown}
                        assert lines[0] <= lines[1]


def read_in_every_format(raw: bytes, folder: Path) -> None:
    """Read one document by every parser."""
    for name in PARSERS:
        read(name, raw, folder)


def _examine(parsed: Parsed) -> None:
    comments = parsed.comments
    assert sum(len(c.body) + len(c.suggestion or "") for c in comments) <= _MOST_TEXT
    for comment in comments:
        _fit(comment)
    for warning in parsed.warnings:
        assert len(warning) < 1000
        warning.encode()
    json.dumps(dict(parsed.usage), allow_nan=False)
    diff = DiffMap(DIFF)
    found = normalise(comments, in_diff=diff.shows)
    assert len(found) == len(comments)
    assert len({comment.id for comment in found}) == len(found)
    assert normalise(found, in_diff=diff.shows) == found
    for comment in found[:50]:
        assert from_row(ReviewComment, json.loads(json.dumps(comment_to(comment)))) == comment


def _fit(comment: ReviewComment) -> None:
    for part in (
        comment.body,
        comment.path,
        comment.suggestion,
        comment.severity,
        comment.rule,
        *comment.flags,
    ):
        (part or "").encode()
    assert len(comment.path or "") <= 4096
    assert not set(comment.path or "") & set("\n\0\x1b\u202e")
    assert not set(comment.body) & set("\x1b\0")
    if comment.lines is None:
        assert comment.suggestion is None
        return
    first, last = comment.lines
    assert 1 <= first <= last
    if comment.path is None:  # kept for the published evaluator, which compares them all the same
        assert (comment.level, comment.suggestion) == ("general", None)
    else:
        assert comment.level == "inline"


@lru_cache(maxsize=4)
def _context(folder: Path) -> ParseContext:
    root = folder / "head"
    for path, content in HEAD.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(content.encode())
    (root / "loop").symlink_to("loop")
    (root / "out").symlink_to("/etc")
    return ParseContext(root, HeadFiles(lambda: root), ("gone.py",))


@lru_cache(maxsize=1)
def _corpus() -> tuple[list[bytes], list[Any]]:
    files = sorted((_ROOT / "fixtures/tool-outputs").glob("*.*"))
    texts = [*SAMPLES, *(file.read_bytes() for file in files if file.suffix in (".json", ".sarif"))]
    values = []
    for raw in texts:
        try:
            values.append(json.loads(raw))
        except ValueError:
            continue
    return texts, values


def _comment(source: Source) -> ReviewComment:
    """A comment as a reviewer might make it, whose texts are as we keep them."""
    letters = "abcäö𝒳-:.,<>&|`'\"\\{} "
    body = source.text(9, letters).strip() or "x"
    path = source.pick([None, *HEAD])
    pair = sorted((source.between(1, 4), source.between(1, 4)))
    lines = (pair[0], pair[1]) if path and source.chance(2) else None
    side = source.pick(["right", "left"])
    suggestion = source.pick([None, "", source.text(9, letters)]) if lines and side == "right" else None
    level = "inline" if lines else "file" if path else "general"
    return ReviewComment("", body, path, lines, side, level, suggestion)  # type: ignore[arg-type]


def _round_trip(comments: list[ReviewComment], folder: Path) -> None:
    """A review, written in our own format and read again, is the same review."""
    written = json.dumps(as_native(comments)).encode()
    for name in ("native", "auto"):
        assert list(parse(written, name, _context(folder)).comments) == comments


def _odd_path(source: Source) -> str:
    parts = ("a", "..", ".", "/", "\\", '"', "%2e", "file:", "C:", "é", "\0", "b/", "://", "a.py", "\\303")
    return "".join(source.pick(parts) for _ in range(source.below(9)))


def _path(raw: Any, folder: Path) -> None:
    context = _context(folder)
    found, flags = repository_path(raw, context)
    if isinstance(raw, str):
        repository_path(from_uri(raw), context)
    if found is None:
        return
    found.encode()
    assert len(found) <= 4096
    if "outside-tree" not in flags:
        assert not found.startswith("/")
        assert ".." not in found.split("/")


def _edits(source: Source) -> Any:
    content = source.text(30, "ab\n\ré")
    edits = [
        Edit(source.between(-1, 31), source.between(-1, 31), source.text(5, "xy\n"))
        for _ in range(source.below(4))
    ]
    return content, edits, sorted((source.between(1, 8), source.between(1, 8)))


def _edit(value: Any, _folder: Path) -> None:
    """Edits said as one replacement of whole lines give the same text."""
    content, edits, pair = value
    found = as_lines(Lines(content), edits, tuple(pair))
    if found is None:
        return
    index = Lines(content)
    first, last = found.lines
    assert 1 <= first <= last <= index.count
    wanted = content
    for edit in sorted(edits, key=lambda e: (e.start, e.end), reverse=True):
        wanted = wanted[: edit.start] + edit.replacement + wanted[edit.end :]
    got = content[: index.starts[first - 1]] + found.text + content[index.end_of(last) :]
    assert re.sub("\r+\n", "\n", got) == re.sub("\r+\n", "\n", wanted)
