"""A package index that really serves: PEP 503 and PEP 691 pages, files, failures on demand, credentials."""

from __future__ import annotations

import base64
import hashlib
import json
import ssl
import sys
import threading
from collections import Counter
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


class Index:
    """What a test arranges (files, failures) and sees afterwards (requests)."""

    def __init__(
        self, *, style: str = "json", credentials: str | None = None, list_digests: bool = True
    ) -> None:
        self.style = style
        self.credentials = credentials
        self.list_digests = list_digests
        self.files: dict[str, dict[str, bytes]] = {}
        #: path -> answers to give before the real one: (status, headers)
        self.failures: dict[str, list[tuple[int, dict[str, str]]]] = {}
        #: file name -> bytes to send in place of the real ones (the length announced stays the real one)
        self.truncated: dict[str, int] = {}
        #: file name -> bytes after which every transfer of it breaks off
        self.breaks_off: dict[str, int] = {}
        #: file name -> the same, but the first transfer of it is whole; None: no answer at all
        self.after_first: dict[str, int | None] = {}
        #: paths that are never answered
        self.hangs: set[str] = set()
        self.closing = threading.Event()
        #: whether .tar.gz files are labelled as encoded, as some servers do
        self.labels_gzip = False
        self.requests: Counter[str] = Counter()
        self.authorizations: list[tuple[str, str | None]] = []
        self.file_host: str | None = None
        self.url = ""

    def add(self, project: str, name: str, content: bytes) -> str:
        """Put a file on the index; returns its sha256."""
        self.files.setdefault(project, {})[name] = content
        return hashlib.sha256(content).hexdigest()


def _handler(index: Index) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_args: object) -> None:
            pass

        def answer(self, status: int, body: bytes = b"", kind: str = "text/plain", **headers: str) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            for name, value in headers.items():
                self.send_header(name.replace("_", "-"), value)
            self.end_headers()
            self.wfile.write(body)

        def do_HEAD(self) -> None:
            parts = self.path.strip("/").split("/")
            found = index.files.get(parts[1], {}).get(parts[-1]) if len(parts) == 3 else None
            self.send_response(404 if found is None else 200)
            self.send_header("Content-Length", str(len(found or b"")))
            self.end_headers()

        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            index.requests[path] += 1
            index.authorizations.append((path, self.headers.get("Authorization")))
            name = path.rpartition("/")[2]
            if name in index.after_first and index.requests[path] > 1:
                breaks = index.after_first[name]
                if breaks is None:
                    index.hangs.add(path)
                else:
                    index.breaks_off[name] = breaks
            if path in index.hangs:
                index.closing.wait()
                self.close_connection = True
                return
            if index.failures.get(path):
                status, headers = index.failures[path].pop(0)
                self.answer(status, b"not now", **headers)
                return
            if index.credentials is not None:
                wanted = "Basic " + base64.b64encode(index.credentials.encode()).decode()
                if self.headers.get("Authorization") != wanted:
                    self.answer(401, b"who are you?", WWW_Authenticate='Basic realm="index"')
                    return
            parts = path.strip("/").split("/")
            if parts[0] == "simple" and len(parts) == 2 and parts[1] in index.files:
                self.page(parts[1])
            elif parts[0] == "files" and len(parts) == 3 and parts[2] in index.files.get(parts[1], {}):
                self.file(parts[2], index.files[parts[1]][parts[2]])
            else:
                self.answer(404)

        def file(self, name: str, content: bytes) -> None:
            if name in index.breaks_off:
                index.truncated[name] = index.breaks_off[name]
            if name not in index.truncated:
                label = {"Content_Encoding": "gzip"} if index.labels_gzip else {}
                self.answer(200, content, "application/octet-stream", **label)
                return
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content[: index.truncated.pop(name)])
            self.close_connection = True

        def page(self, project: str) -> None:
            prefix = index.file_host or "../.."
            files = {n: hashlib.sha256(c).hexdigest() for n, c in index.files[project].items()}
            if index.style == "json":
                listed = [
                    {
                        "filename": n,
                        "url": f"{prefix}/files/{project}/{n}",
                        "hashes": {"sha256": d} if index.list_digests else {},
                    }
                    for n, d in files.items()
                ]
                body = json.dumps({"meta": {"api-version": "1.1"}, "name": project, "files": listed})
                self.answer(200, body.encode(), "application/vnd.pypi.simple.v1+json")
            elif index.style == "html":
                links = ""
                for n, d in files.items():
                    fragment = f"#sha256={d}" if index.list_digests else ""
                    links += f'<a href="{prefix}/files/{project}/{n}{fragment}">{n}</a>'
                self.answer(200, f"<!DOCTYPE html><html><body>{links}</body></html>".encode(), "text/html")
            else:
                self.answer(200, b"%PDF-1.7", index.style)

    return Handler


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: object, client_address: object) -> None:
        if not isinstance(sys.exc_info()[1], ConnectionError):  # a client that has seen enough hangs up
            super().handle_error(request, client_address)


@contextmanager
def serve(index: Index, host: str = "127.0.0.1", *, certificate: tuple[Path, Path] | None = None):
    """Serve an index on a free port of a local address; see ``index.url``.

    With a ``certificate`` (file, key) it is served over TLS.
    """
    server = _Server((host, 0), _handler(index))
    server.daemon_threads = True
    scheme = "http"
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
        scheme = "https"
    index.url = f"{scheme}://{host}:{server.server_port}/simple"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield index
    finally:
        index.closing.set()
        server.shutdown()
        server.server_close()
        thread.join(5)
