"""From which cosine on two comments say the same: measured on the references of the datasets to be matched.

No number fits two models: the cosines of one lie between 0.75 and 1, those of another between 0 and 1. Known
to say the same are a reference and its mechanical paraphrase (`paraphrase`), and known to say different
things are two references of one pull request, above all where they are at one place, as matching compares
no others.
"""

from __future__ import annotations

import random
import re
from bisect import bisect_right
from dataclasses import dataclass, replace
from itertools import combinations, islice
from typing import TYPE_CHECKING

from ...core.errors import UsageError
from .meaning import cosines, said
from .place import Rules, candidates

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...core.model import ReviewComment
    from .meaning import Embed

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


#: Raised when what is measured, or the rule that chooses, changes.
VERSION = 1
#: Pairs of one kind at the most: more say nothing new.
_MOST = 2000
#: A kind with fewer pairs decides nothing; the next does.
_ENOUGH = 30
#: Kinds of pairs that say different things, those first that are most like what matching compares.
_DIFFERENT = ("same_place", "same_pull_request", "unrelated")

Texts = tuple[str, str]


@dataclass(frozen=True)
class Kind:
    """One kind of pairs: how many, the share that the threshold gets wrong, and how their cosines lie."""

    pairs: int
    wrong: float | None
    low: float | None
    median: float | None
    high: float | None


@dataclass(frozen=True)
class Calibration:
    """A threshold and its errors: paraphrases below it, and other comments at or above it."""

    threshold: float
    #: The kind of different comments that the threshold was chosen against.
    against: str
    paraphrases: Kind
    same_place: Kind
    same_pull_request: Kind
    unrelated: Kind


def calibrate(embed: Embed, pull_requests: Sequence[Sequence[ReviewComment]]) -> Calibration:
    """Choose the threshold that makes the fewest errors, and say how many it makes.

    The sum of both shares of errors (Youden 1950, Cancer 3:32) is least at it: of paraphrases that are
    below, and of different comments at one place that are not; of one pull request, or of any, where too few
    are at one place. Between cosines it takes the middle.

    Args:
        embed: texts to vectors.
        pull_requests: the reference comments of each pull request.

    Raises:
        UsageError: there are too few references.
        InfraError: as ``embed``.
    """
    kinds = _pairs(pull_requests)
    against = next((name for name in _DIFFERENT if len(kinds[name]) >= _ENOUGH), None)
    if against is None or len(kinds["paraphrases"]) < _ENOUGH:
        counts = ", ".join(f"{len(pairs)} {name.replace('_', ' ')}" for name, pairs in kinds.items())
        raise UsageError(
            f"too few reference comments to calibrate on (pairs: {counts}; at least {_ENOUGH} are needed): "
            "name more datasets, or a larger one"
        )
    found, _ = cosines(embed, [pair for pairs in kinds.values() for pair in pairs])
    rest = iter(found)
    measured = {name: list(islice(rest, len(pairs))) for name, pairs in kinds.items()}
    threshold = _threshold(measured["paraphrases"], measured[against])
    return Calibration(
        threshold,
        against,
        **{
            name: _kind(found, sum((cosine < threshold) == (name == "paraphrases") for cosine in found))
            for name, found in measured.items()
        },
    )


def _pairs(pull_requests: Sequence[Sequence[ReviewComment]]) -> dict[str, list[Texts]]:
    """Texts to compare, by kind; never two equal ones, and of many a sample that is always the same."""
    known = [
        [(comment, said(comment)) for comment in comments if said(comment)] for comments in pull_requests
    ]
    chance = random.Random(0)
    kinds: dict[str, list[Texts]] = {"same_place": [], "same_pull_request": []}
    for comments in known:
        near = candidates([c for c, _ in comments], (c for c, _ in comments), {}, Rules())
        at_one_place = {frozenset((pair.reference, pair.comment)) for pair in near}
        for (one, text), (other, more) in combinations(comments, 2):
            if text != more:
                placed = frozenset((one.id, other.id)) in at_one_place
                kinds["same_place" if placed else "same_pull_request"].append((text, more))
    texts = [[text for _, text in comments] for comments in known if comments]
    drawn = [chance.sample(texts, 2) for _ in range(_MOST)] if len(texts) > 1 else []
    unrelated = [(chance.choice(one), chance.choice(other)) for one, other in drawn]
    kinds["unrelated"] = [pair for pair in unrelated if pair[0] != pair[1]]
    words = ((text, _in_other_words(comment)) for comments in known for comment, text in comments)
    kinds["paraphrases"] = [pair for pair in words if pair[1] and pair[0] != pair[1]]
    return {
        name: chance.sample(pairs, _MOST) if len(pairs) > _MOST else pairs for name, pairs in kinds.items()
    }


def _in_other_words(comment: ReviewComment) -> str:
    return said(replace(comment, body=paraphrase(comment.body)))


def _threshold(same: Sequence[float], different: Sequence[float]) -> float:
    """Return the threshold with the least sum of error shares, in the middle of the best gap."""
    ordered = sorted(same), sorted(different)
    values = sorted({*same, *different})
    best: tuple[float, float, float] | None = None
    for below, above in zip([-1.0, *values], [*values, 1.0], strict=True):
        missed, kept = (bisect_right(found, below) / len(found) for found in ordered)
        errors = missed + 1 - kept
        if best is None or errors < best[0] - 1e-12:
            best = (errors, below, above)
    assert best is not None
    return round((best[1] + best[2]) / 2, 4)


def _kind(found: Sequence[float], wrong: int) -> Kind:
    if not found:
        return Kind(0, None, None, None, None)
    ordered = sorted(found)

    def at(share: float) -> float:
        return round(ordered[round(share * (len(ordered) - 1))], 4)

    return Kind(len(found), round(wrong / len(found), 4), at(0.05), at(0.5), at(0.95))
