"""Asking a model many short questions: at once, but not too many, and never taking nonsense for an answer."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ...core.errors import InfraError, StageError
from ...host.pool import Pool
from ...text import plainjson
from ...text.printable import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    #: Asks one question. Raises InfraError for whatever keeps an answer from coming.
    Ask = Callable[["Question"], "Reply"]

#: Questions of one process under way at the same time.
CONCURRENCY = 4
#: How a code fence around a whole answer begins.
_FENCES = ("```json\n", "```\n")


@dataclass(frozen=True)
class Question:
    """One question: the same question with the same ``sample`` has one answer, which may come from a cache.

    ``schema`` is the JSON Schema that the answer has to follow, ``name`` its name; None leaves the form
    open. ``read`` makes a value of the answer's text; ValueError means that it cannot be read.
    """

    system: str
    user: str
    read: Callable[[str], Any]
    name: str = ""
    schema: Mapping[str, Any] | None = None
    sample: int = 1

    def readable(self, text: str) -> bool:
        """Whether an answer can be read."""
        try:
            self.read(text)
        except ValueError:
            return False
        return True


@dataclass(frozen=True)
class Reply:
    """The text of an answer and what it used up."""

    text: str
    usage: Mapping[str, float] = field(default_factory=dict)


class Usage(dict[str, float]):
    """Sums of what questions used up, by name."""

    def add(self, usage: Mapping[str, float]) -> None:
        """Add what one question used up."""
        for name, number in usage.items():
            self[name] = self.get(name, 0) + number


def ask_all(ask: Ask, questions: Sequence[Question]) -> tuple[list[Any], dict[str, float]]:
    """Return what each answer says, in order, and the sum of what they used up.

    An answer that cannot be read is asked for once more.

    Raises:
        InfraError: as ``ask``; ``unreadable`` if the second answer cannot be read either. Its ``usage`` is
            what all questions had used up by then.
    """
    spent = Usage()
    values: list[Any] = []
    failed: StageError | None = None
    with Pool(CONCURRENCY) as pool:
        for one in [pool.submit(_ask, ask, question) for question in questions]:
            if one.cancelled():
                continue
            try:
                value, usage = one.result()
            except StageError as error:
                spent.add(error.usage)
                failed = failed or error
                pool.cancel()
            else:
                values.append(value)
                spent.add(usage)
    if failed:
        failed.usage = dict(spent)
        raise failed
    return values, dict(spent)


def _ask(ask: Ask, question: Question) -> tuple[Any, dict[str, float]]:
    spent = Usage()
    text = ""
    for _ in range(2):
        try:
            reply = ask(question)
        except StageError as error:
            spent.add(error.usage)
            error.usage = dict(spent)
            raise
        spent.add(reply.usage)
        text = reply.text
        try:
            return question.read(text), dict(spent)
        except ValueError:
            continue
    unreadable = InfraError(
        f"the model was asked twice for its {question.name or 'answer'} and said what cannot be read: "
        f"{printable(text, 200) or '(nothing)'}. Use a model and an endpoint that take structured outputs "
        "(response_format json_schema); then finish the run with --crbench-resume --crbench-rerun-errors.",
        reason="unreadable",
    )
    unreadable.usage = dict(spent)
    raise unreadable


def choice(key: str, options: Sequence[str]) -> Callable[[str], str]:
    """Return what reads one of ``options`` from ``key`` of an answer that is one JSON object.

    The object may stand in a code fence of its own, as some servers send it; prose around it is no answer.
    """

    def read(text: str) -> str:
        body = text.strip()
        for fence in _FENCES:
            if body.startswith(fence) and body.endswith("```"):
                body = body[len(fence) : -3]
        value = plainjson.parse(body, _object)
        chosen = value.get(key) if isinstance(value, dict) else None
        if not isinstance(chosen, str) or chosen not in options:
            raise ValueError(f"no {key} that is one of {', '.join(options)}")
        return chosen

    return read


def schema_of(key: str, options: Sequence[str]) -> dict[str, Any]:
    """Return the schema of an object with a reason and then a choice: who reasons first, chooses better."""
    return {
        "type": "object",
        "properties": {"reason": {"type": "string"}, key: {"type": "string", "enum": list(options)}},
        "required": ["reason", key],
        "additionalProperties": False,
    }


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("one key twice")
    return found
