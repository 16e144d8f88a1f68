"""Foreign text in Markdown: shown as it is, never read as markup, HTML, a link or a mention."""

from __future__ import annotations

import re

from ..text.printable import printable

_MARKUP = re.compile(r"""[\\`*_{}\[\]<>()#|~!&@:$"'^=]""")


def escaped(text: str, limit: int = 300) -> str:
    """One line of text with every character that Markdown or HTML could read as a sign as an entity.

    CommonMark never takes an entity for structure, so this holds in table cells and link texts too.
    """
    return _MARKUP.sub(lambda found: f"&#{ord(found[0])};", printable(text, limit))


def code(text: str, limit: int = 300) -> str:
    """One line of text as a code span, for everywhere but table cells; "" stays ""."""
    line = printable(text, limit)
    if not line:
        return ""
    longest = max((len(run) for run in re.findall("`+", line)), default=0)
    fence = "`" * (longest + 1)
    space = " " if longest or line.startswith(" ") else ""
    return f"{fence}{space}{line}{space}{fence}"
