"""What a hidden test imports, and the status that follows from its runs at head and after the revision."""

from __future__ import annotations

import ast
import sys
from functools import lru_cache
from typing import TYPE_CHECKING

from ...core.errors import InfraError, InvalidInstanceError, TamperedError
from ...core.status import Status
from ...text.printable import printable

if TYPE_CHECKING:
    from ...core.model import Check
    from ...core.runner import Observation

DISK_FULL = (
    "the disk under the sandbox is full, and a test that cannot write says nothing of a review. Free some "
    "space (crbench clean removes our images), and run it again"
)


def check_head(head: Observation) -> None:
    """Accept the unmodified head only if the hidden test fails there, in its call phase, properly.

    Raises:
        InvalidInstanceError: it passes at head (the environment has drifted), or does not run properly.
        InfraError: the run reached a limit, or its canaries did not behave. A failure that a limit makes
            would look like the one that the concern makes.
    """
    if "disk" in head.limits:
        raise InfraError(DISK_FULL, reason="disk")
    if head.ending == "timed-out":
        raise InfraError(
            "the hidden test timed out at the unmodified head; is the machine overloaded? "
            "--crbench-limit test-timeout gives it more time",
            reason="head-timeout",
        )
    if head.ending == "out-of-memory" or "memory" in head.limits:
        raise InfraError(
            "the hidden test ran out of memory at the unmodified head; raise --crbench-limit memory",
            reason="head-memory",
        )
    if "processes" in head.limits:
        raise InfraError(
            "the hidden test reached the limit of processes and threads at the unmodified head; raise "
            "--crbench-limit pids",
            reason="head-pids",
        )
    if head.foreign:
        name, file = map(printable, min(head.foreign.items()))
        raise InvalidInstanceError(
            f"module {name} was imported from {file} instead of the tree: take it off the environment's "
            "requirements or correct import_roots",
            reason="foreign-module",
        )
    if head.ending == "crashed":
        raise InvalidInstanceError(
            "the hidden test crashed the interpreter at the unmodified head: "
            f"{printable(head.message)}. If other checks do so too, raise --crbench-limit memory or pids",
            reason="head-crashed",
        )
    if head.canaries != "behaved":
        raise InfraError(
            "the canaries around the hidden test did not behave at the unmodified head, so this environment "
            f"cannot be trusted to run tests: {head.bent or 'some did not run'}",
            reason="canaries",
        )
    if head.outcome == "passed":
        raise InvalidInstanceError(
            "the hidden test passes at the unmodified head: the environment or the archive has drifted, "
            "or the test does not test the concern",
            reason="passes-at-head",
        )
    if head.outcome != "failed":
        raise InvalidInstanceError(
            f"the hidden test does not fail in its call phase at the unmodified head ({head.outcome}: "
            f"{printable(head.message)})",
            reason=f"head-{head.outcome}",
        )


def check_expected(check: Check, exception: str, message: str) -> None:
    """Accept a failure at head only if it is the one that the instance expects, where it expects one.

    Raises:
        InvalidInstanceError: the hidden test ends with another exception, so it fails for another reason.
    """
    if check.expect and exception != check.expect:
        raise InvalidInstanceError(
            f"at the unmodified head the hidden test ends with {printable(exception, 80)} "
            f"({printable(message, 160)}), but the instance expects {check.expect}: the environment has "
            "drifted, or `expect` is wrong. See crbench validate",
            reason="head-exception",
        )


def verdict_of(revised: Observation) -> tuple[Status, str]:
    """Return status and reason after a revision, given that the head ran properly (see `check_head`).

    Raises:
        TamperedError: if a canary contradicted itself, or a pass came without the canaries after it.
        InfraError: if the test did not pass, and the disk was full.
    """
    if revised.canaries == "bent":
        raise TamperedError(
            f"the revision bends how tests run: {printable(revised.bent)}",
            reason="bent",
        )
    if revised.foreign:
        name, file = map(printable, min(revised.foreign.items()))
        return Status.MISSED, f"module {name} was imported from {file}, not from the revised tree"
    if revised.outcome == "passed":
        if revised.ending == "completed" and revised.canaries == "behaved":
            return Status.PASSED, ""
        if "disk" in revised.limits:
            raise InfraError(DISK_FULL, reason="disk")
        if revised.ending in ("timed-out", "out-of-memory"):
            return Status.MISSED, f"the test run {_ENDINGS[revised.ending]} after the revision"
        raise TamperedError(
            "the test run ended right after the hidden test's pass, before the canaries that follow it",
            reason="ended-early",
        )
    if "disk" in revised.limits:
        raise InfraError(DISK_FULL, reason="disk")
    if revised.ending != "completed":
        return Status.MISSED, f"the test run {_ENDINGS[revised.ending]} after the revision"
    if revised.canaries != "behaved":
        return Status.MISSED, "the test run lost its canaries after the revision"
    detail = revised.message or revised.exception
    said = f"{revised.outcome}: {detail}" if detail else revised.outcome
    if revised.limits:
        said += f" (the sandbox's limit of {' and '.join(revised.limits)} was reached)"
    return Status.MISSED, said


_ENDINGS = {"timed-out": "timed out", "out-of-memory": "ran out of memory", "crashed": "crashed"}


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
