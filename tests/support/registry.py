"""A registry of one small image, as much of it as a pull needs."""

from __future__ import annotations

import gzip
import hashlib
import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

_MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"


@contextmanager
def registry(layer: bytes) -> Iterator[tuple[str, list[str]]]:
    """Serve an image of one layer (a tar); gives its name, and the paths that were asked for."""
    packed = gzip.compress(layer, mtime=0)
    digests = [_digest(layer)]
    config = _json(
        {
            "architecture": "amd64",
            "os": "linux",
            "config": {},
            "rootfs": {"type": "layers", "diff_ids": digests},
        }
    )
    manifest = _json(
        {
            "schemaVersion": 2,
            "mediaType": _MANIFEST,
            "config": _part("application/vnd.docker.container.image.v1+json", config),
            "layers": [_part("application/vnd.docker.image.rootfs.diff.tar.gzip", packed)],
        }
    )
    blobs = {_digest(data): data for data in (packed, config)}
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            asked.append(self.path)
            data, kind = b"{}", "application/json"
            if "/manifests/" in self.path:
                data, kind = manifest, _MANIFEST
            elif "/blobs/" in self.path:
                data, kind = blobs[self.path.rpartition("/")[2]], "application/octet-stream"
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(data)))
            self.send_header("Docker-Distribution-Api-Version", "registry/2.0")
            if kind == _MANIFEST:
                self.send_header("Docker-Content-Digest", _digest(manifest))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(data)

        do_HEAD = do_GET

        def log_message(self, *_: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_address[1]}/vendor/tool:1", asked
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _json(value: Any) -> bytes:
    return json.dumps(value).encode()


def _digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def _part(kind: str, data: bytes) -> dict[str, Any]:
    return {"mediaType": kind, "size": len(data), "digest": _digest(data)}
