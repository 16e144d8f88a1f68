"""A tiny code reviewer: five kinds of defect in the Python lines that a change adds.

    python tinyreview.py --base COMMIT --head COMMIT

Prints {"comments": [...]}, the native format of pytest-crbench; exits 0 with and without findings.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import subprocess
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

HUNK = re.compile(rb"^@@ -\S+ \+(\d+)(?:,(\d+))? @@", re.MULTILINE)


@dataclass(frozen=True)
class Finding:
    """One remark; ``suggestion`` replaces exactly ``lines``."""

    path: str
    lines: tuple[int, int]
    rule: str
    body: str
    suggestion: str | None = None


def main() -> None:
    parser = argparse.ArgumentParser(description="Review the change between two commits of this repository.")
    parser.add_argument("--base", required=True)
    parser.add_argument("--head", required=True)
    options = parser.parse_args()
    files = changed(options.base, options.head)
    found = [finding for old, new in files for finding in review(old, new, options.base, options.head)]
    print(json.dumps({"comments": [asdict(finding) for finding in found]}, indent=1))


def changed(base: str, head: str) -> Iterator[tuple[str | None, str]]:
    """Yield (old path, new path) of the Python files that the change adds (no old path), edits or renames."""
    raw = git("diff", "--name-status", "-z", "-M", "--diff-filter=AMR", base, head, "--", "*.py")
    fields = iter(raw.decode("utf-8", "surrogateescape").split("\0"))
    for status in fields:
        if status:
            old = next(fields)
            new = next(fields) if status.startswith("R") else old
            yield (None if status == "A" else old), new


def review(old: str | None, new: str, base: str, head: str) -> Iterator[Finding]:
    """Yield what is wrong in the lines that the change adds to one file."""
    source = git("show", f"{head}:{new}").decode("utf-8", "replace")
    added = set(range(1, source.count("\n") + 2))
    if old is not None:
        hunks = HUNK.findall(git("diff", "-U0", f"{base}:{old}", f"{head}:{new}"))
        added = {n for first, count in hunks for n in range(int(first), int(first) + int(count or 1))}
    for finding in check(new, source):
        if added.intersection(range(finding.lines[0], finding.lines[1] + 1)):
            yield finding


def check(path: str, source: str) -> Iterator[Finding]:
    """Yield every finding in a file; one that does not parse has none."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return
    lines = source.split("\n")
    for node in ast.walk(tree):
        for rule, body, target, new in defects(node):
            place = (target.lineno, target.end_lineno or target.lineno)
            yield Finding(path, place, rule, body, replaced(lines, target, new))


def defects(node: ast.AST) -> Iterator[tuple[str, str, ast.expr | ast.stmt | ast.excepthandler, str | None]]:
    """Yield (rule, what to say, where, new source for exactly that node)."""
    match node:
        case ast.Compare(left, [ast.Eq() | ast.NotEq() as operator], [ast.Constant(None)]):
            word = "is" if isinstance(operator, ast.Eq) else "is not"
            body = "An object may define == as it likes; compare with None by identity."
            yield "none-equality", body, node, f"{ast.unparse(left)} {word} None"
        case ast.FunctionDef(args=arguments) | ast.AsyncFunctionDef(args=arguments):
            for default in [*arguments.defaults, *arguments.kw_defaults]:
                if isinstance(default, ast.List | ast.Dict | ast.Set):
                    body = "This default is made once and shared by all calls; use None and make it inside."
                    yield "shared-default", body, default, None
        case ast.ExceptHandler(type=None):
            body = "A bare except also swallows KeyboardInterrupt and SystemExit; name what may be raised."
            yield "bare-except", body, node, None
        case ast.Assert(test=ast.Tuple(elts=[_, *_])):
            yield "assert-tuple", "A tuple is always true: this assertion never fails.", node, None
        case ast.Call(ast.Name("isinstance"), [ast.Name(name), ast.Name("Sequence" | "Iterable" as kind)]):
            body = (
                f"A str is a {kind} too, so that a plain string takes this branch, and 'in' finds substrings."
            )
            call = ast.unparse(node)
            yield "string-is-sequence", body, node, f"({call} and not isinstance({name}, (str, bytes)))"


def replaced(lines: list[str], node: ast.expr | ast.stmt | ast.excepthandler, new: str | None) -> str | None:
    """Return the node's line with its source replaced, if it lies on one line."""
    if new is None or node.end_lineno != node.lineno or node.end_col_offset is None:
        return None
    line = lines[node.lineno - 1].encode()
    return (line[: node.col_offset] + new.encode() + line[node.end_col_offset :]).decode().rstrip("\r") + "\n"


def git(*arguments: str) -> bytes:
    return subprocess.run(["git", *arguments], check=True, stdout=subprocess.PIPE).stdout


if __name__ == "__main__":
    main()
