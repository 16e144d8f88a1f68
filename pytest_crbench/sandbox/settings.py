"""What the sandbox backends of one invocation share."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ..host.indexes import IndexSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path


def _silent(_line: str) -> None:
    """Log nothing."""


@dataclass(frozen=True)
class SandboxSettings:
    """Where sandboxes keep their things and how environments are built.

    ``session`` is a random token of the invocation, put on every container and process. ``base_image`` may
    hold ``{python}``, the minor version that an environment asks for. ``ca_bundle``, ``index_url`` and
    ``extra_index_urls`` are used while environments are built and reach no image. ``build_timeout`` is in
    seconds, for one environment. ``disk_budget`` is in bytes, over the cache's entries and our images (None:
    no limit). ``hidden`` are folders that no sandbox may show, wherever they lie.
    """

    cache: Path
    session: str
    base_image: str = "python:3.11-slim"
    ca_bundle: Path | None = None
    index_url: str | None = None
    extra_index_urls: tuple[str, ...] = ()
    build_timeout: float = 1200.0
    disk_budget: int | None = None
    hidden: tuple[Path, ...] = ()
    log: Callable[[str], None] = _silent

    @property
    def indexes(self) -> IndexSettings:
        """The package indexes, and how they are shown."""
        return IndexSettings(self.index_url, self.extra_index_urls, self.ca_bundle)


def settings_from_environment(
    settings: SandboxSettings, environ: Mapping[str, str] | None = None
) -> SandboxSettings:
    """Fill what the user did not give (CA bundle, indexes) from the variables that `host.indexes` names."""
    found = IndexSettings.from_environment(
        environ, index_url=settings.index_url, ca_bundle=settings.ca_bundle
    )
    return replace(
        settings,
        ca_bundle=found.ca_bundle,
        index_url=found.index_url,
        extra_index_urls=settings.extra_index_urls or found.extra_index_urls,
    )
