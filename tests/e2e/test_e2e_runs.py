"""Runs that follow one another: resumed, repaired, replayed, repeated; and what a vendor overrides.

The sandbox is the local one: what is tested is the record of a run, which is the same in both.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from support.benchmarks import Pull, Run, run, write_dataset
from support.endpoint import KEY, LOCAL, row, run_llm
from support.openai_server import OpenAIServer, answer, status
from support.openai_server import run as command

pytestmark = [pytest.mark.network, pytest.mark.slow]

DONE = answer("Done.")
DOWN = status(429, {"retry-after": "4000"})


def edit(name: str) -> object:
    return command(f"sed -i 's/wrong/{name}/' shop/{name}_.py")


@pytest.fixture
def two(tmp_path: Path) -> Path:
    """Two pull requests, of two concerns and of one."""
    first = Pull("first", fixable=("price",), hard=("tax",))
    return write_dataset(tmp_path / "two", [first, Pull("second", fixable=("name",))])


@pytest.fixture
def calls(tmp_path: Path) -> Path:
    """Where the counting reviewer leaves a line for each review."""
    return tmp_path / "calls"


def counting(calls: Path) -> str:
    """A reviewer that says one thing of every pull request."""
    review = '{{"comments": [{{"body": "Look again."}}]}}'
    return f"cmd:sh -c 'echo x >> {calls}; printf \"%s\" \"$0\"' '{review}'"


def reviews(calls: Path) -> int:
    return len(calls.read_text().splitlines())


def record(done: Run) -> dict[str, str]:
    """Digests of all that the stages of the latest run wrote."""
    root = done.runs[-1] / "evaluations"
    files = [path for path in root.rglob("*") if path.is_file() and ".locks" not in path.parts]
    assert files
    return {str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def resume(folder: Path, dataset: Path, cache: Path, *arguments: str) -> Run:
    return run(folder, dataset, cache, "--crbench-resume", *LOCAL, *arguments, env={"CRBENCH_API_KEY": KEY})


def test_a_finished_run_that_is_resumed_does_nothing_again(
    folder: Path, two: Path, cache: Path, calls: Path
) -> None:
    with OpenAIServer([edit("price"), DONE, edit("name"), DONE]) as server:
        done = run_llm(folder, two, cache, server, *LOCAL, reviewer=counting(calls))
        assert done.statuses() == {"first::price": "passed", "first::tax": "missed", "second::name": "passed"}
        before = record(done)
        again = resume(folder, two, cache)
    assert again.status == 0, again.output
    assert len(again.runs) == 1
    assert again.statuses() == done.statuses()
    assert again.results()["run"]["resumed"] is True
    assert len(server.requests) == 4
    assert reviews(calls) == 2
    assert record(again) == before


def test_errors_are_repeated_once_the_endpoint_is_back(
    folder: Path, two: Path, cache: Path, calls: Path
) -> None:
    script = [edit("price"), DONE, command("true"), DOWN, edit("name"), DONE]
    with OpenAIServer(script) as server:
        done = run_llm(folder, two, cache, server, *LOCAL, reviewer=counting(calls))
        assert done.status == 1
        assert done.statuses()["second::name"] == "infra_error"
        failed = row(done, "name")
        assert (failed["cause"], failed["usage"]["revision"]["prompt_tokens"]) == ("rate-limit", 100)
        assert done.results()["summary"]["overall"]["tokens"] == 3 * 110, "what failed was paid for too"
        before = record(done)
        left = resume(folder, two, cache)
        assert left.status == 1
        assert left.statuses() == done.statuses(), "without --crbench-rerun-errors an error is kept"
        assert len(server.requests) == 4
        repaired = resume(folder, two, cache, "--crbench-rerun-errors")
    assert repaired.status == 0, repaired.output
    assert repaired.statuses() == {"first::price": "passed", "first::tax": "missed", "second::name": "passed"}
    assert len(server.requests) == 6
    assert reviews(calls) == 2, "the reviews were there"
    # Three answers of the attempt that came to its end, and the one of the attempt that failed.
    assert row(repaired, "name")["usage"]["revision"]["prompt_tokens"] == 400
    after = record(repaired)
    changed = {path for path in after if before.get(path) != after[path]}
    assert changed, "nothing was measured"
    assert all(path.startswith("small/second/") for path in changed)


def test_a_recorded_run_is_replayed_without_key_server_and_reviewer(
    folder: Path, two: Path, cache: Path, calls: Path
) -> None:
    with OpenAIServer([edit("price"), DONE, edit("name"), DONE]) as server:
        done = run_llm(folder, two, cache, server, *LOCAL, reviewer=counting(calls))
    recorded, verdicts = done.runs[-1], done.statuses()
    assert set(verdicts.values()) == {"passed", "missed"}
    again = run(folder, two, cache, f"--crbench-replay={recorded.name}", *LOCAL)
    assert again.status == 0, again.output
    assert len(again.runs) == 2
    assert again.results()["run"]["replay_of"] == recorded.name
    assert again.statuses() == verdicts
    assert row(again, "price")["stop_reason"] == "finished"
    assert reviews(calls) == 2
    # The hidden tests themselves were run again.
    logs = {path.name for path in (again.runs[-1] / "evaluations").rglob("checks/*.log")}
    assert {"price.log", "tax.log", "name.log"} <= logs

    patch = next(recorded.rglob("first/review-1/revision.patch"))
    patch.write_bytes(patch.read_bytes().replace(b"price", b"prize"))
    changed = run(folder, two, cache, f"--crbench-replay={recorded.name}", *LOCAL)
    assert changed.status == 1
    assert row(changed, "price")["status"] == "infra_error"
    assert "is not the patch that was recorded" in row(changed, "price")["reason"]
    assert row(changed, "name")["status"] == "passed"


def test_every_repeat_has_a_review_a_revision_and_a_row(
    folder: Path, two: Path, cache: Path, calls: Path
) -> None:
    with OpenAIServer([edit("price"), DONE, command("echo '#' >> shop/price_.py"), DONE]) as server:
        done = run_llm(
            folder,
            two,
            cache,
            server,
            *LOCAL,
            "--crbench-repeats=2",
            *("-k", "first"),
            reviewer=counting(calls),
        )
    assert done.status == 0, done.output
    rows = {(r["check"], r["repeat"]): r["status"] for r in done.rows()}
    assert rows == {
        ("price", 1): "passed",
        ("price", 2): "missed",
        ("tax", 1): "missed",
        ("tax", 2): "missed",
    }
    assert len(server.requests) == 4
    assert reviews(calls) == 2
    patches = {p.parent.name: p.read_text() for p in done.runs[-1].rglob("revision.patch")}
    assert set(patches) == {"review-1", "review-2"}
    assert '+    return "price"' in patches["review-1"]
    assert "+#" in patches["review-2"]


REVIEWER_CONFTEST = """
import pytest


def own_review(pull_request, workspace):
    source = (workspace / "shop" / "price_.py").read_text()
    line = source.splitlines().index('    return "wrong"') + 1
    place = {"path": "shop/price_.py", "lines": [line, line]}
    return [{**place, "body": "No.", "suggestion": '    return "price"'}]


@pytest.fixture(scope="session")
def crbench_reviewer():
    return own_review
"""


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["serial", "two-workers"])
def test_a_vendors_fixture_is_the_reviewer(
    folder: Path, two: Path, cache: Path, workers: tuple[str, ...]
) -> None:
    (folder / "conftest.py").write_text(REVIEWER_CONFTEST)
    selected = ("--crbench-reviewer=none", "--crbench-agent=suggestions", "-k", "first")
    done = run(folder, two, cache, *selected, *LOCAL, *workers)
    assert done.status == 0, done.output
    assert done.statuses() == {"first::price": "passed", "first::tax": "missed"}
    found = row(done, "price")["review"]
    assert (found["reviewer"], found["comments"]) == ("own_review", 1)
    assert done.results()["run"]["reviewer"]["name"] == "own_review"


OWN_TEST = """
import pytest


def test_two_pull_requests(crbench_evaluate):
    found = {f"{v.key.instance}::{v.key.check}": v.status.value for v in crbench_evaluate("first")}
    assert found == {"first::price": "passed", "first::tax": "missed"}
    (verdict,) = crbench_evaluate("small::second")
    assert verdict.status.value == "passed"
    assert verdict.review.comments == 1


def test_what_there_is_not(crbench_evaluate):
    with pytest.raises(Exception, match="no instance 'third'"):
        crbench_evaluate("third")


def test_that_fails(crbench_evaluate):
    assert all(v.status.value == "passed" for v in crbench_evaluate("first"))
"""


def test_a_vendors_own_test_evaluates_pull_requests(folder: Path, two: Path, cache: Path) -> None:
    (folder / "test_own.py").write_text(OWN_TEST)
    asked = ("--crbench-reviewer=human", "--crbench-agent=suggestions", "test_own.py")
    done = run(folder, two, cache, *asked, *LOCAL, "-k", "test_own")
    assert done.status == 1, done.output
    assert done.outcomes() == {"failed": 1, "passed": 2, "deselected": 3}
    assert "FAILED test_own.py::test_that_fails" in done.output
