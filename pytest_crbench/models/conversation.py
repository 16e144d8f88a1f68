"""The conversation between a model and a sandbox: ask, run, tell, until a reason to stop."""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from ..core.errors import StageError
from ..host.files import write_json
from ..text.printable import printable
from ..text.secrets import scrub, scrub_value
from . import tools
from .retry import ContextLengthError, DeadlineError, RefusedError
from .usage import Price, Usage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from ..core.sandbox import Sandbox
    from .completion import Completion, ToolCall

#: Finish reasons of an answer that is not whole, and what the model is told.
_CUT_OFF = {
    "length": "Your answer was cut off because it was too long. Answer again, shorter.",
    "content_filter": "Your answer was withheld by a filter. Answer again.",
    "no-choices": "Your answer did not arrive. Answer again.",
}


class Asked(Protocol):
    """The model of a conversation, as far as it is used here."""

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must not appear in any file or message."""

    def complete(self, *arguments: Any, **more: Any) -> Completion:
        """See `models.client.Model.complete`.

        Raises:
            InfraError: as there.
        """


@dataclass(frozen=True)
class Words:
    """What a model is told that answered nothing, or ended before it had run any command (once).

    ``who`` is what lines of the log begin with.
    """

    empty: str
    idle: str
    who: str = "agent"


@dataclass(frozen=True)
class Bounds:
    """When a conversation ends: seconds, model calls, tokens, cost (with its price), bad answers in a row."""

    timeout: float = 600.0
    max_steps: int = 50
    max_tokens: int | None = None
    max_cost: float | None = None
    price: Price | None = None
    command_timeout: float = 60.0
    format_error_limit: int = 3
    output_limit: int = 10_000

    def as_dict(self) -> dict[str, Any]:
        """Return what decides where a conversation ends, as plain JSON."""
        return {
            "timeout": self.timeout,
            "steps": self.max_steps,
            "tokens": self.max_tokens,
            # A price alone decides nothing; with a limit it decides where the agent stops.
            "cost": self.max_cost,
            "price": [self.price.prompt, self.price.completion] if self.price and self.max_cost else None,
            "command_timeout": self.command_timeout,
            "format_errors": self.format_error_limit,
            "output": self.output_limit,
        }


@dataclass
class Conversation:
    """One conversation under way.

    Time that the endpoint loses (failed attempts, waits) is not the model's: it moves the deadline, and is
    itself bounded by the time limit, beyond which the failure is raised as it is.
    """

    model: Asked
    sandbox: Sandbox
    bounds: Bounds
    trajectory: Trajectory
    words: Words
    repeat: int
    log: Callable[[str], None]
    usage: Usage = field(default_factory=Usage)
    #: The part of ``usage`` that was really asked of the endpoint, not taken from shared completions.
    asked: Usage = field(default_factory=Usage)
    lost: float = 0.0
    commands: int = 0
    bad_answers: int = 0
    began: float = field(default_factory=time.monotonic)
    shell: str = "/bin/sh"
    idle_told: bool = False
    #: How the messages begin without the text of the program under test; None where there is no such text.
    control: list[dict[str, Any]] | None = None

    def run(self) -> str:
        """Converse until a reason to stop, and return it (see `core.model.Revision`).

        Raises:
            InfraError: endpoint, engine, disk or the run's budget.
        """
        stop: str | None = None
        error: str | None = None
        try:
            self.shell = tools.find_shell(self.sandbox, self.bounds.command_timeout)
            while stop is None:
                stop = self._limit() or self._step()
                self.trajectory.save(self.totals(), stop)
        except StageError as failure:
            error = str(failure)
            raise
        finally:
            if stop is None:
                self.trajectory.save(self.totals(), None, error or "interrupted")
        self.log(f"{self.words.who}: {stop} after {self.usage.calls} model calls, {self.commands} commands")
        return stop

    def totals(self) -> dict[str, float]:
        """Return usage as results keep it; ``cost`` is there only with a price."""
        totals: dict[str, float] = {**self.usage.as_dict(), "commands": self.commands}
        if self.bounds.price is not None:
            totals["cost"] = round(self.bounds.price.cost(self.usage), 6)
            totals["cost_asked"] = round(self.bounds.price.cost(self.asked), 6)
        if self.lost:
            totals["seconds_lost"] = round(self.lost, 3)
        return totals

    @contextmanager
    def accounted(self) -> Iterator[None]:
        """Say what was used up also of work that failed."""
        try:
            yield
        except StageError as error:
            error.usage = self.totals()
            raise

    @property
    def _deadline(self) -> float:
        return self.began + self.bounds.timeout + self.lost

    def _limit(self) -> str | None:
        bounds = self.bounds
        if self.usage.calls >= bounds.max_steps:
            return "step-limit"
        if bounds.max_tokens is not None and self.usage.tokens >= bounds.max_tokens:
            return "token-limit"
        if bounds.max_cost is not None and bounds.price and bounds.price.cost(self.usage) >= bounds.max_cost:
            return "cost-limit"
        return "time-limit" if time.monotonic() >= self._deadline else None

    def _step(self) -> str | None:
        asked = time.monotonic()
        try:
            answer = self.model.complete(
                self.trajectory.messages,
                [tools.BASH],
                deadline=self._deadline,
                cache_key_extra={"repeat": self.repeat},
                patience=max(self.bounds.timeout - self.lost, 0.0),
            )
        except RefusedError as error:
            return self._refused(error)
        except DeadlineError:
            if not self.usage.calls:  # an endpoint that never answered is not an agent that was slow
                raise
            return "time-limit"
        self.usage += answer.usage
        if not answer.usage.calls_from_cache:
            self.asked += answer.usage
        self.lost += answer.lost
        self.trajectory.step(
            usage=answer.usage,
            finish_reason=answer.finish_reason,
            model=time.monotonic() - asked,
            lost=answer.lost,
        )
        return self._react(answer)

    def _refused(self, error: RefusedError) -> str:
        """Tell a refusal of what the messages say, which is a reason to stop, from one of any request.

        Raises:
            InfraError: if a request of the same shape without the untrusted text is refused, too.
        """
        outgrown = isinstance(error, ContextLengthError)
        if self.control is None and not outgrown:
            raise error
        # An endpoint that has answered reads shorter messages than these.
        if self.control is not None and not (outgrown and self.usage.calls):
            said = self.trajectory.messages[len(self.control) :]
            try:
                answer = self.model.complete([*self.control, *map(_withheld, said)], [tools.BASH])
            except RefusedError:
                raise error from None
            self.usage += answer.usage
            self.asked += answer.usage
        self.log(f"{self.words.who}: {error}")
        return "token-limit" if outgrown else "refused"

    def _react(self, answer: Completion) -> str | None:
        message = (
            answer.message if answer.tool_calls or answer.text else {**answer.message, "content": "(empty)"}
        )
        self._tell(message)
        if answer.tool_calls:
            good = [self._call(call) for call in answer.tool_calls]
            return self._judge(any(good))
        problem = _CUT_OFF.get(answer.finish_reason) or ("" if answer.text.strip() else self.words.empty)
        if problem:
            self._tell({"role": "user", "content": problem})
            return self._judge(False)
        if not self.commands and not self.idle_told:
            self.idle_told = True
            self._tell({"role": "user", "content": self.words.idle})
            return None
        return "finished"

    def _judge(self, good: bool) -> str | None:
        self.bad_answers = 0 if good else self.bad_answers + 1
        return "format-errors" if self.bad_answers >= self.bounds.format_error_limit else None

    def _call(self, call: ToolCall) -> bool:
        """Carry out one tool call and tell its result; whether it was well formed."""
        try:
            command = tools.read_command(call)
        except tools.FormatError as error:
            self._result(call, f"error: {error}")
            return False
        limit = min(self.bounds.command_timeout, self._deadline - time.monotonic())
        if limit <= 0:
            self._result(call, "not run: the time is up")
            return True
        # Scrubbed before it is cut: half a key is no longer found by its value.
        self.log(
            f"{self.words.who}: step {self.usage.calls}: {printable(scrub(command, self.model.secrets), 120)}"
        )
        result = tools.run(self.sandbox, self.shell, command, limit)
        self.commands += 1
        self.trajectory.command(result.duration)
        # The whole limit is told even where the end of the time cut it: the next call is not made then.
        self._result(call, tools.observation(result, self.bounds.command_timeout, self.bounds.output_limit))
        return True

    def _result(self, call: ToolCall, text: str) -> None:
        self._tell({"role": "tool", "tool_call_id": call.id, "content": text})

    def _tell(self, message: dict[str, Any]) -> None:
        self.trajectory.messages.append(message)


def _withheld(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return a message of the same shape that says nothing."""
    if message["role"] == "user":
        return dict(message)  # our own words
    kept = {key: message[key] for key in ("role", "tool_call_id") if key in message}
    calls = [
        {
            "id": call["id"],
            "type": "function",
            "function": {"name": "bash", "arguments": '{"command": "true"}'},
        }
        for call in message.get("tool_calls") or ()
    ]
    return {**kept, "content": "(withheld)", **({"tool_calls": calls} if calls else {})}


_FORMAT = "crbench-trajectory-1"


@dataclass
class Trajectory:
    """Messages, usage, times and the reason for the stop; holds no credential (scrubbed by value)."""

    directory: Path
    agent: Mapping[str, Any]
    secrets: tuple[str, ...]
    messages: list[dict[str, Any]] = field(default_factory=list)
    steps: list[dict[str, Any]] = field(default_factory=list)
    began: float = field(default_factory=time.time)
    name: str = "trajectory.json"

    def step(self, *, usage: Usage, finish_reason: str, model: float, lost: float) -> None:
        """Note one answer of the model: its usage, seconds until it came, seconds lost to failures."""
        self.steps.append(
            {
                "usage": usage.as_dict(),
                "finish_reason": finish_reason,
                "seconds": {"model": round(model, 3), "lost": round(lost, 3)},
            }
        )

    def command(self, seconds: float) -> None:
        """Add the seconds of a command to the step that asked for it."""
        times = self.steps[-1]["seconds"]
        times["commands"] = round(times.get("commands", 0.0) + seconds, 3)

    def save(self, usage: Mapping[str, float], stop_reason: str | None, error: str | None = None) -> None:
        """Write the file atomically.

        Raises:
            InfraError: if the disk is full or the folder cannot be written to.
        """
        record = {
            "format": _FORMAT,
            "agent": dict(self.agent),
            "stop_reason": stop_reason,
            "error": error,
            "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self.began)),
            "seconds": round(time.time() - self.began, 3),
            "usage": dict(usage),
            "steps": _plain(self.steps),
            "messages": _plain(self.messages),
        }
        write_json(self.directory / self.name, scrub_value(record, self.secrets))


def _plain(items: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return [dict(item) for item in items]
