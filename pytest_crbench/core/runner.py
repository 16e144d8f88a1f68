"""What a test runner observes in one fresh sandbox; deciding a verdict from it is the core's work."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from .registry import Registry

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from .model import Check, Environment, File
    from .sandbox import Sandbox

#: ``error``: collection, set-up or tear-down failed. ``absent``: no test of that file was recorded.
Outcome = Literal["passed", "failed", "error", "skipped", "absent"]
Canaries = Literal["behaved", "bent", "absent"]
Ending = Literal["completed", "timed-out", "out-of-memory", "crashed"]


@dataclass(frozen=True)
class Observation:
    """What one run of a hidden test showed.

    ``outcome`` is that of the named test; ``exception`` the class name it ended with, ``message`` its first
    line, ``line`` the line of the test file that failed (0 if that is not known). ``canaries``: "behaved",
    "bent" (one said the opposite of what it must, or what was recorded contradicts itself: see ``bent``) or
    "absent" (the run ended before the last of them). ``foreign`` maps modules that the tree should have
    provided to the files they came from instead; ``modules`` counts those that came from the tree,
    ``executed`` all files of it that the test, or a program that it started, executed (a help to validation,
    which a program can forge). ``limits`` names the limits of the sandbox that were reached meanwhile,
    whatever the test made of it: "memory", "processes", "disk". ``installed`` names the top-level modules of
    the environment's packages.
    """

    outcome: Outcome
    ending: Ending
    canaries: Canaries
    #: What contradicts itself in a run that is "bent", for people.
    bent: str = ""
    exception: str = ""
    message: str = ""
    line: int = 0
    modules: int = 0
    executed: int = 0
    foreign: Mapping[str, str] | None = None
    log: bytes = b""
    duration: float = 0.0
    limits: tuple[str, ...] = ()
    installed: tuple[str, ...] = ()

    @property
    def proper(self) -> bool:
        """Whether the test ran to a result of its own: it passed, or failed in its call phase."""
        return (
            self.ending == "completed"
            and self.canaries == "behaved"
            and not self.foreign
            and self.outcome in ("passed", "failed")
        )


class Runner:
    """Runs the hidden test of one check. A subclass has ``name``, ``version`` and ``run``.

    Other packages register an instance in the group ``pytest_crbench.runners`` of their entry points.
    """

    #: Name in an instance's ``runner``, which is its name as an entry point.
    name = ""
    #: What the name of a test file ends with. A ``.py`` file must be one that Python can read.
    suffix = ".py"

    @property
    def version(self) -> str:
        """Part of every verdict's key: results made by another way of running are not taken over."""
        raise NotImplementedError

    def run(
        self,
        sandbox: Sandbox,
        check: Check,
        environment: Environment,
        *,
        tops: Sequence[str],
        changed: Sequence[File],
        deleted: Sequence[str],
        timeout: float,
    ) -> Observation:
        """Apply a revision's files to the sandbox's tree and run the hidden test of ``check`` there.

        Args:
            sandbox: a fresh one that holds the tree.
            check: its ``test`` is the source of the hidden test.
            environment: of the instance.
            tops: names of the top-level modules of the tree.
            changed: files to write, after those of ``deleted`` are gone.
            deleted: paths to remove, with the folders left empty.
            timeout: seconds for the test.

        Raises:
            InfraError: if the sandbox fails; never for anything that the code under test does.
        """
        raise NotImplementedError

    def steers(self, path: str, environment: Environment, installed: Collection[str] = ()) -> bool:
        """Whether a changed file could steer the test run itself and cannot be made inert.

        Args:
            path: of the file, in the tree.
            environment: of the instance.
            installed: what `Observation.installed` was at head.
        """
        return False


RUNNERS: Registry[Runner] = Registry(
    "test runner", Runner, "pytest_crbench.runners", {"pytest": "scoring.tests.pytest_runner:RUNNER"}
)
