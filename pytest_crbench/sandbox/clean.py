"""Removing what sandboxes left behind, as ``crbench clean`` does."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..core.errors import InfraError
from ..host import trees
from ..host.eviction import Uses
from ..host.processes import is_elsewhere, is_gone
from .build import LABEL, remove
from .disk import IMAGES

if TYPE_CHECKING:
    from pathlib import Path

    from ..core.sandbox import SandboxSettings


@dataclass(frozen=True)
class Cleaned:
    """How many things were removed, how many stayed because somebody uses them, and what went wrong."""

    containers: int = 0
    images: int = 0
    sandboxes: int = 0
    cache_entries: int = 0
    in_use: int = 0
    notes: tuple[str, ...] = ()


def clean(
    settings: SandboxSettings,
    *,
    images: bool = True,
    cache: bool = False,
    force: bool = False,
    timeout: float = 120.0,
) -> Cleaned:
    """Remove our containers, our images and leftover local sandboxes; with ``cache`` the cache's content too.

    What belongs to a living invocation stays, unless ``force``. Ends after about ``timeout`` seconds,
    with a note where that was too short. No engine is no error: there is nothing of ours then.
    """
    end = time.monotonic() + timeout
    containers = gone = used = 0
    notes: list[str] = []
    try:
        containers, gone, used, notes = clean_engine(settings, images, force, end)
    except InfraError as error:
        notes.append(str(error))
    sandboxes, busy = _clean_folders(settings, force)
    entries = 0
    if cache and not force and Uses(settings.cache).oldest_run() is not None:
        notes.append(f"{settings.cache} stays: a run under way uses it (--force removes it too)")
    elif cache and not busy:
        entries = sum(1 for entry in _entries(settings) if trees.remove(entry))
    elif cache:
        notes.append(f"{settings.cache} stays: a sandbox in it is in use")
    return Cleaned(containers, gone, sandboxes, entries, used + busy, tuple(notes))


def clean_engine(
    settings: SandboxSettings, images: bool, force: bool, end: float
) -> tuple[int, int, int, list[str]]:
    """Remove what is ours from the engine: containers, images, those in use, and what to say of it."""
    from docker.errors import APIError, ImageNotFound

    from .engine import connect, engine_errors

    client = connect()
    containers = gone = used = 0
    notes: list[str] = []
    with engine_errors("cleaning up"):
        for container in client.containers(all=True, filters={"label": f"{LABEL}=1"}):
            owner = (container.get("Labels") or {}).get("crbench.owner", "")
            # A sandbox of a living owner may be between two states: it is restarted after a time-out.
            ended = is_elsewhere(owner) and container.get("State") in ("exited", "dead")
            if force or is_gone(owner) or ended:
                remove(client, container["Id"], settings.log)
                containers += 1
            else:
                used += 1
        # Newest first: an image goes before the one that it was made from.
        found = client.images(filters={"label": f"{LABEL}=1"}) if images else []
        for image in sorted(found, key=lambda one: -int(one["Created"])):
            if time.monotonic() > end:
                notes.append("time is up, images are left; run it again")
                break
            try:
                for name in image.get("RepoTags") or [image["Id"]]:
                    client.remove_image(name, force=force)
                    Uses(settings.cache).forget(IMAGES, name)
                gone += 1
            except ImageNotFound:
                gone += 1
            except APIError as error:
                if error.status_code != 409:
                    raise
                used += 1
    return containers, gone, used, notes


def _clean_folders(settings: SandboxSettings, force: bool) -> tuple[int, int]:
    from .folder import folders, owner_of

    removed, busy = trees.reap_temporary(), 0
    for folder in folders(settings.cache):
        owner = owner_of(folder)
        if not force and owner["owner"] and not is_gone(owner["owner"]):
            busy += 1
        else:
            removed += trees.remove(folder)
    return removed, busy


def _entries(settings: SandboxSettings) -> list[Path]:
    return sorted(settings.cache.iterdir()) if settings.cache.is_dir() else []
