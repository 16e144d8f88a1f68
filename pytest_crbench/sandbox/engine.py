"""The door to a Docker engine: bounded calls, bounded output, and engine failures under one name."""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..core.errors import InfraError
from ..host.space import is_full
from ..host.unreachable import cause
from ..text import urls
from ..text.printable import printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from docker import APIClient

_DEFAULT = "unix:///var/run/docker.sock"


def engine_address(environ: Mapping[str, str] | None = None) -> str:
    """Return what DOCKER_HOST says, without credentials, or the address that is used without it."""
    return urls.redact((os.environ if environ is None else environ).get("DOCKER_HOST") or _DEFAULT)


def explain(error: BaseException) -> tuple[str, str]:
    """Return what went wrong when an engine was asked, naming it, and what to do, as one sentence each."""
    host = engine_address()
    why = cause(error)
    local = "://" not in host or host.startswith(("unix://", "/"))
    set_host = "set DOCKER_HOST" if host == _DEFAULT else "correct DOCKER_HOST"
    said = f"{host}: {why.said}"
    if why.kind == "absent":
        return said, f"Install and start a Docker engine, or {set_host}"
    if why.kind == "permission":
        return (
            said,
            f"Join the group of the socket ({_group(host)}), or use an engine of your own (DOCKER_HOST)",
        )
    if why.kind == "refused":
        return said, f"Start the engine: its {'socket' if local else 'port'} is not listened on"
    if why.kind == "timeout":
        return said, "Restart the engine, or look at its log: it is there but gives no answer"
    if why.kind in ("certificate", "tls"):
        return said, "Check DOCKER_TLS_VERIFY and the certificates in DOCKER_CERT_PATH"
    if why.kind in ("name", "route", "proxy"):
        return said, "Correct DOCKER_HOST, or see to it that this machine reaches it"
    text = urls.redact(printable(str(error), 200))
    if "TLS" in type(error).__name__ or "certificate" in text.lower():
        return f"{host}: {text}", "Correct DOCKER_CERT_PATH, which holds ca.pem, cert.pem and key.pem"
    if "HTTPS server" in text:
        return f"{host}: {text}", "Set DOCKER_TLS_VERIFY=1 and DOCKER_CERT_PATH: this engine speaks TLS only"
    return f"{host}: {text}", "Correct DOCKER_HOST: unix://PATH or tcp://HOST:PORT of a Docker engine"


def _group(host: str) -> str:
    import grp

    try:
        return grp.getgrgid(os.stat(host.removeprefix("unix://")).st_gid).gr_name  # noqa: PTH116
    except (OSError, KeyError):
        return "docker"


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


#: Seconds that one ordinary API call may take, unless the variable says otherwise.
CALL_TIMEOUT = 60
TIMEOUT_VARIABLE = "DOCKER_CLIENT_TIMEOUT"
_PING_TIMEOUT = 2
#: Seconds between looks at a command whose output stream stays open: a child in the background may hold it.
_LOOK = 3.0
_DRAIN = 5.0
#: Seconds within which the engine notices that a container has ended, and between two looks.
_NOTICE, _SOON = 2.0, 0.2
#: What to do about a full disk of the engine's.
DISK_FULL = "the engine's disk is full. Free some space there (crbench clean, docker system prune)"
#: How engines say that a container has ended; the status is 404, 409 or 500, depending on the moment.
_GONE = (
    "no such container",
    "no such exec instance",
    "is not running",
    "removal of container",
    "removal in progress",
    "marked for removal",
    "container is stopped",
)
#: Whichever call notices it first, it is told in the same words.
ENDED = "the sandbox's container has ended; it was killed from outside or its lifetime is over. Run it again"
#: No limit of ours ends what runs in a paused container, and a time-out of it would say nothing.
PAUSED = (
    "somebody paused the sandbox's container (docker pause, or a snapshot that takes long); "
    "end what pauses it, and run it again"
)


@dataclass(frozen=True)
class Ran:
    """What a command in a container did; ``late`` if it still ran at the deadline (then no return code)."""

    returncode: int | None
    stdout: bytes
    stderr: bytes
    truncated: bool
    late: bool
    duration: float


def connect(timeout: float | None = None, otherwise: str = "use --crbench-sandbox=local") -> APIClient:
    """Return a client of the engine that ``DOCKER_HOST`` names (default: the local socket).

    Args:
        timeout: seconds that one call may take; by default those of ``DOCKER_CLIENT_TIMEOUT``, or 60.
        otherwise: what the message offers to somebody who has no engine.

    Raises:
        InfraError: if no engine answers.
    """
    import docker
    from docker.errors import DockerException
    from docker.utils import kwargs_from_env
    from requests.exceptions import RequestException

    try:
        first = docker.APIClient(**kwargs_from_env(), version="auto", timeout=_PING_TIMEOUT)
        first.ping()
        version = first.api_version
        first.close()
        return docker.APIClient(**kwargs_from_env(), version=version, timeout=int(timeout or _call_timeout()))
    except (DockerException, RequestException, OSError, ValueError) as error:
        said, advice = explain(error)
        raise InfraError(
            f"no Docker engine answers at {said}. {advice}, or {otherwise}",
            reason="no-engine",
        ) from error


def _call_timeout() -> int:
    said = os.environ.get(TIMEOUT_VARIABLE, "")
    if said and not (said.isdigit() and int(said)):
        raise InfraError(f"{TIMEOUT_VARIABLE}={said}: wants whole seconds, at least 1", reason="no-engine")
    return int(said or CALL_TIMEOUT)


@contextmanager
def engine_errors(doing: str) -> Iterator[None]:
    """Turn what the SDK raises into an InfraError that says what was being done.

    Raises:
        InfraError: with reason ``sandbox-gone``, ``disk`` or ``engine``.
    """
    from docker.errors import APIError, DockerException
    from requests.exceptions import RequestException
    from urllib3.exceptions import HTTPError

    try:
        yield
    except APIError as error:
        said = str(error.explanation or error)
        if any(phrase in said.lower() for phrase in _GONE):
            raise InfraError(f"{doing}: {ENDED} ({said})", reason="sandbox-gone") from error
        if is_full(said):
            raise InfraError(f"{doing}: {DISK_FULL} ({said})", reason="disk") from error
        raise InfraError(
            f"{doing}: the engine answered {error.status_code}: {said}", reason="engine"
        ) from error
    except (DockerException, RequestException, HTTPError, OSError) as error:
        raise InfraError(
            f"{doing}: the Docker engine does not answer ({error}). Check that it runs, then run again",
            reason="engine",
        ) from error


def run(
    client: APIClient,
    container: str,
    argv: Sequence[str],
    *,
    deadline: float,
    output: int,
    user: str = "",
    cwd: str | None = None,
    env: Mapping[str, str] | None = None,
) -> Ran:
    """Run a command in a container and gather its output as it comes, keeping head and tail.

    The engine's exec has no time-out: the stream is read in a thread, and at ``deadline`` (seconds from
    now) this returns with ``late`` set while the command may still run; the caller ends the container.

    Raises:
        InfraError: if the engine or the container is gone, or the container is paused for long.
    """
    began = time.monotonic()
    with engine_errors("starting a command in the sandbox"):
        made = client.exec_create(
            container, list(argv), user=user, workdir=cwd, environment=dict(env) if env else None
        )
    pump = _Pump(client, made["Id"], output)
    end = began + deadline
    paused = False
    while not pump.ended.wait(max(min(_LOOK, end - time.monotonic()), 0.0)):
        if time.monotonic() >= end:
            return _gather(pump, None, late=True, began=began)
        with engine_errors("looking at a command in the sandbox"):
            if not client.exec_inspect(made["Id"])["Running"]:
                pump.ended.wait(_DRAIN)
                break
            # Committing an image pauses a container, too, but not for two looks.
            before, paused = paused, bool(client.inspect_container(container)["State"].get("Paused"))
        if before and paused:
            raise InfraError(PAUSED, reason="sandbox-paused")
    if pump.failure is not None:
        with engine_errors("reading a command's output"):
            raise pump.failure
    with engine_errors("reading a command's exit status"):
        state = client.exec_inspect(made["Id"])
        # The output may end before the engine has noticed that the command has.
        noticed = time.monotonic() + _NOTICE
        while state["ExitCode"] is None and time.monotonic() < min(end, noticed):
            time.sleep(_SOON)
            state = client.exec_inspect(made["Id"])
    return _gather(pump, state["ExitCode"], late=False, began=began)


def has_ended(client: APIClient, container: str) -> bool:
    """Whether a container does not run any more. Looks for some time: the engine notices late.

    It may still call a container running whose processes have just been killed.

    Raises:
        InfraError: if the engine fails.
    """
    end = time.monotonic() + _NOTICE
    while True:
        with engine_errors("looking at the sandbox"):
            state = client.inspect_container(container)["State"]
        if not state["Running"] or state.get("Dead"):
            return True
        if time.monotonic() >= end:
            return False
        time.sleep(_SOON)


def _gather(pump: _Pump, code: int | None, *, late: bool, began: float) -> Ran:
    out, cut_out = pump.out.result()
    err, cut_err = pump.err.result()
    return Ran(code, out, err, cut_out or cut_err, late, time.monotonic() - began)


class _Pump:
    """Reads one command's two streams in a thread until they end."""

    def __init__(self, client: APIClient, exec_id: str, limit: int) -> None:
        self.out, self.err = Kept(limit), Kept(limit)
        self.ended = threading.Event()
        self.failure: Exception | None = None
        threading.Thread(target=self._drain, args=(client, exec_id), daemon=True).start()

    def _drain(self, client: APIClient, exec_id: str) -> None:
        try:
            stream: Any = client.exec_start(exec_id, stream=True, demux=True)
            for out, err in stream:
                if out:
                    self.out.feed(out)
                if err:
                    self.err.feed(err)
        except Exception as error:
            self.failure = error
        finally:
            self.ended.set()
