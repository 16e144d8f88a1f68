"""A model that reviews by shell commands: real HTTP, commands that really run, the file that they leave."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support.agent_tasks import CopySandbox
from support.openai_server import OpenAIServer, Step, answer, run, status

from pytest_crbench.core.errors import InfraError, ReviewerError
from pytest_crbench.core.model import Tree
from pytest_crbench.core.reviewer import Reviewer, ReviewTask
from pytest_crbench.core.settings import Settings
from pytest_crbench.host import digest
from pytest_crbench.reviewers.llm import make_llm_reviewer
from pytest_crbench.reviewers.llm.agent_reviewer import TRAJECTORY

if TYPE_CHECKING:
    from conftest import Project

BLOCK = (
    "<path>app/core.py</path>\n<side>right</side>\n<from>6</from>\n<to>6</to>\n<note>\nUse `is`.\n</note>\n"
)
DONE = answer("The review is written.")


def writes(text: str) -> Step:
    """A command that writes the review."""
    return run(f"cat > ~/review.txt <<'EOF'\n{text}\nEOF")


@pytest.fixture
def task(project: Project, tmp_path: Path) -> ReviewTask:
    project.checkout(tmp_path / "head")
    shutil.rmtree(tmp_path / "head" / ".git")
    head = Tree(tmp_path / "head", digest.of_tree(tmp_path / "head"))
    count = iter(range(99))

    @contextmanager
    def sandbox() -> Iterator[CopySandbox]:
        # Another place each time, as with real ones.
        opened = CopySandbox(head.path, tmp_path / f"sandbox-{next(count)}")
        try:
            yield opened
        finally:
            opened.close()

    return project.task(tmp_path / "run", head=head, sandbox=sandbox)


def reviewer(server: OpenAIServer, cache: Path, **changes: Any) -> Reviewer:
    settings = Settings(cache=cache, base_url=server.base_url, reviewer_model="m", **changes)
    return make_llm_reviewer("llm:agent", settings, None, {})


def told(server: OpenAIServer, request: int) -> str:
    return str(server.requests[request]["messages"][-1]["content"])


def test_the_file_that_it_leaves_is_the_review(task: ReviewTask, tmp_path: Path) -> None:
    look = run("cat app/core.py; cat ~/pull-request.diff | head -3; rm -r app; echo > new.py")
    script = [look, writes(f"{BLOCK}<notesplit/>\n{BLOCK.replace('Use `is`', 'Or use not')}<end/>"), DONE]
    with OpenAIServer(script) as server:
        review = reviewer(server, tmp_path / "cache").review(task)
        again = reviewer(server, tmp_path / "cache").review(task)
        assert len(server.requests) == 3, "a second run asked again"
    assert [(c.path, c.lines, c.side, c.body) for c in review.comments] == [
        ("app/core.py", (6, 6), "right", "Use `is`."),
        ("app/core.py", (6, 6), "right", "Or use not."),
    ]
    assert review.warnings == ()
    assert again.comments == review.comments
    assert (review.usage["calls"], review.usage["commands"]) == (3, 2)
    assert again.usage["calls_from_cache"] == 3
    assert review.raw == "review.out"
    assert (task.directory / "review.out").read_bytes().startswith(b"<path>")
    assert "if x == None" in told(server, 1)
    assert "diff --git" in told(server, 1)
    record = json.loads((task.directory / TRAJECTORY).read_text())
    assert record["stop_reason"] == "finished"
    assert not (task.directory / "trajectory.json").exists(), "that is the coding agent's"
    assert task.head is not None
    assert digest.of_tree(task.head.path) == task.head.digest


def test_the_opening_names_the_range_and_the_file_and_nothing_of_the_instance(
    task: ReviewTask, tmp_path: Path
) -> None:
    with OpenAIServer([writes("<end/>"), DONE]) as server:
        review = reviewer(server, tmp_path / "cache").review(task)
    assert review.comments == ()
    system, user = (m["content"] for m in server.requests[0]["messages"][:2])
    assert "~/review.txt" in system
    assert "base..head" in user
    assert "<pull_request_diff>\ndiff --git a/app/core.py b/app/core.py\n" in user
    assert str(tmp_path) not in str(server.requests)
    assert server.requests[0]["top_k"] == 20
    assert [t["function"]["name"] for t in server.requests[0]["tools"]] == ["bash"]


@pytest.mark.parametrize(
    ("script", "reason", "said"),
    [
        ([run("ls"), DONE], "missing", "finished"),
        ([DONE, answer("I have nothing to say.")], "missing", "finished"),
        ([run("mkdir ~/review.txt"), DONE], "missing", "no file"),
        ([writes("Looks good."), DONE], "unreadable", "no block of tags"),
        ([run(": > ~/review.txt"), DONE], "empty", "wrote nothing"),
        ([writes("<path>a</path><note>half"), DONE], "unreadable", "only half a block"),
        ([run("head -c 17000000 /dev/zero > ~/review.txt"), DONE], "unreadable", "bytes"),
        ([answer(""), answer(""), answer("")], "missing", "format-errors"),
    ],
    ids=["no-file", "no-command", "folder", "prose", "empty", "half", "huge", "format-errors"],
)
def test_no_review_is_no_clean_review(
    task: ReviewTask, tmp_path: Path, script: list[Step], reason: str, said: str
) -> None:
    with OpenAIServer(script) as server, pytest.raises(ReviewerError, match=said) as caught:
        reviewer(server, tmp_path / "cache").review(task)
    assert caught.value.reason == reason
    assert caught.value.usage["calls"] == len(script)


def test_what_was_written_before_a_limit_is_the_review(task: ReviewTask, tmp_path: Path) -> None:
    with OpenAIServer([writes(BLOCK + "<end/>"), run("ls")], forever=True) as server:
        review = reviewer(server, tmp_path / "cache", max_steps=3).review(task)
    assert [c.body for c in review.comments] == ["Use `is`."]
    assert any("stopped (step-limit)" in w for w in review.warnings)
    with OpenAIServer([run("ls")], forever=True) as server, pytest.raises(ReviewerError, match="step-limit"):
        reviewer(server, tmp_path / "cache", max_steps=2).review(task)


def test_odd_places_are_flagged_and_absolute_paths_understood(task: ReviewTask, tmp_path: Path) -> None:
    text = (
        BLOCK.replace("app/core.py", "$PWD/app/core.py").replace("`is`", "is")
        + BLOCK.replace(">6<", ">99999<").replace("Use `is`", "Far")
        + "<path>gone.py</path><side>left</side><from>1</from><to>1</to><note>Gone.</note>"
        + "<path>app/core.py</path><from>x</from><note>File.</note><end/>"
    )
    with OpenAIServer([run(f"cat > ~/review.txt <<EOF\n{text}\nEOF"), DONE]) as server:
        review = reviewer(server, tmp_path / "cache").review(task)
    found = {c.body: c for c in review.comments}
    assert (found["Use is."].path, found["Use is."].lines) == ("app/core.py", (6, 6))
    assert "beyond-file" in found["Far."].flags
    assert (found["Gone."].path, found["Gone."].side) == ("gone.py", "left")
    assert (found["File."].level, "line-invalid" in found["File."].flags) == ("file", True)


def test_an_endpoint_that_fails_is_nobodys_score(task: ReviewTask, tmp_path: Path) -> None:
    with OpenAIServer([run("ls"), status(401)]) as server, pytest.raises(InfraError) as caught:
        reviewer(server, tmp_path / "cache").review(task)
    assert caught.value.reason == "unauthorized"
    assert caught.value.usage["calls"] == 1
    with OpenAIServer([]) as server, pytest.raises(InfraError, match="--crbench-offline"):
        reviewer(server, tmp_path / "cache").review(replace(task, sandbox=None))


def test_a_repeat_is_another_conversation(task: ReviewTask, tmp_path: Path) -> None:
    with OpenAIServer([writes("<end/>"), DONE, writes(BLOCK + "<end/>"), DONE]) as server:
        made = reviewer(server, tmp_path / "cache")
        assert made.review(task).comments == ()
        assert len(made.review(replace(task, repeat=2)).comments) == 1


def test_the_fingerprint_holds_limits_and_prompts(tmp_path: Path) -> None:
    with OpenAIServer([]) as server:
        one = reviewer(server, tmp_path).fingerprint
        assert one["limits"]["steps"] == 50
        assert one["mode"] == "agent"
        other = reviewer(server, tmp_path, max_steps=3).fingerprint
        assert digest.of(dict(one)) != digest.of(dict(other))
