# ruff: noqa: E501, PTH
"""Result files, lines of results, the record of a run, and what gates and reports make of them."""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path
from typing import Any

from support.records import inputs, review_record, run_record

from pytest_crbench.core.errors import InfraError, UsageError
from pytest_crbench.core.model import Key, Verdict
from pytest_crbench.core.records import from_row, to_row
from pytest_crbench.core.run_record import BaseInfo, EnvironmentInfo, Inputs
from pytest_crbench.core.status import Status
from pytest_crbench.evaluation.run_record import (
    check_replayable,
    check_same,
    note,
    read_inputs,
    read_run,
    write_run,
)
from pytest_crbench.reports.comparison import comparison_json, comparison_markdown, comparison_text
from pytest_crbench.reports.markdown import markdown
from pytest_crbench.reports.results import append_row, document, load_results, read_rows
from pytest_crbench.reports.table import table as lines_of
from pytest_crbench.run import rundir, settings
from pytest_crbench.statistics.compare import compare
from pytest_crbench.statistics.gate import decide, make_gate
from pytest_crbench.statistics.results import Results, again, parted_row
from pytest_crbench.text.plainjson import plain

from .shapes import altered, anything, json_text, mutated, sometimes, table, wild
from .source import Maker, Source, either, listed, one_of, text, whole
from .target import Target, refused


def targets() -> list[Target]:
    """Reading what a run wrote."""
    return [
        Target(
            "results-json",
            either(json_text(_document), json_text(altered([_sound()])), mutated([_bytes()])),
            _read,
            cost=4,
        ),
        Target("results-round-trip", listed(_verdict, 5), _round_trip, cost=4),
        Target("results-jsonl", either(_lines, mutated([_row_line()])), _read_lines),
        Target("result-row", sometimes(_row, 8, anything), _read_row),
        Target(
            "run-json",
            either(json_text(_record), mutated([_run_bytes()]), json_text(anything)),
            _read_record,
            cost=2,
        ),
    ]


_NAME = either(one_of("a", "b", "c"), text)
_NUMBER = sometimes(whole(0, 99), 5)
_SOUND_INSTANCE = {"digest": "0", "pull_request": "0", "checks": {"c": "0"}, "environment": "e"}


def _row(source: Source) -> Any:
    maker = table(
        {
            "dataset": _NAME, "instance": _NAME, "check": _NAME, "scoring": one_of("tests", "x"), "repeat": whole(1, 3),
            "arm": one_of("review", "human"), "status": one_of(*Status), "reason": text,
            "facets": table({"kind": _NAME, "category": _NAME, "dataset": text}), "check_digest": one_of("0", "1"),
            "keys": table({"review": text}), "environment": one_of(None, "e"), "sandbox": one_of("docker", "local", None),
            "durations": table({"review": _NUMBER, "tests": _NUMBER}),
            "usage": table({"review": table({"prompt_tokens": _NUMBER, "cost": _NUMBER}), "revision": table({"cost": _NUMBER})}),
            "review": either(one_of(None, "a/b/review-1", "x"), table({"reviewer": text, "comments": _NUMBER, "outside_diff": _NUMBER, "duplicates": _NUMBER})),
            "warnings": listed(text, 2), "log": text,
        },
        40,
    )  # fmt: skip
    return maker(source)


def _review(source: Source) -> Any:
    maker = table(
        {
            "dataset": _NAME, "instance": _NAME, "repeat": whole(1, 3), "arm": one_of("review", "human"), "id": one_of("a/b/review-1", "x"),
            "reviewer": text, "comments": _NUMBER, "noted": table({"skipped": _NUMBER}), "stop_reason": text,
            "durations": table({"review": _NUMBER}), "usage": table({"review": table({"cost": _NUMBER})}),
            "counts": table({"matching": table({"matched": _NUMBER, "comments": _NUMBER})}),
        },
        40,
    )  # fmt: skip
    return maker(source)


def _document(source: Source) -> Any:
    part = table({"name": text, "fingerprint": anything}, 30)
    maker = table(
        {
            "verdicts": listed(_row, 4), "reviews": listed(_review, 3), "schema_version": whole(1, 2), "not_run": listed(_row, 2),
            "run": table({"name": text, "started": text, "reviewer": part, "agent": part, "sandbox": part, "repeats": whole(1, 2)}, 40),
        },
        40,
    )  # fmt: skip
    return {**_sound(), **maker(source)}


def _verdict(source: Source) -> Verdict:
    def name() -> str:
        return source.pick(["a", "b", "é", "x y", "𝒳"])

    return Verdict(
        dataset=name(),
        instance=name(),
        check=name(),
        repeat=source.between(1, 2),
        status=source.pick(list(Status)),
        reason=name(),
        facets={"kind": name(), "category": name()},
        check_digest=name(),
        durations={"tests": source.below(99) / 7},
        review=review_record(
            instance=(read := name()),
            comments=len(read),
            durations={"review": 2.5},
            usage={"revision": {"prompt_tokens": 7, "cost": 0.125}},
        ),
        warnings=(name(),),
    )


@lru_cache(maxsize=1)
def _sound() -> dict[str, Any]:
    verdict = Verdict(
        *("a", "b", "c"),
        status=Status.PASSED,
        reason="",
        facets={"kind": "behavioral"},
        check_digest="0",
        review=review_record(reviewer="r", comments=1),
    )
    run = run_record(agent={"name": "y", "fingerprint": {"a": 1}})
    results = Results(run, (verdict,), {verdict.key: verdict.facets, Key("a", "b", "d"): {}})
    summary = results.summary()
    made: dict[str, Any] = json.loads(
        json.dumps(document(results, decide(make_gate(fail_under=["0.1"]), summary, results)))
    )
    return made


def _bytes() -> bytes:
    return json.dumps(_sound()).encode()


def _row_line() -> bytes:
    return json.dumps(_sound()["verdicts"][0]).encode() + b"\n"


def _read(raw: bytes, folder: Path) -> None:
    """A result file is refused, or everything that is made of one can be made of it, and printed."""
    file = folder / "results.json"
    file.write_bytes(raw)
    with refused(UsageError):
        results = load_results(file)
        summary = results.summary()
        gate = make_gate(
            fail_under=["0.5", "macro@kind=a:0.1"],
            fail_over=["comments_per_pr:3"],
            baseline=results,
            fail_if_regressed="",
        )
        decision = decide(gate, summary, results)
        printed = [
            "\n".join(lines_of(results, results.summaries, files="f", width=100)),
            markdown(results, results.summaries, decision, files="f"),
        ]
        printed += [decision.verdict, *decision.lines]
        found = compare(results, results)
        printed += [comparison_markdown(found), *comparison_text(found)]
        for part in printed:
            part.encode()
            assert len(part) < 40 * len(raw) + 100_000
        json.dumps([comparison_json(found), decision.to_json()], allow_nan=False)
        written = json.dumps(document(results, decision), allow_nan=False)
        file.write_text(written)
        read = load_results(file)
        assert (read.verdicts, read.summary()) == (tuple(sorted_verdicts(results)), summary)


def sorted_verdicts(results: Results) -> list[Verdict]:
    """The verdicts that a written file holds: one for each key, sorted."""
    from pytest_crbench.statistics.score import latest

    return list(latest(results.verdicts).values())


def _round_trip(verdicts: list[Verdict], folder: Path) -> None:
    results = Results(run_record(), tuple(verdicts), {v.key: v.facets for v in verdicts})
    file = folder / "results.json"
    file.write_text(json.dumps(document(results, None)))
    read = load_results(file)
    assert list(read.verdicts) == sorted_verdicts(results)
    assert read.summary() == results.summary()
    lines, reviews = folder / "results.jsonl", folder / "reviews.jsonl"
    lines.unlink(missing_ok=True)
    reviews.unlink(missing_ok=True)
    for verdict in verdicts:
        assert verdict.review is not None
        append_row(reviews, verdict.review)
        append_row(lines, verdict)
    assert (read_rows(lines) if verdicts else []) == verdicts


def _lines(source: Source) -> bytes:
    rows = listed(json_text(sometimes(_row)), 4)(source)
    return b"\n".join(rows)


def _read_lines(raw: bytes, folder: Path) -> None:
    file = folder / "results.jsonl"
    file.write_bytes(raw)
    with refused(UsageError):
        for verdict in read_rows(file):
            assert again(to_row(verdict), verdict.review and to_row(verdict.review), "here") == verdict
    verdict = from_row(Verdict, {**_sound()["verdicts"][0], "review": None})
    torn = not raw.endswith(b"\n")
    append_row(file, verdict)
    assert file.read_bytes().endswith(b"\n")
    if torn and b"\n" not in raw:  # what a killed run left of its first line is gone
        assert read_rows(file) == [verdict]


def _read_row(row: Any, _folder: Path) -> None:
    json.dumps(plain(row), allow_nan=False).encode()
    with refused(UsageError):
        told, review = parted_row(plain(row))
        verdict = again(told, review, "here")
        rows = [to_row(verdict), verdict.review and to_row(verdict.review)]
        assert again(*json.loads(json.dumps(rows)), "here") == verdict


def _record(source: Source) -> Any:
    names = list(settings.Settings.__dataclass_fields__)
    options = {
        source.pick(names): source.pick([wild, text, one_of("1", "2g", "docker"), anything])(source)
        for _ in range(source.below(5))
    }
    part: Maker = sometimes(table({"name": text, "fingerprint": anything}))
    maker = table(
        {
            "options": sometimes(lambda _s: options), "reviewer": part, "agent": part, "sandbox": part,
            "datasets": listed(sometimes(table({"name": text, "digest": text})), 2), "repeats": whole(1, 2),
        }
    )  # fmt: skip
    part = sometimes(table({"a::b": sometimes(table({"pull_request": text, "checks": anything}))}))
    built = sometimes(table({"e": sometimes(table({"specifier": text, "base": anything}))}))
    inside = table({"instances": part, "environments": built, "reviewer": part, "package": anything}, 20)
    sound = _sound_record()
    return {**sound, **maker(source), "inputs": {**sound["inputs"], **inside(source)}}


def _sound_record() -> dict[str, Any]:
    record = run_record(inputs=inputs(instances={"a::b": _SOUND_INSTANCE}), options={"reviewer": "none"})
    return {"schema": "crbench-run", "schema_version": 2, **to_row(record)}


def _run_bytes() -> bytes:
    return json.dumps(_sound_record()).encode()


def _read_record(raw: bytes, folder: Path) -> None:
    """The record of a run is refused, or a run can be resumed by it, or told why not."""
    run = folder / "runs" / "one"
    run.mkdir(parents=True, exist_ok=True)
    (run / "run.json").write_bytes(raw)
    with refused(UsageError):
        assert rundir.find_run(folder / "runs", "latest") == run
        record = read_run(run)
        options = rundir.recorded_options(run)
        json.dumps(to_row(record), allow_nan=False)
        with refused(UsageError):
            settings.read(options.get, folder)
        assert options == rundir.recorded_options(run)
        write_run(run, record)
        assert read_run(run) == record
        with refused(UsageError, InfraError):
            _resume(run, read_inputs(run))


def _resume(run: Path, recorded: Inputs) -> None:
    """What the run was made of is compared, and added to."""
    sound = inputs(instances={"a::b": _SOUND_INSTANCE})
    for check in (check_same, check_replayable):
        with refused(UsageError):
            told = check("one", recorded, sound)
            json.dumps(list(map(str, told)))
    built = EnvironmentInfo(digest="0", python="3", specifier=">=3", pins=[], base=BaseInfo(name="p", id="3"))
    note(run, "environments", "f", built)
    assert read_inputs(run).environments["f"] == built
