"""What a program used that edits a tree: it tells in a JSON file, and the run's budget counts it."""

from __future__ import annotations

import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..models.usage import Usage, from_response
from ..text import plainjson
from ..text.printable import printable

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from ..models.usage import Ledger

_LIMIT = 1024 * 1024
_MOST = 1e15
#: Other names of the same counts.
_NAMES = {"input_tokens": "prompt_tokens", "output_tokens": "completion_tokens", "total_cost_usd": "cost"}


@dataclass(frozen=True)
class Budget:
    """The ledger of the run; None where nothing is bounded or kept."""

    ledger: Ledger | None = None

    def check(self) -> None:
        """Let an agent begin if the run still has budget.

        Raises:
            InfraError: ``budget``.
        """
        if self.ledger is not None:
            self.ledger.check()

    def charge(self, used: Mapping[str, float], *, given: int, written: int) -> None:
        """Add what an agent used, or an estimate from the characters that it was given and wrote.

        Raises:
            InfraError: if the ledger cannot be written.
        """
        if self.ledger is None:
            return
        usage = from_response(dict(used), prompt_characters=given, completion_characters=written)
        if "cost" in used and usage.estimated_calls:
            usage = Usage(calls=1)
        self.ledger.add(usage, used.get("cost"))


def read_usage(path: Path) -> tuple[dict[str, float], tuple[str, ...]]:
    """Return the numbers in the file that ``{usage}`` names, and a warning if it holds anything else.

    Both are empty if the program wrote nothing. What cannot be read is no failure of the agent: its work is
    done, and a review must not be able to make one of it.
    """
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            return {}, (_unreadable("it is no regular file"),)
        with path.open("rb") as stream:
            data = stream.read(_LIMIT)
        value = plainjson.parse(data) if data.strip() else {}
    except FileNotFoundError:
        return {}, ()
    except (OSError, ValueError) as error:
        return {}, (_unreadable(str(error)),)
    if not isinstance(value, dict):
        return {}, (_unreadable(f"found {type(value).__name__}"),)
    odd = [name for name, number in value.items() if not _is_count(number)]
    if odd:
        return {}, (_unreadable(f"found {value[odd[0]]!r} in {odd[0]!r}"),)
    return {_NAMES.get(name, printable(name, 60)): float(number) for name, number in value.items()}, ()


def _is_count(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < _MOST


def _unreadable(why: str) -> str:
    return (
        "what the agent used is an estimate: it wrote no JSON object of numbers of 0 or more to {usage} "
        f"({printable(why, 120)})"
    )
