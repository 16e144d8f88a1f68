"""Which package indexes archives come from, and with what certificates."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..core.urls import redact

if TYPE_CHECKING:
    from collections.abc import Mapping

_INDEX = ("UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIP_INDEX_URL")
_EXTRA = ("UV_INDEX", "UV_EXTRA_INDEX_URL", "PIP_EXTRA_INDEX_URL")
_BUNDLE = ("PIP_CERT", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE")


@dataclass(frozen=True, repr=False)
class IndexSettings:
    """Package indexes (PEP 503 or PEP 691). URLs may hold credentials: they are never shown.

    ``index_url`` None is the public index. ``ca_bundle`` None is what the HTTP library trusts.
    """

    index_url: str | None = None
    extra_index_urls: tuple[str, ...] = ()
    ca_bundle: Path | None = None

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] | None = None) -> IndexSettings:
        """Read the variables of uv and pip, uv's first; ``environ`` defaults to the process's."""
        values = os.environ if environ is None else environ
        urls = [url for name in _INDEX for url in _urls(values.get(name, ""))]
        extra = dict.fromkeys(url for name in _EXTRA for url in _urls(values.get(name, "")))
        bundle = next((values[name] for name in _BUNDLE if values.get(name)), None)
        return cls(urls[0] if urls else None, tuple(extra), Path(bundle) if bundle else None)

    def urls(self) -> tuple[str, ...]:
        """Return every index to ask, in order."""
        from pypi_simple import PYPI_SIMPLE_ENDPOINT

        return (self.index_url or PYPI_SIMPLE_ENDPOINT, *self.extra_index_urls)

    def __repr__(self) -> str:
        shown = tuple(redact(url) for url in self.extra_index_urls)
        index = redact(self.index_url) if self.index_url else None
        return f"IndexSettings({index!r}, {shown!r}, {str(self.ca_bundle) if self.ca_bundle else None!r})"


def _urls(value: str) -> list[str]:
    """Split a list of URLs; uv allows ``name=url``."""
    words = value.split()
    return [w.split("=", 1)[1] if "=" in w.split("://", 1)[0] else w for w in words]
