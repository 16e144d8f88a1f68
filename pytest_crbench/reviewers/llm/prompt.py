"""What a model is told about one hunk, or about a whole pull request that it looks at itself."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Any

from ...models import prompts
from ...text.diffs import clip_diff
from ...text.fences import clip, fence, tags, visible
from ...text.printable import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from ...core.model import PullRequest, Side
    from ...models.retrieval.index import Found
    from ...text.hunks import Hunk

HUNK_TEMPLATES = ("reviewer_hunk_system", "reviewer_hunk")
AGENT_TEMPLATES = ("reviewer_agent_system", "reviewer_agent")
#: Characters of a prompt's parts; of a longer one the middle is left out.
HUNK_LIMIT = 60_000
_SNIPPET_LIMIT = 6_000
_TITLE_LIMIT = 500
_DESCRIPTION_LIMIT = 20_000
_OWN = tags(
    "pull_request_title",
    "pull_request_description",
    "pull_request_diff",
    "pull_request_files",
    "hunk",
    "snippet",
)


def hunk_messages(pull_request: PullRequest, hunk: Hunk, snippets: Sequence[Found]) -> list[dict[str, Any]]:
    """Return the question about one hunk, in OpenAI's format."""
    renamed = hunk.old if hunk.old and hunk.new and hunk.old != hunk.new else None
    question = prompts.render(
        "reviewer_hunk",
        **_said(pull_request),
        path=_named(hunk.path),
        renamed_from=_named(renamed) if renamed else None,
        hunk=fence(clip(hunk.text, HUNK_LIMIT), _OWN),
        snippets=[
            {
                "path": _named(snippet.path),
                "first": snippet.lines[0],
                "last": snippet.lines[1],
                "text": fence(clip(snippet.text, _SNIPPET_LIMIT), _OWN),
            }
            for snippet in snippets
        ],
    )
    return [
        {"role": "system", "content": prompts.render("reviewer_hunk_system")},
        {"role": "user", "content": question},
    ]


def agent_messages(
    pull_request: PullRequest, *, command_timeout: float, output_limit: int, file: str, diff_file: str
) -> list[dict[str, Any]]:
    """Return the opening of a conversation in which a model reviews the repository that it looks at.

    ``file`` and ``diff_file`` are paths as its commands see them: where its review goes, and the whole diff.
    """
    rules = prompts.render(
        "reviewer_agent_system",
        command_timeout=f"{command_timeout:g}",
        output_limit=f"{output_limit:,}",
        file=file,
    )
    shown, left_out = clip_diff(pull_request.diff, [])
    opening = prompts.render(
        "reviewer_agent",
        **_said(pull_request),
        diff=fence(shown, _OWN),
        left_out=[fence(printable(path), _OWN) for path in left_out],
        diff_file=diff_file,
    )
    return [{"role": "system", "content": rules}, {"role": "user", "content": opening}]


def _named(path: str) -> str:
    """A path as the value of an attribute: others chose it, and it can be a sentence."""
    return fence(printable(path), _OWN).replace('"', "&quot;")


def _said(pull_request: PullRequest) -> dict[str, str]:
    return {
        "title": fence(printable(pull_request.title, _TITLE_LIMIT), _OWN),
        "description": fence(clip(pull_request.body.strip(), _DESCRIPTION_LIMIT), _OWN),
    }


NOT_FOUND, AMBIGUOUS = "snippet-not-found", "snippet-ambiguous"
Lines = tuple[int, int]


def locate(quoted: str, hunk: Hunk, side: Side) -> tuple[Lines | None, str]:
    """Return first and last line of ``quoted`` on ``side`` of the hunk, or None and why (a flag).

    The quotation may be lines of the diff, with their markers (those of the other side do not count then), or
    plain code. It is looked for as it is first; then white space within lines, and blank lines, do not count;
    then the same with HTML's escapes undone. The first way that finds anything decides: one place is the
    answer, several are ambiguous.
    """
    shown = hunk.left if side == "left" else hunk.right
    ways = [(quoted, _as_it_is), (quoted, _squeezed)]
    plain = html.unescape(quoted)
    if plain != quoted:
        ways.append((plain, _squeezed))
    ways.append((plain, _as_shown))
    for text, way in ways:
        found = _places(text.split("\n"), shown, side, way)
        if len(found) == 1:
            return found.pop(), ""
        if found:
            return None, AMBIGUOUS
    return None, NOT_FOUND


def _places(
    quoted: Sequence[str],
    shown: Sequence[tuple[int, str]],
    side: Side,
    way: Callable[[Iterable[tuple[int, str]]], list[tuple[int, str]]],
) -> set[Lines]:
    where = way(shown)
    found: set[Lines] = set()
    for form in (_of_diff(quoted, side), list(quoted)):
        wanted = [text for _, text in way(enumerate(form or ()))]
        if not any(text.strip() for text in wanted):
            continue
        found |= {
            (where[at][0], where[at + len(wanted) - 1][0])
            for at in range(len(where) - len(wanted) + 1)
            if all(where[at + i][1] == text for i, text in enumerate(wanted))
        }
    return found


def _of_diff(quoted: Sequence[str], side: Side) -> list[str] | None:
    """Read a quotation as lines of a diff; None if it is none."""
    other = "+" if side == "left" else "-"
    lines = [line for line in quoted if not line.startswith("@@ ") and not line.startswith("\\ ")]
    if any(line[:1] not in ("", " ", "+", "-") for line in lines):
        return None
    return [line[1:] for line in lines if line[:1] != other]


def _as_it_is(lines: Iterable[tuple[int, str]]) -> list[tuple[int, str]]:
    return [(number, text.removesuffix("\r")) for number, text in lines]


def _as_shown(lines: Iterable[tuple[int, str]]) -> list[tuple[int, str]]:
    # Some models leave out the sign for a character that cannot be shown.
    return _squeezed((number, visible(text).replace("\ufffd", "")) for number, text in lines)


def _squeezed(lines: Iterable[tuple[int, str]]) -> list[tuple[int, str]]:
    squeezed = ((number, "".join(text.split())) for number, text in lines)
    return [(number, text) for number, text in squeezed if text]
