import ast
import pathlib


def test_no_eager_annotation_needs_re_pattern():
    source = pathlib.Path("pyparsing/core.py").read_text(encoding="utf-8")
    tree = ast.parse(source)
    if any(isinstance(n, ast.ImportFrom) and n.module == "__future__" and any(a.name == "annotations" for a in n.names) for n in tree.body):
        return
    bad = []
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            notes = [node.returns] + [a.annotation for a in node.args.args + node.args.kwonlyargs]
            bad += [node.lineno for n in notes if n is not None and "re.Pattern" in ast.unparse(n) and not isinstance(n, ast.Constant)]
    assert not bad, "re.Pattern evaluated at definition time in lines %s" % bad
