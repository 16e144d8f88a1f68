"""Documents out of bytes: each byte decides one thing, and no bytes give the plainest document.

So any engine that makes bytes makes documents: hypothesis, which shrinks a failing input towards the plainest
one that still fails, and coverage-guided ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

T = TypeVar("T")
#: Makes one value from a source.
Maker = Callable[["Source"], Any]


class Source:
    """Choices taken from bytes, one after the other; 0 for ever once they are used up."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def below(self, count: int) -> int:
        """Return a number from 0 up to but not including ``count``."""
        size = 1 if count <= 256 else 4
        taken = self.octets(size)
        return int.from_bytes(taken, "big") % count

    def between(self, least: int, most: int) -> int:
        """Return a number of a range, both ends included; ``least`` is the plainest."""
        return least + self.below(most - least + 1)

    def chance(self, of: int) -> bool:
        """Whether something happens that happens once in ``of`` times."""
        return self.below(of) == of - 1

    def pick(self, items: Sequence[T]) -> T:
        """Return one of the items; the first is the plainest."""
        return items[self.below(len(items))]

    def octets(self, count: int) -> bytes:
        """Return bytes as they are."""
        taken = self._data[self._at : self._at + count]
        self._at += count
        return taken + bytes(count - len(taken))

    def text(self, most: int = 12, letters: str = "") -> str:
        """Return a short text, of any characters or of these."""
        length = self.below(most + 1)
        return "".join(self.pick(letters) if letters else self._character() for _ in range(length))

    def _character(self) -> str:
        kind = self.below(8)
        if kind < 5:
            return chr(32 + self.below(95))
        if kind == 5:
            return chr(self.below(0x100))
        return chr(self.below(0x110000)) if kind == 6 else self.pick(_CHARACTERS)


_CHARACTERS = "\n\t\r\0\x1b\x7f\x85\u2028\u202e\u2066\ufeff\ud800\udfffé²٣𝒳`\"'<&|\\{}[]%$"


def one_of(*values: Any) -> Maker:
    """One of these values."""
    return lambda source: source.pick(values)


def either(*makers: Maker) -> Maker:
    """What one of these makes."""
    return lambda source: source.pick(makers)(source)


def whole(least: int, most: int) -> Maker:
    """A number of a range, both ends included."""
    return lambda source: source.between(least, most)


def listed(maker: Maker, most: int, least: int = 0) -> Maker:
    """A list."""
    return lambda source: [maker(source) for _ in range(source.between(least, most))]


def text(source: Source) -> str:
    """A text, mostly short, now and then a nasty one."""
    return source.pick(NASTY) if source.chance(6) else source.text()


NASTY = (
    *(
        "",
        " ",
        "\0",
        "\ud800",
        "\udfff\ud800",
        "\u202eabc",
        "\x1b[31m",
        "é",
        "e\u0301",
        "²",
        "٣",
        "𝒳",
        "\ufeff",
    ),
    *(
        "a.py",
        "/dev/null",
        "..",
        "../../etc/passwd",
        "/etc/passwd",
        "a/../..",
        "%",
        "%2e%2e/",
        "file://[",
        "C:\\x",
    ),
    *(
        "9" * 5000,
        "x" * 70_000,
        "a/" * 3000,
        "\n" * 300,
        "{0}" * 300,
        "```suggestion\nx\n```",
        "1e999",
        "NaN",
        "|`<b>",
    ),
)
