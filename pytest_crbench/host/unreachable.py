"""Why a service does not answer, read from below all wrappers, and how long it asks to wait."""

from __future__ import annotations

import errno
import re
import socket
import ssl
import time
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_NO_ROUTE = (errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ENETDOWN, errno.EADDRNOTAVAIL)
_TUNNEL = re.compile(r"Tunnel connection failed: (\d+)|^(40[37]) ")


@dataclass(frozen=True)
class Cause:
    """What went wrong. ``kind`` is one of ``proxy``, ``certificate``, ``tls``, ``name``, ``absent``,
    ``permission``, ``refused``, ``route``, ``timeout`` and ``other``; ``said`` is a phrase for people.
    """

    kind: str
    said: str


def cause(error: BaseException) -> Cause:
    """Look below the wrappers of HTTP packages and SDKs for what the system said."""
    chain = list(_chain(error))
    for look in (_proxy, _certificate, _name, _system, _timeout):
        for one in chain:
            if (found := look(one)) is not None:
                return found
    return Cause("other", f"{type(error).__name__}: {error}")


def _chain(error: BaseException) -> Iterator[BaseException]:
    """All errors below one, outermost first; packages keep them in three different places."""
    pending, seen = [error], set()
    while pending:
        one = pending.pop(0)
        if id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        below = [one.__cause__, one.__context__, getattr(one, "reason", None), *one.args]
        pending += [e for e in below if isinstance(e, BaseException)]


def _proxy(error: BaseException) -> Cause | None:
    found = _TUNNEL.search(str(error)) if isinstance(error, OSError) or "Proxy" in _kind(error) else None
    if found is not None:
        status = found[1] or found[2]
        what = {"407": "wants a user and a password", "403": "refuses to connect there"}
        return Cause("proxy", f"the proxy {what.get(status, 'refuses')} ({status})")
    if _kind(error) == "ProxyError":
        below = next((c for e in _chain(error) if (c := _name(e) or _system(e) or _timeout(e))), None)
        return Cause("proxy", "the proxy does not answer" + (f" ({below.said})" if below else ""))
    return None


def _certificate(error: BaseException) -> Cause | None:
    if isinstance(error, ssl.SSLCertVerificationError):
        return Cause("certificate", f"its certificate is not trusted ({error.verify_message})")
    if isinstance(error, ssl.SSLError):
        return Cause("tls", f"TLS failed ({(error.reason or str(error)).replace('_', ' ').lower()})")
    return None


def _name(error: BaseException) -> Cause | None:
    if isinstance(error, socket.gaierror):
        return Cause("name", f"its name does not resolve ({error.strerror})")
    return None


def _system(error: BaseException) -> Cause | None:
    if isinstance(error, FileNotFoundError):
        return Cause("absent", "the socket does not exist")
    if isinstance(error, PermissionError):
        return Cause("permission", "permission denied")
    if isinstance(error, ConnectionRefusedError):
        return Cause("refused", "the connection was refused")
    if isinstance(error, OSError) and error.errno in _NO_ROUTE:
        return Cause("route", f"there is no way to it ({error.strerror})")
    return None


def _timeout(error: BaseException) -> Cause | None:
    if isinstance(error, TimeoutError) or "Timeout" in _kind(error):
        return Cause("timeout", "it does not answer in time")
    return None


def _kind(error: BaseException) -> str:
    return type(error).__name__


#: A longer wait is as good as a refusal: nobody waits for it.
_LONGEST = 1e9


def seconds_asked(value: str | None, *, unit: float = 1.0, now: float | None = None) -> float | None:
    """Read a number of seconds, or an HTTP date; None if it is neither.

    Args:
        value: the header, as the server wrote it.
        unit: how many seconds its number is counted in (0.001 for ``retry-after-ms``).
        now: the time that a date is counted from, in seconds since the epoch (default: this moment's).
    """
    if not value:
        return None
    try:
        seconds = float(value) * unit
    except ValueError:
        try:
            when = parsedate_to_datetime(value).timestamp()
        except (ValueError, TypeError, IndexError, OverflowError, OSError):
            return None
        seconds = when - (time.time() if now is None else now)
    if seconds != seconds:
        return None
    return min(max(seconds, 0.0), _LONGEST)
