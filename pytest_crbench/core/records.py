"""One definition per record: a dataclass is the value, its row, its reader with its errors, and its schema.

The types of this module are those of its fields. A record is plain JSON in files and between processes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    PlainSerializer,
    PlainValidator,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
    WithJsonSchema,
)
from pydantic_core import PydanticCustomError

from ..text.plainjson import plain
from ..text.printable import printable
from .errors import UsageError

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

T = TypeVar("T")
_MOST = 10**9
_ADVICE = "Use a file as pytest-crbench wrote it (docs/results-format.md)."
#: Counts of what became of a review's comments, by name, and of which count each is a part.
_PARTS = {
    **dict.fromkeys(("matched", "line_matched", "duplicates", "placeless", "unlabelled"), "comments"),
    "rejected": "rejected_of",
}
_MATCHED = (*_PARTS, "comments", "references", "rejected_of", "hunks", "abstained")
#: All that matching counts of a review.
COUNTS = (*_MATCHED, "categories", "published")


def _number(value: Any) -> float:
    if type(value) not in (int, float):
        raise PydanticCustomError("number", "Input should be a number")
    return value  # type: ignore[no-any-return]


def _matched(found: Mapping[str, Any]) -> Mapping[str, Any]:
    """Refuse counts of which no sums could be made."""
    counts = {name: found[name] for name in _MATCHED if found.get(name) is not None}
    wrong = [name for name, n in counts.items() if not _is_count(n)]
    sorts = found.get("categories") or {}
    if not isinstance(sorts, dict):
        raise PydanticCustomError("counts", "categories should be an object of counts")
    wrong += [f"categories.{name}" for name, n in sorts.items() if not _is_count(n)]
    if wrong:
        raise PydanticCustomError("counts", f"{wrong[0]} should be a whole number from 0 to {_MOST:,}")
    for part, of in _PARTS.items():
        if counts.get(part, 0) > counts.get(of, 0):
            raise PydanticCustomError("counts", f"there should be no more {part} than {of}")
    return found


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value <= _MOST


def _referred(value: Any, info: ValidationInfo) -> Any:
    """Take what a row names by its id out of the table that the reader was given."""
    if not isinstance(value, str):
        return value
    try:
        return info.context[value]  # type: ignore[index]
    except (KeyError, TypeError):
        raise PydanticCustomError("id", "Input should be the id of one of the reviews") from None


#: A whole number stays one: what was counted is not written as 3.0.
Number = Annotated[float, PlainValidator(_number), WithJsonSchema({"type": "number"})]
Numbers = Mapping[str, Number]
#: What others name (facets, remarks) may come as another type; files hold text.
Text = Annotated[str, BeforeValidator(str)]
Matched = Annotated[Mapping[str, Any], AfterValidator(_matched)]
Ordinal = Annotated[int, Field(ge=1, strict=True)]
Count = Annotated[int, Field(ge=0, le=_MOST, strict=True)]
#: Makes a field hold a record where its row holds that record's id.
BY_ID = (
    BeforeValidator(_referred),
    PlainSerializer(lambda value: getattr(value, "id", None)),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "null"}]}),
)


#: What reads, writes and describes a type of records.
adapter: Callable[[Any], TypeAdapter[Any]] = lru_cache(TypeAdapter)


def from_row(
    kind: type[T],
    content: Any,
    where: str = "row",
    advice: str = _ADVICE,
    by_id: Mapping[str, Any] | None = None,
) -> T:
    """Return the record in plain JSON; keys that this version does not know are left aside.

    Args:
        kind: the type of the record.
        content: plain JSON.
        where: what to name in an error: a file, maybe with a line.
        advice: what to do about an error, as a sentence.
        by_id: the records that it refers to.

    Raises:
        UsageError: a key is missing or holds what it cannot; names file, key, what was found and what to do.
    """
    try:
        found: T = adapter(kind).validate_python(content, context=by_id)
    except ValidationError as error:
        raise UsageError(f"{where}, {_explained(error)}. {advice}") from None
    return found


def to_row(record: Any, kind: type | None = None) -> dict[str, Any]:
    """Return a record as plain JSON, in the key order of its type; ``kind``, if it may be of none of ours."""
    dump = adapter(kind or type(record)).dump_python
    found: dict[str, Any] = plain(dump(record, by_alias=True, exclude_unset=True, warnings=False))
    return found


def _explained(error: ValidationError) -> str:
    first: ErrorDetails = error.errors(include_url=False)[0]
    place = ".".join(map(str, first["loc"]))
    key = f"key {printable(repr(place), 160)}: " if place else ""
    found = "nothing" if first["type"] == "missing" else printable(repr(first["input"]), 80)
    more = f" ({error.error_count() - 1} more like it)" if error.error_count() > 1 else ""
    said = printable(first["msg"].removeprefix("Input "), 200)
    return f"{key}{said}, found {found}{more}"
