import ast
import pathlib


def test_no_test_is_skipped_for_being_flaky():
    tree = ast.parse(pathlib.Path("tests/test_utils.py").read_text(encoding="utf-8"))
    skipped = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in {"skipif", "skip", "xfail"}:
            reasons = [k.value.value for k in node.keywords if k.arg == "reason" and isinstance(k.value, ast.Constant)]
            skipped += [node.lineno for r in reasons if "flaky" in str(r).lower()]
    assert not skipped, skipped
