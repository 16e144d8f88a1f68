"""Loaded by ``launch.py`` before the code under test: what runs the tests, and the tests, as they were then.

The product shares a process with both, and may replace what it finds: to be compared with later.
"""

from __future__ import annotations

import ast
import os
import sys
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, Iterator


class Snapshot:
    """Every function of pytest and pluggy, and of their classes, as they are now."""

    def __init__(self) -> None:
        self._seen = list(self._functions())

    def changed(self) -> list[str]:
        """Names of those that are others now, or have other code."""
        return [
            name
            for name, holder, attribute, value, function, code in self._seen
            if vars(holder).get(attribute) is not value or function.__code__ is not code
        ]

    @staticmethod
    def _functions() -> Iterator[tuple[str, Any, str, Any, FunctionType, Any]]:
        for name, module in list(sys.modules.items()):
            if name.split(".")[0] not in ("_pytest", "pytest", "pluggy"):
                continue
            for attribute, value in list(vars(module).items()):
                if isinstance(value, FunctionType):
                    yield f"{name}.{attribute}", module, attribute, value, value, value.__code__
                elif isinstance(value, type) and value.__module__ == name:
                    for inner, member in list(vars(value).items()):
                        function = getattr(member, "__func__", getattr(member, "fget", member))
                        if isinstance(function, FunctionType):
                            yield (
                                f"{name}.{attribute}.{inner}",
                                value,
                                inner,
                                member,
                                function,
                                function.__code__,
                            )


class Written:
    """The code of each plain test function as pytest compiles it from the test files."""

    def __init__(self, config: Any) -> None:
        self._codes: dict[str, CodeType] = {}
        # Internal to pytest, since its version 5; without it a function is only compared with itself.
        compile_test: Any = getattr(sys.modules["_pytest.assertion.rewrite"], "_rewrite_test", None)
        for file in map(Path, config.args if compile_test else ()):
            try:
                body = ast.parse(file.read_bytes()).body
                code = compile_test(file, config)[1]
            except (SyntaxError, ValueError):
                continue  # Collecting it tells.
            self._add(file.name, body, code)

    def differs(self, nodeid: str, code: Any) -> bool:
        """Whether a test, by its node id, has other code than its file gives it."""
        name = os.path.basename(nodeid.split("[")[0])
        return name in self._codes and self._codes[name] != code

    def _add(self, name: str, body: list[ast.stmt], code: CodeType) -> None:
        """Add the functions that a module, or a class, defines and does not touch again."""
        inner = {c.co_name: c for c in code.co_consts if isinstance(c, CodeType)}
        stored = [
            n.id
            for s in body
            for n in ast.walk(s)
            if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
        ]
        for node in body:
            if getattr(node, "name", "") not in inner or node.name in stored:  # type: ignore[attr-defined]
                continue
            if isinstance(node, ast.FunctionDef) and all(map(_is_mark, node.decorator_list)):
                self._codes[f"{name}::{node.name}"] = inner[node.name]
            elif isinstance(node, ast.ClassDef):
                self._add(f"{name}::{node.name}", node.body, inner[node.name])


def _is_mark(decorator: ast.expr) -> bool:
    """Whether it is ``pytest.mark.…``, which returns the function that it is given."""
    node: Any = decorator.func if isinstance(decorator, ast.Call) else decorator
    mark = getattr(node, "value", None)
    return getattr(mark, "attr", "") == "mark" and getattr(getattr(mark, "value", None), "id", "") == "pytest"
