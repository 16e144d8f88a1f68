"""A real tool over the bundled pull requests: nothing of what it says is lost or invented."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.benchmarks import run, sample
from support.endpoint import LOCAL

from pytest_crbench.core.model import Instance
from pytest_crbench.datasets import open_dataset
from pytest_crbench.sources import fetch
from pytest_crbench.workspace.repository import build

pytestmark = [pytest.mark.network, pytest.mark.slow]

RUFF = "-m ruff check --isolated --no-cache --select E,F,B"
#: What a comment is about: path, first line, rule.
Finding = tuple[str, int, str]


def test_ruff_reviews_the_pull_requests(folder: Path, cache: Path, tmp_path: Path) -> None:
    instances = sample(open_dataset("releases").instances)
    done = run(
        folder,
        None,
        cache,
        f"--crbench-reviewer=cmd:{sys.executable} {RUFF} --output-format=sarif {{workspace}}",
        "--crbench-review-format=sarif",
        "--crbench-reviewer-exit-ok=0,1",
        "--crbench-agent=none",
        *LOCAL,
        *("-n", "2"),
        # One check each: the review is what is looked at.
        *(f"releases::{instance.id}::{instance.checks[0].id}" for instance in instances),
        timeout=900,
    )
    assert done.status == 0, done.output
    rows = {row["instance"]: row for row in done.rows()}
    assert len(rows) == len(done.rows()) == len(instances) >= 6
    assert {row["status"] for row in rows.values()} == {"missed"}
    records = list((done.runs[-1] / "evaluations").rglob("review.json"))
    assert len(records) == len(instances)

    expected = {i.id: ruffs_own(i, cache, tmp_path / i.id) for i in instances}
    assert {name: row["review"]["comments"] for name, row in rows.items()} == {
        name: len(findings) for name, findings in expected.items()
    }
    for record in records:
        name = record.parent.parent.name
        assert lost_or_invented(expected[name], record) == [], name
    counts = [len(findings) for findings in expected.values()]
    assert min(counts) < max(counts)
    assert sum(counts) > 30 * len(counts), "ruff found next to nothing: this run compares nothing"


def ruffs_own(instance: Instance, cache: Path, place: Path) -> list[Finding]:
    """What ruff's JSON says of the head, in a checkout like the reviewer's."""
    trees = fetch(instance.source, cache=cache)
    build(trees, title=instance.title, body=instance.body, cache=cache).copy_to(place)
    done = subprocess.run(
        [sys.executable, *RUFF.split(), "--output-format=json", str(place)],
        cwd=place,
        stdout=subprocess.PIPE,
        check=False,
        timeout=120,
    )
    assert done.returncode in (0, 1)
    return sorted(
        (os.path.relpath(found["filename"], place), found["location"]["row"], found["code"] or "")
        for found in json.loads(done.stdout)
    )


def lost_or_invented(findings: list[Finding], record: Path) -> list[Finding | str]:
    """What only ruff's JSON or only the recorded review has.

    A comment whose fix replaces more lines than the finding names has the range of its fix, and says so.
    """
    comments = json.loads(record.read_text("utf-8"))["value"]["comments"]
    left = list(findings)
    odd: list[Finding | str] = []
    # Exact places first, or a wide range could take a finding that is another's.
    for comment in sorted(comments, key=lambda c: "range-widened" in c.get("flags", ())):
        first, last = comment["lines"]
        widened = "range-widened" in comment.get("flags", ())
        rows = range(first, last + 1) if widened else [first]
        same = [
            f for f in left if (f[0], f[2]) == (comment["path"], comment.get("rule", "")) and f[1] in rows
        ]
        if same:
            left.remove(same[0])
        else:
            odd.append(json.dumps(comment))
    return [*left, *odd]
