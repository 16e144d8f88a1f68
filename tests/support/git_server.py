"""Git servers that really serve, over HTTP and git's own protocol, and ways in which they do not answer."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit


class Repo:
    """A repository of five commits, each with a file of its own; the second and the fourth are wanted."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir(parents=True)
        self.git("init", "--quiet", "--bare", "--initial-branch=main")
        self.commits: list[str] = []
        for number in range(5):
            blob = self.git("hash-object", "-w", "--stdin", data=f"only in {number}\n")
            tree = self.git("mktree", data=f"100644 blob {blob}\tfile-{number}\n")
            parents = ["-p", self.commits[-1]] if self.commits else []
            self.commits.append(self.git("commit-tree", tree, *parents, "-m", f"change {number}"))
        self.git("update-ref", "refs/heads/main", self.commits[-1])
        self.base, self.head = self.commits[1], self.commits[3]

    def git(self, *arguments: str, data: str = "") -> str:
        env = {"PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
        for who in ("AUTHOR", "COMMITTER"):
            env |= {f"GIT_{who}_NAME": "t", f"GIT_{who}_EMAIL": "t@example.com"}
            # Two of them have the same commits, whenever they are made.
            env[f"GIT_{who}_DATE"] = "2026-01-01T00:00:00Z"
        done = subprocess.run(
            ["git", *arguments],
            cwd=self.path,
            env=env,
            input=data,
            capture_output=True,
            check=True,
            text=True,
        )
        return done.stdout.strip()


class GitServer:
    """Serves the repositories below ``root`` by git's own program; what was asked, and with what status."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.url = ""
        #: (method, path with query, status)
        self.requests: list[tuple[str, str, int]] = []
        #: A status that is given in place of every answer.
        self.status: int | None = None
        #: git's configuration, as if it were the server's.
        self.config: dict[str, str] = {}

    def asked(self, word: str) -> int:
        """How many requests had a word in their path."""
        return sum(word in path for _, path, _ in self.requests)


def _handler(server: GitServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_args: object) -> None:
            pass

        def do_GET(self) -> None:
            self.serve()

        def do_POST(self) -> None:
            self.serve()

        def serve(self) -> None:
            body = self.body()
            if server.status is not None:
                self.answer(server.status, [("Content-Type", "text/plain")], b"no\n")
                return
            status, headers, content = self.backend(body)
            self.answer(status, headers, content)

        def body(self) -> bytes:
            if self.headers.get("Transfer-Encoding") != "chunked":
                return self.rfile.read(int(self.headers.get("Content-Length") or 0))
            parts = []
            while size := int(self.rfile.readline(), 16):
                parts.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(parts)

        def backend(self, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
            parts = urlsplit(self.path)
            config = {f"GIT_CONFIG_KEY_{n}": key for n, key in enumerate(server.config)}
            config |= {f"GIT_CONFIG_VALUE_{n}": value for n, value in enumerate(server.config.values())}
            env = {
                "PATH": os.environ["PATH"],
                "GIT_PROJECT_ROOT": str(server.root),
                "GIT_HTTP_EXPORT_ALL": "1",
                "GIT_CONFIG_GLOBAL": os.devnull,
                "GIT_CONFIG_NOSYSTEM": "1",
                "GIT_CONFIG_COUNT": str(len(server.config)),
                **config,
                "REQUEST_METHOD": self.command,
                "PATH_INFO": parts.path,
                "QUERY_STRING": parts.query,
                "CONTENT_TYPE": self.headers.get("Content-Type") or "",
                "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding") or "",
                "GIT_PROTOCOL": self.headers.get("Git-Protocol") or "",
                "REMOTE_ADDR": "127.0.0.1",
            }
            done = subprocess.run(
                ["git", "http-backend"], input=body, env=env, capture_output=True, check=False
            )
            head, _, content = done.stdout.partition(b"\r\n\r\n")
            headers = []
            for line in head.decode("latin-1").split("\r\n"):
                name, _, value = line.partition(": ")
                headers.append((name, value))
            status = next((int(value.split()[0]) for name, value in headers if name == "Status"), 200)
            return status, [(n, v) for n, v in headers if n not in ("Status", "")], content

        def answer(self, status: int, headers: list[tuple[str, str]], content: bytes) -> None:
            server.requests.append((self.command, self.path, status))
            self.send_response(status)
            for name, value in headers:
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

    return Handler


@contextmanager
def git_http(root: Path) -> Iterator[GitServer]:
    """Serve over HTTP, as forges do."""
    server = GitServer(root)
    httpd = ThreadingHTTPServer(("127.0.0.1", 0), _handler(server))
    server.url = f"http://127.0.0.1:{httpd.server_address[1]}"
    thread = threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield server
    finally:
        httpd.shutdown()
        httpd.server_close()
        thread.join()


@contextmanager
def git_daemon(root: Path) -> Iterator[str]:
    """Serve over git's own protocol; gives the URL."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    program = Path(subprocess.check_output(["git", "--exec-path"], text=True).strip()) / "git-daemon"
    argv = [str(program), "--reuseaddr", "--listen=127.0.0.1", f"--port={port}", f"--base-path={root}"]
    with subprocess.Popen([*argv, "--export-all", str(root)], stderr=subprocess.DEVNULL) as process:
        try:
            deadline = time.monotonic() + 20
            while True:
                with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                    break
                assert time.monotonic() < deadline, "git daemon does not listen"
                time.sleep(0.02)
            yield f"git://127.0.0.1:{port}"
        finally:
            process.terminate()


@contextmanager
def static_http(root: Path) -> Iterator[str]:
    """Serve a repository's files as they are: what git calls a dumb server."""
    from functools import partial
    from http.server import SimpleHTTPRequestHandler

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_args: object) -> None:
            pass

    httpd = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(root)))
    thread = threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"http://127.0.0.1:{httpd.server_address[1]}"
    finally:
        httpd.shutdown()
        httpd.server_close()
        thread.join()


@contextmanager
def silent(*, connects: bool) -> Iterator[tuple[str, socket.socket]]:
    """An address that never answers: it takes connections and says nothing, or does not even take them.

    The second is what a firewall that drops packets looks like: the system's queue of connections is full.
    """
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(64 if connects else 0)
        address = listener.getsockname()
        fillers = []
        for _ in range(0 if connects else 3):
            filler = socket.socket()
            filler.setblocking(False)
            filler.connect_ex(address)
            fillers.append(filler)
        try:
            yield f"127.0.0.1:{address[1]}", listener
        finally:
            for filler in fillers:
                filler.close()


def has_daemon() -> bool:
    """Whether git's own server is installed."""
    git = shutil.which("git")
    path = subprocess.check_output([git or "git", "--exec-path"], text=True).strip()
    return (Path(path) / "git-daemon").is_file()
