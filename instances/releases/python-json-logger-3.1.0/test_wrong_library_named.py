import ast
import pathlib


def test_module_docstring_names_its_own_backend():
    source = pathlib.Path("src/pythonjsonlogger/orjson.py").read_text(encoding="utf-8")
    summary = (ast.get_docstring(ast.parse(source)) or "").splitlines()[0].lower()
    assert "msgspec" not in summary
    assert "orjson" in summary
