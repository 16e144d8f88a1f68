"""Matching as a vendor starts it: alone and offline, and beside hidden tests on the same reviews."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import jsonschema
import pytest
from support.benchmarks import Pull, run, write_dataset

pytestmark = pytest.mark.slow

#: Says what stands for a pull request's title in a file, and writes down that it was asked.
REVIEWER = """
import json, sys

answers, calls, title = sys.argv[1:]
with open(calls, "a") as stream:
    stream.write(title + "\\n")
print(json.dumps({"comments": json.load(open(answers))[title]}))
"""


def reviewer(folder: Path, answers: dict[str, list[dict]]) -> tuple[str, Path]:
    (folder / "reviewer.py").write_text(REVIEWER)
    (folder / "answers.json").write_text(json.dumps(answers))
    calls = folder / "calls"
    words = [sys.executable, folder / "reviewer.py", folder / "answers.json", calls, "{title}"]
    return f"--crbench-reviewer=cmd:{' '.join(map(str, words))}", calls


@pytest.mark.network
def test_both_scorings_of_the_bundled_pull_requests_on_the_same_reviews(
    folder: Path, tmp_path: Path, cache: Path, repo_root: Path
) -> None:
    """What people said, word for word but for one comment: fixed by its suggestion, matched by its words."""
    from pytest_crbench.datasets import open_dataset
    from pytest_crbench.evaluation.records import comment_to
    from pytest_crbench.reports.results import load_results, read_rows
    from pytest_crbench.statistics.score import latest

    wanted = {"humanize-4.12.1", "werkzeug-3.1.4"}
    chosen = [i for i in open_dataset("releases").instances if i.id in wanted]
    assert len(chosen) == len(wanted)
    answers = {
        i.title: [{k: v for k, v in comment_to(c.comment).items() if k != "id"} for c in i.checks]
        for i in chosen
    }
    first = answers[chosen[0].title][0]
    first["body"] = "Something else."
    said, calls = reviewer(tmp_path, answers)
    done = run(
        folder,
        None,
        cache,
        said,
        "--crbench-agent=suggestions",
        "--crbench-scoring=tests,matching",
        "--crbench-matcher=exact",
        "--crbench-fail-under=0.1",
        "--crbench-fail-under=f1:0.5",
        *("-n", "2", "--junitxml=junit.xml"),
        *(f"releases::{name}" for name in sorted(wanted)),
    )
    assert done.status == 0, done.output
    assert sorted(calls.read_text().splitlines()) == sorted(answers)
    results = done.results()
    jsonschema.validate(results, json.loads((repo_root / "docs" / "results.schema.json").read_text("utf-8")))
    checks = sum(len(i.checks) for i in chosen)
    tests, matching = results["summaries"]
    assert results["summary"] == tests
    assert (tests["scoring"], matching["scoring"]) == ("tests", "matching")
    assert tests["overall"]["selected"] == checks
    assert matching["overall"]["passed"] == matching["overall"]["selected"] - 1
    (whole,) = (a for a in matching["agreement"] if a["facet"] == "")
    assert whole["counts"]["hunks"] > 0, "the diff is known here"
    assert whole["counts"]["unlabelled"] == 1
    for row in results["verdicts"]:
        assert bool(row["matching"]) == (row["scoring"] == "matching")
    assert "revision" not in matching["overall"]["seconds"]
    assert "matching" not in tests["overall"]["seconds"]
    assert len(results["reviews"]) == len(chosen)
    rows, whole = read_rows(done.runs[-1] / "results.jsonl"), load_results(done.runs[-1])
    assert latest(rows) == latest(whole.verdicts), "workers know of different stages, the files of all"
    assert results["run"]["matcher"]["name"] == "exact"
    assert "matching by exact" in done.output
    suite = (folder / "junit.xml").read_text("utf-8")
    assert f'name="crbench_matching_strict" value="{checks - 1}/{checks}"' in suite
    assert done.verdict.startswith("crbench: PASSED"), done.verdict
    assert "f1 0." in done.verdict
    for name in ("tests ", "matching "):
        assert any(line.startswith(name) for line in done.output.splitlines()), done.output


@pytest.mark.network
def test_one_scoring_of_a_dataset_that_was_made_for_another(
    folder: Path, tmp_path: Path, cache: Path
) -> None:
    """No agent, no sandbox, no key; node ids tell the scoring; resuming makes nothing again."""
    dataset = write_dataset(tmp_path / "small", [Pull("first", fixable=("price",), hard=("tax",))])
    comment = {"path": "shop/price_.py", "lines": [3, 3], "body": "The  price is wrong."}
    said, calls = reviewer(tmp_path, {"Add prices": [comment]})
    options = ["--crbench-scoring=matching", "--crbench-matcher=exact", "--crbench-sandbox=auto"]
    done = run(folder, dataset, cache, said, *options, "-v", env={"DOCKER_HOST": "unix:///nowhere"})
    assert done.status == 0, done.output
    assert "small::first::price[matching] PASSED" in done.output
    assert "small::first::tax[matching] MISSED" in done.output
    assert done.results()["run"]["sandbox"] == {"name": "none"}
    again = run(folder, None, cache, "--crbench-resume")
    assert again.statuses() == {"first::price": "passed", "first::tax": "missed"}
    assert calls.read_text().splitlines() == ["Add prices"]
    one = run(folder, dataset, cache, said, *options, "small::first::tax[matching]")
    assert one.statuses() == {"first::tax": "missed"}
    other = run(folder, None, cache, "--crbench-resume", "--crbench-matching=line-tolerance=0")
    assert other.status == 4
    assert "options.matcher.line_tolerance was 1, is 0" in other.output


def test_what_cannot_be_scored_is_told_before_any_work(folder: Path, tmp_path: Path, cache: Path) -> None:
    dataset = write_dataset(tmp_path / "small", [Pull("first", fixable=("price",))])
    says = "--crbench-reviewer=human"
    for options, message in (
        (["--crbench-offline", "--crbench-agent=none"], "hidden tests need the code"),
        (["--crbench-scoring=matching", "--crbench-matcher=model"], "--crbench-matcher-model"),
        (["--crbench-agent=none", "--crbench-fail-under=f1:0.1"], "f1 is a number of the scoring matching"),
        (["--crbench-scoring=matching,trust"], "unknown scoring; known: tests, matching"),
        (
            ["--crbench-scoring=matching", "--crbench-matcher=vibes"],
            "expected one of model, embedding, exact",
        ),
        (
            ["--crbench-scoring=matching", "--crbench-matcher=exact", "--crbench-matching=classify"],
            "sorting comments (--crbench-matching classify) needs a model",
        ),
        (["--crbench-matcher-votes=2"], "expected an odd number"),
        (
            [
                *("--crbench-offline", "--crbench-scoring=matching", "--crbench-matcher=exact"),
                "--crbench-reviewer=cmd:true",
            ],
            "cmd:true reviews the code",
        ),
    ):
        done = run(folder, dataset, cache, says, *options)
        assert done.status == 4, done.output
        assert message in done.output
        assert not done.runs


def test_a_dataset_without_hidden_tests_has_none_to_run(folder: Path, tmp_path: Path, cache: Path) -> None:
    data = tmp_path / "positive_samples.json"
    data.write_text(
        json.dumps([
            {
                "change_line_count": 3, "project_main_language": "Go", "source_commit": "a" * 40,
                "target_commit": "b" * 40, "githubPrUrl": "https://github.com/acme/shop/pull/1",
                "comments": [
                    {
                        "is_ai_comment": True, "note": "Wrong.", "path": "a.go", "side": "right",
                        "source_model": "m", "from_line": 1, "to_line": 1, "category": "Code Defect",
                        "context": "Diff Level",
                    }
                ],
            }
        ])
    )  # fmt: skip
    done = run(folder, None, cache, f"--crbench-dataset=aacr:{data}", "--crbench-reviewer=none",
               "--crbench-scoring=tests")  # fmt: skip
    assert done.status == 4
    assert "dataset aacr has no hidden test" in done.output
