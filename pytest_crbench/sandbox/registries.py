"""Logins for image registries, as Docker keeps them: not used here, but never to be shown."""

from __future__ import annotations

import base64
import binascii
import json
import os
from pathlib import Path
from typing import Any


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
