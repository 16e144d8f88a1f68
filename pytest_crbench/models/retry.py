"""Which failures of an endpoint are worth waiting for, and how long."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..core.errors import InfraError
from ..host.unreachable import seconds_asked

if TYPE_CHECKING:
    from collections.abc import Mapping


class DeadlineError(InfraError):
    """The caller's own time was up while a call that nothing was wrong with was still running."""


class RefusedError(InfraError):
    """The endpoint does not accept this request; what the messages say may be why (a filter of content)."""


class ContextLengthError(RefusedError):
    """The messages are longer than what the model can read."""


@dataclass(frozen=True)
class Patience:
    """How long failures of the endpoint are waited out.

    ``total``: seconds that one call may lose to failed attempts and waits. ``first`` and ``longest``:
    bounds of the exponential back-off. ``request``: seconds after which one attempt counts as hanging.
    """

    total: float = 300.0
    first: float = 1.0
    longest: float = 60.0
    request: float = 300.0

    def wait(self, attempt: int, asked: float | None) -> float:
        """Seconds before attempt ``attempt`` + 1: what the endpoint asked for, or 2^n with jitter."""
        if asked is not None:
            return asked
        ceiling = min(self.longest, self.first * 2.0 ** min(attempt - 1, 30))
        # Half fixed, half random: workers that were refused together do not come back together.
        return ceiling / 2 + random.uniform(0, ceiling / 2)


@dataclass(frozen=True)
class Failure:
    """One failed attempt: what it becomes if nothing helps, and whether waiting may help."""

    reason: str
    message: str
    retry: bool
    asked: float | None = None

    def error(self, note: str = "") -> InfraError:
        """Return the error that the failure becomes."""
        kinds = {"context-length": ContextLengthError, "rejected": RefusedError}
        return kinds.get(self.reason, InfraError)(self.message + note, reason=self.reason)


def asked_wait(headers: Mapping[str, str], *, now: float | None = None) -> float | None:
    """Seconds that ``retry-after-ms`` or ``Retry-After`` (seconds or an HTTP date) asks for, if it does."""
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        seconds = seconds_asked(headers.get(name), unit=unit, now=now)
        if seconds is not None:
            return seconds
    return None


def of_status(status: int, said: str, headers: Mapping[str, str], where: str) -> Failure:
    """Tell what an HTTP status means; ``said`` is the endpoint's own message, ``where`` names it."""
    message = f"{where} answered {status}: {said}"
    if status == 429 and re.search(r"insufficient_quota|exceeded your current quota", said):
        return Failure("quota", f"{message}. The account has no budget left.", retry=False)
    if status == 429 and re.search(r"request too large", said, re.IGNORECASE):
        return Failure("context-length", message, retry=False)
    if status == 429:
        return Failure("rate-limit", message, retry=True, asked=asked_wait(headers))
    if status in (408, 409, 425) or status >= 500:
        return Failure("endpoint", message, retry=True, asked=asked_wait(headers))
    if status in (400, 413, 422) and _too_long(said):
        return Failure("context-length", message, retry=False)
    if status in (401, 403):
        hint = "Check the key (CRBENCH_API_KEY or OPENAI_API_KEY) and that it belongs to this endpoint."
        return Failure("unauthorized", f"{message}. {hint}", retry=False)
    if status == 404:
        return Failure(
            "not-found",
            f"{message}. Check --crbench-model and --crbench-base-url (it ends in /v1), or the options that "
            "name a model or an endpoint for the reviewer, the matcher or embeddings alone.",
            retry=False,
        )
    return Failure(
        "rejected",
        f"{message}. The endpoint does not accept the request; check model and parameters.",
        retry=False,
    )


def _too_long(said: str) -> bool:
    return bool(
        re.search(
            r"context_length_exceeded|context[ _](length|window|size)|maximum (context|prompt)|"
            r"(prompt|input) is too long|too many (input )?tokens",
            said,
            re.IGNORECASE,
        )
    )
