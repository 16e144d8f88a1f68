"""What an evaluation stands on: the trees of an instance, its repository, its environment."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ..core.errors import InfraError, InvalidInstanceError
from ..core.model import PullRequest, Tree, Trees
from ..core.run_record import BaseInfo, EnvironmentInfo
from ..text.diffs import DiffMap
from ..text.printable import decode
from .plan import environment_name
from .run_record import ENVIRONMENTS, note

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from pathlib import Path

    from ..core.model import Instance
    from ..core.reviewer import Workspace
    from ..core.sandbox import EnvironmentRef, Sandbox
    from .context import Context


@dataclass
class Ground:
    """One instance in one repeat and arm, and what its stages need; each is made when it is asked for."""

    owner: Context
    instance: Instance
    repeat: int
    arm: str
    name: str

    def log(self, line: str) -> None:
        """Append a line to the instance's log."""
        self.owner.log(f"{self.instance.dataset}/{self.instance.id}", line)

    @property
    def directory(self) -> Path:
        """Where this evaluation's files go."""
        path = self.owner.run / "evaluations" / self.name
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InfraError(
                f"cannot make {path}: {error.strerror}. Free some space or choose another --crbench-run-dir; "
                "what was measured before is kept.",
                reason="disk",
            ) from error
        return path

    @cached_property
    def trees(self) -> Trees:
        """Base and head, fetched and verified.

        Raises:
            StageError: if they cannot be had; told once to every process of the run.
        """
        trees: Trees = self._recorded(
            f"sources/{self.instance.dataset}/{self.instance.id}",
            lambda: self.owner.trees(self.instance, False, self.log),
        )
        return trees

    @cached_property
    def workspace(self) -> Workspace:
        """The two-commit repository."""
        return self.owner.workspace(self.instance, self.trees, self.log)

    @cached_property
    def pull_request(self) -> PullRequest:
        """What a reviewer is given."""
        if not self.owner.repository:
            # What was made elsewhere is looked up by the instance's id.
            return PullRequest(self.instance.title, self.instance.body, "", "", "", self.instance.language)
        return PullRequest(
            title=self.instance.title,
            body=self.instance.body,
            base=self.workspace.base,
            head=self.workspace.head,
            diff=decode(self.workspace.diff),
            language=self.instance.language,
        )

    @cached_property
    def diff(self) -> DiffMap | None:
        """The diff of the pull request; None if there is no repository."""
        return DiffMap(self.workspace.diff) if self.owner.repository else None

    @cached_property
    def environment(self) -> EnvironmentRef:
        """The environment of the hidden tests, built."""
        wanted = self.instance.environment
        name = environment_name(wanted)
        built: EnvironmentRef = self._recorded(
            f"environments/{name}", lambda: self.owner.backend.environment(wanted)
        )
        recorded = EnvironmentInfo(
            digest=built.digest,
            python=built.python,
            specifier=wanted.python,
            pins=list(built.pins),
            base=BaseInfo(name=built.base_name, id=built.base_id),
        )
        note(self.owner.run, ENVIRONMENTS, name, recorded)
        return built

    def _recorded(self, name: str, make: Callable[[], Any]) -> Any:
        """Make something that every process needs for itself; a failure is recorded once for all of them."""
        made: list[Any] = []
        store = self.owner.store

        def compute() -> dict[str, Any]:
            made.append(make())
            return {}

        store.stage(name, "made", compute, log=self.log).unwrap()
        return made[0] if made else make()

    def agent_sandbox(self) -> AbstractContextManager[Sandbox]:
        """Open a fresh sandbox for a model's commands: head, and the two-commit repository."""
        return self.owner.backend.open(
            self.environment, self.trees.head, limits=self.owner.limits, git=self.workspace.git_dir
        )

    def fixed(self) -> Tree:
        """Return the fixed tree; only the ``reference`` agent and ``crbench validate`` may ask.

        Raises:
            StageError: if the instance has none, or it cannot be had.
        """
        fixed = self.owner.trees(self.instance, True, self.log).fixed
        if fixed is None:
            raise InvalidInstanceError(f"instance {self.instance.id} has no fixed tree", reason="no-fixed")
        return fixed
