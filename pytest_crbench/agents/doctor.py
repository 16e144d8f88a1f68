"""What ``crbench doctor`` looks at for the ``llm`` agent: key, model, and the endpoint if it may be asked."""

from __future__ import annotations

import os
from difflib import get_close_matches
from typing import TYPE_CHECKING

from ..core.errors import CrbenchError, InfraError
from ..core.finding import Finding, missing, ok, warning
from ..models.access import BASE_URL_VARIABLE, KEY_VARIABLES
from ..text import urls
from ..text.printable import printable
from .load import load

if TYPE_CHECKING:
    from ..core.settings import Settings
    from ..models.client import Model

#: Seconds for the endpoint's list of models.
_TIMEOUT = 8.0
LIMIT = 12.0


def look_at_model(settings: Settings, *, deep: bool) -> list[Finding]:
    """Look for what the ``llm`` agent needs; with ``deep`` ask its endpoint for its models (no tokens)."""
    found = [_model(settings), _key(settings)]
    if any(f.advice for f in found) or not deep:
        return found
    try:
        agent = load("llm", settings, None)
    except CrbenchError as error:
        return [*found, missing("coding agent", printable(str(error)), "Correct the agent's options")]
    return [*found, _endpoint(agent.model)]  # type: ignore[attr-defined]


def _model(settings: Settings) -> Finding:
    if settings.model:
        return ok("model", printable(settings.model))
    advice = "Set --model (--crbench-model of a run), or choose --agent=suggestions, which needs none"
    return missing("model", "no model is named for the coding agent `llm`", advice)


def _key(settings: Settings) -> Finding:
    for name in KEY_VARIABLES:
        if os.environ.get(name, "").strip():
            return ok("model key", f"set in {name}")
    url = settings.base_url or os.environ.get(BASE_URL_VARIABLE)
    if url:
        return ok("model key", f"none is set; {urls.public(url)} is asked without one")
    advice = (
        f"Put the key into {KEY_VARIABLES[0]}, name a local endpoint (--base-url), or choose "
        "--agent=suggestions, which needs neither"
    )
    return missing("model key", f"neither {' nor '.join(KEY_VARIABLES)} is set", advice)


def _endpoint(model: Model) -> Finding:
    name, where = "model endpoint", urls.public(model.base_url)
    try:
        listed = model.listed(timeout=_TIMEOUT)
    except InfraError as error:
        said = printable(str(error))
        if error.reason in ("not-found", "unreadable"):
            advice = "Nothing to do if the endpoint is known not to list its models; else correct --base-url"
            return warning(name, said, advice)
        if error.reason == "unauthorized":
            return missing(name, said, f"Put a valid key into {KEY_VARIABLES[0]}")
        if error.reason in ("rate-limit", "quota"):
            return warning(name, said, "Wait, or look at the account's limits, before starting a run")
        return missing(name, said, "Start the endpoint, or correct --base-url and the network settings")
    if model.model in listed:
        return ok(name, f"{where} has {printable(model.model)}")
    near = get_close_matches(model.model, listed, 3)
    advice = f"Did you mean {' or '.join(printable(n, 60) for n in near)}?" if near else "Correct --model"
    return warning(name, f"{where} lists {len(listed)} models, but not {printable(model.model)}", advice)
