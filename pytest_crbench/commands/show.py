"""``crbench show RUN [CHECK]``: the checks of a run, or why one of them was missed."""

from __future__ import annotations

import re
import sys
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.errors import CrbenchError, StageError, UsageError
from ..core.scoring import SCORINGS, scoring_of
from ..core.settings import Settings
from ..evaluation import records
from ..text.printable import harmless, inert, printable

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from ..core.model import Check, Instance, Review, ReviewComment, Verdict

#: Lines of a diff, a log or a comment that are printed; the file is named with the rest.
_LINES = 80
#: Comments of the review that are printed.
_NEAR = 5
_RULE = re.compile(r"^_{3,} .+ _{3,}$|^=+ .* =+$", re.MULTILINE)


def add_parser(subparsers: Any) -> argparse.ArgumentParser:
    """Add the subcommand; ``run`` is its default ``run``."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "show",
        help="list the checks of a run, or show why one was missed",
        description="Without CHECK, list the checks of a run with their statuses and reasons. With it, show "
        "the reference comment, the review's comments on the same file, the revision, the output of the "
        "hidden test, and where the files are. Exit status: 0 shown, 2 no such run or check.",
    )
    parser.add_argument("folder", metavar="RUN", help="folder of a run, its name in .crbench/runs, or latest")
    parser.add_argument(
        "check", metavar="CHECK", nargs="?", help="a check: small::first::tax, first::tax or tax"
    )
    parser.set_defaults(run=run)
    return parser


def run(args: argparse.Namespace) -> int:
    """Print the list or the check; the exit status."""
    try:
        place = _place(args.folder)
        verdicts = _verdicts(place)
        lines = list(_list(place, verdicts) if args.check is None else _show(place, verdicts, args.check))
    except CrbenchError as error:
        print(f"crbench show: {error}", file=sys.stderr)
        return 2
    print("\n".join(lines))
    return 0


def _place(name: str) -> Path:
    from ..run.rundir import find_run

    path = Path(name)
    if path.name in ("results.json", "run.json", "summary.md"):
        path = path.parent
    return path if (path / "run.json").is_file() else find_run(Path(".crbench", "runs"), name)


def _verdicts(place: Path) -> list[Verdict]:
    """The verdicts of a run, also of one that has not ended."""
    from ..reports.results import load_results, read_rows
    from ..statistics.score import latest

    whole = (place / "results.json").is_file()
    return list(
        latest(load_results(place).verdicts if whole else read_rows(place / "results.jsonl")).values()
    )


def _list(place: Path, verdicts: list[Verdict]) -> Iterator[str]:
    width = max((len(_title(one)) for one in verdicts), default=0)
    for one in verdicts:
        yield f"{one.status.value:<14}  {_title(one):<{width}}  {printable(one.reason, 200)}".rstrip()
    yield f"{len(verdicts)} verdicts; more of one: crbench show {printable(str(place))} CHECK"


def _title(verdict: Verdict) -> str:
    from ..reports.lines import ident

    first = verdict.key.scoring == SCORINGS.names()[0]
    return ident(verdict.key) + ("" if first else f" ({verdict.key.scoring})")


def _show(place: Path, verdicts: list[Verdict], wanted: str) -> Iterator[str]:
    name = "::" + wanted.partition("[")[0]
    found = [v for v in verdicts if f"::{v.key.dataset}::{v.key.instance}::{v.key.check}".endswith(name)]
    checks = sorted({f"{v.key.dataset}::{v.key.instance}::{v.key.check}" for v in found})
    if len(checks) != 1:
        said = f"is ambiguous: {', '.join(checks[:5])}" if checks else "is no check with a verdict"
        raise UsageError(f"{wanted} {said}; `crbench show {place}` lists them")
    for verdict in found:
        yield from (f"{_title(verdict)}: {verdict.status.value}", *_text(verdict.reason))
        folder = _folder(place, verdict)
        instance, check = _reference(place, verdict)
        yield from _comment(check)
        review = _review(folder, place)
        yield from _said(review, check)
        if scoring_of(verdict.key.scoring).needs_agent:
            yield from _tested(folder, place, verdict)
        elif verdict.matching:
            yield from _matched(verdict)
        yield from _files(folder, place, verdict, instance)


def _folder(place: Path, verdict: Verdict) -> Path:
    key = verdict.key
    return place / "evaluations" / key.dataset / key.instance / f"{key.arm}-{key.repeat}"


def _recorded(file: Path, place: Path) -> tuple[Any, Path]:
    """A stage's record and the folder it is in: the run's, or that of the run which it replays."""
    from ..evaluation.run_record import read_run

    replayed = read_run(place).replay_of
    if not file.is_file() and replayed:
        file = place.parent / replayed / file.relative_to(place)
    return records.recorded(file), file.parent


def _reference(place: Path, verdict: Verdict) -> tuple[Instance | None, Check | str]:
    """The check as its dataset has it, or why that cannot be said."""
    from ..datasets import open_dataset
    from ..run.rundir import recorded_options

    for spec in recorded_options(place).get("dataset") or Settings().datasets:
        try:
            dataset = open_dataset(str(spec))
        except CrbenchError as error:
            return None, str(error)
        for instance in dataset.instances if dataset.name == verdict.key.dataset else ():
            for check in instance.checks if instance.id == verdict.key.instance else ():
                if check.id == verdict.key.check:
                    same = check.digest == verdict.check_digest
                    return instance, check if same else "the dataset has changed since the run"
    return None, "the run's dataset is not here"


def _comment(check: Check | str) -> Iterator[str]:
    if isinstance(check, str):
        yield from ("", "reference comment: unknown", *_text(check))
    else:
        yield from ("", f"reference comment, {_where(check.comment)}", *_text(check.comment.body))


def _review(folder: Path, place: Path) -> Review | str:
    try:
        return records.review_from(_recorded(folder / "review.json", place)[0])
    except StageError as error:
        return f"{error.status.value}: {error}"


def _said(review: Review | str, check: Check | str) -> Iterator[str]:
    """The review's comments on the file of the reference, nearest first."""
    from ..text.printable import many

    if isinstance(review, str):
        yield from ("", "review: there is none", *_text(review))
        return
    reference = None if isinstance(check, str) else check.comment
    near = [c for c in review.comments if reference is None or c.path == reference.path]
    near.sort(key=lambda comment: _distance(comment, reference))
    where = f", {len(near)} on {printable(str(reference.path))}" if reference is not None else ""
    yield from ("", f"review by {printable(review.reviewer)}: {many(len(review.comments), 'comment')}{where}")
    for comment in near[:_NEAR]:
        yield f"    {_where(comment)}{' (with a suggestion)' if comment.suggestion is not None else ''}"
        yield from _text(comment.body, 10, "        ")
    if len(near) > _NEAR:
        yield f"    ... and {len(near) - _NEAR} more"


def _distance(comment: ReviewComment, reference: ReviewComment | None) -> int:
    if reference is None or reference.lines is None or comment.lines is None:
        return 0
    (first, last), (start, end) = comment.lines, reference.lines
    return max(start - last, first - end, 0)


def _where(comment: ReviewComment) -> str:
    first, last = comment.lines or (0, 0)
    lines = "" if comment.lines is None else f":{first}" if first == last else f":{first}-{last}"
    side = " (removed side)" if comment.side == "left" else ""
    return printable(f"{comment.path or 'the pull request as a whole'}{lines}{side}")


def _matched(verdict: Verdict) -> Iterator[str]:
    found = verdict.matching
    yield ""
    if found.get("comment") is None:
        yield f"matching: no comment was assigned to it; {found.get('near', 0)} are near its place"
    else:
        distance = found.get("distance")
        yield printable(f"matching: comment {found['comment']} was assigned to it, {distance} lines away")


def _tested(folder: Path, place: Path, verdict: Verdict) -> Iterator[str]:
    try:
        made, where = _recorded(folder / "revision.json", place)
        revision = records.revision_from(made, where)
    except StageError as error:
        yield from ("", "revision: there is none", *_text(f"{error.status.value}: {error}"))
    else:
        size = f"{len(revision.patch)} bytes" if revision.patch else "nothing was changed"
        stopped = f"revision by {revision.agent} ({revision.stop_reason}): {size}"
        yield from ("", printable(stopped), *_text(revision.patch.decode("utf-8", "replace")))
    log = folder / "checks" / f"{verdict.key.check}.log"
    if not log.is_file():
        yield from ("", "hidden test: it did not run")
        return
    text, legend = _of_hidden_test(log.read_text("utf-8", "replace"))
    yield from ("", "hidden test, after the revision", *_text(text), *_text(legend))


def _of_hidden_test(log: str) -> tuple[str, str]:
    """What a log says of the hidden test, without its canaries; and its last lines, which tell them apart."""
    output, found, legend = log.rpartition("\n\ncrbench: ")
    name = re.search(r"hidden test (\S+\.py): ", legend)
    if not found or name is None:
        return log, ""
    marks = [*(mark.start() for mark in _RULE.finditer(output)), len(output)]
    parts = [output[start:end] for start, end in pairwise(marks)]
    failures = [part for part in parts if part.startswith("_") and f"{name[1]}:" in part]
    whole = "short test summary" not in output and "passed" not in output
    return "".join(failures) or (output if whole else ""), "crbench: " + legend


def _files(folder: Path, place: Path, verdict: Verdict, instance: Instance | None) -> Iterator[str]:
    yield from ("", "files")
    log = [place / verdict.log] if verdict.log else []
    checks = sorted((folder / "checks").glob(f"{verdict.key.check}.*"))
    kept = sorted(one for one in folder.glob("*") if one.is_file())
    dataset = [instance.path] if instance is not None and instance.path is not None else []
    yield from (f"    {printable(str(one))}" for one in (*log, *kept, *checks, *dataset) if one.exists())
    yield ""


def _text(text: str, limit: int = _LINES, indent: str = "    ") -> Iterator[str]:
    """Foreign text as indented lines, made harmless; its head and tail where it is long."""
    lines = [(indent + inert(harmless(line))).rstrip() for line in text.strip("\n").splitlines()]
    if len(lines) > limit:
        half = limit // 2
        gap = f"{indent}... {len(lines) - 2 * half} lines left out ..."
        lines = [*lines[:half], gap, *lines[-half:]]
    yield from lines
