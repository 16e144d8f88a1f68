"""A reviewer that asks a model about one hunk at a time, with what was looked up for it or without."""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Any

from ...core.errors import InfraError, ReviewerError, StageError
from ...core.model import added
from ...host.eviction import cache_items, with_room
from ...host.files import write_json
from ...host.pool import Pool
from ...models import prompts
from ...models.adapting import Adapting
from ...models.load import price_of
from ...models.retrieval.index import open_index, settings_of
from ...text.diffs import DiffMap
from ...text.hunks import hunks
from ...text.printable import printable
from ...text.secrets import scrub, scrubbed
from ..formats import ParseContext, Parsed, Remark, Unreadable, tagged
from ..formats.draft import draft, side_of, take_suggestion
from ..reading import pristine, review_of
from . import prompt
from .prompt import locate

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ...core.model import Review, ReviewComment
    from ...core.reviewer import ReviewTask
    from ...core.settings import Settings
    from ...models.client import Model
    from ...models.completion import Completion
    from ...models.retrieval.index import Found, Index, Method
    from ...models.usage import Meter
    from ...text.hunks import Hunk

#: Raised when the same answers would become other comments, or the same pull request other questions.
_VERSION = 2
#: Questions of one review that are under way at the same time.
CONCURRENCY = 4
RECORD = "review.answers.json"
_WARNINGS = 20
_CUT_OFF = {
    "length": "the answer was cut off because it was too long",
    "content_filter": "the answer was withheld by a filter",
    "no-choices": "no answer arrived",
}


@dataclass
class _Asked:
    """One hunk, and what came of asking about it; ``shared`` are remarks on the endpoint, not on the hunk."""

    hunk: Hunk
    snippets: Sequence[Found] = ()
    answer: Completion | None = None
    usage: Mapping[str, float] = field(default_factory=dict)
    shared: tuple[str, ...] = ()
    blocks: tuple[Mapping[str, str], ...] = ()
    unreadable: str = ""
    remarks: list[Remark] = field(default_factory=list)

    @property
    def place(self) -> str:
        return f"{printable(self.hunk.path, 120)} {self.hunk.header}"

    def record(self) -> dict[str, Any]:
        """Plain JSON for those who want to see what was asked and answered."""
        answer = self.answer
        return {
            "path": self.hunk.path,
            "hunk": self.hunk.header,
            "snippets": [[s.path, *s.lines, round(s.score, 6)] for s in self.snippets],
            "answer": answer.text if answer else None,
            "finish_reason": answer.finish_reason if answer else None,
            "usage": dict(self.usage),
            "unreadable": self.unreadable,
            "warnings": [remark.text for remark in self.remarks],
        }


class HunkReviewer:
    """Asks about each hunk: title, description, the hunk, and what ``method`` finds for it in head.

    ``meter`` counts what ``method`` uses.
    """

    shareable = False  # its answers are shared already, one by one

    def __init__(
        self, mode: str, settings: Settings, model: Model, method: Method | None, meter: Meter
    ) -> None:
        self.name = settings.reviewer_name or f"llm:{mode}"
        self.settings = settings
        self.model = Adapting(model)
        self.price = price_of(settings)
        self.timeout = settings.reviewer_timeout
        self.method = method
        self.meter = meter
        self.fingerprint: Mapping[str, Any] = {
            "kind": "llm",
            "mode": mode,
            **model.identity,
            "version": _VERSION,
            "prompts": prompts.digest_of(*prompt.HUNK_TEMPLATES),
            "timeout": self.timeout,
            **(
                {"snippets": settings.reviewer_snippets, "index": settings_of(method)}
                if method is not None
                else {}
            ),
        }

    def review(self, task: ReviewTask) -> Review:
        """Review one pull request.

        Raises:
            ReviewerError: ``unreadable`` if no answer about any hunk could be read, ``timeout``.
            InfraError: if the endpoint, the run's budget or the disk failed.
        """
        if task.head is None:
            raise InfraError(
                f"{self.name} looks at the code, and there is none without a repository; leave "
                "--crbench-offline out",
                reason="no-repository",
            )
        work = _Work(self, task)
        with work.accounted():
            asked, notes = work.run()
            return self._read(task, asked, notes, work)

    def _read(self, task: ReviewTask, asked: list[_Asked], notes: tuple[str, ...], work: _Work) -> Review:
        unreadable = [one for one in asked if one.unreadable]
        if asked and len(unreadable) == len(asked):
            raise ReviewerError(
                f"none of the model's {len(asked)} answers can be read; the first: {unreadable[0].place}: "
                f"{unreadable[0].unreadable}. See {RECORD} in {task.directory}.",
                reason="unreadable",
            )
        diff = DiffMap(task.diff)
        remarks = (*_remarks(asked), *map(Remark, notes))
        with pristine(task) as head:
            context = ParseContext(None, head, diff.removed)
            comments = tuple(_comment(context, one.hunk, block) for one in asked for block in one.blocks)
            review = review_of(
                Parsed(comments, remarks, usage=work.used),
                task=task,
                diff=diff,
                head=head,
                reviewer=self.name,
                raw_name=RECORD,
                duration=time.monotonic() - work.began,
            )
        own, others = review.warnings[: len(remarks)], review.warnings[len(remarks) :]
        more = len(own) - _WARNINGS
        few = (*own[:_WARNINGS], *([f"and {more} more such remarks, in {RECORD}"] if more > 0 else []))
        return replace(review, warnings=(*few, *others))


class _Work:
    """One review in the making."""

    def __init__(self, reviewer: HunkReviewer, task: ReviewTask) -> None:
        self.reviewer = reviewer
        self.task = task
        self.began = self.asking = time.monotonic()
        self.usage: dict[str, float] = {}
        self.before = reviewer.meter.usage
        self.lost = 0.0
        self.answers = 0
        self.lock = Lock()

    @contextmanager
    def accounted(self) -> Iterator[None]:
        """Say what was used up also of a review that failed."""
        try:
            yield
        except StageError as error:
            error.usage = added(self.used, error.usage)
            raise

    @property
    def used(self) -> dict[str, float]:
        """What was used up so far; calls and tokens of embeddings stand beside those of the model."""
        now, before = self.reviewer.meter.usage, self.before
        calls, tokens = now.calls - before.calls, now.tokens - before.tokens
        return added(self.usage, {"embedding_calls": calls, "embedding_tokens": tokens} if calls else {})

    def run(self) -> tuple[list[_Asked], tuple[str, ...]]:
        """Ask about every hunk; returns what came of it in the diff's order, and notes."""
        found, notes = hunks(self.task.diff)
        asked = [_Asked(hunk) for hunk in found]
        self.task.log(f"review: hunks to ask about: {len(asked)}")
        index = self._index() if asked else None
        # An index is made once per tree: which review meets that must not decide whether it is in time.
        self.asking = time.monotonic()
        try:
            with Pool(CONCURRENCY) as pool:
                for future in [pool.submit(self._one, one, index) for one in asked]:
                    future.result()
        finally:
            write_json(self.task.directory / RECORD, [one.record() for one in asked])
        return asked, (*notes, *(index.notes if index else ()))

    def _index(self) -> Index | None:
        method, cache = self.reviewer.method, self.reviewer.settings.cache
        if method is None or not self.reviewer.settings.reviewer_snippets:
            return None
        assert self.task.head is not None
        make = partial(open_index, self.task.head, method, cache=cache, log=self.task.log)
        return with_room(make, partial(cache_items, cache), self.task.log)

    def _one(self, one: _Asked, index: Index | None) -> None:
        if index is not None:
            own = (one.hunk.right[0][0], one.hunk.right[-1][0]) if one.hunk.right else None
            without = (one.hunk.new, own) if one.hunk.new and own else None
            looked = time.monotonic()
            count = self.reviewer.settings.reviewer_snippets
            one.snippets = index.find(f"{one.hunk.path}\n{one.hunk.changed}", count, without)
            with self.lock:
                self.lost += time.monotonic() - looked
        one.answer = self._ask(one)
        if one.answer is None:
            one.unreadable = "hunk and question are longer than what the model can read"
            return
        one.remarks += map(Remark, one.shared)
        said = _CUT_OFF.get(one.answer.finish_reason)
        if said:
            one.remarks.append(Remark(said, "answer-cut-off"))
        if len(one.hunk.text) > prompt.HUNK_LIMIT:
            one.remarks.append(Remark("the hunk is so long that its middle was not shown", "hunk-shortened"))
        try:
            read = tagged.read(one.answer.text, tagged.HUNK_FIELDS)
        except Unreadable as error:
            one.unreadable = str(error)
            return
        one.blocks = read.blocks
        one.remarks += read.remarks

    def _ask(self, one: _Asked) -> Completion | None:
        """Ask about a hunk; without snippets if it is too long with them; None if it is too long anyway."""
        try:
            return self._within_time(one)
        except InfraError as error:
            if error.reason != "context-length":
                raise
        if not one.snippets:
            return None
        one.snippets = ()
        one.remarks.append(Remark("too long for the model with snippets: asked without them", "no-snippets"))
        return self._ask(one)

    def _within_time(self, one: _Asked) -> Completion:
        messages = prompt.hunk_messages(self.task.pull_request, one.hunk, one.snippets)
        deadline = self.asking + self.reviewer.timeout + self.lost
        try:
            if time.monotonic() >= deadline:
                raise self._late()
            answer = self.reviewer.model.complete(
                messages, deadline=deadline, cache_key_extra={"repeat": self.task.repeat}
            )
        except InfraError as error:
            # An endpoint that never answered, or hangs before the time is up, is not a reviewer that is slow.
            if error.reason != "timeout" or not self.answers or time.monotonic() < deadline:
                raise
            raise self._late() from error
        one.shared = self.reviewer.model.warnings
        one.usage = self._counted(answer)
        with self.lock:
            self.answers += 1
            self.lost += answer.lost
            self.usage = added(self.usage, one.usage)
        # Before it is read: what is kept of a review is what was read.
        return replace(answer, text=scrubbed(scrub(answer.text, self.reviewer.model.secrets)))

    def _counted(self, answer: Completion) -> dict[str, float]:
        usage: dict[str, float] = dict(answer.usage.as_dict())
        if (price := self.reviewer.price) is not None:
            usage["cost"] = round(price.cost(answer.usage), 6)
            usage["cost_asked"] = 0.0 if answer.usage.calls_from_cache else usage["cost"]
        return usage

    def _late(self) -> ReviewerError:
        return ReviewerError(
            f"{self.reviewer.name} was not done within {self.reviewer.timeout:g} s, after {self.answers} "
            "answers; raise --crbench-reviewer-timeout",
            reason="timeout",
        )


def _comment(context: ParseContext, hunk: Hunk, block: Mapping[str, str]) -> ReviewComment:
    named = block.get("side")
    side, flags = side_of(named) if named is not None else ("right", ("side-unknown",))
    lines, why = locate(block["diff"], hunk, side)
    body, suggestion, more = take_suggestion(block["note"])
    return draft(
        context,
        body=body,
        # Base speaks of a renamed file by its old name.
        path=hunk.old if side == "left" and hunk.old else hunk.path,
        start=lines[0] if lines else None,
        end=lines[1] if lines else None,
        side=side,
        suggestion=suggestion,
        flags=(*flags, *more, *([why] if why else [])),
    )


def _remarks(asked: list[_Asked]) -> list[Remark]:
    found = []
    for one in asked:
        unread = [Remark(f"not read: {one.unreadable}", "unread-answer")] if one.unreadable else []
        own = [remark for remark in one.remarks if remark.text not in one.shared] + unread
        found += [remark._replace(text=f"{one.place}: {remark.text}") for remark in own]
    # What holds for the endpoint, not for a hunk, is said once.
    shared = dict.fromkeys(w for one in asked for w in one.shared)
    return [*map(Remark, shared), *found]
