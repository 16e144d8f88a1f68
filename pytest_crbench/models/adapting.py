"""A model asked as its endpoint takes it: sampling parameters that are refused are left out."""

from __future__ import annotations

import re
from dataclasses import replace
from threading import Lock
from typing import TYPE_CHECKING, Any

from ..core.errors import InfraError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .client import Model
    from .completion import Completion

#: Sampling parameters that not every endpoint takes, and how endpoints say that they don't.
_DISPENSABLE = ("top_k", "top_p", "temperature")
_REFUSAL = re.compile(
    r"un(supported|recogni[sz]ed|known|expected)|not (support|permit|allow|recogni|implement)|"
    r"does(n't| not) support|extra[_ ]|invalid (param|arg)",
    re.IGNORECASE,
)


class Adapting:
    """Asks a model, and leaves out what its endpoint refuses of the sampling parameters.

    What is refused is remembered beside the shared answers once an answer came without it, so that no run
    asks twice. Until the first answer only one question is under way: a refusal is met once. Threads may
    share it.
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        self._first = Lock()
        self._settled = False
        self._set(tuple(name for name in _DISPENSABLE if self._known(name)))

    @property
    def warnings(self) -> tuple[str, ...]:
        """What was left out so far, in words."""
        return tuple(f"the endpoint refuses {name}: it was left out" for name in self._refused)

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must not appear in any file or message."""
        return self.model.secrets

    def prepare(self) -> None:
        """Load what a call needs; see `Model.prepare`.

        Raises:
            InfraError: as `Model.prepare`.
        """
        self._fitting.prepare()

    def complete(self, *arguments: Any, **more: Any) -> Completion:
        """Ask as `Model.complete` does, without what the endpoint refuses.

        Raises:
            InfraError: as `Model.complete`.
        """
        if self._settled:
            return self._complete(*arguments, **more)
        with self._first:
            answer = self._complete(*arguments, **more)
            self._settled = True
            return answer

    def _complete(self, *arguments: Any, **more: Any) -> Completion:
        left_out: list[str] = []
        while True:
            asked = self._fitting  # other threads may leave something out meanwhile
            try:
                answer = asked.complete(*arguments, **more)
            except InfraError as error:
                name = self._refusal(error, asked)
                if name is None:
                    # It was not that: a message may name a parameter that it only repeats.
                    self._set(tuple(known for known in self._refused if known not in left_out))
                    raise
                if name not in self._refused:
                    left_out.append(name)
                    self._set((*self._refused, name))
            else:
                for name in left_out:
                    self._remember(name)
                return answer

    @staticmethod
    def _refusal(error: InfraError, asked: Model) -> str | None:
        if error.reason != "rejected":
            return None
        sent, said = _sampling(asked), str(error)
        for name in _DISPENSABLE:
            # top_k is no parameter of the protocol: whatever is wrong with it, it can be left out.
            if (
                name in sent
                and re.search(rf"\b{name}\b", said)
                and (name == "top_k" or _REFUSAL.search(said))
            ):
                return name
        return None

    def _set(self, refused: tuple[str, ...]) -> None:
        self._refused = refused
        self._fitting = _without(self.model, refused)

    def _question(self, name: str) -> dict[str, Any]:
        identity = self.model.identity
        return {"refused": name, "model": identity["model"], "base_url": identity["base_url"]}

    def _known(self, name: str) -> bool:
        cache = self.model.cache
        return bool(cache and cache.get(cache.key(self._question(name))))

    def _remember(self, name: str) -> None:
        if cache := self.model.cache:
            question = self._question(name)
            cache.put(cache.key(question), question, {"refused": True})


def _sampling(model: Model) -> set[str]:
    named = {name for name in ("temperature", "top_p") if getattr(model, name) is not None}
    return named | set(model.extra_body)


def _without(model: Model, names: Sequence[str]) -> Model:
    if not names:
        return model
    gone: dict[str, Any] = {name: None for name in names if name != "top_k"}
    body = {key: value for key, value in model.extra_body.items() if key not in names}
    return replace(model, extra_body=body, **gone)
