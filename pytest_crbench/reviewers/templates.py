"""Command and file templates: split like a shell once, placeholders filled word by word, never a shell."""

from __future__ import annotations

import shlex
from string import Formatter
from typing import TYPE_CHECKING

from ..core.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def words(template: str, known: Sequence[str], what: str) -> tuple[str, ...]:
    """Split a command template; its words may hold the placeholders ``known``.

    Raises:
        UsageError: for quotes that do not close, no word at all, or a placeholder that is not known.
    """
    try:
        split = tuple(shlex.split(template))
    except ValueError as error:
        raise UsageError(f"{what}: {error} in {template!r}. Quote it as for a POSIX shell.") from None
    if not split or not split[0]:
        raise UsageError(f"{what}: there is no program in {template!r}. Write cmd:PROGRAM ARGUMENTS.")
    for word in split:
        placeholders(word, known, what)
    return split


def placeholders(word: str, known: Sequence[str], what: str) -> frozenset[str]:
    """Return the placeholders in one word.

    Raises:
        UsageError: if one is not known, or braces do not match.
    """
    found = set()
    try:
        for _literal, name, spec, conversion in Formatter().parse(word):
            if name is None:
                continue
            if name not in known or spec or conversion:
                raise UsageError(
                    f"{what}: there is no placeholder {{{name}}} in {word!r}. Known are "
                    f"{', '.join('{' + k + '}' for k in known)}; write {{{{ and }}}} for braces themselves."
                )
            found.add(name)
    except ValueError as error:
        raise UsageError(f"{what}: {error} in {word!r}; write {{{{ and }}}} for braces themselves.") from None
    return frozenset(found)


def fill(word: str, values: Mapping[str, str]) -> str:
    """Fill a word that `words` has checked; a value is never looked at for placeholders itself."""
    return "".join(
        literal + ("" if name is None else values[name]) for literal, name, _, _ in Formatter().parse(word)
    )
