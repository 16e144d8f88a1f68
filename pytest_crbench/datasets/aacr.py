"""AACR-Bench (arXiv 2601.19494): pull requests with reference comments that experts have verified.

Two files: ``positive_samples.json`` holds the references, ``negative_samples.json`` the comments that experts
rejected. No test is hidden: a review is matched to the references. docs/aacr.md tells the rules.
"""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..core.errors import UsageError
from ..core.model import Check, Dataset, Environment, Instance, ReviewComment, Source
from ..host import digest
from ..text.printable import printable
from .aacr_schema import CommentEntry, PullRequestEntry, read_entries
from .problems import Problems

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

NAME = "aacr"
POSITIVES, NEGATIVES = "positive_samples.json", "negative_samples.json"
#: The data has none; the number in a repository would lead whoever can search to the pull request's review.
_TITLE = "Pull request"
#: Most changed lines of each size but the last, and their names, in an order that is also the alphabet's.
_SIZES = ((50, "001-050"), (200, "051-200"), (500, "201-500"))
_LARGEST = "501+"
#: SHA-256 of the positives as their authors published them. Who verified other data, we do not know.
_PUBLISHED = "d8683cb240249bc4e0aff6428802bdffa7b7573ace600552cab1cd0cb7e905c9"


@dataclass(frozen=True)
class Samples:
    """What the two files hold, in their order; ``negatives`` is empty if there is no such file."""

    file: Path
    positives: tuple[PullRequestEntry, ...]
    negatives: tuple[PullRequestEntry, ...]

    def measured(self) -> list[PullRequestEntry]:
        """The pull requests with a reference: without one there is nothing to find, and no instance."""
        return [entry for entry in self.positives if entry.comments]

    def left_out(self) -> list[PullRequestEntry]:
        """The pull requests without a reference, each once, positives first."""
        kept = {entry.id.casefold() for entry in self.measured()}
        every = {entry.id.casefold(): entry for entry in (*self.negatives, *self.positives)}
        names = dict.fromkeys(entry.id.casefold() for entry in (*self.positives, *self.negatives))
        return [every[name] for name in names if name not in kept]


def load(path: Path) -> Dataset:
    """Load the dataset from the folder of its files, or from the file with the positives.

    Instances and checks come in the order of the file. Ids depend on content alone.

    Raises:
        UsageError: if there is no such file, or one is broken; lists all problems, not the first.
    """
    samples = read(path)
    rejected = {entry.id.casefold(): entry.comments for entry in samples.negatives}
    instances = tuple(_instance(entry, rejected.get(entry.id.casefold(), ())) for entry in samples.measured())
    if not instances:
        raise UsageError(f"{printable(str(samples.file))} holds no pull request with a comment: take another")
    published = digest.of_file(samples.file) == _PUBLISHED
    return Dataset(
        name=NAME,
        title=f"AACR-Bench: reference comments{' that experts have verified' if published else ''}",
        notice=_notice(instances, published=published),
        instances=instances,
        digest=digest.of({"name": NAME, "instances": [[i.id, i.digest] for i in instances]}),
        path=samples.file.parent,
        scoring="matching",
    )


def read(path: Path) -> Samples:
    """Read the files of the dataset.

    Raises:
        UsageError: as `load`.
    """
    file = _positives(path)
    problems = Problems(help="docs/aacr.md")
    positives = read_entries(file, problems)
    beside = file.with_name(NEGATIVES)
    # A selection of one's own, under another name, is what it says.
    there = file.name == POSITIVES and os.path.lexists(beside)
    negatives = read_entries(beside, problems) if there else []
    known = {entry.id.casefold(): entry for entry in positives}
    for index, entry in enumerate(negatives):
        other = known.get(entry.id.casefold(), entry)
        for key, value in entry.about.items():
            if value != other.about[key]:
                expected = f"what {file.name} says of {entry.url}: {other.about[key]!r}"
                problems.add(beside, f"[{index}].{key}", value, expected)
    problems.raise_if_any(path)
    return Samples(file, tuple(positives), tuple(negatives))


def folder_of(path: Path) -> Path:
    """Return the folder of the files, given it or the file with the positives, whether it is there or not."""
    return path.parent if path.suffix == ".json" else path


def _positives(path: Path) -> Path:
    # Not Path.is_dir(): it raises for a name that is longer than names can be.
    file = (path / POSITIVES if os.path.isdir(path) else path).absolute()  # noqa: PTH112
    if not os.path.isfile(file):  # noqa: PTH113
        raise UsageError(
            f"{printable(str(file), 400)}: no such file. aacr:PATH takes the folder of AACR-Bench's "
            f"{POSITIVES} and {NEGATIVES}, or the file with the positives"
        )
    if file.name == NEGATIVES:
        raise UsageError(
            f"{printable(str(file), 400)} holds comments that experts rejected, which no review must find; "
            f"name the file with the positives ({POSITIVES}), or the folder of both"
        )
    return file


def _instance(entry: PullRequestEntry, rejected: Sequence[CommentEntry]) -> Instance:
    owner, repo, _number = entry.parts
    url = f"https://github.com/{owner}/{repo}.git"
    source = {"kind": "git", "url": url, "base": entry.source_commit, "head": entry.target_commit}
    decides = {"language": entry.project_main_language, "source": source}
    references = list(zip(_comments(entry.comments), entry.comments, strict=True))
    checks = tuple(_check(comment, said, size_of(entry), decides) for comment, said in references)
    against = _comments(rejected)
    content = {
        **decides,
        "checks": [[c.digest, c.category, dict(c.facets)] for c in checks],
        "rejected": [dict(vars(c)) for c in against],
    }
    return Instance(
        dataset=NAME,
        id=entry.id,
        language=entry.project_main_language,
        origin="pull_request",
        source=Source("git", entry.source_commit, entry.target_commit, url=url),
        title=_TITLE,
        body="",
        environment=Environment(),
        checks=checks,
        digest=digest.of(content),
        repo=f"{owner}/{repo}",
        request_digest=digest.of({**decides, "pull_request": [_TITLE, ""]}),
        rejected=against,
    )


def _check(comment: ReviewComment, said: CommentEntry, size: str, decides: Mapping[str, object]) -> Check:
    return Check(
        id=comment.id,
        comment=comment,
        kind=None,
        category=said.category,
        test="",
        digest=digest.of({**decides, "comment": dict(vars(comment))}),
        facets={
            "context": said.context,
            "side": said.side,
            "origin": "model" if said.is_ai_comment else "human",
            "size": size,
        },
    )


def size_of(entry: PullRequestEntry) -> str:
    """Return the name of the size of a pull request, by its changed lines."""
    return next((name for most, name in _SIZES if entry.change_line_count <= most), _LARGEST)


def _comments(entries: Sequence[CommentEntry]) -> tuple[ReviewComment, ...]:
    """Make comments with ids of their content, in the given order.

    Where several say the same at one place, the second id ends in ``-2``, and so on, by the rest of what the
    file says of them: not by the order in which it says it.
    """
    plain = [_comment(entry) for entry in entries]
    names = [digest.of([c.path, c.lines, c.side, c.body])[:12] for c in plain]
    alike: dict[str, list[int]] = {}
    for place, name in enumerate(names):
        alike.setdefault(name, []).append(place)
    ids: dict[int, str] = {}
    for name, places in alike.items():
        if len(places) > 1:
            places.sort(key=lambda n: entries[n].model_dump_json(exclude={"note"}))
        for number, place in enumerate(places, start=1):
            ids[place] = name if number == 1 else f"{name}-{number}"
    return tuple(
        ReviewComment(ids[n], c.body, c.path, c.lines, c.side, "inline", flags=c.flags)
        for n, c in enumerate(plain)
    )


def _comment(entry: CommentEntry) -> ReviewComment:
    swapped = entry.from_line > entry.to_line
    return ReviewComment(
        id="",
        body=entry.note.rstrip(),
        path=entry.path,
        lines=entry.lines,
        side=entry.side,
        flags=("range-swapped",) if swapped else (),
    )


def _notice(instances: Iterable[Instance], *, published: bool) -> str:
    origins = Counter(check.facets["origin"] for instance in instances for check in instance.checks)
    verified = ", and all were verified by experts" if published else ""
    return (
        f"{origins['model']} of {origins.total()} reference comments were written by models{verified}. "
        "A comment that matches none is unlabelled: it need not be wrong."
    )
