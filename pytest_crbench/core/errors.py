"""The named failures of an evaluation; each knows the status it becomes.

Every message names the file or command, the key or exit status, what was found, and what to do next.
"""

from __future__ import annotations

from typing import ClassVar, Literal

from ..text.printable import harmless, printable
from ..text.secrets import scrubbed
from .status import Status

NO_WINDOWS = (
    "Windows is not supported: a run needs the file locks, process groups and sandboxes of Linux or macOS. "
    "Use WSL 2, or a container"
)


class CrbenchError(Exception):
    """Anything that this package reports to its user by message, without a traceback.

    The message never holds a credential, nor what steers a terminal, whatever it quotes.
    """

    def __init__(self, message: str = "") -> None:
        super().__init__(harmless(scrubbed(message)))


class UsageError(CrbenchError):
    """Options that contradict one another or name nothing; found before any work starts."""


class StageError(CrbenchError):
    """A stage that gave no result. ``status`` is what the verdicts of the instance become."""

    status: ClassVar[Status]

    def __init__(self, message: str, *, reason: str = "") -> None:
        super().__init__(message)
        #: A short machine-readable word (``timeout``, ``crashed``, ``unreadable`` ...), kept in results.
        self.reason = reason
        #: What was used up before it failed (tokens, calls, cost): it was spent all the same.
        self.usage: dict[str, float] = {}


class ReviewerError(StageError):
    """The reviewer under test crashed, timed out, or wrote what cannot be read."""

    status = Status.REVIEWER_ERROR


class AgentError(StageError):
    """The coding agent itself failed; a limit that it reached is not a failure."""

    status = Status.AGENT_ERROR


class UnusableRevisionError(AgentError):
    """What the agent left is no revision: too large, or not to be read.

    A review can ask for that, so it counts as an empty revision (see docs/trust.md).
    """


class InfraError(StageError):
    """Engine, registry, disk or model endpoint: nobody's score."""

    status = Status.INFRA_ERROR


class TamperedError(StageError):
    """The machinery that makes a verdict was bent by the code under test."""

    status = Status.TAMPERED


class InvalidInstanceError(StageError):
    """The instance itself is broken: its file, its archives, or a check that passes at head."""

    status = Status.INVALID


def outside_failure(part: Literal["reviewer", "agent"], name: str, said: str) -> InfraError:
    """Return the error for a program that reports itself that something outside of it failed."""
    return InfraError(
        f"the {part} {printable(name, 80)} reports an outside failure: {printable(said, 200)}. Repeat it "
        "later with --crbench-resume --crbench-rerun-errors; until then the gate counts it as missed",
        reason=f"{part}-outside",
    )


STAGE_ERRORS: dict[Status, type[StageError]] = {
    error.status: error
    for error in (ReviewerError, AgentError, InfraError, TamperedError, InvalidInstanceError)
}
