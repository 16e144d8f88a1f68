"""Reviewers that a model drives, as in AACR-Bench (arXiv 2601.19494): per hunk, or as an agent."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ...core.errors import UsageError
from ...models.load import chat_model
from ...text.printable import printable

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from ...core.reviewer import Reviewer
    from ...core.settings import Settings
    from ...models.retrieval.index import Method
    from ...models.usage import Meter

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
    if mode == "agent":
        from .agent_reviewer import AgentReviewer

        return AgentReviewer(settings, model)
    from ...models.usage import Meter
    from .hunk_reviewer import HunkReviewer

    meter = Meter()
    return HunkReviewer(mode, settings, model, _method(mode, settings, run, environ, meter), meter)


def _method(
    mode: str, settings: Settings, run: Path | None, environ: Mapping[str, str] | None, meter: Meter
) -> Method | None:
    if mode == "bm25":
        from ...models.retrieval.ranking import Bm25

        return Bm25()
    if mode != "embedding":
        return None
    from ...models.load import embeddings
    from ...models.retrieval.ranking import ByEmbedding

    made = embeddings(settings, run, who=f"the reviewer {PREFIX}{mode}", environ=environ)
    return ByEmbedding(replace(made, spent=meter.add), made.identity)
