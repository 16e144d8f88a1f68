"""A comment in other words, by rule: the same meaning for certain, so that a threshold can be measured on it.

Applied in this order to everything but fenced code: other function words; contractions; inline code in other
quotes; the second half of the sentences first, or, of a single sentence, its clauses the other way round;
other punctuation, no emphasis, and a small letter at the beginning. docs/matching.md says what such a
paraphrase stands for and what it does not.
"""

from __future__ import annotations

import re

#: Words and phrases that change nothing of what a comment asks for. Each side stands for the other.
_SYNONYMS = (
    ("however", "but"),
    ("therefore", "so"),
    ("because", "as"),
    ("should", "ought to"),
    ("must", "has to"),
    ("needs to", "has to"),
    ("need to", "have to"),
    ("in order to", "to"),
    ("such as", "like"),
    ("for example", "for instance"),
    ("instead of", "rather than"),
    ("when", "whenever"),
    ("if", "in case"),
    ("also", "in addition"),
    ("consider", "think about"),
    ("recommend", "suggest"),
    ("ensure", "make sure"),
    ("might", "may"),
    ("can", "could"),
    ("will", "is going to"),
    ("currently", "at the moment"),
    ("here", "at this place"),
    ("this", "that"),
    ("please", ""),
)
_CONTRACTIONS = (
    ("does not", "doesn't"),
    ("do not", "don't"),
    ("is not", "isn't"),
    ("are not", "aren't"),
    ("cannot", "can't"),
    ("will not", "won't"),
    ("would not", "wouldn't"),
    ("should not", "shouldn't"),
    ("it is", "it's"),
    ("that is", "that's"),
)
_FENCE = re.compile(r"^(`{3,}|~{3,}).*?^\1[ \t]*$", re.MULTILINE | re.DOTALL)
_INLINE = re.compile(r"(`+)(?=[^`\n])[^\n]*?[^`\n]\1(?!`)|`[^`\n]`")
_KEPT = re.compile("\0(\\d+)\0")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z\0*\[\"'(])|\n+|(?<=[。！？])")
_CLAUSE = re.compile(
    r"(?:,|;| -|:)\s+|\s+(?=(?:because|as|since|so|but|which|rather than|in case|whenever)\b)"
)
_EMPHASIS = re.compile(r"(\*\*|__)(?=\S)(.+?)(?<=\S)\1")


def paraphrase(text: str) -> str:
    """Return ``text`` in other words; the same text where no rule applies."""
    kept: list[str] = []

    def keep(found: re.Match[str]) -> str:
        kept.append(found[0])
        return f"\0{len(kept) - 1}\0"

    words = _INLINE.sub(keep, _FENCE.sub(keep, text.replace("\0", "")))
    for one, other in (*_SYNONYMS, *_CONTRACTIONS):
        words = _replaced(words, one, other)
    words = _reordered(_EMPHASIS.sub(r"\2", words))
    return _KEPT.sub(lambda found: _quoted(kept[int(found[1])]), words).strip()


def _quoted(code: str) -> str:
    return f"\n{code}\n" if _FENCE.fullmatch(code) else f"'{code.strip('`')}'"


def _replaced(text: str, one: str, other: str) -> str:
    def swap(found: re.Match[str]) -> str:
        return other.capitalize() if found[0][0].isupper() else other

    return re.sub(rf"\b{re.escape(one)}\b", swap, text, flags=re.IGNORECASE)


def _reordered(text: str) -> str:
    parts = [part.strip() for part in _SENTENCE_END.split(text) if part and part.strip()]
    if len(parts) > 1:
        half = len(parts) // 2
        return " ".join(_lower(part).rstrip(".") + ";" for part in parts[half:] + parts[:half]).rstrip(";")
    clauses = [part for part in _CLAUSE.split(text.rstrip(".")) if part and part.strip()]
    half = (len(clauses) + 1) // 2
    return " - ".join(_lower(part.strip()) for part in clauses[half:] + clauses[:half])


def _lower(text: str) -> str:
    """Without a capital at the beginning, unless the first word is a name of the code."""
    word = text.split(maxsplit=1)[0] if text.strip() else ""
    plain = word[1:].islower() or len(word) == 1
    return text[0].lower() + text[1:] if plain and word[0].isalpha() else text
