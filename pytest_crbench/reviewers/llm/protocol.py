"""What a reviewer that a model drives is given: ways to ask, to look things up, and to let a model work."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from pathlib import Path

    from ...core.model import Tree
    from ...core.sandbox import Sandbox


@dataclass(frozen=True)
class Answer:
    """What a model answered: text ("" if none), the endpoint's reason for the end, and what it used.

    ``lost``: seconds that the endpoint lost to failures before it answered.
    """

    text: str
    finish_reason: str = "stop"
    usage: Mapping[str, float] = field(default_factory=dict)
    lost: float = 0.0
    warnings: tuple[str, ...] = ()


class Ask(Protocol):
    """Asks the model of the reviewer once."""

    def __call__(
        self, messages: Sequence[Mapping[str, Any]], *, repeat: int, deadline: float | None
    ) -> Answer:
        """Return its answer; ``deadline`` is a `time.monotonic` value.

        Raises:
            InfraError: the endpoint or the run's budget failed; ``context-length`` if the messages are too
                long for the model, ``timeout`` if the deadline came first.
        """


class Snippet(Protocol):
    """A piece of a file of head: its lines are 1-based and inclusive, ``score`` is the method's own."""

    @property
    def path(self) -> str:
        """Relative to the repository's root."""

    @property
    def lines(self) -> tuple[int, int]:
        """First and last line."""

    @property
    def text(self) -> str:
        """The text of these lines."""

    @property
    def score(self) -> float:
        """How well it fits; larger is better."""


class Search(Protocol):
    """Looks things up in one tree."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What was not indexed, and why, in words."""

    @property
    def usage(self) -> Mapping[str, float]:
        """What was used so far, to build the index and to search it."""

    def find(self, query: str, count: int, without: tuple[str, tuple[int, int]] | None) -> Sequence[Snippet]:
        """Return the ``count`` best pieces, best first, none that lies wholly within ``without``.

        ``without`` is a path and lines: what is being asked about. Equal scores are in the order of paths.

        Raises:
            InfraError: if an endpoint or the disk fails.
        """


#: Opens the index of a tree, built if it is not there; the second argument takes lines for the log.
OpenIndex = Callable[["Tree", Callable[[str], None]], Search]


@dataclass(frozen=True)
class Worked:
    """What became of a model's work in a sandbox: why it stopped, and what it used."""

    stop_reason: str
    usage: Mapping[str, float]
    warnings: tuple[str, ...] = ()


class Work(Protocol):
    """Lets the model of the reviewer work in a sandbox, by shell commands, until it ends or a limit comes."""

    def __call__(
        self,
        sandbox: Sandbox,
        messages: Sequence[Mapping[str, Any]],
        *,
        directory: Path,
        repeat: int,
        log: Callable[[str], None],
    ) -> Worked:
        """Return when it has stopped; ``directory`` takes the record of the conversation.

        Raises:
            InfraError: the endpoint, the engine, the disk or the run's budget failed; ``usage`` says what was
                used.
        """
