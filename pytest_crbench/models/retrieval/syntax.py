"""Where code may be cut: between the definitions that a grammar finds, where there is a grammar.

As a program it reads files from standard input within bounds (see `parsing`): it imports nothing of ours.
"""

from __future__ import annotations

import json
import resource
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Package of a grammar (``tree-sitter-NAME``), and its function, by the ends of files' names.
_GRAMMARS: Mapping[str, tuple[str, str]] = {
    **dict.fromkeys((".py", ".pyi"), ("python", "language")),
    **dict.fromkeys((".js", ".jsx", ".mjs", ".cjs"), ("javascript", "language")),
    **dict.fromkeys((".ts", ".mts", ".cts"), ("typescript", "language_typescript")),
    ".tsx": ("typescript", "language_tsx"),
    ".java": ("java", "language"),
    ".go": ("go", "language"),
    ".c": ("c", "language"),
    # Headers of both languages: what C has, the grammar of C++ has too.
    **dict.fromkeys((".h", ".hh", ".hpp", ".hxx", ".cc", ".cpp", ".cxx"), ("cpp", "language")),
    ".cs": ("c-sharp", "language"),
    ".rs": ("rust", "language"),
    ".php": ("php", "language_php"),
    ".rb": ("ruby", "language"),
}
#: Nodes that belong to what follows them.
_LEADING = ("comment", "decorator", "attribute", "annotation")

#: First and last line of a node, from 0; lines of the largest node that begins with it and was divided (its
#: own if none); whether it belongs to what follows.
Piece = tuple[int, int, int, bool]
#: Path, content and most lines to the pieces; see `pieces`.
Pieces = Callable[[str, bytes, int], "list[Piece] | None"]


def versions() -> dict[str, str]:
    """Return the grammars that are installed, with their versions: they decide where code is cut."""
    names = ["tree-sitter", *(f"tree-sitter-{name}" for name in sorted({n for n, _ in _GRAMMARS.values()}))]
    found = {}
    for name in names:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def has_grammar(path: str) -> bool:
    """Whether files of this name have a grammar, installed or not."""
    return PurePosixPath(path).suffix.lower() in _GRAMMARS


def pieces(path: str, content: bytes, most: int) -> list[Piece] | None:
    """Return the parts of a file in order, none with more than ``most`` lines that could be divided further.

    None if there is no grammar for it. A file with errors is read as far as the grammar understands it.
    """
    parser = parser_of(*_GRAMMARS.get(PurePosixPath(path).suffix.lower(), ("", "")))
    if parser is None:
        return None
    found: list[Piece] = []
    pending = [(parser.parse(content).root_node, 0)]
    while pending:
        node, whole = pending.pop()
        first, last = node.start_point[0], _last_row(node)
        size = max(whole, last - first + 1)
        if last - first < most or not node.children:
            found.append((first, last, size, any(word in node.type for word in _LEADING)))
        else:
            inner = [(child, size if number == 0 else 0) for number, child in enumerate(node.children)]
            pending += reversed(inner)
    return found


def _last_row(node: Any) -> int:
    row, column = node.end_point
    # A node that ends with its line's end ends at the beginning of the next line.
    return int(row - 1 if column == 0 and row > node.start_point[0] else row)


@lru_cache(maxsize=32)
def parser_of(name: str, function: str) -> Any:
    """Return the parser of a language; None if it is not installed, or too old for the other package."""
    if not name:
        return None
    try:
        tree_sitter = import_module("tree_sitter")
        grammar = import_module(f"tree_sitter_{name.replace('-', '_')}")
        return tree_sitter.Parser(tree_sitter.Language(getattr(grammar, function)()))
    except (ImportError, AttributeError, ValueError, TypeError):
        return None


def _serve(memory: int, seconds: float) -> None:
    """Answer questions (a line of JSON, then the file) by one line each, until the input ends."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with suppress(ValueError, OSError):  # a lower limit holds already, or the system has none
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    while line := sys.stdin.buffer.readline():
        path, size, most = json.loads(line)
        content = sys.stdin.buffer.read(size)
        # Time of this process's work, not of the clock: the default of the signal is the end.
        signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
        answer = json.dumps(pieces(path, content, most))
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        sys.stdout.write(answer + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    _serve(int(sys.argv[1]), float(sys.argv[2]))
