import ast
import pathlib


def test_limit_tests_do_not_measure_wall_clock():
    tree = ast.parse(pathlib.Path("tests/test_dos_prevention.py").read_text(encoding="utf-8"))
    calls = [n.lineno for n in ast.walk(tree) if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute)
             and isinstance(n.func.value, ast.Name) and n.func.value.id == "time"
             and n.func.attr in {"time", "monotonic", "perf_counter"}]
    assert not calls, "wall-clock measurement in lines %s" % calls
