"""Writes and reads ``results.json``, and the files of rows that grow as verdicts come."""

from __future__ import annotations

import json
from collections import defaultdict
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from .. import __version__
from ..core.errors import InfraError, UsageError
from ..core.model import IDENTITY, Key, ReviewRecord, Verdict
from ..core.records import from_row, to_row
from ..core.report import Report
from ..evaluation.run_record import of_lock_file
from ..statistics.bootstrap import METHOD as AGREEMENT_METHOD
from ..statistics.intervals import LEVEL, METHOD
from ..statistics.results import Results, parted_row, reviews_of
from ..statistics.score import latest
from ..text import plainjson
from ..text.plainjson import plain
from ..text.printable import printable
from ..text.secrets import scrubbed_value
from .schema import NAME, VERSION, NotRun, ResultsFile, Unmeasured, summary_json

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from ..statistics.gate import Decision


#: What reviews are sorted by.
_PLACE = attrgetter("dataset", "instance", "arm", "repeat")


def document(results: Results, decision: Decision | None) -> dict[str, Any]:
    """Return the content of ``results.json`` as plain JSON.

    Every verdict and every planned key without one is in it, of any scoring and arm. ``summary`` is that of
    the run's first scoring, ``summaries`` has all.
    """
    summaries = [summary_json(summary) for summary in results.summaries]
    found = latest(results.verdicts)
    reviews = reviews_of(verdict.review for verdict in found.values() if verdict.review is not None)
    absent = sorted(key for key in results.planned if key not in found)
    return {
        "schema": NAME,
        "schema_version": VERSION,
        "crbench": __version__,
        "run": to_row(results.run),
        "summary": summaries[0],
        "summaries": summaries,
        "gate": None if decision is None else plain(decision.to_json()),
        "interval": {"method": METHOD, "agreement_method": AGREEMENT_METHOD, "level": LEVEL},
        "reviews": [to_row(review) for review in sorted(reviews.values(), key=_PLACE)],
        "verdicts": [to_row(verdict) for verdict in found.values()],
        "not_run": [to_row(NotRun(**vars(key), facets=results.planned[key])) for key in absent],
        "unmeasured": unmeasured_json(results),
    }


def unmeasured_json(results: Results) -> list[dict[str, Any]]:
    """Return every selected check that has no measurement, with what is known of why."""
    found = latest(results.verdicts)
    told = [
        Unmeasured(**vars(v.key), status=v.status, cause=v.cause, reason=v.reason, log=v.log)
        for v in found.values()
        if not v.status.measured
    ]
    told += [
        Unmeasured(**vars(key), status="not_run", cause="", reason="", log=None)
        for key in results.planned
        if key not in found
    ]
    return [to_row(one) for one in sorted(told)]


class JsonReport(Report):
    """``results.json``: everything (docs/results-format.md)."""

    file = "results.json"

    def content(self, results: Results, decision: Decision | None, run: Path) -> dict[str, Any]:
        """Return `document`."""
        return document(results, decision)


REPORT = JsonReport()


def load_results(path: Path) -> Results:
    """Read a ``results.json``, or the one in a run's folder.

    Raises:
        UsageError: no such file, not one of ours, of a newer version, broken, or with two rows of one
            check; names file and key.
    """
    file = path / "results.json" if path.is_dir() else path
    content = _parse(file)
    _check_version(file, content)
    content = _upgraded(content)
    reviews = _reviews(content.get("reviews"), f"{file}, reviews")
    found = from_row(ResultsFile, content, str(file), by_id=reviews)
    planned: dict[Key, Mapping[str, str]] = {}
    rows: dict[str, Sequence[Verdict | NotRun]] = {"verdicts": found.verdicts, "not_run": found.not_run}
    for name, part in rows.items():
        for place, row in enumerate(part):
            key = Key(*(getattr(row, one) for one in IDENTITY))
            if key in planned:
                said = f"{key.dataset}::{key.instance}::{key.check} ({key.scoring}, repeat {key.repeat})"
                raise UsageError(
                    f"{file}, {name}[{place}]: a second row for {printable(said)}; a check counts "
                    "once. Use the file as a run wrote it."
                )
            planned[key] = row.facets
    return Results(
        run=found.run,
        verdicts=tuple(found.verdicts),
        planned=planned,
        source=str(file),
    )


def _upgraded(content: dict[str, Any]) -> dict[str, Any]:
    """Return the content of a file of any version as this version has it.

    In version 1 the inputs of the run are beside it, as they were in its lock file, and what is known of a
    review is in each of its rows.
    """
    run, lock = content.get("run"), content.get("lock")
    if content["schema_version"] == 1 and isinstance(run, dict):
        inputs = of_lock_file(lock) if isinstance(lock, dict) else None
        content = {**content, "run": {**run, "inputs": inputs}}
    rows = content.get("verdicts")
    if content["schema_version"] == 1 and isinstance(rows, list):
        parted = [parted_row(row) for row in rows]
        reviews = [review for _, review in parted if review is not None]
        content = {**content, "verdicts": [row for row, _ in parted], "reviews": reviews}
    return {**content, "schema_version": VERSION}


def _reviews(rows: Any, where: str) -> dict[str, ReviewRecord]:
    """The records of reviews by their id; nothing of what is no list, which is told later."""
    known = enumerate(rows if isinstance(rows, list) else ())
    return reviews_of(from_row(ReviewRecord, row, f"{where}[{place}]") for place, row in known)


def append_row(path: Path, record: Verdict | ReviewRecord) -> None:
    """Append one record to a file of a row each; the torn last line of a killed run is dropped first.

    Only one process may append to a file.

    Raises:
        InfraError: if it cannot be written.
    """
    line = json.dumps(scrubbed_value(to_row(record)), ensure_ascii=False).encode() + b"\n"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a+b") as stream:
            _drop_torn_line(stream)
            stream.write(line)
    except OSError as error:
        raise InfraError(
            f"cannot append to {path}: {error.strerror}. Free some space or choose another "
            "--crbench-run-dir; what was written before is kept.",
            reason="disk",
        ) from error


def read_rows(path: Path) -> list[Verdict]:
    """Read ``results.jsonl``, in the order written, and ``reviews.jsonl`` beside it.

    Raises:
        UsageError: no such file, or a broken line that is not the last.
    """
    file = path.with_name("reviews.jsonl")
    rows = [(where, *parted_row(line)) for where, line in _lines(path)]
    told = [*(_lines(file) if file.exists() else ()), *((w, review) for w, _, review in rows if review)]
    known = reviews_of(from_row(ReviewRecord, review, where) for where, review in told)
    # A row that could not be written is not known.
    reviews: Mapping[str, ReviewRecord | None] = defaultdict(lambda: None, known)
    return [from_row(Verdict, row, where, by_id=reviews) for where, row, _ in rows]


def _lines(path: Path) -> Iterator[tuple[str, Any]]:
    """Yield each line's place and value; a torn last line is left out."""
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            yield f"{path}, line {number}", plain(plainjson.parse(line))
        except ValueError as error:
            if number == len(lines):
                break
            raise UsageError(f"{path}, line {number}: not JSON ({error}). Remove the line.") from error


def _parse(file: Path) -> dict[str, Any]:
    try:
        # Nothing that a terminal, a pipe or a report could not take.
        content = plain(plainjson.parse(file.read_bytes()))
    except OSError as error:
        raise UsageError(
            f"cannot read {file}: {error.strerror}. Name a results.json or its folder."
        ) from error
    except ValueError as error:
        raise UsageError(f"{file}: not JSON ({error}). Name a results.json that a run wrote.") from error
    if not isinstance(content, dict) or content.get("schema") != NAME:
        found = content.get("schema") if isinstance(content, dict) else type(content).__name__
        raise UsageError(
            f"{file}, key 'schema': expected {NAME!r}, found {printable(repr(found), 80)}: not a "
            "results.json of ours"
        )
    return content


def _check_version(file: Path, content: dict[str, Any]) -> None:
    version = content.get("schema_version")
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        found = printable(repr(version), 80)
        raise UsageError(f"{file}, key 'schema_version': expected {VERSION}, found {found}")
    if version > VERSION:
        raise UsageError(
            f"{file}, key 'schema_version': {printable(str(version), 40)}, but this pytest-crbench "
            f"({__version__}) reads up to {VERSION}; the file was written by "
            f"{printable(repr(content.get('crbench')), 80)}. Upgrade to read it."
        )


def _drop_torn_line(stream: Any) -> None:
    """Cut what follows the last line end of a file opened for appending and reading."""
    end = stream.seek(0, 2)
    if end == 0:
        return
    stream.seek(end - 1)
    if stream.read(1) == b"\n":
        return
    stream.seek(0)
    whole = stream.read()
    stream.truncate(whole.rfind(b"\n") + 1)
