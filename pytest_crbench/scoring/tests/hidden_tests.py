"""The scoring by hidden tests: what the test of a check says of a revision, and of the unmodified head."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ... import __version__
from ...core.errors import InvalidInstanceError, StageError
from ...core.model import Changes
from ...core.runner import RUNNERS
from ...core.status import Status
from ...host import digest
from ...host.files import write_atomic
from ...text.printable import printable
from .decide import check_expected, check_head, verdict_of

if TYPE_CHECKING:
    from collections.abc import Collection

    from ...core.model import Check, Tree, Verdict
    from ...core.runner import Observation, Runner
    from ...evaluation.evaluation import Evaluation

#: A hidden test that took this share of its limit at head leaves a fix too little time.
_HEADROOM = 3


class HiddenTestDecider:
    """Decides checks by their hidden tests."""

    def verdict(self, evaluation: Evaluation, check: Check) -> Verdict:
        """Return the verdict on one check.

        Raises:
            StageError: if there is no measurement.
        """
        tests: HiddenTests = evaluation.kept.setdefault("tests", HiddenTests(evaluation))
        return tests.verdict(check)


@dataclass
class HiddenTests:
    """Runs the hidden tests of one evaluation, each in a fresh sandbox."""

    evaluation: Evaluation

    def verdict(self, check: Check) -> Verdict:
        """Return the verdict on one check.

        Raises:
            StageError: if there is no measurement.
        """
        evaluation, owner = self.evaluation, self.evaluation.owner
        revision = evaluation.revision
        key = digest.of(
            {
                **self.conditions(check),
                "patch": digest.of_bytes(revision.patch),
                "sandbox": owner.backend.name,
            }
        )
        outcome = evaluation.owner.store.stage(
            f"evaluations/{evaluation.name}/checks/{check.id}",
            key,
            lambda: self.judge(check),
            log=evaluation.log,
        )
        found = outcome.unwrap()
        return replace(
            evaluation.blank(check, "tests"),
            status=Status(found["status"]),
            reason=found["reason"],
            keys={"tests": key},
            environment=evaluation.environment.digest,
            durations={"tests": found["seconds"]},
            warnings=(*evaluation.review.warnings, *revision.warnings, *found["warnings"]),
        )

    def conditions(self, check: Check) -> dict[str, Any]:
        """All that decides what the hidden test of ``check`` shows of one tree, for keys.

        The limits are part of it: a head that ran properly under others says nothing about a time-out, or a
        kill for memory, under these.
        """
        evaluation, owner = self.evaluation, self.evaluation.owner
        limits = owner.limits
        return {
            "crbench": __version__,
            "check": check.digest,
            "kind": check.kind,
            "head": evaluation.trees.head.digest,
            "environment": evaluation.environment.digest,
            "runner": self.runner.version,
            "limits": [owner.test_timeout, limits.memory, limits.cpus, limits.pids],
        }

    def judge(self, check: Check) -> dict[str, Any]:
        """Return status, reason, seconds and warnings of one check, as plain JSON.

        Raises:
            StageError: if that is no measurement.
        """
        evaluation = self.evaluation
        head = self._control(check)
        changes, put_back = self._effective(evaluation.changes, head["installed"])
        observed = self.observe(check, evaluation.trees.head, changes)
        write_atomic(evaluation.directory / "checks" / f"{check.id}.log", observed.log)
        try:
            status, reason = verdict_of(observed)
        except StageError as error:
            evaluation.log(f"check {check.id}: {error.status.value}: {error}")
            raise
        evaluation.log(f"check {check.id}: {status.value} {printable(reason)}")
        warnings = [f"put back to head, because it would steer the test run: {path}" for path in put_back]
        limit, took = self.evaluation.owner.test_timeout, float(head["seconds"])
        if limit < _HEADROOM * took:
            warnings.append(
                f"the hidden test took {took:.1f} s at head, and its limit is {limit:g} s: a right fix may "
                f"take longer and count as missed; allow {_HEADROOM * took:.0f} s "
                "(--crbench-limit test-timeout)"
            )
        return {
            "status": status.value,
            "reason": printable(reason),
            "seconds": observed.duration,
            "warnings": warnings,
            "modules_from_tree": observed.modules,
        }

    def observe(self, check: Check, tree: Tree, changes: Changes | None = None) -> Observation:
        """Run the hidden test of ``check`` in a fresh sandbox holding ``tree``, with ``changes`` applied.

        Raises:
            StageError: if the sandbox fails.
        """
        changed = changes or Changes()
        owner, wanted = self.evaluation.owner, self.evaluation.instance.environment
        with owner.backend.open(
            self.evaluation.environment, tree, limits=owner.limits, network=wanted.network
        ) as sandbox:
            return self.runner.run(
                sandbox,
                check,
                wanted,
                tops=self.tops,
                changed=changed.files,
                deleted=changed.deleted,
                timeout=owner.test_timeout,
            )

    @cached_property
    def tops(self) -> tuple[str, ...]:
        """Top-level module names that the head's import roots provide."""
        names: set[str] = set()
        for root in self.evaluation.instance.environment.import_roots:
            folder = self.evaluation.trees.head.path / root
            if folder.is_dir():
                for entry in folder.iterdir():
                    if entry.suffix == ".py":
                        names.add(entry.stem)
                    elif entry.is_dir() and entry.name.isidentifier() and any(entry.glob("*.py")):
                        names.add(entry.name)
        return tuple(sorted(names))

    def _control(self, check: Check) -> dict[str, Any]:
        """Once per check and conditions: the hidden test must fail at the unmodified head.

        Returns:
            What it ended with there: exception, message, ``seconds`` that it took, ``installed`` modules.

        Raises:
            StageError: if it does not fail, or not properly.
        """
        evaluation = self.evaluation
        key = digest.of(self.conditions(check))

        def compute() -> dict[str, Any]:
            head = self.observe(check, evaluation.trees.head)
            write_atomic(evaluation.directory / "checks" / f"{check.id}.head.log", head.log)
            check_head(head)
            return {
                "exception": head.exception,
                "message": head.message,
                "seconds": head.duration,
                "installed": head.installed,
            }

        name = f"controls/{evaluation.owner.backend.name}/{key[:2]}/{key}"
        store = evaluation.owner.shared
        seen: dict[str, Any] = store.stage(name, key, compute, log=evaluation.log).unwrap()
        # Not in the stage: what an instance expects may be written down after its control was recorded.
        check_expected(check, seen["exception"], seen["message"])
        return seen

    def _effective(self, changes: Changes, installed: Collection[str]) -> tuple[Changes, list[str]]:
        """Put back what would steer the test run, unless one of the instance's comments is about it."""
        instance, head = self.evaluation.instance, self.evaluation.trees.head.path
        about = {c.comment.path for c in instance.checks}
        others = set(installed).difference(self.tops)
        bad = {
            path
            for path in changes.paths
            if path not in about
            and self.runner.steers(path, instance.environment, others)
            # A package of the product's own may be named like a library module.
            and not (head / path).is_file()
        }
        kept = Changes(
            files=tuple(f for f in changes.files if f.path not in bad),
            deleted=tuple(p for p in changes.deleted if p not in bad),
        )
        return kept, sorted(bad)

    @property
    def runner(self) -> Runner:
        """The test runner that the instance's environment names."""
        instance = self.evaluation.instance
        if instance.environment.runner not in RUNNERS:
            raise InvalidInstanceError(
                f"instance {instance.id} wants the test runner {instance.environment.runner!r}; here are "
                f"{', '.join(RUNNERS.names())}",
                reason="unknown-runner",
            )
        return RUNNERS.get(instance.environment.runner)
