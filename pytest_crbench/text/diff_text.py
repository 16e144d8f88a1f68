"""As much of a diff as a prompt has room for."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from .fences import clip

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Characters of a diff in a prompt; a longer one loses whole files.
DIFF_LIMIT = 150_000


def clip_diff(diff: str, wanted: Sequence[str], limit: int = DIFF_LIMIT) -> tuple[str, tuple[str, ...]]:
    """Keep what fits of a diff, file by file; returns it and the paths of the files left out.

    Files that a comment names (``wanted``) are kept first, then the others in order. The parts that are
    kept stay in order. If not even the first wanted file fits, its middle is left out.
    """
    if len(diff) <= limit:
        return diff, ()
    parts = [part for part in re.split(r"(?m)^(?=diff --git )", diff) if part]
    named = [any(path in part.split("\n", 1)[0] for path in wanted) for part in parts]
    kept: dict[int, str] = {}
    room = limit
    for index in sorted(range(len(parts)), key=lambda i: (not named[i], i)):
        part = parts[index]
        if len(part) > room and not kept:
            part = clip(part, room)
        if len(part) <= room or not kept:
            kept[index] = part
            room -= len(part)
    left_out = tuple(_path(parts[i]) for i in range(len(parts)) if i not in kept)
    return "".join(kept[index] for index in sorted(kept)), left_out


def _path(part: str) -> str:
    header = part.split("\n", 1)[0]
    return header.rpartition(" b/")[2] or header
