"""What can be read from a hidden test's source without running it."""

from __future__ import annotations

import ast
import sys
from functools import lru_cache

#: Ways to reach the tree's code that no import statement shows.
_DYNAMIC = frozenset({"importlib", "runpy", "subprocess", "multiprocessing", "__import__", "exec", "eval"})


@lru_cache(maxsize=512)
def imported_tops(source: str) -> frozenset[str]:
    """Return the top-level names that a test imports anywhere, or the dynamic means by which it may.

    Raises:
        SyntaxError: if the source is no Python.
    """
    names: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names.update(alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.split(".")[0])
        elif isinstance(node, ast.Name) and node.id in _DYNAMIC:
            names.add(node.id)
    return frozenset(names)


def test_names(source: str) -> frozenset[str]:
    """Return the test functions (``test_x``, ``TestY::test_z``) that a test file defines by default rules.

    Raises:
        SyntaxError: if the source is no Python.
    """
    names: set[str] = set()
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test"):
            names.add(node.name)
        elif isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
            names.update(
                f"{node.name}::{inner.name}"
                for inner in node.body
                if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef) and inner.name.startswith("test")
            )
    return frozenset(names)


def needs_tree_on_path(source: str) -> bool:
    """Whether a test may import the tree's code: only one that cannot runs with the tree off ``sys.path``."""
    harmless = (sys.stdlib_module_names | {"pytest"}) - _DYNAMIC
    return bool(imported_tops(source) - harmless)
