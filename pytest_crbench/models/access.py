"""How a run reaches its endpoint: key, URL, shared completions and budget, the same for whoever asks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..core.errors import UsageError
from ..text import urls
from ..text.printable import printable

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from .client import Model
    from .usage import Price

KEY_VARIABLES = ("CRBENCH_API_KEY", "OPENAI_API_KEY")
BASE_URL_VARIABLE = "OPENAI_BASE_URL"


@dataclass(frozen=True)
class Access:
    """What all questions of a run have in common.

    Args:
        environ: where the key is (and ``OPENAI_BASE_URL``, if ``base_url`` is not given).
        base_url, base_url_option: the endpoint, and the option that names it, for messages.
        cache: the cache folder, for answers shared between runs; None turns sharing off.
        ledger, total_tokens, total_cost, price: the file of the run's budget, and its totals.
    """

    environ: Mapping[str, str]
    base_url: str | None = None
    base_url_option: str = "--crbench-base-url"
    cache: Path | None = None
    ledger: Path | None = None
    total_tokens: int | None = None
    total_cost: float | None = None
    price: Price | None = None

    @property
    def url(self) -> str | None:
        """The endpoint's URL, if one is named."""
        return self.base_url or self.environ.get(BASE_URL_VARIABLE)

    @property
    def key(self) -> str:
        """The key, "" if there is none."""
        values = (self.environ.get(name, "").strip() for name in KEY_VARIABLES)
        return next((value for value in values if value), "")

    def missing(self, model: str | None) -> str:
        """Say what a call of ``model`` lacks, such as "a model and a key"; "" if nothing."""
        return " and ".join(
            [
                *([] if model else ["a model"]),
                # A local endpoint takes any key, the public one does not.
                *([] if self.key or self.url else ["a key"]),
            ]
        )

    @property
    def key_names(self) -> str:
        """Where a key is looked for, in words."""
        return " or ".join(KEY_VARIABLES)

    def model(self, name: str, **sampling: Any) -> Model:
        """Return the model of that name; ``sampling`` are further fields of `Model`.

        Raises:
            UsageError: if the endpoint's URL is invalid.
        """
        from .client import DEFAULT_BASE_URL, Model
        from .completion import CompletionCache
        from .usage import Ledger

        url, option = self.url, self.base_url_option
        if url and not url.startswith(("http://", "https://")):
            raise UsageError(f"{option}={printable(url, 80)}: expected http://… or https://…")
        if url and (problem := urls.problem(url)):
            raise UsageError(f"{option}: {problem}")
        ledger = None
        if self.ledger is not None:
            ledger = Ledger(self.ledger, self.total_tokens, self.total_cost, self.price)
        return Model(
            model=name,
            base_url=url or DEFAULT_BASE_URL,
            key=self.key,
            cache=CompletionCache(self.cache / "llm") if self.cache else None,
            ledger=ledger,
            **sampling,
        )
