"""What a user can say of a reviewer beside its name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..core.errors import UsageError
from ..host.programs import variables_fingerprint

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True)
class ReviewerOptions:
    """Options of a reviewer; each is a ``--crbench-reviewer-…`` option.

    ``format`` is a name of `formats.PARSERS`; ``timeout`` seconds; ``exit_ok`` the exit statuses that mean
    "fine"; ``name`` and ``version`` what tables and results say; ``environment`` the variables that it
    is given (`host.programs.variables`); ``output_limit`` the bytes read of a review.
    """

    format: str = "auto"
    timeout: float = 600.0
    exit_ok: tuple[int, ...] = (0,)
    name: str | None = None
    version: str | None = None
    environment: tuple[str, ...] = ()
    output_limit: int = 16 * 1024 * 1024

    def check(self, formats: Sequence[str]) -> None:
        """Check the options that have a fixed set of values.

        Raises:
            UsageError: naming the option and what it may be.
        """
        if self.format not in formats:
            from difflib import get_close_matches

            near = get_close_matches(self.format, formats, 1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise UsageError(
                f"--crbench-review-format: {self.format!r} is none of {', '.join(formats)}.{hint}"
            )
        if not self.timeout > 0:
            raise UsageError(f"--crbench-reviewer-timeout: {self.timeout:g} is no number of seconds above 0")
        for name in self.environment:
            if not name.partition("=")[0]:
                raise UsageError(f"--crbench-reviewer-env: {name!r} names no variable")

    def fingerprint(self) -> dict[str, Any]:
        """Return what decides a program's review, as plain JSON."""
        return {
            "format": self.format,
            "timeout": self.timeout,
            "exit_ok": sorted(self.exit_ok),
            **variables_fingerprint(self.environment),
            "version": self.version,
        }
