"""The tables over runs that were scored by matching, and comparisons of such runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.offline import Says, offline
from support.records import run_record

from pytest_crbench.cli import main as crbench
from pytest_crbench.core.model import IDENTITY, Review, ReviewComment, Verdict
from pytest_crbench.core.status import Status
from pytest_crbench.host.files import write_json
from pytest_crbench.reports.results import document
from pytest_crbench.reports.tables_tests import hidden_test_tables
from pytest_crbench.statistics.results import Results

NOTES = (("The price is wrong.", 10, "Diff Level"), ("The tax is wrong.", 20, "Repo Level"))


@pytest.fixture
def data(tmp_path: Path) -> Path:
    comments = [
        {
            "is_ai_comment": False, "note": note, "path": "shop.py", "side": "right", "source_model": "",
            "from_line": line, "to_line": line, "category": "Code Defect", "context": context,
        }
        for note, line, context in NOTES
    ]  # fmt: skip
    entry = {
        "change_line_count": 10, "project_main_language": "Python", "source_commit": "a" * 40,
        "target_commit": "b" * 40, "githubPrUrl": "https://github.com/acme/shop/pull/1", "comments": comments,
    }  # fmt: skip
    (tmp_path / "positive_samples.json").write_text(json.dumps([entry]))
    return tmp_path / "positive_samples.json"


def run(data: Path, folder: Path, name: str, said: list[str], **fingerprint: str) -> Path:
    comments = tuple(
        ReviewComment(str(n), text, path="shop.py", lines=(10 * n, 10 * n)) for n, text in enumerate(said, 1)
    )
    folder.mkdir()
    found = offline(folder, Says(lambda _: Review(comments, "says")), dataset=[f"aacr:{data}"])
    part = {"name": name, "fingerprint": fingerprint}
    record = run_record(name=name, reviewer=part)
    write_json(folder / "results.json", document(Results(record, found.verdicts, found.planned), None))
    return folder


def test_tables(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = run(data, tmp_path / "first", "my|tool", ["The price is wrong.", "Nothing."])
    second = run(data, tmp_path / "second", "llm:bm25", [NOTES[0][0], NOTES[1][0]], mode="bm25", model="m-1")
    assert crbench(["tables", str(first), str(second)]) == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert lines[2].startswith("my|tool - 2 100.0 2 - 0.0 - 50.0 100.0 100.0 50.0 100.0 50.0 50.0")
    assert lines[3].startswith("m-1 bm25 2 100.0 2 - 0.0 - 0.0 100.0 100.0 100.0 100.0 100.0 100.0")
    assert "my|tool - 100.0 0.0" in lines, "recall by context"
    assert "my|tool - Python 2 50.0 100.0 50.0 50.0" in lines

    assert crbench(["tables", str(first), str(second), "--json"]) == 0
    made = {table["name"]: table["rows"] for table in json.loads(capsys.readouterr().out)}
    assert set(made) == {"table3", "table4", "language", "table10"}
    recalls = {"Diff Level": 100, "Repo Level": 0}
    assert made["table4"][0] == {"reviewer": "my|tool", "context": None, **recalls}

    assert crbench(["tables", str(first), "--markdown"]) == 0
    rows = [line for line in capsys.readouterr().out.splitlines() if line.startswith("|")]
    assert all("my|tool" not in row for row in rows)
    assert sum("my&#124;tool" in row or "my\\|tool" in row for row in rows) == 4


def test_a_name_is_no_number(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("007", "nan", "1e5", "-"):
        folder = run(data, tmp_path / name, name, ["The price is wrong."])
        assert crbench(["tables", str(folder), "--json"]) == 0
        made = json.loads(capsys.readouterr().out)
        assert {row["reviewer"] for table in made for row in table["rows"]} == {name}
        assert (made[0]["rows"][0]["comments"], made[0]["rows"][0]["P"]) == (1, 100.0)


def test_rows_that_cannot_be_compared_are_told(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = run(data, tmp_path / "first", "a", ["The price is wrong."])
    second = run(data, tmp_path / "second", "b", ["The price is wrong."])
    assert crbench(["tables", str(first), str(second)]) == 0
    assert "note" not in capsys.readouterr().out
    content = json.loads((second / "results.json").read_text())
    lost = content["verdicts"].pop()
    content["not_run"] = [{k: lost[k] for k in (*IDENTITY, "facets")}]
    for more, lacking in ((content, True), ({**content, "not_run": []}, False)):
        (second / "results.json").write_text(json.dumps(more))
        for form in ([], ["--markdown"], ["--json"]):
            assert crbench(["tables", str(first), str(second), *form]) == 0
            shown = capsys.readouterr()
            said = shown.err if form == ["--json"] else shown.out
            assert ("1 of 2 measured" in said) is lacking, said
            assert ("of different checks" in said) is not lacking, said


def test_runs_without_a_scoring_in_common_have_no_table(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_json(tmp_path / "results.json", document(Results(run_record(), ()), None))
    assert crbench(["tables", str(tmp_path)]) == 2
    assert "has no measurement" in capsys.readouterr().err
    matched = run(data, tmp_path / "first", "a", ["The price is wrong."])
    assert crbench(["tables", str(tmp_path), str(matched)]) == 2
    said = capsys.readouterr().err
    assert "was scored by tests" in said
    assert "was scored by matching: they have no table in common" in said
    assert crbench(["tables", str(tmp_path / "absent")]) == 2


def test_runs_are_compared_in_one_scoring(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = run(data, tmp_path / "first", "a", ["The price is wrong."])
    second = run(data, tmp_path / "second", "b", ["Nothing.", "The tax is wrong."])
    assert crbench(["compare", str(first), str(second), "--json"]) == 0
    overall = json.loads(capsys.readouterr().out)["overall"]
    assert (overall["only_first"], overall["only_second"]) == (1, 1)
    assert crbench(["compare", str(first), str(second), "--scoring=tests", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["overall"]["pairs"] == 0


def test_only_what_decides_a_scoring_must_be_alike(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Agents and sandboxes have no part in matching; how comments are matched has none in hidden tests."""
    first = run(data, tmp_path / "first", "a", ["The price is wrong."])
    second = run(data, tmp_path / "second", "b", ["Nothing."])
    content = json.loads((second / "results.json").read_text())
    content["run"]["agent"] = {"name": "llm", "fingerprint": {"model": "m"}}
    content["run"]["sandbox"] = {"name": "docker"}
    # The same review, also scored by a hidden test.
    content["verdicts"] += [
        {**v, "scoring": "tests", "matching": {}, "status": "passed"} for v in content["verdicts"]
    ]
    (second / "results.json").write_text(json.dumps(content))
    assert crbench(["compare", str(first), str(second), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["scoring"], found["overall"]["only_first"]) == ("matching", 1)
    assert [found[side]["overall"]["passed"] for side in ("first", "second")] == [1, 0], "of that scoring"
    assert crbench(["compare", str(first), str(second), "--scoring=tests"]) == 2
    assert "the coding agents differ" in capsys.readouterr().err


def test_macro_recall_has_one_interval(data: Path, tmp_path: Path) -> None:
    """It is the macro rate of the checks: the same number, and the same interval, wherever it stands."""
    folder = run(data, tmp_path / "one", "a", ["The price is wrong."])
    summary = json.loads((folder / "results.json").read_text())["summary"]
    macro, recall = summary["overall"]["macro"], summary["agreement"][0]["macro_recall"]
    assert (recall["value"], recall["interval"]) == (macro["rate"], macro["interval"])


#: Kind and what three runs made of the check: passed, missed, the reviewer's error, the engine's.
HIDDEN = {
    ("pr-1", "a"): ("behavioral", "ppm"),
    ("pr-1", "b"): ("structural", "pmm"),
    ("pr-2", "a"): ("structural", "pmr"),
    ("pr-3", "a"): ("structural", "mmm"),
    ("pr-4", "a"): ("structural", "mpm"),
    ("pr-5", "a"): ("behavioral", "ppi"),
}
STATUS = {"p": Status.PASSED, "m": Status.MISSED, "r": Status.REVIEWER_ERROR, "i": Status.INFRA_ERROR}


def hidden(folder: Path, place: int, name: str) -> Path:
    verdicts = tuple(
        Verdict(
            "demo",
            instance,
            check,
            status=STATUS[letters[place]],
            reason="",
            facets={"kind": kind, "category": "Design" if instance < "pr-3" else "Security"},
            check_digest=f"{instance} {check}",
        )
        for (instance, check), (kind, letters) in HIDDEN.items()
    )
    planned = {v.key: v.facets for v in verdicts}
    record = run_record(name=name, reviewer={"name": name})
    folder.mkdir()
    write_json(folder / "results.json", document(Results(record, verdicts, planned), None))
    return folder


def test_tables_of_hidden_tests(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = [str(hidden(tmp_path / n, place, n)) for place, n in enumerate(("one", "two", "three"))]
    assert crbench(["tables", *runs, "--json"]) == 0
    shown = capsys.readouterr()
    made = {table["name"]: table["rows"] for table in json.loads(shown.out)}
    rates = [
        (row["reviewer"], row["checks"], row["behavioral"], row["structural"], row["overall"])
        for row in made["ccrab-table5"]
    ]
    assert rates == [
        ("one", 6, 100.0, 50.0, 66.7),
        ("two", 6, 100.0, 25.0, 50.0),
        ("three", 6, 0.0, 0.0, 0.0),
        ("at least one of these", 5, 100.0, 75.0, 80.0),
    ]
    assert all(" - " in row["overall: 95 %"] for row in made["ccrab-table5"])
    assert [tuple(row.values()) for row in made["ccrab-figure5"]] == [
        ("at least one", 4, 80.0),
        ("all", 0, 0.0),
        ("only 1", 2, 40.0),
        ("only 1 and 2", 1, 20.0),
        ("only 2", 1, 20.0),
        ("none", 1, 20.0),
    ]
    assert [(row["run"], row["Design"], row["Security"]) for row in made["ccrab-figure7"]] == [
        ("1", 100.0, 33.3), ("2", 33.3, 66.7), ("3", 0.0, 0.0)
    ]  # fmt: skip
    assert (
        "4 of 6 measured (1 reviewer_error, 1 infra_error); 1 counted as not passed or found, "
        "1 left out of every rate"
    ) in shown.err
    assert "its numbers are of what was measured" not in shown.err
    for form in ([], ["--markdown"]):
        assert crbench(["tables", *runs, *form]) == 0
        out = capsys.readouterr().out
        assert "Pass rates by kind" in out
        assert "at least one of these" in out


def test_one_run_of_hidden_tests(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert crbench(["tables", str(hidden(tmp_path / "one", 0, "one")), "--json"]) == 0
    made = {table["name"]: table["rows"] for table in json.loads(capsys.readouterr().out)}
    assert [row["overall"] for row in made["ccrab-table5"]] == [66.7]
    assert [row["checks"] for row in made["ccrab-figure5"]] == [4, 4, 2]


def test_the_published_table_follows(tmp_path: Path) -> None:
    """c-CRAB's Table 5 from 234 checks, one per pull request: rates, union and Wilson's intervals."""
    counts = {"Claude Code": 75, "Devin": 58, "PR-Agent": 54, "Codex": 47}
    runs = []
    for name, count in counts.items():
        verdicts = tuple(
            Verdict(
                "c-crab",
                f"pr-{n}",
                "c",
                status=STATUS["p" if n < count else "m"],
                reason="",
                facets={"kind": "structural"},
                check_digest="d",
            )
            for n in range(234)
        )
        runs.append(
            Results(run_record(reviewer={"name": name}), verdicts, {v.key: v.facets for v in verdicts})
        )
    rows = hidden_test_tables(runs)[0].rows
    assert [row[-2:] for row in rows[:4]] == [
        ("32.1", "26.4 - 38.3"), ("24.8", "19.7 - 30.7"), ("23.1", "18.1 - 28.9"), ("20.1", "15.5 - 25.7")
    ]  # fmt: skip
