"""What the sandbox backends of one invocation share."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_CA_VARIABLES = ("PIP_CERT", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE")
_INDEX_VARIABLES = ("UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIP_INDEX_URL")
_EXTRA_INDEX_VARIABLES = ("UV_EXTRA_INDEX_URL", "PIP_EXTRA_INDEX_URL")


def _silent(_line: str) -> None:
    """Log nothing."""


@dataclass(frozen=True)
class SandboxSettings:
    """Where sandboxes keep their things and how environments are built.

    ``session`` is a random token of the invocation, put on every container and process. ``base_image`` may
    hold ``{python}``, the minor version that an environment asks for. ``ca_bundle``, ``index_url`` and
    ``extra_index_urls`` are used while environments are built and reach no image. ``build_timeout`` is in
    seconds, for one environment.
    """

    cache: Path
    session: str
    base_image: str = "python:3.11-slim"
    ca_bundle: Path | None = None
    index_url: str | None = None
    extra_index_urls: tuple[str, ...] = ()
    build_timeout: float = 1200.0
    log: Callable[[str], None] = _silent


def settings_from_environment(
    settings: SandboxSettings, environ: Mapping[str, str] | None = None
) -> SandboxSettings:
    """Fill what the user did not give (CA bundle, indexes) from the variables that pip and uv read."""
    values = os.environ if environ is None else environ
    bundle = settings.ca_bundle
    if bundle is None:
        named = (Path(values[name]) for name in _CA_VARIABLES if values.get(name))
        bundle = next((path for path in named if path.is_file()), None)
    index = settings.index_url or next((values[n] for n in _INDEX_VARIABLES if values.get(n)), None)
    extra = settings.extra_index_urls or next(
        (tuple(values[n].split()) for n in _EXTRA_INDEX_VARIABLES if values.get(n)), ()
    )
    return replace(settings, ca_bundle=bundle, index_url=index, extra_index_urls=extra)
