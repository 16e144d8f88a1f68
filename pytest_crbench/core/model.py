"""The words of the benchmark as values: frozen, typed, made of plain parts.

Terms are those of c-CRAB (arXiv 2603.23448): an instance is a pull request with its checks; a check is
one thing that a good review must get right.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from .records import BY_ID, Count, Matched, Number, Numbers, Ordinal, Text
from .status import SELF_REPORTED, Status

Kind = Literal["behavioral", "structural"]
Side = Literal["left", "right"]
Level = Literal["inline", "file", "general"]
Category = Literal[
    "Functional Correctness",
    "Testing",
    "Robustness",
    "Compatibility",
    "Documentation",
    "Design",
    "Error Handling",
    "Maintainability",
    "Efficiency",
    "Security",
]


@dataclass(frozen=True)
class ReviewComment:
    """One comment of a review.

    ``path`` is POSIX, relative to the repository's root. ``lines`` is (first, last), 1-based and inclusive,
    on ``side`` ("right" is the pull request's head, "left" its base). ``suggestion`` replaces exactly
    ``lines`` of the head; "" deletes them. ``flags`` are our remarks: ``outside-diff``, ``duplicate``,
    ``range-swapped`` and so on; a flagged comment is kept, never moved and never dropped. ``replies`` are
    what was answered to it: conversation, which neither agents nor matching are given.
    """

    id: str
    body: str
    path: str | None = None
    lines: tuple[int, int] | None = None
    side: Side = "right"
    level: Level = "inline"
    suggestion: str | None = None
    severity: str | None = None
    rule: str | None = None
    flags: tuple[str, ...] = ()
    replies: tuple[str, ...] = ()


@dataclass(frozen=True)
class PullRequest:
    """What a reviewer is given: two commits and what its author said of them; never whose they are.

    ``base`` and ``head`` are full commit ids in the workspace; ``diff`` is ``git diff base head``
    (unified, three lines of context), bytes that are not UTF-8 replaced.
    """

    title: str
    body: str
    base: str
    head: str
    diff: str
    language: str


@dataclass(frozen=True)
class Review:
    """What the reviewer said. No comments means clean: a crash or unreadable output is never a Review.

    ``raw`` names the file, relative to the run directory, with the program's output as it came. ``noted``
    counts by kind what reading it had to give up (``skipped``, ``half-block``), beside the flags of comments.
    """

    comments: tuple[ReviewComment, ...]
    reviewer: str
    raw: str | None = None
    warnings: tuple[str, ...] = ()
    duration: Number = 0.0
    usage: Numbers = field(default_factory=dict)
    noted: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Revision:
    """What the coding agent changed: one ``git diff --binary`` against head, bytes as they are.

    ``stop_reason``: ``finished``, ``unchanged`` (a program ended with status 0 and changed no file),
    ``clean-review`` (no comments, so no agent ran) or the limit reached
    (``step-limit``, ``time-limit``, ``token-limit``, ``cost-limit``, ``format-errors``, ``refused``). At a
    limit the work so far is the revision and is tested as it is. ``too-large`` and ``unreadable``: what the
    agent left is no revision, so an empty one is.
    """

    patch: bytes
    agent: str
    stop_reason: str
    warnings: tuple[str, ...] = ()
    duration: Number = 0.0
    usage: Numbers = field(default_factory=dict)


@dataclass(frozen=True)
class Artifact:
    """One archive of a package index."""

    file: str
    sha256: str


@dataclass(frozen=True)
class Source:
    """Where the trees come from. ``base``, ``head`` and ``fixed`` hold what the kind needs.

    ``pypi``: `Artifact` each, with ``package``. ``git``: commit ids, with ``url``. ``git+patch``: ``base`` a
    commit id, ``patch`` the path of a diff that makes head (and ``fixed_patch`` fixed). ``tree``: folders.
    """

    kind: Literal["pypi", "git", "git+patch", "tree"]
    base: Artifact | str | Path
    head: Artifact | str | Path | None = None
    fixed: Artifact | str | Path | None = None
    package: str | None = None
    url: str | None = None
    patch: Path | None = None
    fixed_patch: Path | None = None


@dataclass(frozen=True)
class Environment:
    """What must be installed for the hidden tests; ``as_of`` is the date (ISO) that pins are resolved for."""

    python: str = ">=3.11"
    runner: str = "pytest"
    import_roots: tuple[str, ...] = (".",)
    install: Literal["none", "editable"] = "none"
    requirements: tuple[str, ...] = ()
    as_of: str | None = None
    network: bool = False
    #: The version that an editable installation is built as, where the project asks git for it.
    version: str = ""

    def to_json(self) -> dict[str, Any]:
        """Plain JSON, for digests: what was added later is left out where it says nothing."""
        return {name: value for name, value in asdict(self).items() if name != "version" or value}


@dataclass(frozen=True)
class Check:
    """One thing that a good review must get right: a reference comment, and maybe a hidden test.

    ``test`` is the source of the test file that stands for the comment; "" if there is none: such a check
    can be matched, not run. ``category`` is one of `Category` where there is a test, else the dataset's own
    word. ``expect`` is the class name of the exception that the test ends with at head; "" if the instance
    does not say: it is no part of the digest. ``facets`` adds to, and overrides, what results of this check
    are grouped by.
    """

    id: str
    comment: ReviewComment
    kind: Kind | None
    category: str
    test: str
    digest: str
    expect: str = ""
    facets: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Instance:
    """One pull request with its checks, as loaded from a dataset."""

    dataset: str
    id: str
    language: str
    origin: Literal["release", "pull_request"]
    source: Source
    title: str
    body: str
    environment: Environment
    checks: tuple[Check, ...]
    digest: str
    created_at: str | None = None
    repo: str | None = None
    #: Digest of what reviewers and agents see: the trees, title and body; not of tests or comments.
    request_digest: str = ""
    path: Path | None = None
    #: What makes base and head, whatever the instance is called and says of them; "" if that is not known.
    sides: str = ""
    #: Comments that experts have rejected: a review is not measured by them, but hits are counted.
    rejected: tuple[ReviewComment, ...] = ()

    def facets(self, check: Check) -> dict[str, str]:
        """Return the named properties that results of ``check`` are grouped by."""
        return {
            **({"kind": check.kind} if check.kind else {}),
            "category": check.category,
            "language": self.language,
            "repo": self.repo or self.id,
            "origin": self.origin,
            "level": check.comment.level,
            **check.facets,
        }


@dataclass(frozen=True)
class Dataset:
    """A named set of instances; ``notice`` is what every report must say of it (may be empty)."""

    name: str
    title: str
    notice: str
    instances: tuple[Instance, ...]
    digest: str
    path: Path | None = None
    #: How its checks are scored if nothing else is asked for.
    scoring: str = "tests"


@dataclass(frozen=True)
class Tree:
    """A checked-out tree on the host, read-only by convention, and its content digest."""

    path: Path
    digest: str


@dataclass(frozen=True)
class Trees:
    """The sides of a pull request. ``fixed`` is there only when it was asked for."""

    base: Tree
    head: Tree
    fixed: Tree | None = None


@dataclass(frozen=True)
class File:
    """A file as bytes: POSIX path relative to some folder, content, git mode (100644, 100755, 120000)."""

    path: str
    content: bytes
    mode: str = "100644"


@dataclass(frozen=True)
class Changes:
    """What a patch does to a tree: apply ``deleted`` first, with the folders left empty, then ``files``."""

    files: tuple[File, ...] = ()
    deleted: tuple[str, ...] = ()

    @property
    def paths(self) -> tuple[str, ...]:
        """Every path that is touched, sorted."""
        return tuple(sorted({*self.deleted, *(file.path for file in self.files)}))


@dataclass(frozen=True, order=True)
class Key:
    """The identity of a verdict, stable across machines and invocations."""

    dataset: str
    instance: str
    check: str
    scoring: str = "tests"
    repeat: Ordinal = 1
    arm: str = "review"


#: The keys of a row that make its identity, in the order that rows are sorted by.
IDENTITY = tuple(one.name for one in fields(Key))


@dataclass(frozen=True, kw_only=True)
class ReviewRecord:
    """The review of one pull request in one repeat, and what was made of it; a line of reviews.jsonl.

    ``comments`` is None if there is no review. Stages are those that all checks share.
    """

    id: Annotated[str, Field(description="its folder below evaluations/")]
    dataset: str
    instance: str
    repeat: Ordinal = 1
    arm: str = "review"
    reviewer: str | None = None
    comments: Count | None = None
    outside_diff: Count = 0
    duplicates: Count = 0
    noted: Annotated[Mapping[Text, Count], Field(description="what was unusual in reading it, by kind")] = (
        field(default_factory=dict)
    )
    keys: Annotated[Mapping[str, Text], Field(description="digest of each stage's inputs")] = field(
        default_factory=dict
    )
    stop_reason: Annotated[str | None, Field(description="why the coding agent stopped")] = None
    durations: Annotated[Numbers, Field(description="seconds by stage")] = field(default_factory=dict)
    usage: Annotated[
        Mapping[str, Numbers],
        Field(description="tokens, calls, cost (USD) by stage, failed attempts too"),
    ] = field(default_factory=dict)
    counts: Annotated[
        Mapping[str, Matched], Field(description="what each scoring counted, such as comments that match")
    ] = field(default_factory=dict)

    def within(self, stages: Collection[str]) -> ReviewRecord:
        """Return what some stages took, and the same of the review."""
        if "revision" in stages and {*self.durations, *self.usage} <= {*stages}:
            return self
        return replace(
            self,
            stop_reason=self.stop_reason if "revision" in stages else None,
            durations={stage: value for stage, value in self.durations.items() if stage in stages},
            usage={stage: value for stage, value in self.usage.items() if stage in stages},
        )

    def merged(self, other: ReviewRecord) -> ReviewRecord:
        """Return both as one: each is from a process that may not know every stage."""
        if other is self:
            return self
        known = other if other.comments is not None else self
        names = dict.fromkeys((*self.usage, *other.usage))
        return replace(
            known,
            keys={**self.keys, **other.keys},
            stop_reason=other.stop_reason or self.stop_reason,
            durations={**self.durations, **other.durations},
            usage={name: other.usage.get(name) or self.usage.get(name, {}) for name in names},
            counts={**self.counts, **other.counts},
        )


@dataclass(frozen=True, kw_only=True)
class Verdict(Key):
    """What became of one check; a line of results.jsonl, which names its review (docs/results-format.md)."""

    status: Status
    reason: str
    cause: Annotated[str, Field(description="why there is no measurement, in one word")] = ""
    facets: Mapping[str, Text]
    check_digest: str
    keys: Annotated[Mapping[str, Text], Field(description="digest of what its own stages were made of")] = (
        field(default_factory=dict)
    )
    environment: Annotated[str | None, Field(description="digest of the environment")] = None
    sandbox: str | None = None
    durations: Annotated[Numbers, Field(description="seconds by stage of its own")] = field(
        default_factory=dict
    )
    usage: Annotated[Mapping[str, Numbers], Field(description="by stage of its own")] = field(
        default_factory=dict
    )
    review: Annotated[
        ReviewRecord | None, *BY_ID, Field(description="id of its row in reviews; null if nothing is known")
    ] = None
    matching: Annotated[Mapping[str, Any], Field(description="what became of this reference")] = field(
        default_factory=dict
    )
    warnings: tuple[Text, ...] = ()
    log: Annotated[str | None, Field(description="path relative to the run's folder")] = None

    @property
    def counts(self) -> Mapping[str, Any]:
        """What its scoring counted of the review; empty if it did not get there."""
        return self.review.counts.get(self.scoring, {}) if self.review else {}

    @cached_property
    def key(self) -> Key:
        """Its identity."""
        return Key(*(getattr(self, name) for name in IDENTITY))

    @property
    def self_reported(self) -> bool:
        """Whether only the reviewer or the agent itself says why there is no measurement."""
        return not self.status.in_strict and self.cause in SELF_REPORTED


def added(first: Mapping[str, float], second: Mapping[str, float]) -> dict[str, float]:
    """Return the sum of two usages, name by name."""
    return {name: first.get(name, 0) + second.get(name, 0) for name in (*first, *second)}
