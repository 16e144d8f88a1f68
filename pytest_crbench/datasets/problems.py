"""Problems of dataset files, told so that their author can mend them: file, key, found, expected."""

from __future__ import annotations

import difflib
import types
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from ..core.errors import UsageError
from ..text.printable import printable

if TYPE_CHECKING:
    from pathlib import Path

    from pydantic.fields import FieldInfo
    from pydantic_core import ErrorDetails

_SHOWN = 50
_ABSENT = object()


class BrokenDatasetError(UsageError):
    """A dataset that is there and cannot be used; ``problems`` says what is wrong, a line each."""

    def __init__(self, message: str, problems: tuple[str, ...]) -> None:
        super().__init__(message)
        self.problems = problems


@dataclass
class Problems:
    """Collects the problems of a dataset, so that all are told at once; ``help`` says where keys are told."""

    found: list[str] = field(default_factory=list)
    help: str = "docs/writing-an-instance.md"

    def add(self, file: Path, key: str, found: object, expected: str) -> None:
        """Note that ``key`` of ``file`` ("" for the whole file) holds ``found`` instead of ``expected``."""
        name, key = printable(str(file), 1000), printable(key, 200)
        place = f"{name}: {key}" if key else name
        self.found.append(f"{place}: found {_shown(found)}, expected {expected}")

    def add_invalid(
        self, file: Path, model: type[BaseModel], error: ValidationError, within: str = ""
    ) -> None:
        """Note what a model found wrong in a file, or in the part of it at the key ``within``."""
        for detail in error.errors(include_url=False):
            self._add_detail(file, model, detail, within)

    def _add_detail(self, file: Path, model: type[BaseModel], detail: ErrorDetails, within: str) -> None:
        location = detail["loc"]
        info, owner, key = _locate(model, location)
        key = f"{within}.{key}" if within and key else within or key
        kind = detail["type"]
        if kind == "missing":
            self.add(file, key, _ABSENT, _description(info))
        elif kind == "extra_forbidden":
            self.add(file, key, detail["input"], _known(owner, str(location[-1])))
        elif kind.startswith("union_tag"):
            source = detail["input"]
            value = source.get("kind", _ABSENT) if isinstance(source, dict) else source
            self.add(file, f"{key}.kind", value, 'one of "pypi", "git", "git+patch", "tree"')
        elif kind == "literal_error":
            self.add(file, key, detail["input"], detail["ctx"]["expected"])
        else:
            self.add(file, key, detail["input"], _description(info) or detail["msg"])

    def raise_if_any(self, path: Path) -> None:
        """Raise what was collected, if anything was.

        Raises:
            BrokenDatasetError: listing the problems of the dataset at ``path``.
        """
        if not self.found:
            return
        lines = [
            f"{len(self.found)} problem(s) in the dataset {printable(str(path))}:",
            *(f"  {p}" for p in self.found[:_SHOWN]),
        ]
        if len(self.found) > _SHOWN:
            lines.append(f"  ... and {len(self.found) - _SHOWN} more")
        lines.append(f"Mend these files; {self.help} tells what each key means.")
        raise BrokenDatasetError("\n".join(lines), tuple(self.found))


def _shown(value: object) -> str:
    if value is _ABSENT:
        return "nothing"
    text = value if isinstance(value, _Words) else repr(value)
    return printable(str(text), 120)


class _Words(str):
    """Text that is shown as it is, without quotes."""

    __slots__ = ()


def words(text: str) -> object:
    """Make ``text`` a finding that is shown as it is ("no such file"), not as a quoted value."""
    return _Words(text)


def _locate(
    model: type[BaseModel], location: tuple[int | str, ...]
) -> tuple[FieldInfo | None, type[BaseModel] | None, str]:
    """Find the field that an error is about, the model that holds it, and its dotted key with indices."""
    owner: type[BaseModel] | None = model
    inside: list[type[BaseModel]] = [model]
    info: FieldInfo | None = None
    key = ""
    for part in location:
        if isinstance(part, int):
            key += f"[{part}]"
            continue
        tagged = [m for m in inside if _tag(m) == part]
        if tagged and len(inside) > 1:  # pydantic names the chosen member of a union in the location
            inside = tagged
            continue
        owner = inside[0] if inside else None
        fields = {f.alias or name: f for name, f in owner.model_fields.items()} if owner else {}
        info = fields.get(part)
        inside = _models(info.annotation) if info else []
        key += f".{part}" if key else part
    return info, owner, key


def _models(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    if get_origin(annotation) in (Union, types.UnionType, list) or hasattr(annotation, "__metadata__"):
        return [m for part in get_args(annotation) for m in _models(part)]
    return []


def _tag(model: type[BaseModel]) -> str | None:
    kind = model.model_fields.get("kind")
    options = get_args(kind.annotation) if kind else ()
    return options[0] if len(options) == 1 else None


def _description(info: FieldInfo | None) -> str:
    return (info.description if info else None) or "a value here"


def _known(owner: type[BaseModel] | None, key: str) -> str:
    names = [f.alias or name for name, f in owner.model_fields.items()] if owner else []
    close = difflib.get_close_matches(key, names, n=1)
    meant = f" (did you mean {close[0]}?)" if close else ""
    return f"only the keys {', '.join(names)}{meant}"
