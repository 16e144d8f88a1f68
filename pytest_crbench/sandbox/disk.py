"""Our images as things that can be made again, and the disk budget over them and the cache.

An image goes only after all that were made from it, and never while a container of it exists. Images without
our label, and those that somebody gave a name of their own, stay.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from ..host.eviction import Evicted, Item, Uses, cache_items, evict, told, with_room
from ..host.files import locked
from ..host.space import size
from .build import LABEL
from .engine import engine_errors

if TYPE_CHECKING:
    from collections.abc import Callable

    from docker import APIClient

    from ..core.sandbox import SandboxSettings

#: The kind under which images are stamped, and the prefix of every name that we give.
IMAGES, PREFIX = "images", "crbench-"
#: Seconds after its last use in which an image stays, while a run is under way.
_IDLE = 120.0


@dataclass(frozen=True)
class _Image:
    """What the engine says of one image."""

    id: str
    names: tuple[str, ...]
    layers: tuple[str, ...]
    size: int
    created: float
    ours: bool


def use(settings: SandboxSettings, *tags: str) -> None:
    """Note that images of ours are used; before they are looked for."""
    for tag in tags:
        Uses(settings.cache).touch(IMAGES, tag)


def keep_to_budget(client: APIClient | None, settings: SandboxSettings, *, warn: bool = False) -> None:
    """Remove what was used least recently until cache and images are within the budget, if there is one.

    With ``warn`` it is also logged if that cannot be.

    Raises:
        InfraError: if the engine fails.
    """
    if settings.disk_budget is None:
        return
    done = evict_to(client, settings, settings.disk_budget)
    if done.freed:
        settings.log(f"disk budget {size(settings.disk_budget)}: removed {told(done)}")
    if warn and done.left > settings.disk_budget:
        budget = size(settings.disk_budget)
        settings.log(f"disk budget {budget}: {size(done.left)} are in use by runs under way, and stay")


def build(client: APIClient, settings: SandboxSettings, action: Callable[[], None]) -> None:
    """Build an image; on a full disk once more after making room, and within the budget afterwards.

    Raises:
        InfraError: as ``action``, or if the engine fails.
    """
    with_room(action, lambda: image_items(client, settings), settings.log)
    keep_to_budget(client, settings)


def evict_to(client: APIClient | None, settings: SandboxSettings, keep: int) -> Evicted:
    """Remove cache entries and images, the least recently used first, until ``keep`` bytes are left.

    ``client`` None leaves images out.

    Raises:
        InfraError: if the engine fails.
    """
    with locked(settings.cache / "locks" / "evict.lock", log=settings.log, what="eviction"):
        items = cache_items(settings.cache)
        if client is not None:
            items += image_items(client, settings)
        return evict(items, keep)


def image_items(client: APIClient, settings: SandboxSettings) -> list[Item]:
    """Return our images, each with the bytes that only it holds beyond what it was made from.

    Raises:
        InfraError: if the engine fails.
    """
    with engine_errors("listing images"):
        known = _known(client)
    ours = [image for image in known if image.ours]
    uses, until = Uses(settings.cache), _until(settings)
    noted = {image.id: {name: uses.last(IMAGES, name) for name in image.names} for image in ours}
    used = {i.id: max((when for when in noted[i.id].values() if when), default=i.created) for i in ours}
    below: dict[str, list[str]] = {}
    for image in sorted(ours, key=lambda one: len(one.layers), reverse=True):
        for other in ours:
            if len(other.layers) < len(image.layers) and image.layers[: len(other.layers)] == other.layers:
                below.setdefault(other.id, []).append(image.id)
                used[other.id] = max(used[other.id], used[image.id] + 0.001)
    gone: set[str] = set()
    found = []
    for image in ours:
        remove = partial(_remove, client, uses, image, noted[image.id], below.get(image.id, []), gone)
        foreign = any(not name.startswith(PREFIX) for name in image.names)
        protected = foreign or used[image.id] >= until
        name = image.names[0] if image.names else image.id
        found.append(Item(IMAGES, name, _own_size(image, known), used[image.id], protected, remove))
    return found


def _until(settings: SandboxSettings) -> float:
    """From when on an image's last use protects it: our own run's idle images may go, another's not.

    Nothing is protected where no run is under way, and none asks (``crbench clean``).
    """
    other = Uses(settings.cache).oldest_run(but=settings.session)
    own = time.time() - _IDLE if settings.session or other is not None else float("inf")
    return own if other is None else min(own, other)


def _known(client: APIClient) -> list[_Image]:
    """All images that have a name, and all of ours: what ours were made from tells what they share."""
    from docker.errors import ImageNotFound

    mine = {one["Id"] for one in client.images(filters={"label": f"{LABEL}=1"})}
    found = []
    for listed in client.images():
        try:
            about = client.inspect_image(listed["Id"])  # type: ignore[no-untyped-call]
        except ImageNotFound:
            continue
        names = tuple(name for name in listed.get("RepoTags") or () if name != "<none>:<none>")
        layers = tuple((about.get("RootFS") or {}).get("Layers") or ())
        ours = listed["Id"] in mine
        found.append(_Image(listed["Id"], names, layers, int(about["Size"]), float(listed["Created"]), ours))
    return found


def _own_size(image: _Image, known: list[_Image]) -> int:
    """Bytes of the layers that the image has beyond the longest other image that it begins with."""
    shared = 0
    for other in known:
        if other.id == image.id or image.layers[: len(other.layers)] != other.layers:
            continue
        # Of two with the same layers the older one has them.
        if len(other.layers) < len(image.layers) or (other.created, other.id) < (image.created, image.id):
            shared = max(shared, other.size)
    return max(image.size - shared, 0)


def _remove(
    client: APIClient,
    uses: Uses,
    image: _Image,
    noted: dict[str, float | None],
    below: list[str],
    gone: set[str],
) -> bool:
    from docker.errors import APIError, ImageNotFound

    if not gone.issuperset(below) or any(uses.last(IMAGES, name) != when for name, when in noted.items()):
        return False
    with engine_errors("removing an image"):
        for name in image.names or (image.id,):
            try:
                client.remove_image(name)
            except ImageNotFound:
                pass
            except APIError as error:
                if error.status_code != 409:
                    raise
                return False  # a container of it exists
            uses.forget(IMAGES, name)
    gone.add(image.id)
    return True
