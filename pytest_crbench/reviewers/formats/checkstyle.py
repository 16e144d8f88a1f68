"""Checkstyle's XML: ``<checkstyle><file name=…><error line=… message=… source=…/></file></checkstyle>``."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from ...text.printable import printable
from .base import INPUT_LIMIT, Parsed, Unreadable
from .draft import draft

if TYPE_CHECKING:
    from ...core.model import ReviewComment
    from .base import ParseContext

_ELEMENTS = ("checkstyle", "file", "error", "exception")


def parse(raw: bytes, context: ParseContext) -> Parsed:
    """Read Checkstyle XML. No findings are a ``checkstyle`` element without errors.

    A document type (and so every entity of its own) is refused: nothing is expanded or fetched.

    Raises:
        Unreadable: if it is not that.
    """
    from xml.parsers import expat

    if len(raw) > INPUT_LIMIT:
        raise Unreadable(f"checkstyle: more than {INPUT_LIMIT} bytes")
    reader = _Reader(context)
    parser = expat.ParserCreate()
    parser.StartElementHandler = reader.start
    parser.EndElementHandler = reader.end
    parser.StartDoctypeDeclHandler = _refuse
    try:
        parser.Parse(raw.lstrip(), True)
    except (expat.ExpatError, ValueError, LookupError) as error:
        raise Unreadable(
            f"checkstyle: not well-formed XML ({printable(str(error), 120)}). Look at the raw output that is "
            "kept beside the results."
        ) from None
    return Parsed(tuple(reader.comments))


class _Reader:
    """Collects errors as the elements come."""

    def __init__(self, context: ParseContext) -> None:
        self.context = context
        self.comments: list[ReviewComment] = []
        self.depth = 0
        self.file: str | None = None

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if self.depth == 0 and name != "checkstyle":
            raise Unreadable(f"checkstyle: the root element is {printable(name, 60)!r}, not 'checkstyle'")
        if name not in _ELEMENTS:
            raise Unreadable(
                f"checkstyle: there is an element {printable(name, 60)!r}, where file, error or "
                "exception is expected"
            )
        self.depth += 1
        if name == "file":
            self.file = attributes.get("name")
        elif name in ("error", "exception"):
            self.comments.append(
                draft(
                    self.context,
                    body=attributes.get("message"),
                    path=self.file,
                    start=attributes.get("line"),
                    severity=attributes.get("severity"),
                    rule=attributes.get("source"),
                )
            )

    def end(self, name: str) -> None:
        self.depth -= 1
        if name == "file":
            self.file = None


def _refuse(*_declaration: object) -> NoReturn:
    raise Unreadable("checkstyle: a document type declaration is refused; write the XML without one")
