"""Damaged reviews in every format: what is read is the whole damaged document, or nothing of it.

A review is written, put into prose or a fence where its format allows that, and then damaged: bytes replaced,
removed or added, and cut off at its beginning or end. The oracle is strict and shares no code with the
parsers: it reads the damaged document as a whole, with the parsers of the standard library. Only what it
reads, or `Unreadable`, may come out; never a part of a document that failed. Bodies are compared, and the
lines of comments that have the keys they were written with. A review without comments is unreadable in prose.
"""

from __future__ import annotations

import json
import re
import xml.sax
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from xml.sax.handler import ContentHandler
from xml.sax.saxutils import quoteattr

from pytest_crbench.reviewers.formats import HeadFiles, ParseContext, Unreadable, parse

from .source import Source
from .target import Target, refused

#: Body and line of each comment (no line where the place itself is damaged); None: the whole does not parse.
Bodies = list[tuple[str, int | None]] | None
_WORDS = ("Divides", "by", "zero.", "Return", "None", "{}", "[0]", '"x"', "a, b", "é", "why: 2?", "\\", "`y`")
_SIGNS = '{}[]",:\\\n `<>/x0=é'
#: Models write tags in capitals, with blanks, and with a slash that does not belong there.
_TAG = re.compile(r"<\s*(/?)\s*(path|side|from|to|note|notesplit|end)\s*/?\s*>", re.IGNORECASE)
_TEXT = r"((?:(?!<\s*/?\s*(?:path|side|from|to|diff|note|notesplit|end)\s*/?\s*>).)*)"
_BLOCK = re.compile(
    r"[^<]*"
    + r"\s*".join(f"<{name}>{_TEXT}</{name}>" for name in ("path", "side", "from", "to", "note"))
    + r"[^<]*",
    re.DOTALL,
)


@dataclass(frozen=True)
class Damaged:
    """An output: text before and after a document, each of them maybe damaged, and how it is to be read."""

    shape: str
    format: str
    before: bytes
    document: bytes
    after: bytes
    whole: tuple[str, ...]
    damaged: bool


def targets() -> list[Target]:
    """One target for each way of writing a review, and one that reads them all by their content."""
    own = [Target(f"damaged-{name}", partial(_make, (name,)), _check) for name in _SHAPES]
    return [
        *own,
        Target(
            "damaged-auto",
            partial(_make, tuple(name for name in _SHAPES if name != "tagged"), auto=True),
            _check,
        ),
    ]


def _make(names: tuple[str, ...], source: Source, auto: bool = False) -> Damaged:
    name = source.pick(names)
    shape = _SHAPES[name]
    items = [(_body(source), source.between(1, 30)) for _ in range(source.below(5))]
    if name.endswith("lines"):
        items = items or [("only", 1)]
    text = shape.write(items, source.pick((None, 2, 1)))
    before, after = source.pick(_AROUND) if shape.prose else ("", "")
    parts = [before.encode(), text.encode(), after.encode()]
    whole = tuple(map(_normal, (body for body, _ in items)))
    damage = source.below(6)
    if damage in (1, 5):
        for _ in range(source.between(1, 4)):
            parts[1] = _damage(source, parts[1])
    if damage in (2, 5):
        parts[1] = parts[1][: source.below(len(parts[1]) + 1)]
        parts[2] = b"" if source.chance(2) else parts[2]
    if damage == 3:
        part = source.pick((0, 2))
        parts[part] = _damage(source, parts[part])
    if damage in (4, 5) and source.chance(2):
        parts[1] = parts[1][source.below(len(parts[1]) + 1) :]
        parts[0] = b"" if source.chance(2) else parts[0]
    return Damaged(name, "auto" if auto else shape.format, *parts, whole=whole, damaged=bool(damage))


def _body(source: Source) -> str:
    return " ".join(source.pick(_WORDS) for _ in range(source.between(1, 4)))


def _damage(source: Source, data: bytes) -> bytes:
    at = source.below(len(data) + 1)
    new = source.pick(_SIGNS).encode() if source.chance(2) else source.octets(1)
    kind = source.below(3)
    return data[:at] + (b"" if kind == 2 else new) + data[at + (kind != 1) :]


def _check(made: Damaged, folder: Path) -> None:
    shape = _SHAPES[made.shape]
    context = ParseContext(folder, HeadFiles(lambda: folder))
    found: list[str] | None = None
    with refused(Unreadable):
        comments = parse(made.before + made.document + made.after, made.format, context).comments
        found = [_normal(comment.body) for comment in comments]
    text = made.document.decode("utf-8", "replace")
    wanted = shape.read(text)
    if wanted is None and made.format == "auto":
        wanted = _json(text)  # what is cut out of another format may be a review of ours
    apology = not found and _prose(made)
    if not made.damaged:
        assert found == list(made.whole) or (found is None and apology), "an undamaged review was not read"
    elif found is not None:
        bodies = None if wanted is None else [_normal(body) for body, _ in wanted]
        kept = shape.format == "tagged" and found == list(made.whole)
        assert found == bodies or kept, f"read {found}, and the whole says {bodies}"
        assert not (apology and shape.prose), "an empty review in prose"
    if found is not None and wanted is not None:
        for comment, (_, line) in zip(comments, wanted, strict=False):
            assert line is None or comment.lines == (line, line), f"{comment.lines} instead of {line}"


def _prose(made: Damaged) -> bool:
    return bool(re.sub(r"```[ \t]*\S*", "", (made.before + made.after).decode("utf-8", "replace")).strip())


def _normal(body: str) -> str:
    body = re.sub(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]", "\ufffd", body)
    # Whether a form feed at an end is white space or a control character, formats see differently.
    return " ".join(re.sub("[\ud800-\udfff]", "\ufffd", body).split()).strip("\ufffd ")


# What programs write around a review. The last ones are fences that are closed in unusual places.
_AROUND = (
    ("", ""),
    ("Here is my review:\n\n", "\n\nHope it helps!\n"),
    ("```json\n", "\n```\n"),
    ("I looked at [1] and {x}.\n```\n", "\n```\nDone {}.\n"),
    ("[INFO] starting\n", "\n[INFO] done in 3 s\n"),
    ("```json ", "```"),
    ("Preamble\n```json\n", "```\n"),
)


# --- Formats: how each is written, and read as a whole -----------------------------------------------------


@dataclass(frozen=True)
class Shape:
    format: str
    write: Callable[[list[tuple[str, int]], int | None], str]
    read: Callable[[str], Bodies]
    prose: bool = False


def _values(text: str) -> list[Any] | None:
    """JSON documents that follow one another, and nothing else; None if there is anything else."""
    decoder, at, found = json.JSONDecoder(), 0, []
    try:
        while text[at:].strip():
            at += len(text[at:]) - len(text[at:].lstrip())
            value, at = decoder.raw_decode(text, at)
            found.append(value)
    except (ValueError, RecursionError):
        return None
    return found


def _json(text: str) -> Bodies:
    """Native and GitHub's: one list, one object with comments, or lists or comments in a row."""
    values = _values(text)
    if not values:
        return None
    if all(isinstance(value, list) for value in values):
        pages = values[:1] if all(value == values[0] for value in values) else values
        items = [item for page in pages for item in page]
        if items and all(isinstance(item, list) for item in items):
            items = [item for page in items for item in page]
    elif all(isinstance(value, dict) and "comments" not in value for value in values):
        items = values
    elif not all(isinstance(value, dict) for value in values):
        return None
    elif all(value == values[0] for value in values) and isinstance(values[0]["comments"], list):
        items = values[0]["comments"]
    else:
        return None
    return _placed(items, "body", lambda item: item["line"], _item, _their)


def _placed(items: list[Any], key: str, line: Callable[[Any], Any], *made: Callable[..., Any]) -> Bodies:
    """Bodies with the lines of those items that look as if they had been written undamaged."""
    found: list[tuple[str, int | None]] = []
    for item in items:
        if not isinstance(item, dict) or not isinstance(item.get(key), str):
            return None
        at = item if any(_keys(item) == _keys(make("", 1)) for make in made) else None
        number = None if at is None else line(at)
        fits = type(number) is int and 1 <= number <= 10**8
        found.append(
            (item[key], number if fits and any(item == m(item[key], number) for m in made) else None)
        )
    return found


def _keys(value: Any) -> Any:
    return {key: _keys(inner) for key, inner in value.items()} if isinstance(value, dict) else None


def _github(text: str) -> Bodies:
    """As `_json`; comments in a row may be pages and single ones."""
    values = _values(text)
    if values and len(values) > 1 and all(isinstance(v, dict) and "comments" in v for v in values):
        return None
    return _json(text)


def _sarif(text: str) -> Bodies:
    values = _values(text)
    try:
        (log,) = values or []
        if log["version"] != "2.1.0" or not log["runs"]:
            return None
        results = [result for run in log["runs"] for result in run["results"]]
        texts = [r["message"].get("text") if isinstance(r.get("message"), dict) else "" for r in results]
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    return [
        (text if isinstance(text, str) else "", _line_of(r)) for text, r in zip(texts, results, strict=True)
    ]


def _line_of(result: Any) -> int | None:
    try:
        line = result["locations"][0]["physicalLocation"]["region"]["startLine"]
        whole = result == _result(result["message"]["text"], line)
    except (KeyError, TypeError, IndexError):
        return None
    return line if whole and type(line) is int and 1 <= line <= 10**8 else None


def _rdjson(text: str) -> Bodies:
    values = _values(text)
    try:
        (value,) = values or []
        return _placed(value["diagnostics"], "message", _start, _diagnostic)
    except (ValueError, KeyError, TypeError):
        return None


def _start(item: Any) -> Any:
    return item["location"]["range"]["start"]["line"]


def _rdjsonl(text: str) -> Bodies:
    try:
        rows = [json.loads(line) for line in text.split("\n") if line.strip()]
        rows_with = [row for row in rows if row.get("diagnostics") != []]
        return _placed(rows_with, "message", _start, _diagnostic) if rows else None
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def _checkstyle(text: str) -> Bodies:
    seen: list[tuple[str, Any]] = []
    handler = ContentHandler()
    handler.startElement = lambda name, attributes: seen.append((name, attributes))  # type: ignore[method-assign]
    try:
        xml.sax.parseString(text.strip().encode(), handler)
    except (xml.sax.SAXException, ValueError):
        return None
    if seen[0][0] != "checkstyle" or {name for name, _ in seen} - {
        "checkstyle",
        "file",
        "error",
        "exception",
    }:
        return None
    intact = all(a.get("name") == "calc.py" for name, a in seen if name == "file")
    return [
        (a.get("message", ""), _digits(a.get("line", "")) if intact and name == "error" else None)
        for name, a in seen
        if name in ("error", "exception")
    ]


def _digits(text: str) -> int | None:
    return int(text) if re.fullmatch("[1-9][0-9]{0,7}", text) else None


def _tagged(text: str) -> Bodies:
    # Words before the first tag and after the end are no part of an answer (reviewers/formats/tagged.py).
    text = _TAG.sub(lambda tag: f"<{tag[1]}{tag[2].lower()}>", text)
    start = max(text.find("<"), 0)
    if re.match(r"\s*/?[a-z]*/?>", text[:start]):
        return None
    body, end, rest = text[start:].partition("<end>")
    if "<" in rest or not (body.strip() or end):
        return None
    blocks = [_BLOCK.fullmatch(block) for block in body.split("<notesplit>")] if body.strip() else []
    if not all(blocks):
        return None
    return [(b[5], _digits(b[3].strip()) if b[1] and b[3] == b[4] else None) for b in blocks if b]


def _item(body: str, line: int) -> dict[str, Any]:
    return {"path": "calc.py", "line": line, "body": body}


def _their(body: str, line: int) -> dict[str, Any]:
    return {"path": "calc.py", "line": line, "side": "RIGHT", "commit_id": "0", "body": body}


def _result(body: str, line: int) -> dict[str, Any]:
    place = {"artifactLocation": {"uri": "calc.py"}, "region": {"startLine": line}}
    return {"message": {"text": body}, "locations": [{"physicalLocation": place}]}


def _diagnostic(body: str, line: int) -> dict[str, Any]:
    return {"message": body, "location": {"path": "calc.py", "range": {"start": {"line": line}}}}


def _xml(items: list[tuple[str, int]], _indent: int | None) -> str:
    errors = "\n".join(f'<error line="{line}" message={quoteattr(body)}/>' for body, line in items)
    return f'<?xml version="1.0"?>\n<checkstyle><file name="calc.py">{errors}</file></checkstyle>'


def _blocks(items: list[tuple[str, int]], _indent: int | None) -> str:
    block = "<path>calc.py</path>\n<side>right</side>\n<from>{0}</from>\n<to>{0}</to>\n<note>{1}</note>\n"
    return "<notesplit/>\n".join(block.format(line, body) for body, line in items) + "<end/>\n"


_SHAPES: dict[str, Shape] = {
    "native": Shape(
        "native", lambda c, i: json.dumps({"comments": [_item(*x) for x in c]}, indent=i), _json, prose=True
    ),
    "native-list": Shape(
        "native", lambda c, i: json.dumps([_item(*x) for x in c], indent=i), _json, prose=True
    ),
    "native-lines": Shape(
        "native", lambda c, _: "\n".join(json.dumps(_item(*x)) for x in c), _json, prose=True
    ),
    "github": Shape(
        "github", lambda c, i: json.dumps([_their(*x) for x in c], indent=i), _github, prose=True
    ),
    "github-review": Shape(
        "github",
        lambda c, i: json.dumps({"event": "COMMENT", "comments": [_their(*x) for x in c]}, indent=i),
        _github,
        prose=True,
    ),
    "github-pages": Shape(
        "github", lambda c, i: "".join(json.dumps([_their(*x)], indent=i) for x in c) or "[]", _github
    ),
    "sarif": Shape(
        "sarif",
        lambda c, i: json.dumps(
            {"version": "2.1.0", "runs": [{"results": [_result(*x) for x in c]}]}, indent=i
        ),
        _sarif,
        prose=True,
    ),
    "rdjson": Shape(
        "rdjson",
        lambda c, i: json.dumps({"diagnostics": [_diagnostic(*x) for x in c]}, indent=i),
        _rdjson,
        prose=True,
    ),
    "rdjson-lines": Shape(
        "rdjsonl", lambda c, _: "\n".join(json.dumps(_diagnostic(*x)) for x in c), _rdjsonl
    ),
    "checkstyle": Shape("checkstyle", _xml, _checkstyle),
    "tagged": Shape("tagged", _blocks, _tagged),
}
