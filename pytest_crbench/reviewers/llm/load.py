"""Reviewers that a model drives, put together from settings: ``llm:none``, ``llm:bm25`` and so on."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Any

from ...core.errors import StageError, UsageError
from ...models.load import chat_model, price_of
from ...text.printable import printable
from ...text.secrets import scrub, scrubbed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from ...core.model import Tree
    from ...core.reviewer import Reviewer
    from ...core.sandbox import Sandbox
    from ...core.settings import Settings
    from ...models.client import Model
    from ...models.conversation.loop import Bounds
    from ...models.retrieval.index import Found, Index, Method
    from ...models.usage import Price, Usage
    from .protocol import Answer, Ask, Work, Worked

MODES = ("none", "bm25", "embedding", "agent")
PREFIX = "llm:"


def make_llm_reviewer(
    spec: str, settings: Settings, run: Path | None, environ: Mapping[str, str] | None = None
) -> Reviewer:
    """Return the reviewer that ``spec`` names; ``run`` holds the budget, ``environ`` the key.

    Raises:
        UsageError: an unknown mode, a missing model, key or package, or options that do not go with it.
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
    model = chat_model(
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
    fingerprint = {"kind": "llm", "mode": mode, **model.identity}
    if mode == "agent":
        return _agent(settings, model, fingerprint)
    return _by_hunk(mode, settings, model, fingerprint, _method(mode, settings, run, environ))


def _agent(settings: Settings, model: Model, fingerprint: dict[str, Any]) -> Reviewer:
    from ...host import digest
    from ...models import prompts
    from ...models.conversation import tools
    from ...models.conversation.loop import Bounds
    from .agent_reviewer import VERSION, AgentReviewer
    from .prompt import AGENT_TEMPLATES

    price = price_of(settings)
    bounds = Bounds(
        timeout=settings.reviewer_timeout,
        max_steps=settings.max_steps,
        max_tokens=settings.max_tokens,
        max_cost=settings.max_cost,
        price=price,
        command_timeout=settings.agent_command_timeout,
    )
    fingerprint |= {
        "version": VERSION,
        "prompts": prompts.digest_of(*AGENT_TEMPLATES),
        "tool": digest.of(tools.BASH),
        "limits": bounds.as_dict(),
    }
    return AgentReviewer(
        settings.reviewer_name or f"{PREFIX}agent",
        _worker(model, bounds, fingerprint),
        fingerprint,
        command_timeout=bounds.command_timeout,
        output_limit=bounds.output_limit,
    )


def _worker(model: Model, bounds: Bounds, fingerprint: Mapping[str, Any]) -> Work:
    from ...models.adapting import Adapting
    from ...models.conversation.loop import Conversation, Words
    from ...models.conversation.trajectory import Trajectory
    from .agent_reviewer import TRAJECTORY, WORDS
    from .protocol import Worked

    adapting = Adapting(model)

    def work(
        sandbox: Sandbox,
        messages: Sequence[Mapping[str, Any]],
        *,
        directory: Path,
        repeat: int,
        log: Callable[[str], None],
    ) -> Worked:
        adapting.prepare()
        opening = [dict(message) for message in messages]
        trajectory = Trajectory(directory, fingerprint, model.secrets, opening, name=TRAJECTORY)
        conversation = Conversation(
            adapting, sandbox, bounds, trajectory, Words(**WORDS), repeat=repeat, log=log
        )
        try:
            stop_reason = conversation.run()
        except StageError as error:
            error.usage = conversation.totals()
            raise
        return Worked(stop_reason, conversation.totals(), adapting.warnings)

    return work


def _by_hunk(
    mode: str, settings: Settings, model: Model, fingerprint: dict[str, Any], counted: Counted | None
) -> Reviewer:
    from ...models import prompts
    from .hunk_reviewer import VERSION, HunkReviewer
    from .prompt import HUNK_TEMPLATES

    fingerprint |= {
        "version": VERSION,
        "prompts": prompts.digest_of(*HUNK_TEMPLATES),
        "timeout": settings.reviewer_timeout,
    }
    open_index = None
    if counted is not None:
        from ...models.retrieval.index import settings_of

        open_index = partial(_open_index, settings, counted)
        fingerprint |= {"snippets": settings.reviewer_snippets, "index": settings_of(counted.method)}
    return HunkReviewer(
        settings.reviewer_name or PREFIX + mode,
        _asker(model, price_of(settings)),
        fingerprint,
        timeout=settings.reviewer_timeout,
        open_index=open_index,
        count=settings.reviewer_snippets,
    )


def _asker(model: Model, price: Price | None) -> Ask:
    from ...models.adapting import Adapting
    from .protocol import Answer

    adapting = Adapting(model)

    def ask(messages: Sequence[Mapping[str, Any]], *, repeat: int, deadline: float | None) -> Answer:
        answer = adapting.complete(messages, deadline=deadline, cache_key_extra={"repeat": repeat})
        usage: dict[str, float] = dict(answer.usage.as_dict())
        if price is not None:
            usage["cost"] = round(price.cost(answer.usage), 6)
            usage["cost_asked"] = 0.0 if answer.usage.calls_from_cache else usage["cost"]
        # Before it is read: what is kept of a review is what was read.
        text = scrubbed(scrub(answer.text, model.secrets))
        return Answer(text, answer.finish_reason, usage, answer.lost, adapting.warnings)

    return ask


@dataclass(frozen=True)
class Counted:
    """A method of retrieval, and a function that says what it has used up in this process."""

    method: Method
    used: Callable[[], Usage]


def _method(
    mode: str, settings: Settings, run: Path | None, environ: Mapping[str, str] | None
) -> Counted | None:
    from ...models.usage import Usage

    if mode == "bm25":
        from ...models.retrieval.bm25 import Bm25

        return Counted(Bm25(), Usage)
    if mode != "embedding":
        return None
    from ...models.load import embeddings
    from ...models.retrieval.embedding import ByEmbedding

    spent, lock = [Usage()], Lock()

    def count(usage: Usage) -> None:
        with lock:
            spent[0] += usage

    made = embeddings(settings, run, who=f"the reviewer {PREFIX}{mode}", environ=environ)
    found = replace(made, spent=count)
    return Counted(ByEmbedding(found, found.identity), lambda: spent[0])


def _open_index(settings: Settings, counted: Counted, tree: Tree, log: Callable[[str], None]) -> Search:
    from ...host.eviction import cache_items, with_room
    from ...models.retrieval.index import open_index

    before = counted.used()
    make = partial(open_index, tree, counted.method, cache=settings.cache, log=log)
    try:
        index = with_room(make, partial(cache_items, settings.cache), log)
    except StageError as error:
        error.usage = _embedded(before, counted.used())
        raise
    return Search(index, counted.used, before)


def _embedded(before: Usage, now: Usage) -> dict[str, float]:
    calls, tokens = now.calls - before.calls, now.tokens - before.tokens
    return {"embedding_calls": calls, "embedding_tokens": tokens} if calls else {}


@dataclass(frozen=True)
class Search:
    """An index that says what it has used since ``before``."""

    index: Index
    used: Callable[[], Usage]
    before: Usage

    @property
    def notes(self) -> tuple[str, ...]:
        """What was not indexed, and why, in words."""
        return self.index.notes

    @property
    def usage(self) -> dict[str, float]:
        """Calls and tokens of embeddings, to stand beside those of the model that reviews."""
        return _embedded(self.before, self.used())

    def find(self, query: str, count: int, without: tuple[str, tuple[int, int]] | None) -> Sequence[Found]:
        """Search; see `models.retrieval.index.Index.find`.

        Raises:
            InfraError: if an endpoint fails.
        """
        return self.index.find(query, count, without)
