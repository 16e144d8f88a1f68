"""JSON that somebody else may have written: one kind of failure, whatever is wrong with it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import Enum
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from .printable import clean

if TYPE_CHECKING:
    from collections.abc import Callable

#: No document of ours, or of a tool, is nested as deeply. One that is would end functions that walk it.
DEPTH = 200


def parse(data: bytes | str, pairs: Callable[[list[tuple[str, Any]]], Any] | None = None) -> Any:
    """Return the value of a JSON document; ``pairs`` makes its objects, if not as dicts, from key and value.

    Raises:
        ValueError: it is not JSON, not UTF-8, has a number of thousands of digits, or is nested too deeply.
    """
    try:
        value = json.loads(data, object_pairs_hook=pairs)
    except RecursionError:
        raise _too_deep() from None
    check_depth(value)
    return value


def parse_at(text: str, at: int, decoder: json.JSONDecoder) -> tuple[Any, int]:
    """Return the JSON value that begins at an offset of a text, and the offset of its end.

    Raises:
        ValueError: as `parse`.
    """
    try:
        value, end = decoder.raw_decode(text, at)
    except RecursionError:
        raise _too_deep() from None
    check_depth(value)
    return value, end


def check_depth(value: Any) -> None:
    """Make sure that a function which calls itself for each level can walk a value.

    Raises:
        ValueError: if it is nested more deeply than `DEPTH`.
    """
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(DEPTH):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, dict | list)
        ]
        if not level:
            return
    raise _too_deep()


def _too_deep() -> ValueError:
    return ValueError(f"nested more than {DEPTH} levels deep")


def plain(value: Any) -> Any:
    """Return ``value`` made of dict, list, str, int, float, bool and None only.

    Enums become their values, paths their POSIX text, sets sorted lists, lone surrogates U+FFFD, bytes text
    and floats that JSON has no word for (NaN, infinities) None. Anything else becomes its ``str``.
    """
    if isinstance(value, Enum):
        return plain(value.value)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return clean(str(value))
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value) if value - value == 0 else None
    if isinstance(value, Mapping):
        return {clean(str(plain(key))): plain(item) for key, item in value.items()}
    if isinstance(value, set | frozenset):
        return sorted((plain(item) for item in value), key=str)
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, PurePath):
        return clean(value.as_posix())
    if isinstance(value, bytes | bytearray):
        return bytes(value).decode("utf-8", "replace")
    return clean(str(value))
