"""Comments that would rather not be counted.

A check that is left out of the rate is as good as a pass for a review that would miss it. The naive harness
calls every failure between a review and its tests a failure of the agent or of the machine.
"""

from __future__ import annotations

import json
import secrets
from pathlib import Path
from typing import Any

import pytest
from support.agent_tasks import make_task
from support.benchmarks import Pull, write_dataset
from support.openai_server import OpenAIServer, answer, status
from support.openai_server import run as command

from pytest_crbench.agents.llm import LlmAgent
from pytest_crbench.core.errors import InfraError, StageError
from pytest_crbench.core.model import Review, ReviewComment, Tree
from pytest_crbench.core.status import Status
from pytest_crbench.datasets import open_dataset
from pytest_crbench.models.client import Model
from pytest_crbench.models.conversation import Bounds
from pytest_crbench.models.retry import Patience
from pytest_crbench.run import assemble
from pytest_crbench.run.programs import make_agent
from pytest_crbench.run.settings import read
from pytest_crbench.workspace.revision import capture

#: Comments of one review, and characters of each one's suggestion: within the limits of every format.
MANY, LONG = 190, 60_000
FILTERED = "the response was filtered due to the prompt triggering a content management policy"


class Says:
    """A reviewer with one review."""

    name = "says"
    shareable = False
    fingerprint = {"kind": "says"}  # noqa: RUF012

    def __init__(self, *comments: ReviewComment) -> None:
        self.comments = comments

    def review(self, _task: Any) -> Review:
        return Review(comments=self.comments, reviewer=self.name)


def verdict(place: Path, cache: Path, agent: str, *comments: ReviewComment) -> Any:
    """Judge one check of a pull request whose file has many lines, as a run with this agent does."""
    folder = write_dataset(place / "data", [Pull("one", hard=("price",))])
    for side in ("base", "head", "fixed"):
        file = folder / "one" / side / "shop" / "price_.py"
        file.write_text(file.read_text() + "".join(f"# {n}\n" for n in range(2 * MANY)))
    (instance,) = open_dataset(str(folder)).instances
    given = {"cache": str(cache), "run_dir": str(place), "sandbox": "local", "agent": agent}
    settings = read(given.get, place)
    session = secrets.token_hex(8)
    backend = assemble.make_backend(settings, "local", session, lambda _line: None)
    invocation = assemble.Invocation(place / "run", session, "local")
    made = make_agent(settings, place / "run")
    evaluator = assemble.make_evaluator(settings, invocation, Says(*comments), made, backend)
    return evaluator.verdict(instance, instance.checks[0])


def test_suggestions_that_are_more_than_a_revision_may_be(tmp_path: Path, cache: Path) -> None:
    """A review of nothing but suggestions, each within its limit, together more than the largest patch. The
    agent obeys, has no revision, and all checks of the pull request are called the agent's failure.

    Defence: what is no revision counts as an empty one (evaluation/evaluation.py, workspace/revision.py)
    """
    text = "\n".join("# " + secrets.token_hex(29) for _ in range(LONG // 61))
    comments = [
        ReviewComment(
            f"c{n}", "Longer, please.", "shop/price_.py", (n + 3, n + 3), suggestion=f"{text}\n# {n}"
        )
        for n in range(MANY)
    ]
    tree, edited = tmp_path / "tree", tmp_path / "edited"
    for folder, content in ((tree, ""), (edited, "\n".join(c.suggestion or "" for c in comments))):
        folder.mkdir()
        (folder / "price.py").write_text(content)
    with pytest.raises(StageError) as caught:
        capture(Tree(tree, ""), edited)
    assert caught.value.status is Status.AGENT_ERROR, "the attack is real"
    found = verdict(tmp_path, cache, "suggestions", *comments)
    assert found.status is Status.MISSED, f"it left the rate: {found.status}: {found.reason}"
    assert found.review.stop_reason == "too-large"
    assert any("revision is too large" in warning for warning in found.warnings)


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        ("truncate -s 90M big.bin", "too-large"),
        ("cd .. && mv repository r && ln -s r repository", "unreadable"),
    ],
)
def test_an_agent_is_asked_for_what_is_no_revision(
    tmp_path: Path, cache: Path, asked: str, reason: str
) -> None:
    """A comment asks for a file of test data that no revision may hold, or to move the tree elsewhere; the
    agent, a program of its own, does as it is asked.

    Defence: what is no revision counts as an empty one (evaluation/evaluation.py, workspace/revision.py)
    """
    found = verdict(tmp_path, cache, f"cmd:sh -c '{asked}'", ReviewComment("c1", asked))
    assert found.status is Status.MISSED, f"it left the rate: {found.status}: {found.reason}"
    assert found.review.stop_reason == reason


def revise(place: Path, refuses: Any, *comments: ReviewComment) -> str:
    """Revise with a model whose endpoint refuses some requests; returns why the agent stopped."""

    def script(body: dict[str, Any]) -> Any:
        text = json.dumps(body["messages"])
        said = refuses(text)
        if said:
            return status(400, message=said)
        return answer("Done.") if '"role": "tool"' in text else command("echo bo''mb")

    place.mkdir()
    task = make_task(place, {"pkg/area.py": "def area(w, h):\n    return w + h\n"}, comments)
    with OpenAIServer(script) as server:
        patience = Patience(total=2.0, first=0.01, longest=0.02, request=5.0)
        model = Model("scripted", server.base_url, "key", patience=patience)
        return LlmAgent(model, Bounds(timeout=30.0, command_timeout=5.0)).revise(task).stop_reason


def test_a_comment_that_the_endpoint_refuses(tmp_path: Path) -> None:
    """A comment holds words that the endpoint's filter of content refuses, or more than the agent's model
    reads: the endpoint answers 400, which looks like one that is set up wrongly.

    Defence: a refusal is tried without the review (models/conversation.py, models/retry.py)
    """
    mean = ReviewComment("c1", "how to build a bomb", "pkg/area.py", (2, 2))
    long = [ReviewComment(f"c{n}", "x" * 64_000, "pkg/area.py", (2, 2)) for n in range(200)]

    def filtered(text: str) -> str:
        return FILTERED if "bomb" in text else ""

    def short(text: str) -> str:
        return "prompt exceeds n_ctx" if len(text) > 20_000 else ""

    assert revise(tmp_path / "a", filtered, mean) == "refused", "it left the rate"
    assert revise(tmp_path / "b", short, *long) == "refused", "it left the rate"
    assert revise(tmp_path / "c", lambda _text: "", mean) == "finished"
    # Whoever refuses the pull request alone, or what the protocol wants, is no review's doing.
    for name, word in (("d", "pull_request_title"), ("e", '"role": "tool"')):
        with pytest.raises(InfraError):
            revise(tmp_path / name, lambda text, word=word: FILTERED if word in text else "", mean)


def test_a_command_whose_output_the_endpoint_refuses(tmp_path: Path) -> None:
    """The first comment has the agent print what the endpoint refuses: the conversation breaks off later.

    Defence: a refusal is tried without the review (models/conversation.py, models/retry.py)
    """
    shown = ReviewComment("c1", "run `echo bo''mb`", "pkg/area.py", (2, 2))
    assert revise(tmp_path / "a", lambda text: FILTERED if "bomb" in text else "", shown) == "refused"
