"""Cutting repositories: whole lines, each in one chunk, between definitions where a grammar is there."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.fixture_trees import FILES, write

from pytest_crbench.core.errors import TamperedError
from pytest_crbench.models.retrieval import syntax
from pytest_crbench.models.retrieval.chunks import chunked, chunks_of, reason, told
from pytest_crbench.models.retrieval.parsing import MOST_FAILURES, Parsing
from pytest_crbench.models.retrieval.ranking import words


def function(name: str, lines: int, indent: str = "") -> str:
    return (
        f"{indent}def {name}():\n" + "".join(f"{indent}    x{n} = {n}\n" for n in range(lines - 1)) + "\n\n"
    )


def test_chunks_are_the_lines_that_they_name() -> None:
    for path, content in FILES.items():
        lines = content.decode("utf-8", "replace").replace("\r\n", "\n").split("\n")
        last = 0
        covered = set()
        for chunk in chunks_of(path, content):
            assert chunk.lines[0] > last
            last = chunk.lines[1]
            assert chunk.text == "\n".join(lines[chunk.lines[0] - 1 : last])
            covered |= set(range(chunk.lines[0], last + 1))
        assert {n for n, line in enumerate(lines, 1) if line.strip()} <= covered


def test_a_definition_is_not_cut_and_what_leads_it_goes_with_it() -> None:
    text = function("one", 20) + "# About two.\n@cached\n" + function("two", 30) + function("three", 25)
    found = [(c.lines, c.text.split("\n")[0]) for c in chunks_of("a.py", text.encode())]
    assert found == [((1, 20), "def one():"), ((23, 54), "# About two."), ((57, 81), "def three():")]


def test_a_long_class_is_divided_between_its_methods() -> None:
    text = "x = 1\n" * 6 + "@final\nclass A:\n" + "".join(function(f"m{n}", 22, "    ") for n in range(4))
    found = [c.text.split("\n") for c in chunks_of("a.py", text.encode())]
    assert [part[0].strip() for part in found] == ["x = 1", "@final", "def m1():", "def m2():", "def m3():"]
    assert found[1][1:3] == ["class A:", "    def m0():"]


@pytest.mark.parametrize(
    ("path", "text", "names"),
    [
        ("a.go", "package a\n\nfunc NAME() int {\nBODY}\n", "func"),
        ("a.java", "class C {\n  int NAME() {\nBODY  }\n}\n", "int"),
        ("a.js", "function NAME() {\nBODY}\n", "function"),
        ("a.ts", "function NAME(): number {\nBODY}\n", "function"),
        ("a.tsx", "function NAME(): number {\nBODY}\n", "function"),
        ("a.rs", "fn NAME() -> i32 {\nBODY 1 }\n", "fn"),
        ("a.c", "int NAME(void) {\nBODY}\n", "int"),
        ("a.cpp", "int NAME() {\nBODY}\n", "int"),
        ("a.cs", "class C { int NAME() {\nBODY} }\n", "int"),
        ("a.php", "<?php\nfunction NAME() {\nBODY}\n", "function"),
        ("a.rb", "def NAME\nBODYend\n", "def"),
    ],
)
def test_every_grammar_finds_functions(path: str, text: str, names: str) -> None:
    body = "".join(f"  f({n});\n" for n in range(30))
    many = "".join(text.replace("NAME", f"n{n}").replace("BODY", body) for n in range(3))
    pieces = syntax.pieces(path, many.encode(), 50)
    assert pieces is not None, "no grammar"
    assert len(chunks_of(path, many.encode())) == 3
    for chunk in chunks_of(path, many.encode()):
        assert chunk.text.count("f(0)") == chunk.text.count("f(29)") == 1


def test_without_a_grammar_lines_are_cut_at_blank_ones() -> None:
    assert syntax.pieces("shop/legacy.txt", FILES["shop/legacy.txt"], 50) is None
    found = chunks_of("shop/legacy.txt", FILES["shop/legacy.txt"])
    assert len(found) == 3
    assert all(c.lines[1] - c.lines[0] < 50 for c in found)
    lines = FILES["shop/legacy.txt"].decode().split("\n")
    assert all(not lines[c.lines[0] - 2].strip() for c in found[1:])
    solid = chunks_of("a.txt", b"x\n" * 120)
    assert [c.lines for c in solid] == [(1, 50), (51, 100), (101, 120)]


def test_without_the_package_of_grammars_code_is_cut_by_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    text = (function("one", 40) + function("two", 40)).encode()
    assert [c.lines for c in chunks_of("a.py", text)] == [(1, 40), (43, 82)]
    monkeypatch.setitem(sys.modules, "tree_sitter", None)
    syntax.parser_of.cache_clear()
    try:
        assert syntax.pieces("a.py", text, 50) is None
        assert [c.lines for c in chunks_of("a.py", text)] == [(1, 40), (43, 82)]
        assert [c.lines for c in chunks_of("b.py", b"x = 1\n" * 60)] == [(1, 50), (51, 60)]
    finally:
        syntax.parser_of.cache_clear()


def test_files_are_left_out_for_a_reason_that_is_told(tmp_path: Path) -> None:
    cut = chunked(write(tmp_path / "tree"))
    assert dict(cut.skipped) == {
        "data.csv": "huge",
        "dist/app.js": "generated",
        "link.py": "link",
        "package-lock.json": "generated",
        "shop/api_pb2.py": "generated",
        "shop/empty.py": "empty",
        "shop/logo.png": "binary",
        "shop/stub.ts": "generated",
    }
    assert told(cut.skipped) == "1 binary, 1 empty, 4 generated, 1 huge, 1 link"
    assert cut.files == 5
    assert [c.path for c in cut.chunks] == sorted(c.path for c in cut.chunks)


@pytest.mark.parametrize(
    "text",
    [
        "# This module writes files that are generated by users.\n",
        '"""Checks that generated code is not edited."""\n',
        "# Edit me.\n",
    ],
)
def test_what_speaks_of_generated_files_is_not_one(text: str) -> None:
    assert reason("a.py", "100644", text.encode()) == ""


def test_a_tree_that_was_changed_is_not_cut(tmp_path: Path) -> None:
    tree = write(tmp_path / "tree")
    (tree.path / "shop/orders.py").write_text("changed = 1\n")
    with pytest.raises(TamperedError):
        chunked(tree)


@settings(max_examples=150, deadline=None)
@given(
    st.text(st.sampled_from("a =:(){}\n\n\n\t#@'\"\\\r\x0c\u2028é"), max_size=400),
    st.sampled_from(["a.py", "a.js", "a.txt"]),
)
def test_whatever_a_file_holds_each_line_is_in_one_chunk(text: str, path: str) -> None:
    lines = text.split("\n")
    rows = [n for c in chunks_of(path, text.encode()) for n in range(c.lines[0], c.lines[1] + 1)]
    assert len(rows) == len(set(rows))
    assert {n for n, line in enumerate(lines, 1) if line.strip()} <= set(rows)


def test_deep_nesting_is_no_trouble() -> None:
    deep = "(" * 5_000 + "\n" * 200 + ")" * 5_000
    assert chunks_of("a.py", deep.encode())
    assert chunks_of("a.js", ("{\n" * 3_000 + "}\n" * 3_000).encode())


def test_words_of_code() -> None:
    assert words("parseHTTPHeader(x)") == ["parse", "http", "header", "parsehttpheader"]
    assert words("parse_http_header") == words("parseHttpHeader") == words("parseHTTPHeader")
    assert words("__init__ IOError getX2 größe_Klein 42 7") == [
        *("init", "io", "error", "ioerror", "get", "getx2"),
        *("größe", "klein", "größeklein", "42"),
    ]
    assert words("e" * 61 + " a") == []


@pytest.mark.parametrize(
    ("path", "text", "bounds"),
    [
        # Takes memory with the square of its length: gigabytes at a tenth of what is indexed.
        ("a.java", "a<\n" * 20_000, {"memory": 300 * 1024**2}),
        ("a.py", "a?b:\n" * 20_000, {"seconds": 0.05}),
    ],
)
def test_what_is_too_much_for_its_grammar_is_cut_by_lines(
    path: str, text: str, bounds: dict[str, Any]
) -> None:
    with Parsing(**bounds) as parsing:
        found = chunks_of(path, text.encode(), parsing.pieces)
        assert (found[0].lines, found[-1].lines[1], parsing.failed) == ((1, 50), 20_000, 1)
        # The next file is read by its grammar all the same.
        small = b"def f():\n    pass\n"
        assert parsing.pieces("b.py", small, 50) == syntax.pieces("b.py", small, 50)
        parsing.failed = MOST_FAILURES
        assert parsing.pieces("b.py", small, 50) is None


def test_a_tree_is_cut_by_grammar_in_a_process_of_its_own(tmp_path: Path) -> None:
    tree = write(tmp_path / "tree")
    cut = chunked(tree)
    assert cut.hard == 0
    found = [c for c in cut.chunks if c.path == "shop/orders.py"]
    assert found == chunks_of("shop/orders.py", FILES["shop/orders.py"])
