"""JSON that is nearly right: wild values, wrong types, keys twice, prose around it, broken bytes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from .source import NASTY, Maker, Source, text


def _nested(depth: int) -> Any:
    value: Any = []
    for _ in range(depth):
        value = [value]
    return value


#: Values that programs get wrong, of every JSON type.
WILD: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2, 2**31, 2**63, 2**70, 10**400, -(10**400)),
    *(0.0, -0.0, 1.5, 1e308, -1e308, 5e-324, float("nan"), float("inf"), float("-inf")),
    *NASTY,
    *([], {}, [[]], [{}], {"": ""}, {"a": {"b": []}}, [None], [1, "a", {}], _nested(90), _nested(400)),
)
_BITS = (
    b'"',
    b"{",
    b"[",
    b"]",
    b"\\ud800",
    b"9" * 20,
    b"\0",
    b"\xff",
    b"\n",
    b"-",
    b"\\",
    b"<![",
    b"1e999",
    b"NaN",
)


def wild(source: Source) -> Any:
    """A value that programs get wrong."""
    return source.pick(WILD)


def anything(source: Source, depth: int = 3) -> Any:
    """Any JSON value, small."""
    kind = source.below(6 if depth else 4)
    if kind == 4:
        return [anything(source, depth - 1) for _ in range(source.below(4))]
    if kind == 5:
        return {text(source): anything(source, depth - 1) for _ in range(source.below(4))}
    return (wild, text, lambda s: s.between(-3, 300), lambda s: s.below(99) / 7)[kind](source)


def sometimes(usual: Maker, weight: int = 8, odd: Maker = wild) -> Maker:
    """Mostly what is usual, once in ``weight`` times something odd."""
    return lambda source: odd(source) if source.chance(weight) else usual(source)


def table(fields: dict[str, Maker], lack: int = 10) -> Maker:
    """An object with these fields; once in ``lack`` times one is left out or wild, or there is another."""

    def make(source: Source) -> dict[str, Any]:
        found = {}
        for name, maker in fields.items():
            luck = source.below(2 * lack)
            if luck != 2 * lack - 1:
                found[name] = wild(source) if luck == 2 * lack - 2 else maker(source)
        if source.chance(2 * lack):
            found[text(source)] = wild(source)
        return found

    return make


def json_text(maker: Maker) -> Maker:
    """The text of a value, in any of the ways in which programs write JSON, or nearly."""

    def make(source: Source) -> bytes:
        value = maker(source)
        written = json.dumps(value, ensure_ascii=source.chance(2), indent=source.pick([None, 1]))
        way = source.below(16)
        if way == 15 and "{" in written:  # keys twice
            twice = source.pick(['{"a": 1, "a": [], ', '{"body": "x", "body": 3, '])
            written = written.replace("{", twice, 1)
        elif way == 14:
            after = source.pick(["", "[]", "{", written])
            written = f"Here it is:\n```json\n{written}\n```\n{after}"
        elif way == 13:
            written = written[: source.below(len(written) + 1)]
        elif way == 12:
            written = "\ufeff" + written
        elif way == 11:
            return written.encode("utf-16", "surrogatepass")
        elif way >= 9 and isinstance(value, list):
            written = "\n".join(json.dumps(item) for item in value)
        return written.encode("utf-8", "surrogatepass")

    return make


def mutated(corpus: Sequence[bytes]) -> Maker:
    """A real document with bytes cut out, put in, or repeated."""

    def make(source: Source) -> bytes:
        raw = bytearray(source.pick(corpus))
        for _ in range(source.between(1, 4)):
            at = source.below(len(raw) + 1)
            cut = source.pick([0, 1, 2, 5, 50, 10**6])
            if source.chance(6):
                raw[at:at] = raw[at : at + min(cut, 5000)] * source.between(1, 30)
            else:
                raw[at : at + cut] = (
                    source.pick(_BITS) if source.chance(2) else source.octets(source.below(6))
                )
        return bytes(raw)

    return make


def altered(documents: Sequence[Any]) -> Maker:
    """A real JSON value in which up to three values, at any depth, are something else."""

    def make(source: Source) -> Any:
        value = source.pick(documents)
        for _ in range(source.between(1, 3)):
            value = _altered(source, value)
        return value

    return make


def _altered(source: Source, value: Any) -> Any:
    if isinstance(value, dict) and value and not source.chance(10):
        key = source.pick(sorted(value))
        if source.chance(10):
            return {name: item for name, item in value.items() if name != key}
        return {**value, key: _altered(source, value[key])}
    if isinstance(value, list) and value and not source.chance(10):
        at = source.below(len(value))
        return [*value[:at], _altered(source, value[at]), *value[at + 1 :]]
    return wild(source)
