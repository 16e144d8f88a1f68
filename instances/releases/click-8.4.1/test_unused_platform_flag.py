import ast
import pathlib


def test_no_unused_platform_constant_in_compat():
    root = pathlib.Path("src/click")
    tree = ast.parse((root / "_compat.py").read_text(encoding="utf-8"))
    names = {t.id for n in tree.body if isinstance(n, ast.Assign) for t in n.targets if isinstance(t, ast.Name)}
    if "MAC" not in names:
        return
    used = False
    for path in root.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and any(a.name == "MAC" for a in node.names):
                used = True
            if isinstance(node, ast.Name) and node.id == "MAC" and isinstance(node.ctx, ast.Load):
                used = True
    assert used, "MAC is defined but nothing in the package uses it"
