"""One instance under way: its trees, review, revision and verdicts, each made once and recorded."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from traceback import format_exception
from typing import TYPE_CHECKING, Any

from .. import OutsideFailure, __version__
from ..core.agent import AgentTask
from ..core.errors import ReviewerError, StageError, UnusableRevisionError, outside_failure
from ..core.model import Changes, Key, Review, ReviewRecord, Revision, Verdict, added
from ..core.reviewer import ReviewTask
from ..core.scoring import scoring_of
from ..core.status import Status
from ..host import digest
from ..host.files import write_bytes
from ..text.printable import REASON_LIMIT, printable
from ..text.secrets import scrubbed_patch
from . import records
from .ground import Ground
from .plan import unmeasured

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from ..core.model import Check


@dataclass
class Evaluation(Ground):
    """One instance under way, in one repeat and arm. Each property is a stage."""

    #: What attempts at a stage used that failed.
    spent: dict[str, dict[str, float]] = field(default_factory=dict)
    #: What scorings keep between checks: the result of a stage of their own, by its name.
    kept: dict[str, Any] = field(default_factory=dict)
    #: Digests of what went into its stages.
    keys: dict[str, str] = field(default_factory=dict)
    #: What scorings count of the review, by the name of the scoring.
    counts: dict[str, Mapping[str, Any]] = field(default_factory=dict)

    @cached_property
    def review_key(self) -> str:
        """Digest of all that goes into the review."""
        return digest.of(
            {
                "crbench": __version__,
                "instance": self.instance.digest,
                "base": self.trees.base.digest if self.owner.repository else None,
                "head": self.trees.head.digest if self.owner.repository else None,
                "reviewer": dict(self.owner.reviewer.fingerprint),
                "repeat": self.repeat,
                "arm": self.arm,
                **({"comments": "diff"} if self.owner.only_diff else {}),
            }
        )

    @cached_property
    def review(self) -> Review:
        """The review, made once."""
        if self.owner.replay is not None:
            return records.told_apart(records.review_from(self._replayed("review")))
        ask = partial(self.owner.strikes.ask, self._make_or_take_over)
        made = self.stage("review", self.review_key, ask)
        return records.told_apart(records.review_from(made))

    def _make_or_take_over(self) -> dict[str, Any]:
        """Take over another run's review only of a reviewer that says which version it is."""
        if not self.owner.reviewer.shareable:
            return self._make_review()
        key = self.review_key
        name = f"reviews/{key[:2]}/{key}"
        outcome = self.owner.shared.stage(name, key, self._make_review, log=self.log)
        value: dict[str, Any] = outcome.unwrap()
        if outcome.fresh:
            return value
        self.log(f"review {self.repeat}: taken over from an earlier run of the same reviewer version")
        return {**value, "raw": None}

    def _make_review(self) -> dict[str, Any]:
        self.log(f"review {self.repeat}: {self.owner.reviewer.name} starts")
        task = ReviewTask(
            instance=self.instance,
            pull_request=self.pull_request,
            diff=self.workspace.diff if self.owner.repository else b"",
            checkout=self.workspace.copy_to if self.owner.repository else _no_checkout,
            directory=self.directory,
            repeat=self.repeat,
            log=self.log,
            head=self.trees.head if self.owner.repository else None,
            sandbox=self.agent_sandbox if self.owner.repository else None,
            repository=self.owner.repository,
        )
        # Once more: trees and workspace may have taken their time.
        self.owner.store.permit()
        try:
            review = self.owner.reviewer.review(task)
            if self.owner.only_diff:
                review = records.within_diff(review)
            record = records.reviewed(review)
        except StageError as error:
            self.log(f"review {self.repeat}: {error.status.value}: {error}")
            if _is_own(self.owner.reviewer) or error.status.in_strict:
                raise
            # An object of the vendor's own may name any status; none takes it out of the rate unseen.
            raise outside_failure("reviewer", self.owner.reviewer.name, str(error)) from error
        except Exception as error:
            if _is_own(self.owner.reviewer):
                raise
            if isinstance(error, OutsideFailure):
                raise outside_failure("reviewer", self.owner.reviewer.name, str(error)) from error
            # An object of the vendor's own: it crashed, as a program of the vendor's does.
            self.log(f"review {self.repeat}: {''.join(format_exception(error))}")
            raise ReviewerError(
                f"the reviewer {self.owner.reviewer.name} raised {type(error).__name__}: "
                f"{printable(str(error), 300)}",
                reason="crashed",
            ) from error
        self.log(f"review {self.repeat}: {len(review.comments)} comments in {review.duration:.1f} s")
        raw = f"evaluations/{self.name}/{review.raw}" if review.raw else None
        return {**record, "raw": raw}

    @cached_property
    def revision_key(self) -> str:
        """Digest of all that goes into the revision."""
        agent = self.owner.agent
        return digest.of(
            {
                "review": [records.comment_to(c) for c in self.review.comments],
                "instance": self.instance.digest,
                "base": self.trees.base.digest,
                "head": self.trees.head.digest,
                "agent": dict(agent.fingerprint),
                "sandbox": self.owner.backend.name,
                "repeat": self.repeat,
                "arm": self.arm,
            }
        )

    @cached_property
    def revision(self) -> Revision:
        """The revision, made once."""
        if self.owner.replay is not None:
            source = self.owner.replay / "evaluations" / self.name
            return records.revision_from(self._replayed("revision"), source)
        there = lambda value: records.has_patch(value, self.directory)  # noqa: E731
        made = self.stage("revision", self.revision_key, self._make_revision, there)
        return records.revision_from(made, self.directory)

    def _make_revision(self) -> dict[str, Any]:
        agent = self.owner.agent
        self.log(f"revision {self.repeat}: {agent.name} starts")
        try:
            if self.review.comments or agent.runs_on_clean_review:
                revision = agent.revise(self.agent_task())
            else:
                revision = Revision(patch=b"", agent=agent.name, stop_reason="clean-review")
        except OutsideFailure as error:
            raise outside_failure("agent", agent.name, str(error)) from error
        except UnusableRevisionError as error:
            # A review can ask an obedient agent for one, and would choose to leave the rate.
            note = f"an empty revision was tested: {error}"
            revision = Revision(b"", agent.name, error.reason, (note,), usage=error.usage)
        except StageError as error:
            self.log(f"revision {self.repeat}: {error.status.value}: {error}")
            raise
        self.log(
            f"revision {self.repeat}: {revision.stop_reason}, {len(revision.patch)} bytes of patch "
            f"in {revision.duration:.1f} s"
        )
        revision = _without_credentials(revision)
        write_bytes(self.directory / "revision.patch", revision.patch)
        return records.revision_to(revision)

    def agent_task(self) -> AgentTask:
        """Return what the coding agent gets of this pull request and its review."""
        owner = self.owner
        return AgentTask(
            pull_request=self.pull_request,
            review=self.review,
            diff=self.workspace.diff,
            head=self.trees.head,
            checkout=self.workspace.copy_to,
            sandbox=self.agent_sandbox,
            capture=lambda edited: owner.capture(self.trees.head, edited),
            fixed=self.fixed,
            directory=self.directory,
            repeat=self.repeat,
            log=self.log,
        )

    @cached_property
    def changes(self) -> Changes:
        """What the revision does to the head tree.

        Raises:
            TamperedError: if the head that it was read against is not the one that was fetched.
        """
        try:
            return self.owner.changes(self.trees.head, self.revision.patch)
        finally:
            # The reviewer has run since: what it wrote into our head would become part of the revision, or
            # keep it from applying.
            digest.verify(self.trees.head)

    def verdict(self, check: Check, scoring: str) -> Verdict:
        """Return the verdict on one check in one scoring.

        Raises:
            StageError: if there is no measurement.
        """
        return self.owner.deciders[scoring].verdict(self, check)

    def failed(self, check: Check, error: StageError, scoring: str) -> Verdict:
        """Return the verdict that stands for a stage that gave no result."""
        return replace(
            self.blank(check, scoring),
            status=error.status,
            reason=printable(str(error), REASON_LIMIT),
            cause=error.reason,
        )

    def blank(self, check: Check, scoring: str) -> Verdict:
        """Everything of a verdict that is known whatever happens later; status is a placeholder."""
        blank = unmeasured(
            self.instance,
            check,
            Key(self.instance.dataset, self.instance.id, check.id, scoring, self.repeat, self.arm),
            Status.INFRA_ERROR,
            "",
            sandbox=self.owner.backend.name if scoring_of(scoring).needs_agent else None,
        )
        return replace(blank, review=self.record())

    def record(self) -> ReviewRecord:
        """Return what is known of the review, and of what was made of it, whatever the check."""
        review: Review | None = self.__dict__.get("review")
        revision: Revision | None = self.__dict__.get("revision")
        if review is not None and "review" not in self.keys:
            # A replay reads both, whatever their keys.
            with suppress(StageError):
                self.keys["review"] = self.review_key
                self.keys |= {"revision": self.revision_key} if revision is not None else {}
        if revision is not None:
            self.keys["agent"] = digest.of(dict(self.owner.agent.fingerprint))
        stages = dict.fromkeys(("review", "revision", *self.spent))
        found: dict[str, Any] = {one: self.__dict__.get(one) or self.kept.get(one) for one in stages}
        # Another package's scoring may keep what it likes.
        made = {stage: one for stage, one in found.items() if hasattr(one, "duration")}
        record = ReviewRecord(
            id=self.name,
            dataset=self.instance.dataset,
            instance=self.instance.id,
            repeat=self.repeat,
            arm=self.arm,
            keys=dict(self.keys),
            stop_reason=revision.stop_reason if revision else None,
            durations={stage: one.duration for stage, one in made.items()},
            usage={
                stage: added(made[stage].usage if stage in made else {}, self.spent.get(stage, {}))
                for stage in stages
                if stage in made or self.spent.get(stage)
            },
            counts=dict(self.counts),
        )
        return record if review is None else replace(record, **records.review_counts(review))

    def stage(
        self,
        stage: str,
        key: str,
        make: Callable[[], dict[str, Any]],
        usable: Callable[[Any], bool] = lambda _value: True,
    ) -> Any:
        """Make a shared stage of this evaluation once, and note what it used.

        Raises:
            StageError: if it gives no result.
        """
        self.keys[stage] = key
        store, name = self.owner.store, f"evaluations/{self.name}/{stage}"
        outcome = store.stage(name, key, make, log=self.log, usable=usable)
        self.spent[stage] = added(outcome.earlier, outcome.error.usage if outcome.error else {})
        return outcome.unwrap()

    def _replayed(self, stage: str) -> Any:
        """Read a recorded stage of the run that is replayed, whatever key it was made under."""
        assert self.owner.replay is not None
        return records.recorded(self.owner.replay / "evaluations" / self.name / f"{stage}.json")


def _without_credentials(revision: Revision) -> Revision:
    """Before its digest is taken: what is kept is what is tested."""
    patch = scrubbed_patch(revision.patch)
    if patch == revision.patch:
        return revision
    said = "the revision held credentials of this machine, which were taken out of it"
    return replace(revision, patch=patch, warnings=(*revision.warnings, said))


def _is_own(made: object) -> bool:
    """Whether a reviewer is one of this package, not an object of the vendor's."""
    return type(made).__module__.partition(".")[0] == __name__.partition(".")[0]


def _no_checkout(_destination: Path) -> None:
    raise ReviewerError(
        "this reviewer wants the code, and --crbench-offline has none; leave that option out",
        reason="offline",
    )
