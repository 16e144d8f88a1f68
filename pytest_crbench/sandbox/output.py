"""Keep the head and the tail of unbounded output."""

from __future__ import annotations

from collections import deque


class Kept:
    """At most about ``limit`` bytes of what is fed to it; the middle is dropped as it comes."""

    def __init__(self, limit: int) -> None:
        self._half = max(limit // 2, 1)
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._tail_size = 0
        self._dropped = 0

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes of the stream."""
        room = self._half - len(self._head)
        if room > 0:
            self._head += chunk[:room]
            chunk = chunk[room:]
        if not chunk:
            return
        self._tail.append(chunk)
        self._tail_size += len(chunk)
        while self._tail_size - len(self._tail[0]) >= self._half:
            gone = self._tail.popleft()
            self._tail_size -= len(gone)
            self._dropped += len(gone)

    def result(self) -> tuple[bytes, bool]:
        """Return head, a line that says how much is missing, and tail; and whether something is."""
        tail = b"".join(list(self._tail))
        dropped = self._dropped + max(len(tail) - self._half, 0)
        tail = tail[-self._half :]
        gap = b"\n[... %d bytes left out ...]\n" % dropped if dropped else b""
        return bytes(self._head) + gap + tail, bool(dropped)
