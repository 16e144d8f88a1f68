import ast
import pathlib


def test_commonmark_example_is_not_skipped():
    tree = ast.parse(pathlib.Path("tests/test_commonmark.py").read_text(encoding="utf-8"))
    strings = {n.value for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str)}
    assert "link_reference_definitions_202" not in strings
