"""What a program used that edits a tree: it tells in a JSON file, and the run's budget counts it."""

from __future__ import annotations

import re
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
    odd = [
        name
        for name, n in value.items()
        if not isinstance(n, int | float) or isinstance(n, bool) or not 0 <= n < _MOST
    ]
    if odd:
        return {}, (_unreadable(f"found {value[odd[0]]!r} in {odd[0]!r}"),)
    return {_NAMES.get(name, printable(name, 60)): float(number) for name, number in value.items()}, ()


def _unreadable(why: str) -> str:
    return (
        "what the agent used is an estimate: it wrote no JSON object of numbers of 0 or more to {usage} "
        f"({printable(why, 120)})"
    )


#: What agents print when their endpoint fails: litellm, openai and anthropic clients, codex, claude.
_FAILURE = re.compile(
    r"(?i)(?:authentication|ratelimit|api ?connection|api ?status|internal ?server|service ?unavailable"
    r"|permission ?denied|bad ?gateway|api ?timeout) ?error\b"
    r"|\b(?:40[13]|429|50[0-4]|529)\W{1,3}(?:unauthorized|forbidden|too many requests|internal server error"
    r"|bad gateway|service unavailable|gateway time-?out|overloaded)"
    r"|\b(?:status|error|http)(?: code)?\W{1,3}(?:40[13]|429|50[0-4]|529)\b"
    r"|\b(?:incorrect|invalid|missing) api ?key|\bexceeded (?:your current quota|retry limit)"
    r"|\b402\W{1,3}payment required|\bcredit balance is too low|\busage limit reached|\boverloaded_error\b"
    r"|\bRESOURCE_EXHAUSTED\b|\bECONN(?:REFUSED|RESET)\b|\bfetch failed\b"
    r"|(?<!errno 111\] )\bconnection (?:refused|error)|\bfailed to authenticate"
)
#: A failure that ends an agent stands at the end of what it prints; before that, files and tests.
_TAIL = 2000
_ESCAPES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
#: A file that an agent extends with the names of its own files.
_OWN_CHANGE = {b"a/.gitignore b/.gitignore"}


def changes_nothing(patch: bytes) -> bool:
    """Whether a revision leaves all of the tree as it was, but for what git is to ignore."""
    return set(re.findall(rb"^diff --git (.*)$", patch, re.MULTILINE)) <= _OWN_CHANGE


def endpoint_failure(output: str, given: str) -> str | None:
    """Return the words in an agent's output that say that its endpoint failed; None without any.

    Args:
        output: what it printed.
        given: what it was given to read. Words that stand in there say nothing: an agent may print the
            comment that it works on, and a comment may quote an error.
    """
    plain = " ".join(_ESCAPES.sub("", output).split())[-_TAIL:]
    quoted = _letters(given)
    for found in _FAILURE.finditer(plain):
        if _letters(found[0]) not in quoted:
            return plain[max(found.start() - 40, 0) : found.end() + 80]
    return None


def _letters(text: str) -> str:
    return re.sub(r"[^a-z0-9]", "", text.lower())
