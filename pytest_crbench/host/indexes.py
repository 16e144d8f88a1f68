"""Which package indexes are asked, with what certificates, and the passwords of image registries.

uv's variables come before pip's, and what is given as an option before both:

- the index: ``UV_DEFAULT_INDEX``, ``UV_INDEX_URL``, ``PIP_INDEX_URL``; the first that is set;
- extra indexes: all of ``UV_INDEX``, ``UV_EXTRA_INDEX_URL``, ``PIP_EXTRA_INDEX_URL``, in this order;
- certificates: ``PIP_CERT``, which is for indexes alone, ``SSL_CERT_FILE``, ``REQUESTS_CA_BUNDLE``; the first
  that names a file.

An index that uv knows by a name (``name=url``) may have its login in ``UV_INDEX_NAME_USERNAME`` and
``UV_INDEX_NAME_PASSWORD``.
"""

from __future__ import annotations

import base64
import binascii
import json
import os
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.errors import UsageError
from ..text import urls
from ..text.secrets import scrub

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ..core.sandbox import SandboxSettings

_INDEX = ("UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIP_INDEX_URL")
_EXTRA = ("UV_INDEX", "UV_EXTRA_INDEX_URL", "PIP_EXTRA_INDEX_URL")
_BUNDLE = ("PIP_CERT", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE")
#: A shorter password would take half of a message with it; in a URL it goes all the same.
_SHORTEST = 4


@dataclass(frozen=True, repr=False)
class IndexSettings:
    """Package indexes (PEP 503 or PEP 691). URLs may hold credentials: they are never shown.

    ``index_url`` None is the public index. ``ca_bundle`` None is what the tool at work trusts.
    """

    index_url: str | None = None
    extra_index_urls: tuple[str, ...] = ()
    ca_bundle: Path | None = None

    @classmethod
    def from_environment(
        cls,
        environ: Mapping[str, str] | None = None,
        *,
        index_url: str | None = None,
        ca_bundle: Path | None = None,
    ) -> IndexSettings:
        """Read the variables of uv and pip, for what is not given; ``environ`` defaults to the process's.

        Raises:
            UsageError: naming a variable that holds what is no URL.
        """
        values = os.environ if environ is None else environ
        found = [url for name in _INDEX for url in _urls(values, name)]
        extra = dict.fromkeys(url for name in _EXTRA for url in _urls(values, name))
        return cls(index_url or next(iter(found), None), tuple(extra), ca_bundle or _bundle(values))

    @classmethod
    def of(cls, settings: SandboxSettings) -> IndexSettings:
        """Return the indexes that environments of a sandbox are built from."""
        return cls(settings.index_url, settings.extra_index_urls, settings.ca_bundle)

    def urls(self) -> tuple[str, ...]:
        """Return every index to ask, in order."""
        from pypi_simple import PYPI_SIMPLE_ENDPOINT

        return (self.index_url or PYPI_SIMPLE_ENDPOINT, *self.extra_index_urls)

    def public(self) -> list[str]:
        """Return the URLs without credentials, "" for the public index: they take part in what is cached."""
        return [urls.public(url) for url in (self.index_url or "", *self.extra_index_urls)]

    def redact(self, text: str, *others: str) -> str:
        """Remove credentials from what a tool printed: those of the indexes, and of the URLs ``others``."""
        known = (self.index_url or "", *self.extra_index_urls, *others)
        found = [secret for url in known for secret in urls.secrets_in(url)]
        return urls.redact(scrub(text, found, shortest=_SHORTEST))

    def __repr__(self) -> str:
        index = urls.redact(self.index_url) if self.index_url else None
        extra = tuple(urls.redact(url) for url in self.extra_index_urls)
        return f"IndexSettings({index!r}, {extra!r}, {str(self.ca_bundle) if self.ca_bundle else None!r})"


def settings_from_environment(
    settings: SandboxSettings, environ: Mapping[str, str] | None = None
) -> SandboxSettings:
    """Fill what the user did not give (CA bundle, indexes) from the variables of uv and pip."""
    found = IndexSettings.from_environment(
        environ, index_url=settings.index_url, ca_bundle=settings.ca_bundle
    )
    extra = settings.extra_index_urls or found.extra_index_urls
    return replace(settings, ca_bundle=found.ca_bundle, index_url=found.index_url, extra_index_urls=extra)


def _bundle(values: Mapping[str, str]) -> Path | None:
    named = [Path(values[name]) for name in _BUNDLE if values.get(name)]
    # If none is there, the first: that it is missing is told to who set it.
    return next((path for path in named if path.is_file()), next(iter(named), None))


def _urls(values: Mapping[str, str], variable: str) -> Iterable[str]:
    """Read a list of URLs, each of which uv allows to have a name."""
    for word in values.get(variable, "").split():
        before, scheme, _ = word.partition("://")
        if not scheme or "=" not in before:
            yield _checked(word, variable)
            continue
        name, _, url = word.partition("=")
        login = "UV_INDEX_" + re.sub(r"[^A-Z0-9]", "_", name.upper())
        user, password = (values.get(f"{login}_{part}", "") for part in ("USERNAME", "PASSWORD"))
        yield urls.with_credentials(_checked(url, variable), user, password)


def _checked(url: str, variable: str) -> str:
    if problem := urls.problem(url):
        raise UsageError(f"{variable}: {problem}")
    return url


def registry_secrets() -> tuple[str, ...]:
    """Return passwords and tokens of ``config.json`` (``DOCKER_CONFIG``) and ``DOCKER_AUTH_CONFIG``."""
    folder = os.environ.get("DOCKER_CONFIG")
    file = (Path(folder) if folder else Path.home() / ".docker") / "config.json"
    found: list[str] = []
    for text in (_read(file), os.environ.get("DOCKER_AUTH_CONFIG", "")):
        try:
            content = json.loads(text) if text else {}
        except ValueError:
            continue
        logins = content.get("auths") if isinstance(content, dict) else None
        for login in (logins if isinstance(logins, dict) else {}).values():
            found += _of(login) if isinstance(login, dict) else []
    return tuple(dict.fromkeys(found))


def _of(login: dict[str, Any]) -> list[str]:
    given = [login.get(name) for name in ("auth", "password", "identitytoken", "registrytoken")]
    texts = [value for value in given if isinstance(value, str) and value]
    try:
        decoded = base64.b64decode(str(login.get("auth") or ""), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return texts
    password = decoded.partition(":")[2].rstrip("\0")
    return [*texts, password] if password else texts


def _read(file: Path) -> str:
    try:
        return file.read_text("utf-8", "replace")
    except OSError:
        return ""
