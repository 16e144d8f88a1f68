"""An agent that ends with exit status 0 and has changed nothing: whether its output says that it failed.

Several agents exit with 0 although their endpoint refused them (aider at a 401, for example).
"""

from __future__ import annotations

import re

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
