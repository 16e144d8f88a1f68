"""How long a server asks to wait: the value of a ``Retry-After`` header."""

from __future__ import annotations

import time
from email.utils import parsedate_to_datetime

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
