"""JSON from programs that do not always write only JSON: whole documents, lines, fences, prose."""

from __future__ import annotations

import codecs
import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...host.digest import canonical
from ...text import plainjson
from ...text.printable import printable
from .base import INPUT_LIMIT, Remark, Unreadable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

#: A document begins with an object, or with a list of objects; a log line ("[INFO] ...") does not.
_OPENING = re.compile(
    r"\{(?:[ \t\r\n]{0,200}[\"}]|[ \t]*(?:\r?\n|\Z))|\[(?:[ \t\r\n]{0,200}[{\[\]]|[ \t]*(?:\r?\n|\Z))"
)
_FENCE = re.compile(r"(`{3,}|~{3,})[ \t]*([^\s`{\[]*)[ \t]*")
#: A key of a review that stands outside of every document is a piece of one that is damaged.
_KEY = re.compile(r'"(?:comments|body)"[ \t]*:')
#: What a piece of a document looks like: a text and the next key, or its closing brace at the line's end.
_NEXT_KEY = re.compile(r'"[ \t]*,[ \t]*"\w{1,40}"[ \t]*:')
_CLOSED = re.compile(r'"[ \t]*\}[\]} \t]*,?\Z')
_THOUGHT = re.compile(r"\s*<(think|thinking)>", re.IGNORECASE)
#: The end of thoughts whose beginning the endpoint's own template had put into the question.
_THOUGHT_OVER = re.compile(r"^[ \t]*</(?:think|thinking)>", re.IGNORECASE | re.MULTILINE)
#: An object with one of these is a whole review; any other is one row of several.
_WHOLE = frozenset(["comments", "runs", "diagnostics", "outside_failure"])
#: What stands before or after a value that is part of a larger one.
_WITHIN = re.compile(r"(?:[\[{,]|\"[ \t]*:)\Z"), re.compile(r"[\]},:]")


IN_PROSE = Remark("the review was taken from JSON within other text", "in-prose")


@dataclass(frozen=True)
class Document:
    """A JSON value and how it was found; ``prose``: other text stands beside it."""

    value: Any
    remarks: tuple[Remark, ...] = ()
    prose: bool = False


class Ambiguous(Unreadable):
    """JSON that means one thing to programs that take the first of two equal keys, and another to others."""


def text_of(raw: bytes) -> tuple[str, tuple[Remark, ...]]:
    """Decode UTF-8, or UTF-16 where a byte-order mark says so; what is invalid is replaced, with a remark.

    Raises:
        Unreadable: if there is too much of it.
    """
    if len(raw) > INPUT_LIMIT:
        raise Unreadable(
            f"the review has {len(raw)} bytes, more than the {INPUT_LIMIT} that are read. Let the tool "
            "report only the changed files."
        )
    encoding = "utf-8-sig"
    if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        encoding = "utf-16"
    try:
        return raw.decode(encoding), ()
    except UnicodeDecodeError:
        text = raw.decode(encoding, "replace")
    return text, (Remark("the output is not valid UTF-8; invalid bytes were replaced", "invalid-utf-8"),)


def without_thoughts(text: str) -> str:
    """Return an answer without what a model thought before it: a review tried out there is none."""
    opening = _THOUGHT.match(text)
    if not opening:
        over = _THOUGHT_OVER.search(text)
        begun = over and re.search(r"<think(ing)?>", text[: over.start()], re.IGNORECASE)
        return text[over.end() :] if over and not begun else text
    closing = re.compile(rf"</{opening[1]}>", re.IGNORECASE).search(text)
    return text[closing.end() :] if closing else ""


def loads(text: str, what: str) -> Any:
    """Parse one JSON document.

    Raises:
        Unreadable: naming ``what`` and the place of the first error; `Ambiguous` for a key that is twice.
    """
    try:
        return plainjson.parse(text, pairs=_object)
    except ValueError as error:
        raise Unreadable(
            f"{what}: not JSON ({printable(str(error), 120)}); it begins with {printable(text[:200], 60)!r}. "
            "Look at the raw output that is kept beside the results."
        ) from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        for key, value in pairs:
            if made[key] != value:
                raise Ambiguous(
                    f"an object has the key {printable(key, 60)!r} twice, with different values. Let the "
                    "tool write each once."
                )
    return made


_DECODER = json.JSONDecoder(object_pairs_hook=_object)
_BLANKS = re.compile(r"\s*")
_BRACKET = re.compile(r"[\[\]{}]")


def whole(raw: bytes, what: str) -> Document:
    """Return the one JSON document of an output, whatever surrounds it.

    Raises:
        Unreadable: if there is none, or several, or a damaged one.
    """
    text, remarks = text_of(raw)
    output = documents(text, what)
    if len(output.values) > 1:
        raise Unreadable(
            f"{what}: the output holds {len(output.values)} JSON documents. Let the tool write one."
        )
    if output.prose:
        remarks = (*remarks, IN_PROSE)
    return Document(output.values[0], remarks, output.prose)


def lines(text: str, what: str) -> list[Any]:
    """Parse JSON Lines; blank lines are skipped.

    Raises:
        Unreadable: naming the first line that is not JSON.
    """
    numbered = ((n, line) for n, line in enumerate(text.split("\n"), 1) if line.strip())
    return [loads(line, f"{what}, line {number}") for number, line in numbered]


@dataclass(frozen=True)
class Output:
    """The JSON documents of an output, in order, and whether other text stands beside them."""

    values: tuple[Any, ...]
    prose: bool = False


def documents(text: str, what: str) -> Output:
    """Return the JSON documents of an output: alone, one after the other, or in prose and fences.

    In prose a document begins at the start of a line, or right after a fence's opening. What begins like one
    must be one as a whole: nothing inside of a damaged document is ever returned.

    Raises:
        Unreadable: if there is no document, or if one does not parse, or if a piece of one is left over.
    """
    for _ in range(2):
        start = _past_blanks(text, 0)
        if _OPENING.match(text, start):
            values, end = _sequence(text, start, what)
            if not text[end:].strip():
                return Output(tuple(values))
            break
        text = without_thoughts(text)
    return _Prose(text, what).read()


def review_in(text: str, what: str, accept: Callable[[Any], bool], *, several: bool = False) -> Output:
    """Return the one review of an output, whatever surrounds it: a value of the caller's format.

    Pages (lists one after the other, or a list of lists) are one list, and so are comments one after the
    other. A review that is repeated word for word is one.

    Args:
        text: the output.
        what: what to call it in errors.
        accept: whether a value is a review, or one comment.
        several: whether several review objects are one review.

    Raises:
        Unreadable: if there is no review, or several that differ, or JSON of something else.
    """
    output = documents(text, what)
    values = [flat(value) for value in output.values]
    if len(values) == 1 and not output.prose:
        return Output((values[0],))
    for value in values:
        if not accept(value):
            raise Unreadable(
                f"{what}: the output holds JSON that is no review ({printable(str(value), 60)!r})"
            )
    different = {canonical(value): value for value in values}
    single = [isinstance(value, dict) and "comments" not in value and "body" in value for value in values]
    if all(single):
        return Output((values,), output.prose)
    if len(different) == 1:
        return Output((values[0],), output.prose)
    if several and not any(single):
        return Output(([item for v in values for item in (v if isinstance(v, list) else [v])],), output.prose)
    if output.prose or not all(isinstance(value, list) for value in values):
        raise Unreadable(
            f"{what}: the output holds {len(different)} reviews that differ. Let the tool write one."
        )
    return Output(([item for value in values for item in value],))


def empty_in_prose(what: str, completed: str = "") -> Unreadable:
    """Return the error for an empty review among other words: an apology looks the same as "no issues".

    ``completed`` is how the format itself says that the review was completed.
    """
    return Unreadable(
        f"{what}: an empty review among other text may be an apology. Let the tool write nothing else"
        + (f", or {completed}." if completed else ".")
    )


def refuse_failure(document: Mapping[str, Any], what: str, *, empty: bool) -> tuple[Remark, ...]:
    """Return a remark where a document has an ``error`` beside its findings.

    Raises:
        Unreadable: if there are none: then it is no clean review.
    """
    said = document.get("error") or document.get("errors")
    if not said:
        return ()
    failure = f"the tool reports an error ({printable(str(said), 200)})"
    if empty:
        raise Unreadable(f"{what}: {failure}: this is no clean review")
    return (Remark(failure, "tool-error"),)


def flat(value: Any) -> Any:
    """Return a list of pages (``gh api --paginate --slurp``) as one list, and any other value as it is."""
    if isinstance(value, list) and value and all(isinstance(page, list) for page in value):
        return [item for page in value for item in page]
    return value


def _sequence(text: str, at: int, what: str) -> tuple[list[Any], int]:
    """Parse documents that follow one another with nothing but blanks between; returns where they end."""
    values: list[Any] = []
    end = at
    while at < len(text) and _OPENING.match(text, at):
        try:
            value, end = plainjson.parse_at(text, at, _DECODER)
        except Ambiguous:
            raise
        except ValueError as error:
            raise _damaged(text, at, what, error) from None
        values.append(value)
        at = _past_blanks(text, end)
    return values, end


class _Prose:
    """Goes once through text that holds documents; keeps what is no document, to look for pieces in it.

    ``rest`` are lines of prose, ``code`` blocks in fences that are no JSON; ``bare``: there are rows in no
    fence.
    """

    def __init__(self, text: str, what: str) -> None:
        self.text, self.what = text, what
        self.values: list[Any] = []
        self.rest: list[str] = []
        self.code: list[str] = []
        self.bare = False

    def read(self) -> Output:
        at = 0
        while at < len(self.text):
            start = _past_blanks(self.text, at)
            fence = _FENCE.match(self.text, start)
            if fence:
                at = self._fenced(fence)
            elif _OPENING.match(self.text, start):
                at = self._document(start, "")
            else:
                end = self.text.find("\n", start)
                at = len(self.text) if end < 0 else end + 1
                self.rest.append(self.text[start:at])
        if not self.values:
            raise _unlike(self.text, self.what)
        # Rows do not say how many there are: one that is damaged must not pass for the words around them.
        piece = next((line for line in self.rest if _is_piece(line) or (self.bare and '"' in line)), None)
        if piece is not None:
            raise Unreadable(
                f"{self.what}: a piece of a damaged JSON document stands outside of what can be read: "
                f"{printable(piece.strip()[-200:], 60)!r}. Let the tool write nothing but its review there."
            )
        return Output(tuple(self.values), any(map(str.strip, (*self.rest, *self.code))))

    def _fenced(self, fence: re.Match[str]) -> int:
        """Read a fenced block: a document as a whole, or text that is none."""
        marker, word = fence[1], fence[2].lower()
        start = _past_blanks(self.text, fence.end())
        json_word = word.startswith(("json", "sarif", "rdjson"))
        if json_word or (not word and _OPENING.match(self.text, start)):
            return self._document(start, marker)
        closing = re.compile(rf"^[ \t]*{re.escape(marker[0])}{{{len(marker)},}}[ \t]*$", re.MULTILINE)
        end = closing.search(self.text, fence.end())
        at = len(self.text) if end is None else end.end()
        block = self.text[fence.end() : at].rstrip("`~ \t")
        # Code may hold such keys, too; what is no whole block of a language may be a review's other fence.
        doubtful = not word or end is None or _OPENING.match(self.text, start)
        (self.rest if doubtful and _KEY.search(block) else self.code).append(block)
        return at

    def _document(self, start: int, marker: str) -> int:
        """Read the documents that begin here, up to the end of their line or of their fence.

        Raises:
            Unreadable: if they do not parse, or something else follows, or they are part of something larger.
        """
        values, end = _sequence(self.text, start, self.what)
        line = self.text.find("\n", end)
        line = len(self.text) if line < 0 else line
        if marker:
            after = _past_blanks(self.text, end)
            closed = self.text.startswith(marker, after)
            end = after + len(marker) if closed else end
            whole = bool(values) and (closed or after >= len(self.text))
        else:
            whole = not self.text[end:line].strip()
        before = "".join(self.rest[-1:])[-100:].rstrip()
        after = _past_blanks(self.text, end)
        if not whole or _WITHIN[0].search(before) or _WITHIN[1].match(self.text, after):
            raise _damaged(self.text, start, self.what, "other text stands on its line")
        self.values += values
        self.bare = self.bare or (
            not marker and any(isinstance(v, dict) and not v.keys() & _WHOLE for v in values)
        )
        return end if marker else line


def _is_piece(line: str) -> bool:
    """Whether a line of prose may be what was left of a document that lost its beginning or end."""
    line = line.strip()
    if line in tuple('[]{},:"') or _KEY.search(line) or _NEXT_KEY.search(line) or _CLOSED.search(line):
        return True
    depth = 0
    for bracket in _BRACKET.findall(line):
        depth += 1 if bracket in "[{" else -1
        if depth < 0:
            return True
    return depth > 0


def _past_blanks(text: str, at: int) -> int:
    found = _BLANKS.match(text, at)
    return found.end() if found else at


def _damaged(text: str, at: int, what: str, why: object) -> Unreadable:
    line = text.count("\n", 0, at) + 1
    return Unreadable(
        f"{what}: the JSON that begins in line {line} does not parse ({printable(str(why), 120)}); it begins "
        f"with {printable(text[at : at + 200], 60)!r}. Look at the raw output, kept with the results."
    )


def _unlike(text: str, what: str) -> Unreadable:
    return Unreadable(
        f"{what}: not JSON; it begins with {printable(text[:200], 60)!r}. Look at the raw output, kept with "
        "the results."
    )
