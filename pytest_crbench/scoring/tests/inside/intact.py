"""Loaded by ``launch.py`` before the code under test: what runs the tests, and the tests, as they were then.

The product shares a process with both, and may replace what it finds: to be compared with later.
"""

from __future__ import annotations

import ast
import os
import sys
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, Callable, Iterator

#: Whose modules run the tests.
_RUNNER = ("_pytest", "pytest", "pluggy")
_METHODS = (FunctionType, property, classmethod, staticmethod)
#: Names that Python itself adds to a class or a module later on.
_LATE = ("__annot", "__warningregistry__")


class Snapshot:
    """Every function and class of pytest and pluggy, and every registered hook, as they are now."""

    def __init__(self, config: Any) -> None:
        self._seen: list[tuple[str, Any, str, Any, Any, Any]] = []
        self._names: list[tuple[str, Any, frozenset[str]]] = []
        self._classes: set[type] = set()
        for name, module in list(sys.modules.items()):
            if name.split(".")[0] in _RUNNER:
                self._add(name, module)
        self._config, self._manager, self._hook = config, config.pluginmanager, config.hook
        self._relay = config.pluginmanager.hook
        relay = vars(self._relay)
        # Before pytest 9 there is a proxy in between, which makes a function for each name that is asked for.
        for name in list(relay):
            getattr(config.hook, name)
        self._relays = [
            (one, {n: _registered(v) for n, v in one.items()}) for one in (relay, vars(config.hook))
        ]
        self._tracing = tracing()

    def changed(self, item: Any) -> list[str]:
        """Name what is another now, or has other code, and what in ``item`` hides a part of its class."""
        return [*self._replaced(), *self._hooked(item), *self._hidden(item), *self._traced()]

    def _add(self, name: str, holder: Any) -> None:
        self._names.append((name, holder, frozenset(vars(holder))))
        for attribute, value in list(vars(holder).items()):
            function: Any = value
            if isinstance(value, _METHODS[1:]):
                function = value.fget if isinstance(value, property) else value.__func__
            if isinstance(function, FunctionType):
                seen = (f"{name}.{attribute}", holder, attribute, value, function, function.__code__)
                self._seen.append(seen)
            elif isinstance(value, type) and not isinstance(holder, type):
                self._seen.append((f"{name}.{attribute}", holder, attribute, value, None, None))
                if value.__module__ == name:
                    self._classes.add(value)
                    self._add(f"{name}.{attribute}", value)

    def _replaced(self) -> Iterator[str]:
        for name, holder, attribute, value, function, code in self._seen:
            if vars(holder).get(attribute) is not value or (function and function.__code__ is not code):
                yield name
        for name, holder, names in self._names:
            for attribute, value in list(vars(holder).items()):
                late = attribute.startswith(_LATE) or isinstance(value, ModuleType)
                acts = callable(value) or hasattr(type(value), "__get__")
                if attribute not in names and acts and not late:
                    yield f"{name}.{attribute}"

    def _hooked(self, item: Any) -> Iterator[str]:
        config = item.config
        known = [(config, self._config), (config.pluginmanager, self._manager)]
        known += [(config.hook, self._hook), (config.pluginmanager.hook, self._relay)]
        if any(now is not before for now, before in known):
            yield "the plugin manager"
        for relay, before in self._relays:
            for name, hook in list(relay.items()):
                # By identity: the product may have objects that are equal to all others.
                if list(map(id, before.get(name, ()))) != list(map(id, _registered(hook))):
                    yield f"what is registered for {name}"

    def _hidden(self, item: Any) -> Iterator[str]:
        node, things = item, [self._config, self._manager]
        while node is not None:
            things.append(node)
            node = node.parent
        for thing in things:
            if type(thing) not in self._classes:
                yield f"the class {type(thing).__name__}"
        parts = [part for thing in things for part in vars(thing).values() if type(part) in self._classes]
        for thing in (*things, *parts):
            for attribute in getattr(thing, "__dict__", ()):
                if _is_method(type(thing), attribute):
                    yield f"{type(thing).__name__}.{attribute} of one object"

    def _traced(self) -> Iterator[str]:
        return (name for name in tracing() if name not in self._tracing)


def _registered(hook: Any) -> tuple[Any, ...]:
    """Return what a hook consists of, to be compared by identity."""
    if not hasattr(hook, "get_hookimpls"):
        return (hook,)
    found = [part for one in hook.get_hookimpls() for part in (one, one.function)]
    return (hook, getattr(hook, "_hookexec", None), *found)


def _is_method(kind: type, name: str) -> bool:
    """Whether an attribute of an object would hide a method or property of its class."""
    return next((isinstance(vars(k)[name], _METHODS) for k in kind.__mro__ if name in vars(k)), False)


def tracing(
    trace: Callable[[], Any] = sys.gettrace,
    profile: Callable[[], Any] = sys.getprofile,
    tool: Callable[[int], Any] = getattr(getattr(sys, "monitoring", None), "get_tool", lambda _number: None),
) -> list[str]:
    """Name what is called while other code of this thread runs, and can change what that does."""
    found = [("a trace function", trace()), ("a profile function", profile())]
    found += [(f"tool {number} of sys.monitoring", tool(number)) for number in range(6)]
    return [name for name, value in found if value is not None]


def rebound(before: dict[str, Any], module: Any) -> list[str]:
    """Name what a test's module holds under another value than ``before``, but for its ``global`` names."""
    try:
        with open(module.__file__, "rb") as stream:
            tree = ast.parse(stream.read())
    except (OSError, SyntaxError, ValueError):
        return []  # Collecting it tells.
    own = {name for node in ast.walk(tree) if isinstance(node, ast.Global) for name in node.names}
    return [
        f"{name} of the test's module"
        for name, value in before.items()
        if name not in own and not name.startswith("__") and vars(module).get(name) is not value
    ]


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
