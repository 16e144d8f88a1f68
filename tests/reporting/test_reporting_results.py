"""results.json and results.jsonl: written, read, refused; and the published schema."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
from report_runs import broken, run_of, verdicts

from pytest_crbench.core.errors import InfraError, UsageError
from pytest_crbench.core.model import Key, Verdict
from pytest_crbench.core.status import Status
from pytest_crbench.host.files import write_json
from pytest_crbench.reports.markdown import markdown
from pytest_crbench.reports.results import append_row, document, load_results, read_rows
from pytest_crbench.reports.schema import json_schema
from pytest_crbench.reports.table import table
from pytest_crbench.statistics.gate import decide, make_gate

if TYPE_CHECKING:
    from pytest_crbench.statistics.results import Results


def written(results: Results, **gate: Any) -> dict[str, Any]:
    summary = results.summary()
    return document(results, decide(make_gate(**gate), summary, results))


def mixed() -> Results:
    found = verdicts()
    for place, status in enumerate(Status):
        found[place] = broken(found[place], status, f"reason {status}")
    missing = {Key("releases", "late", "c", repeat=2): {"kind": "structural"}}
    return run_of(found, planned=missing)


def test_published_schema_is_current(repo_root: Path) -> None:
    published = json.loads((repo_root / "docs" / "results.schema.json").read_text(encoding="utf-8"))
    assert published == json_schema(), (
        "run: python -m pytest_crbench.reports.schema > docs/results.schema.json"
    )
    jsonschema.Draft202012Validator.check_schema(published)


@pytest.mark.parametrize(
    "results",
    [mixed(), run_of(verdicts()), run_of([], agent=None, sandbox=None)],
    ids=["mixed", "plain", "empty"],
)
@pytest.mark.parametrize("gate", [{}, {"fail_under": ["0.25", "@category=x:0.1"]}], ids=["no gate", "gate"])
def test_what_is_written_validates(results: Results, gate: dict[str, Any]) -> None:
    jsonschema.Draft202012Validator(json_schema()).validate(written(results, **gate))


def test_schema_refuses_what_is_wrong() -> None:
    """The schema is no rubber stamp."""
    validator = jsonschema.Draft202012Validator(json_schema())
    for path, value in (
        (("verdicts", 0, "status"), "fine"),
        (("verdicts", 0, "repeat"), 0),
        (("summary", "overall", "strict", "rate"), 1.5),
        (("gate", "exit_status"), 2),
        (("schema",), "other"),
        (("run", "reviewer"), None),
    ):
        content: Any = written(mixed(), fail_under=["0.1"])
        inner = content
        for key in path[:-1]:
            inner = inner[key]
        inner[path[-1]] = value
        assert not validator.is_valid(content), path


def test_round_trip(tmp_path: Path) -> None:
    results = mixed()
    summary = results.summary()
    write_json(tmp_path / "results.json", document(results, None))
    for place in (tmp_path, tmp_path / "results.json"):
        again = load_results(place)
        assert sorted(again.verdicts, key=str) == sorted(results.verdicts, key=str)
        assert again.planned == results.planned
        assert again.summary() == summary
        assert again.reviewer == "cmd:mytool"
        assert again.source == str(tmp_path / "results.json")


def test_same_file_whatever_the_order_of_arrival() -> None:
    """Workers send their verdicts in any order."""
    results = mixed()
    shuffled = replace(results, verdicts=tuple(reversed(results.verdicts)))
    assert json.dumps(written(results)) == json.dumps(written(shuffled))
    keys = [(row["dataset"], row["instance"], row["check"]) for row in written(shuffled)["verdicts"]]
    assert keys == sorted(keys)


def test_a_gate_over_the_file_decides_like_the_run(tmp_path: Path) -> None:
    results = mixed()
    summary = results.summary()
    gate = make_gate(fail_under=["0.25", "@kind=structural:0.1"], min_coverage="0.8")
    decision = decide(gate, summary, results)
    write_json(tmp_path / "results.json", document(results, decision))
    again = load_results(tmp_path)
    assert decide(gate, again.summary(), again) == decision


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda c: c["verdicts"][3].pop("status"), "key 'verdicts.3.status': Field required"),
        (lambda c: c["verdicts"][0].update(repeat="one"), "key 'verdicts.0.repeat'"),
        (lambda c: c["run"].pop("reviewer"), "key 'run.reviewer'"),
        (lambda c: c["reviews"].pop(0), "key 'verdicts.0.review': should be the id of one of the reviews"),
        (lambda c: c.pop("reviews"), "key 'reviews': Field required, found nothing"),
        (lambda c: c["reviews"][2].update(comments=-1), "reviews[2], key 'comments'"),
        (lambda c: c.update(verdicts={}), "key 'verdicts'"),
        (lambda c: c.update(schema="sarif"), "key 'schema': expected 'crbench-results', found 'sarif'"),
        (lambda c: c.update(schema_version=3), "reads up to 2"),
        (lambda c: c.update(schema_version="1"), "key 'schema_version': expected 2, found '1'"),
        (lambda c: c["not_run"][0].pop("check"), "key 'not_run.0.check'"),
        (
            lambda c: c["verdicts"].append(c["verdicts"][3]),
            "verdicts[40]: a second row for releases::package",
        ),
        (lambda c: c["not_run"].append(c["not_run"][0]), "not_run[1]: a second row for releases::late::c"),
        (lambda c: c["not_run"].append(c["verdicts"][0]), "not_run[1]: a second row for releases::package"),
    ],
)
def test_broken_files_are_named(tmp_path: Path, change: Any, said: str) -> None:
    content = written(mixed())
    change(content)
    file = tmp_path / "results.json"
    file.write_text(json.dumps(content))
    with pytest.raises(UsageError) as caught:
        load_results(file)
    assert said in str(caught.value)
    assert str(file) in str(caught.value)


@pytest.mark.parametrize("data", [b"", b"[]", b"{", b"\xff\xfe", b"[" * 100_000, b'"text"', b"null"])
def test_what_is_not_a_result_file(tmp_path: Path, data: bytes) -> None:
    file = tmp_path / "x.json"
    file.write_bytes(data)
    with pytest.raises(UsageError, match=r"x\.json"):
        load_results(file)
    with pytest.raises(UsageError, match="cannot read"):
        load_results(tmp_path / "absent.json")


def test_keys_of_a_later_writer_are_left_aside(tmp_path: Path) -> None:
    content = written(mixed())
    content["novelty"] = content["verdicts"][0]["novelty"] = {"a": 1}
    (tmp_path / "results.json").write_text(json.dumps(content))
    assert load_results(tmp_path).summary() == mixed().summary()


VERSION_1 = Path(__file__).with_name("results.version-1.json")


def test_a_file_of_version_1_says_the_same(tmp_path: Path) -> None:
    """Written before reviews had rows: 4 checks in 2 repeats and both scorings, one environment missing."""
    old = json.loads(VERSION_1.read_text("utf-8"))
    results = load_results(VERSION_1)
    new = document(results, None)
    for part in ("summary", "summaries", "unmeasured", "not_run", "interval"):
        assert json.dumps(new[part], sort_keys=True) == json.dumps(old[part], sort_keys=True), part
    assert new["summaries"][0]["overall"]["tokens"] == 880
    assert [review["id"] for review in new["reviews"]] == [
        f"small/{name}/review-{repeat}" for name in ("first", "second", "third") for repeat in (1, 2)
    ]
    first = new["reviews"][0]
    assert (first["comments"], first["stop_reason"], first["usage"]["revision"]["calls"]) == (
        2,
        "finished",
        2,
    )
    assert first["counts"]["matching"]["matched"] == 2
    for before, row in zip(old["verdicts"], new["verdicts"], strict=True):
        assert row["review"] == f"small/{row['instance']}/review-{row['repeat']}"
        review = next(one for one in new["reviews"] if one["id"] == row["review"])
        assert {**review["counts"].get(row["scoring"], {}), **row["matching"]} == before["matching"]
        assert set(before["keys"]) <= {*review["keys"], *row["keys"]}
        assert "revision" not in row["usage"]
    inputs = {name: value for name, value in old["lock"].items() if not name.startswith("schema")}
    assert new["run"]["inputs"] == inputs
    jsonschema.Draft202012Validator(json_schema()).validate(new)
    (tmp_path / "results.json").write_text(json.dumps(new))
    assert load_results(tmp_path).verdicts == results.verdicts


def test_lines_of_version_1_are_read(tmp_path: Path) -> None:
    old = json.loads(VERSION_1.read_text("utf-8"))
    file = tmp_path / "results.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in old["verdicts"]))
    found, wanted = read_rows(file), load_results(VERSION_1)
    assert replace(wanted, verdicts=tuple(found)).summaries == wanted.summaries


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"durations": {"review": "long"}}, "reviews[0], key 'durations.review': should be a number"),
        ({"review": {"comments": -1}}, "reviews[0], key 'comments'"),
        ({"usage": []}, "key 'verdicts.0.usage'"),
        ({"review": []}, "key 'verdicts.0.review'"),
    ],
)
def test_a_broken_file_of_version_1_is_refused(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    content = json.loads(VERSION_1.read_text("utf-8"))
    content["verdicts"][0].update(change)
    (tmp_path / "results.json").write_text(json.dumps(content))
    with pytest.raises(UsageError) as caught:
        load_results(tmp_path)
    assert said in str(caught.value)
    assert str(tmp_path / "results.json") in str(caught.value)


def test_rows_are_appended(tmp_path: Path) -> None:
    file = tmp_path / "new" / "results.jsonl"
    found = verdicts()[:5]
    for verdict in found:
        append(file, verdict)
    assert read_rows(file) == found
    assert file.read_bytes().count(b"\n") == 5
    file.with_name("reviews.jsonl").unlink()
    assert [verdict.review for verdict in read_rows(file)] == [None] * 5


def append(file: Path, verdict: Verdict) -> None:
    assert verdict.review is not None
    append_row(file.with_name("reviews.jsonl"), verdict.review)
    append_row(file, verdict)


def test_the_last_row_of_a_review_counts(tmp_path: Path) -> None:
    one = verdicts()[0]
    assert one.review is not None
    later = replace(one.review, counts={"matching": {"matched": 0}}, durations={"matching": 1.0})
    for record in (one.review, later):
        append_row(tmp_path / "reviews.jsonl", record)
    append_row(tmp_path / "results.jsonl", one)
    (found,) = read_rows(tmp_path / "results.jsonl")
    assert found.review == one.review.merged(later)


def test_a_torn_last_line_is_left_out_and_then_dropped(tmp_path: Path) -> None:
    """A run killed in the middle of a write loses that row and no other."""
    file = tmp_path / "results.jsonl"
    found = verdicts()[:4]
    for verdict in found:
        append(file, verdict)
    file.unlink()
    for verdict in found[:3]:
        append_row(file, verdict)
    whole = file.read_bytes()
    for cut in (1, 2, 40, 300):
        file.write_bytes(whole[:-cut])
        assert read_rows(file)[:2] == found[:2]
        append_row(file, found[3])
        assert read_rows(file) == [*found[:2], found[3]]


def test_a_broken_line_in_the_middle_is_named(tmp_path: Path) -> None:
    file = tmp_path / "results.jsonl"
    append_row(file, verdicts()[0])
    file.write_bytes(b"{torn\n" + file.read_bytes())
    with pytest.raises(UsageError, match=r"results\.jsonl, line 1: not JSON"):
        read_rows(file)


def test_unwritable_places_are_outside_failures(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InfraError, match="crbench-run-dir"):
        append_row(tmp_path / "file" / "results.jsonl", verdicts()[0])


def test_every_report_says_what_it_could_detect() -> None:
    results = run_of(verdicts())
    number = document(results, None)["summary"]["overall"]["detectable"]
    line = f"a difference of at least {100 * number:.0f} points to another run on these checks"
    assert 0.2 <= number <= 0.3
    assert any(line in one for one in table(results, results.summaries))
    decision = decide(make_gate(), results.summary())
    assert line in markdown(results, results.summaries, decision)
