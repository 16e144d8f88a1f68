"""Review output that is made to exhaust, or to mean two things.

Naive is the usual parser without a bound.
"""

from __future__ import annotations

import gzip
import json
import time
import tracemalloc
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_crbench.agents import prompt
from pytest_crbench.agents.suggestions import plan
from pytest_crbench.core.model import PullRequest, ReviewComment
from pytest_crbench.reviewers.formats import HeadFiles, ParseContext, Unreadable, parse

FORMATS: dict[str, Callable[[str], Any]] = {
    "native": lambda body: {"comments": [{"body": body}]},
    "github": lambda body: [{"body": body, "path": "a.py", "line": 1, "side": "RIGHT"}],
    "sarif": lambda body: {"version": "2.1.0", "runs": [{"results": [{"message": {"text": body}}]}]},
    "rdjson": lambda body: {"diagnostics": [{"message": body, "location": {"path": "a.py"}}]},
}


@pytest.fixture
def context(tmp_path: Path) -> ParseContext:
    (tmp_path / "a.py").write_text("x\n" * 2000)
    return ParseContext(tmp_path, HeadFiles(lambda: tmp_path))


def checkstyle(message: str) -> bytes:
    return f'<checkstyle><file name="a.py"><error line="1" message="{message}"/></file></checkstyle>'.encode()


LAUGHS = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 5))
BOMBS = {
    "billion laughs": f'<!DOCTYPE c [<!ENTITY l0 "{"ha" * 50}">{LAUGHS}]>',
    "external file": '<!DOCTYPE c [<!ENTITY l4 SYSTEM "file:///etc/passwd">]>',
    "parameter": '<!DOCTYPE c [<!ENTITY % p SYSTEM "http://127.0.0.1:9/p"> %p; <!ENTITY l4 "x">]>',
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_entities_of_an_xml_document(context: ParseContext, bomb: str) -> None:
    """A Checkstyle file declares entities that become gigabytes when they are put in place (billion
    laughs), or that are files and addresses to be fetched.

    Defence: no document type (reviewers/formats/checkstyle.py)
    """
    raw = BOMBS[bomb].encode() + b"<checkstyle><file name='a.py'><error message='m'/>&l4;</file></checkstyle>"
    if bomb == "billion laughs":  # a small one: four rounds of ten
        text = "".join(ET.fromstring(raw.replace(b"c [", b"checkstyle [")).itertext())
        assert len(text) >= 10**6
    with pytest.raises(Unreadable, match="document type") as caught:
        found = parse(raw, "checkstyle", context)
        pytest.fail(f"attack: {found}")
    assert caught.value.reason == "unreadable"


@pytest.mark.parametrize("name", FORMATS)
def test_json_nested_without_end(context: ParseContext, name: str) -> None:
    """The output is a hundred thousand brackets, or a review with such a value in it: a parser that
    calls itself for each takes the process with it.

    Defence: nesting is told (text/plainjson.py)
    """
    deep = "[" * 100_000
    with pytest.raises(RecursionError):
        json.loads(deep)
    inside = json.dumps(FORMATS[name]("m")).replace('"m"', '"m", "deep": ' + deep + "]" * 100_000, 1)
    for raw in (deep, inside, '{"a":' * 100_000):
        said = "it was read"
        try:
            parse(raw.encode(), name, context)
        except (Unreadable, RecursionError) as error:
            said = f"{type(error).__name__}: {error}"
        assert "levels deep" in said, f"attack: {said[:200]}"


def test_one_key_twice(context: ParseContext) -> None:
    """A review names comments twice, with findings and without: a program that takes the first says
    that there is one, one that takes the last that all is clean, and what a person reads in the raw
    file is not what counts.

    Defence: ambiguous JSON is refused (reviewers/formats/jsontext.py)
    """
    raw = b'{"comments": [{"body": "found", "path": "a.py", "line": 1}], "comments": []}'
    assert json.loads(raw) == {"comments": []}
    for name in ("native", "auto"):
        with pytest.raises(Unreadable, match=r"'comments' twice"):
            pytest.fail(f"attack: {parse(raw, name, context)}")
    same = b'{"comments": [], "comments": []}'
    assert parse(same, "native", context).comments == ()


def test_a_number_of_a_million_digits(context: ParseContext) -> None:
    """A line number has a million digits: turning it into an integer takes minutes, or raises what
    nobody catches.

    Defence: numbers are bounded (reviewers/formats/jsontext.py)
    """
    raw = b'{"comments": [{"body": "m", "path": "a.py", "line": ' + b"9" * 1_000_000 + b"}]}"
    with pytest.raises(ValueError, match="digits"):
        json.loads(raw)
    began = time.process_time()
    said = "it was read"
    try:
        parse(raw, "native", context)
    except (Unreadable, ValueError) as error:
        said = type(error).__name__
    assert said == "Unreadable", f"attack: {said}"
    assert time.process_time() - began < 5


@pytest.mark.parametrize("name", [*FORMATS, "checkstyle"])
def test_a_body_of_ten_megabytes(context: ParseContext, name: str) -> None:
    """One comment's body has ten megabytes: it is copied into the record, the prompt, the report and
    the log, for each check.

    Defence: bodies are cut (reviewers/formats/draft.py)
    """
    body = "x" * 10_000_000
    raw = checkstyle(body) if name == "checkstyle" else json.dumps(FORMATS[name](body)).encode()
    assert len(raw) > 10_000_000
    (comment,) = parse(raw, name, context).comments
    assert len(comment.body) < 70_000, "attack: the whole body is kept"
    assert "clipped" in comment.flags


@pytest.mark.parametrize("name", [*FORMATS, "checkstyle"])
def test_a_review_of_many_comments(context: ParseContext, name: str) -> None:
    """A review has hundreds of thousands of comments, of a few bytes each: every one becomes an
    object, a lookup in the tree, a part of the prompt, until the memory or the day is used up.

    Defence: a bound of comments (reviewers/formats/base.py)
    """
    count = 25_000
    if name == "checkstyle":
        raw = checkstyle("m").replace(b"<error", b"<error message='m'/>" * count + b"<error")
    else:
        one = FORMATS[name]("m")
        many = json.dumps(one).split(json.dumps("m"))
        whole = one if isinstance(one, list) else next(iter(one.values()))
        if name == "sarif":
            one["runs"][0]["results"] *= count
        else:
            whole *= count
        raw = json.dumps(one).encode()
        assert many
    naive = raw.count(b"message") + raw.count(b"body")
    assert naive >= count
    assert len(raw) < 16 * 1024**2
    tracemalloc.start()
    began = time.process_time()
    try:
        with pytest.raises(Unreadable, match="more than the 20000 comments"):
            pytest.fail(f"attack: {len(parse(raw, name, context).comments)} comments")
        assert tracemalloc.get_traced_memory()[1] < 300 * 1024**2
    finally:
        tracemalloc.stop()
    assert time.process_time() - began < 20


def test_suggestions_that_take_a_day(context: ParseContext) -> None:
    """A review has as many suggestions as may be read, each for a line of its own or all for one:
    comparing each with each takes hours, and no limit of time holds for the agent that applies them.

    Defence: suggestions are found by their lines (agents/suggestions.py)
    """
    root = context.head.root
    lines = 20_000
    (root / "long.py").write_text("x = 1\n" * lines)
    comments = [
        ReviewComment(str(n), "b", "long.py", (n, n), suggestion=f"x = {n}\n") for n in range(1, lines + 1)
    ]
    first = [(c.lines, c.suggestion) for c in comments[:200]]
    compared = sum(1 for n, one in enumerate(first) for other in first[:n] if one != other)
    assert compared == 200 * 199 // 2, "each with each"
    began = time.process_time()
    made = plan(root, comments)
    took = time.process_time() - began
    assert made.counts["applied"] == lines
    assert took < 8, f"attack: {took:.0f} s"


@pytest.mark.parametrize("how", ["gzip", "utf-16", "utf-16 without mark", "utf-32", "nul"])
def test_output_in_another_encoding(context: ParseContext, how: str) -> None:
    """The output is compressed, or in an encoding of which a part reads as an empty review: a tolerant
    program finds `[]` in it somewhere, and takes the review for clean.

    Defence: what is not read is not clean (reviewers/formats/native.py)
    """
    text = json.dumps({"comments": [{"body": "found"}]})
    raw = {
        "gzip": gzip.compress(text.encode()),
        "utf-16": text.encode("utf-16"),
        "utf-16 without mark": text.encode("utf-16-le"),
        "utf-32": text.encode("utf-32"),
        "nul": b"\0" * 10 + text.encode(),
    }[how]
    assert text not in raw.decode("utf-8", "replace") or how == "nul"
    for name in ("native", "auto"):
        found, said = ["found"], "unreadable"
        try:
            found = [c.body for c in parse(raw, name, context).comments]
        except Unreadable as error:
            said = error.reason if str(error).isprintable() else str(error)
        assert (found, said) == (["found"], "unreadable"), "attack: the review is taken for clean"


def test_signs_in_a_body_in_each_format(context: ParseContext) -> None:
    """The same body, with escape sequences, NUL, C1 controls, overrides and lone surrogates, comes in
    each format: one of the parsers lets through what the others replace.

    Defence: bodies are made safe in one place (reviewers/formats/draft.py)
    """
    evil = "a\x1b[31m\x00\x9b1m\x07\x08\u202eb\ud800c\rd"
    xml = checkstyle("a&#x9b;1m\u202eb")
    for name, raw in {
        **{name: json.dumps(made(evil)).encode() for name, made in FORMATS.items()},
        "checkstyle": xml,
    }.items():
        assert "\x9b" in (xml.decode().replace("&#x9b;", "\x9b") if name == "checkstyle" else evil)
        (comment,) = parse(raw, name, context).comments
        bad = [c for c in comment.body if (c < " " and c not in "\t\n\r") or "\x7f" <= c <= "\x9f"]
        assert not bad, f"attack: {name}: {bad}"
        assert {"control-characters", "bidi"} <= set(comment.flags)
        comment.body.encode()
        text = prompt.instance(PullRequest("T", "B", "b", "h", "d", "Python"), [comment])
        assert "\u202e" not in text
