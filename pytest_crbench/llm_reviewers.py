"""Reviewers that a model drives, put together from settings: ``llm:none``, ``llm:bm25`` and so on."""

from __future__ import annotations

import re
from dataclasses import replace
from threading import Lock
from typing import TYPE_CHECKING, Any

from .core.errors import InfraError, UsageError
from .core.text import printable
from .models import chat_model, price_of
from .reviewers.llm.protocol import Answer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from .llm.client import Model
    from .llm.completion import Completion
    from .llm.usage import Price
    from .reviewers.protocol import Reviewer
    from .settings import Settings

MODES = ("none", "bm25", "embedding", "agent")
PREFIX = "llm:"
#: Sampling parameters that not every endpoint takes, and how endpoints say that they don't.
_DISPENSABLE = ("top_k", "top_p", "temperature")
_REFUSAL = re.compile(
    r"un(supported|recogni[sz]ed|known|expected)|not (support|permit|allow|recogni|implement)|"
    r"does(n't| not) support|extra[_ ]|invalid (param|arg)",
    re.IGNORECASE,
)


def make_llm_reviewer(
    spec: str, settings: Settings, run: Path | None, environ: Mapping[str, str] | None = None
) -> Reviewer:
    """Return the reviewer that ``spec`` names; ``run`` holds the budget, ``environ`` the key.

    Raises:
        UsageError: an unknown mode, a missing model or key, or options that do not go with it.
    """
    mode = spec.strip().removeprefix(PREFIX).strip()
    if mode not in MODES:
        raise UsageError(
            f"--crbench-reviewer={printable(spec, 80)}: there is no mode {printable(mode, 40)!r}; choose one "
            f"of {', '.join(PREFIX + known for known in MODES)}"
        )
    if settings.offline:
        raise UsageError(
            f"--crbench-reviewer={PREFIX}{mode} looks at the code, which --crbench-offline does not fetch; "
            "leave one of them out"
        )
    model = _model(mode, settings, run, environ)
    from .reviewers.llm.hunk_reviewer import VERSION, HunkReviewer

    name = settings.reviewer_name or PREFIX + mode
    fingerprint = {"kind": "llm", "mode": mode, "version": VERSION, "timeout": settings.reviewer_timeout}
    from . import prompts
    from .reviewers.llm.prompt import HUNK_TEMPLATES

    fingerprint |= {**model.identity, "prompts": prompts.digest_of(*HUNK_TEMPLATES)}
    ask = Asker(model, price_of(settings))
    return HunkReviewer(name, ask, fingerprint, timeout=settings.reviewer_timeout)


def _model(mode: str, settings: Settings, run: Path | None, environ: Mapping[str, str] | None) -> Model:
    return chat_model(
        settings,
        run,
        name=settings.reviewer_model or settings.model,
        option="--crbench-reviewer-model",
        who=f"the reviewer {PREFIX}{mode}",
        environ=environ,
        temperature=settings.reviewer_temperature,
        top_p=settings.reviewer_top_p,
        extra_body={"top_k": settings.reviewer_top_k} if settings.reviewer_top_k else {},
    )


class Asker:
    """Asks a model, and leaves out what its endpoint refuses of the sampling parameters.

    What is refused is remembered beside the shared answers, so that no run asks that twice. Until the first
    answer is here only one question is under way: a refusal is met once.
    """

    def __init__(self, model: Model, price: Price | None) -> None:
        self.model = model
        self.price = price
        self._first = Lock()
        self._settled = False
        self._refused = tuple(name for name in _DISPENSABLE if self._known(name))
        self._fitting = _without(model, self._refused)

    def __call__(
        self, messages: Sequence[Mapping[str, Any]], *, repeat: int, deadline: float | None
    ) -> Answer:
        """Ask once; see `reviewers.llm.protocol.Ask`.

        Raises:
            InfraError: as `Model.complete`.
        """
        if self._settled:
            answer = self._complete(messages, repeat, deadline)
        else:
            with self._first:
                answer = self._complete(messages, repeat, deadline)
                self._settled = True
        usage: dict[str, float] = dict(answer.usage.as_dict())
        if self.price is not None:
            usage["cost"] = round(self.price.cost(answer.usage), 6)
            usage["cost_asked"] = 0.0 if answer.usage.calls_from_cache else usage["cost"]
        said = tuple(f"the endpoint refuses {name}: it was left out" for name in self._refused)
        return Answer(answer.text, answer.finish_reason, usage, answer.lost, said)

    def complete(self, *arguments: Any, **more: Any) -> Completion:
        """Ask as `Model.complete` does, without what the endpoint refuses.

        Raises:
            InfraError: as `Model.complete`.
        """
        while True:
            try:
                return self._fitting.complete(*arguments, **more)
            except InfraError as error:
                name = self._refusal(error)
                if name is None:
                    raise
                self._remember(name)

    def _complete(
        self, messages: Sequence[Mapping[str, Any]], repeat: int, deadline: float | None
    ) -> Completion:
        return self.complete(messages, deadline=deadline, cache_key_extra={"repeat": repeat})

    def _refusal(self, error: InfraError) -> str | None:
        if error.reason != "rejected":
            return None
        sent, said = _sampling(self._fitting), str(error)
        for name in _DISPENSABLE:
            # top_k is no parameter of the protocol: whatever is wrong with it, it can be left out.
            if (
                name in sent
                and re.search(rf"\b{name}\b", said)
                and (name == "top_k" or _REFUSAL.search(said))
            ):
                return name
        return None

    def _question(self, name: str) -> dict[str, Any]:
        identity = self.model.identity
        return {"refused": name, "model": identity["model"], "base_url": identity["base_url"]}

    def _known(self, name: str) -> bool:
        cache = self.model.cache
        return bool(cache and cache.get(cache.key(self._question(name))))

    def _remember(self, name: str) -> None:
        self._refused = (*self._refused, name)
        self._fitting = _without(self.model, self._refused)
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
