"""Answers of models in tags, as in AACR-Bench (arXiv 2601.19494): blocks, separators, an end.

Per hunk a block is ``<diff>…</diff> <side>left|right</side> <note>…</note>``; in an agent's file it is
``<path>…</path> <side>…</side> <from>…</from> <to>…</to> <note>…</note>``. Blocks are separated by
``<notesplit/>`` and ended by ``<end/>``; what comes after the end, and prose between the blocks, is no part
of the answer. An ``<end/>`` within a line of prose, before any block, ends nothing: it is spoken of.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .base import Parsed, Remark, Unreadable
from .draft import draft, take_suggestion
from .jsontext import text_of, without_thoughts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .base import ParseContext

#: What a block of an answer about one hunk, and of an agent's file, must have to be read.
HUNK_FIELDS = ("diff", "note")
PLACED_FIELDS = ("path", "note")
_TAG = re.compile(
    r"<\s{0,8}(/?)\s{0,8}(path|side|from|to|diff|note|notesplit|end)\s{0,8}/?\s{0,8}>", re.IGNORECASE
)
_SEPARATORS = ("notesplit", "end")
#: The end of a tag whose beginning is lost.
_CUT = re.compile(r"\s*/?\s*[a-z]{0,9}\s*/?\s*>", re.IGNORECASE)
_FENCE = re.compile(r"\s*(`{3,}|~{3,})[^`\n]*")


@dataclass(frozen=True)
class Answer:
    """An answer that could be read: its blocks (texts by tag), and how many were only half there.

    ``stray`` counts closing tags without an opening one, text between the tags of a block, and an end that
    announces more: something of a block is missing.
    """

    blocks: tuple[Mapping[str, str], ...]
    half: int = 0
    stray: int = 0

    @property
    def remarks(self) -> tuple[Remark, ...]:
        """What was left out."""
        if not self.half:
            return ()
        said = f"{self.half} block{'s' if self.half > 1 else ''} of the answer lacked a tag and were left out"
        return (Remark(said, "half-block", self.half),)


def read(text: str, required: Sequence[str]) -> Answer:
    """Read the blocks of an answer; those that lack one of the ``required`` tags are counted, not guessed.

    No block at all is an answer only if it says so: by ``<end/>``, with no half block before it.

    Raises:
        Unreadable: if no block can be read and the answer does not say that there is none; reason ``empty``
            if there is no text at all.
    """
    said = without_thoughts(text)
    if not said.strip():
        raise Unreadable(
            "the model answered nothing. That there is no finding is said by <end/>.", reason="empty"
        )
    scan = _Scan(said, required)
    blocks, half, ended = scan.run()
    if not blocks and (half or not ended):
        what = "only half a block" if half else "no block of tags, and no <end/>"
        raise Unreadable(f"the model's answer holds {what}: it is neither a review nor a clean one")
    return Answer(tuple(blocks), half, scan.stray)


def parse(raw: bytes, context: ParseContext) -> Parsed:
    """Read the file of an agent: blocks that name path, side, first and last line. A clean one is ``<end/>``.

    Raises:
        Unreadable: as `read`, if it is too much, or if any tag of a block is missing: the rest of a damaged
            file is no review.
    """
    text, remarks = text_of(raw)
    answer = read(text, PLACED_FIELDS)
    stray = answer.stray + bool(_CUT.match(text))
    if answer.half or stray:
        raise Unreadable(
            f"tagged: {answer.half} blocks lack a tag, and {stray} tags or texts stand alone; "
            "write each comment as <path>, <side>, <from>, <to> and <note>, with <notesplit/> between"
        )
    comments = []
    for block in answer.blocks:
        body, suggestion, flags = take_suggestion(block["note"])
        comments.append(
            draft(
                context,
                body=body,
                path=block["path"],
                start=block.get("from"),
                end=block.get("to"),
                side=block.get("side"),
                suggestion=suggestion,
                flags=flags,
            )
        )
    return Parsed(tuple(comments), remarks)


def unfenced(code: str) -> str:
    """Take a Markdown fence off quoted code, and blank lines at both ends."""
    lines = _trimmed(code.split("\n"))
    if len(lines) > 1 and _FENCE.fullmatch(lines[0]) and _FENCE.fullmatch(lines[-1]):
        lines = _trimmed(lines[1:-1])
    return "\n".join(lines)


def _trimmed(lines: list[str]) -> list[str]:
    kept = [number for number, line in enumerate(lines) if line.strip()]
    return lines[kept[0] : kept[-1] + 1] if kept else []


class _Scan:
    """Goes through the tags of a text once."""

    def __init__(self, text: str, required: Sequence[str]) -> None:
        self.text = text
        self.required = required
        self.tags = [(m.start(), m.end(), bool(m[1]), m[2].lower()) for m in _TAG.finditer(text)]
        self.blocks: list[dict[str, str]] = []
        self.half = self.stray = 0
        self.block: dict[str, str] = {}
        self.torn = False

    def run(self) -> tuple[list[dict[str, str]], int, bool]:
        """Return the blocks, the number of half ones, and whether the end was said."""
        at, ended, said = 0, False, False
        while at < len(self.tags) and not ended:
            start, _end, closing, name = self.tags[at]
            if self.block and self.text[self.tags[at - 1][1] : start].strip():
                self.stray += 1
            if name in _SEPARATORS:
                self._finish()
                # Between what, if nothing came before?
                self.stray += name == "notesplit" and not self.blocks and not self.half
                said = said or name == "end"
                ended = name == "end" and (bool(self.blocks) or self.half > 0 or self._alone(at))
            elif closing:
                self.stray += 1
            else:
                at = self._element(at)
            at += 1
        self._finish()
        if self.tags:
            _, end, _, last = self.tags[at - 1]
            self.stray += last == "notesplit" or "<" in self.text[end:]
        return self.blocks, self.half, said

    def _alone(self, at: int) -> bool:
        """Whether a tag is all that its line holds (of blanks around it a few are looked at)."""
        start, end, *_ = self.tags[at]
        before = self.text[max(0, start - 80) : start].rstrip(" \t")
        after = self.text[end : end + 80].lstrip(" \t\r")
        return before[-1:] in ("", "\n") and after[:1] in ("", "\n")

    def _element(self, at: int) -> int:
        """Read one element; returns the index of its closing tag, or of the opening one if there is none."""
        _, begin, _, name = self.tags[at]
        if name in self.block:
            self._finish()  # a separator was forgotten
        for index in range(at + 1, len(self.tags)):
            start, _, closing, other = self.tags[index]
            if other == name and closing:
                self.block[name] = self.text[begin:start]
                return index
            # A note and quoted code may speak of other tags; a path, side or number holds none.
            if other == name or other in _SEPARATORS or name not in ("note", "diff"):
                break
            self.stray += closing
        self.torn = True
        return at

    def _finish(self) -> None:
        # A block that lost the end of its note, or of anything else, is not what the model said.
        whole = not self.torn and all(self.block.get(name, "").strip() for name in self.required)
        if whole:
            self.blocks.append({name: self._tidy(name, text) for name, text in self.block.items()})
        elif self.block or self.torn:
            self.half += 1
        self.block, self.torn = {}, False

    @staticmethod
    def _tidy(name: str, text: str) -> str:
        return unfenced(text) if name == "diff" else text.strip()
