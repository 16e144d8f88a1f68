"""What a coding agent is told: the pull request, its diff and the comments of one review, and nothing else.

Titles, diffs and comments are untrusted text: they are fenced by tags that they cannot close.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..models import prompts
from ..text import fences
from ..text.diffs import clip_diff
from ..text.fences import clip
from ..text.printable import printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..core.model import PullRequest, ReviewComment

TEMPLATES = ("agent_system", "agent_instance", "agent_findings")
#: Characters of the prompt's parts. A longer diff loses whole files, a longer text its middle.
FINDINGS_LIMIT = 150_000
_FINDING_LIMIT = 8_000
_TITLE_LIMIT = 500
_DESCRIPTION_LIMIT = 20_000

_OWN = fences.tags(
    *("pull_request_title", "pull_request_description", "pull_request_diff", "pull_request_files"),
    "review_finding",
)


@dataclass(frozen=True)
class Finding:
    """A review comment as the prompt shows it: every field is safe to stand within the fence."""

    number: int
    place: str
    severity: str
    rule: str
    body: str
    suggestion: str | None


def digest() -> str:
    """Digest of the templates, part of the fingerprint of an agent that uses them."""
    return prompts.digest_of(*TEMPLATES)


def system(*, command_timeout: float, output_limit: int) -> str:
    """Return the system prompt."""
    return prompts.render(
        "agent_system", command_timeout=f"{command_timeout:g}", output_limit=f"{output_limit:,}"
    )


def instance(pull_request: PullRequest, comments: Sequence[ReviewComment]) -> str:
    """Return the first message: pull request, diff, findings and what to do."""
    shown, left_out = clip_diff(pull_request.diff, [c.path for c in comments if c.path])
    return prompts.render(
        "agent_instance",
        title=fence(printable(pull_request.title, _TITLE_LIMIT)),
        description=fence(clip(pull_request.body.strip(), _DESCRIPTION_LIMIT)),
        diff=fence(shown),
        left_out=[fence(printable(path)) for path in left_out],
        findings=_findings(comments),
    )


def findings(comments: Sequence[ReviewComment]) -> str:
    """Return the comments alone, as Markdown with a fence around each."""
    return prompts.render("agent_findings", findings=_findings(comments))


def fence(text: str) -> str:
    """Make untrusted text safe to stand between our tags: it can neither close nor open one."""
    return fences.fence(text, _OWN)


def _findings(comments: Sequence[ReviewComment]) -> list[Finding]:
    """All comments, in order; very many share the room that all have, but none is dropped."""
    limit = max(200, min(_FINDING_LIMIT, FINDINGS_LIMIT // max(len(comments), 1)))
    return [
        Finding(
            number=number,
            place=fence(printable(_place(comment))),
            severity=fence(printable(comment.severity or "", 60)),
            rule=fence(printable(comment.rule or "", 120)),
            body=fence(clip(comment.body.strip("\r\n"), limit)),
            suggestion=None if comment.suggestion is None else fence(clip(comment.suggestion, limit)),
        )
        for number, comment in enumerate(comments, 1)
    ]


def _place(comment: ReviewComment) -> str:
    if comment.path is None:
        return "the pull request as a whole"
    if comment.lines is None:
        return f"{comment.path} (the whole file)"
    first, last = comment.lines
    lines = f"line {first}" if first == last else f"lines {first}-{last}"
    side = "" if comment.side == "right" else ", numbered as before the change"
    return f"{comment.path}, {lines}{side}"
