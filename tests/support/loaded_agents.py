"""Agents as the options of a run make them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any
from unittest import mock

from pytest_crbench.agents import load as loading
from pytest_crbench.core.settings import Settings

#: Where a key or an endpoint could come from.
_VARIABLES = ("CRBENCH_API_KEY", "OPENAI_API_KEY", "OPENAI_BASE_URL")


def load(spec: str, environ: dict[str, str] | None = None, *, run: Path | None = None, **options: Any) -> Any:
    """Load an agent with these settings and variables; without ``cache`` it cannot ask a model."""
    options.setdefault("cache", Path(os.devnull, "unused"))
    others = {name: value for name, value in os.environ.items() if name not in _VARIABLES}
    with mock.patch.dict(os.environ, {**others, **(environ or {})}, clear=True):
        return loading.load(spec, Settings(agent=spec, **options), run)
