"""Images with a program in them, as vendors have: committed from the base image, removed afterwards."""

from __future__ import annotations

import io
import ipaddress
import os
import secrets
import tarfile
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

BASE_IMAGE = os.environ.get("CRBENCH_TEST_BASE_IMAGE", "crbench-base:bookworm")


@contextmanager
def image(
    files: Mapping[str, str], config: Mapping[str, Any] | None = None, *, mode: int = 0o755
) -> Iterator[str]:
    """An image that adds ``files`` (absolute paths, owned by root, of ``mode``) to the base.

    ``config`` is in the engine's own words: ``User``, ``Env``, ``Entrypoint``.
    """
    import docker

    client = docker.APIClient(version="auto")
    name = f"test-{secrets.token_hex(6)}:latest"
    container = client.create_container(BASE_IMAGE, ["true"], network_disabled=True)["Id"]
    try:
        if files:
            client.put_archive(container, "/", packed(files, mode))
        repository, _, tag = name.partition(":")
        client.commit(container, repository, tag, conf=dict(config or {}))
    finally:
        client.remove_container(container, force=True, v=True)
    try:
        yield name
    finally:
        client.remove_image(name, force=True)
        client.close()


def packed(files: Mapping[str, str], mode: int = 0o755, encoding: str = "utf-8") -> bytes:
    """A tar of files, owned by root."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as tar:
        for path, text in files.items():
            data = text.encode(encoding)
            info = tarfile.TarInfo(path.lstrip("/"))
            info.size, info.mode = len(data), mode
            tar.addfile(info, io.BytesIO(data))
    return stream.getvalue()


def gateway_of_the_bridge() -> str:
    """The address of this machine that containers reach."""
    import docker

    client = docker.APIClient(version="auto")
    try:
        (config,) = client.inspect_network("bridge")["IPAM"]["Config"][:1]
    finally:
        client.close()
    # An engine that found its bridge there does not name it: it has the first address.
    return config.get("Gateway") or str(next(ipaddress.ip_network(config["Subnet"]).hosts()))
