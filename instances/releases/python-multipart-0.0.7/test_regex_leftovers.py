import ast
import pathlib


def test_unused_option_regex_is_removed():
    tree = ast.parse(pathlib.Path("multipart/multipart.py").read_text(encoding="utf-8"))
    defined = {t.id for n in tree.body if isinstance(n, ast.Assign) for t in n.targets if isinstance(t, ast.Name)}
    leftovers = {"OPTION_RE", "OPTION_RE_STR", "VALUE_STR", "QUOTED_STR", "SPECIAL_CHARS"} & defined
    assert not leftovers, sorted(leftovers)
