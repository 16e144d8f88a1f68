"""Asking a model many short questions: at once, but not too many, and never taking nonsense for an answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...core.errors import InfraError, StageError
from ...core.model import added
from ...host.pool import Pool
from ...text import plainjson
from ...text.printable import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ...models.client import Model
    from ...models.usage import Usage

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


def ask_once(model: Model, question: Question) -> tuple[str, dict[str, float]]:
    """Return the text of the answer, and what it used up.

    Raises:
        InfraError: as `Model.complete`.
    """
    messages = [{"role": "system", "content": question.system}] if question.system else []
    messages.append({"role": "user", "content": question.user})
    form = None
    if question.schema is not None:
        form = {
            "type": "json_schema",
            "json_schema": {"name": question.name, "strict": True, "schema": dict(question.schema)},
        }
    try:
        answer = model.complete(
            messages,
            response_format=form,
            cache_key_extra={"sample": question.sample},
            # One that cannot be read is no answer: the next run asks again.
            usable=lambda answer: question.readable(answer.text),
        )
    except InfraError as error:
        if error.reason != "rejected" or form is None:
            raise
        raise InfraError(
            f"{error} Matching asks for structured outputs (response_format json_schema); an endpoint that "
            "has none can be used with --crbench-matcher=embedding or exact.",
            reason=error.reason,
        ) from error
    return answer.text, counted(answer.usage, model)


def counted(usage: Usage, model: Model) -> dict[str, float]:
    """Return what was used, as results keep it; ``cost`` is there only with a price."""
    counts: dict[str, float] = {name: number for name, number in usage.as_dict().items() if number}
    if model.ledger is not None and (price := model.ledger.price) is not None:
        counts["cost"] = round(price.cost(usage), 9)
    return counts


def ask_all(model: Model, questions: Sequence[Question]) -> tuple[list[Any], dict[str, float]]:
    """Return what each answer says, in order, and the sum of what they used up.

    An answer that cannot be read is asked for once more.

    Raises:
        InfraError: as `Model.complete`; ``unreadable`` if the second answer cannot be read either. Its
            ``usage`` is what all questions had used up by then.
    """
    spent: dict[str, float] = {}
    values: list[Any] = []
    failed: StageError | None = None
    with Pool(CONCURRENCY) as pool:
        for one in [pool.submit(_ask, model, question) for question in questions]:
            if one.cancelled():
                continue
            try:
                value, usage = one.result()
            except StageError as error:
                spent = added(spent, error.usage)
                failed = failed or error
                pool.cancel()
            else:
                values.append(value)
                spent = added(spent, usage)
    if failed:
        failed.usage = spent
        raise failed
    return values, spent


def _ask(model: Model, question: Question) -> tuple[Any, dict[str, float]]:
    spent: dict[str, float] = {}
    text = ""
    for _ in range(2):
        try:
            text, usage = ask_once(model, question)
        except StageError as error:
            error.usage = added(spent, error.usage)
            raise
        spent = added(spent, usage)
        try:
            return question.read(text), spent
        except ValueError:
            continue
    unreadable = InfraError(
        f"the model was asked twice for its {question.name or 'answer'} and said what cannot be read: "
        f"{printable(text, 200) or '(nothing)'}. Use a model and an endpoint that take structured outputs "
        "(response_format json_schema); then finish the run with --crbench-resume --crbench-rerun-errors.",
        reason="unreadable",
    )
    unreadable.usage = spent
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
