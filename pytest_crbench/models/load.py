"""Models of a run, from its settings: whoever asks one gets it here, with the run's cache and budget."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from ..core.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from ..core.settings import Settings
    from .access import Access
    from .client import Model
    from .embeddings import Embeddings
    from .usage import Price


def price_of(settings: Settings) -> Price | None:
    """Return the price of tokens, if one is named.

    Raises:
        UsageError: if it is none, or a limit of cost has none.
    """
    from .usage import Price

    if settings.price is not None:
        return Price.parse(settings.price)
    if settings.max_cost is not None or settings.max_total_cost is not None:
        raise UsageError(
            "a cost limit needs a price: set --crbench-llm price=IN:OUT, the prices of a million prompt "
            "and of a million completion tokens"
        )
    return None


def access(settings: Settings, run: Path | None, environ: Mapping[str, str] | None = None) -> Access:
    """Say how the run reaches its endpoint; ``run`` holds the budget, ``environ`` the key.

    Raises:
        UsageError: for a price that is none.
    """
    from .access import Access

    return Access(
        os.environ if environ is None else environ,
        base_url=settings.base_url,
        cache=settings.cache,
        ledger=run / "ledger.json" if run else None,
        total_tokens=settings.max_total_tokens,
        total_cost=settings.max_total_cost,
        price=price_of(settings),
    )


def chat_model(
    settings: Settings,
    run: Path | None,
    *,
    name: str | None,
    option: str,
    who: str,
    environ: Mapping[str, str] | None = None,
    **sampling: Any,
) -> Model:
    """Return the model ``name``, with ``sampling`` as further fields of `models.client.Model`.

    ``run`` is the run's folder, which holds the budget of all its processes. ``who`` asks, and ``option``
    names the model, in the message if there is none.

    Raises:
        UsageError: if model or key is missing, or the endpoint's URL is invalid.
    """
    reached = access(settings, run, environ)
    if missing := reached.missing(name):
        raise UsageError(
            f"{who} needs {missing}. Set {option}=NAME, and a key in {reached.key_names} (for a local "
            "OpenAI-compatible endpoint: --crbench-base-url=URL; no key is needed)."
        )
    assert name is not None
    return reached.model(name, **sampling)


def embeddings(
    settings: Settings, run: Path | None, *, who: str, environ: Mapping[str, str] | None = None
) -> Embeddings:
    """Return the embeddings that ``who`` uses, cached by content in the run's cache folder.

    Raises:
        UsageError: if model or key is missing, or the endpoint's URL is invalid.
    """
    from dataclasses import replace

    from .embeddings import Embeddings, VectorCache

    reached = access(settings, run, environ)
    if settings.embedding_base_url:
        option = "--crbench-llm embedding-base-url"
        reached = replace(reached, base_url=settings.embedding_base_url, base_url_option=option)
    if missing := reached.missing(settings.embedding_model):
        raise UsageError(
            f"{who} needs {missing} for embeddings. Set --crbench-embedding-model=NAME, and a key in "
            f"{reached.key_names} (for a local OpenAI-compatible endpoint: "
            "--crbench-llm embedding-base-url=URL, or --crbench-base-url=URL; no key is needed)."
        )
    assert settings.embedding_model is not None
    model = reached.model(settings.embedding_model)
    return Embeddings(model, VectorCache(settings.cache / "llm" / "embeddings.sqlite"))
