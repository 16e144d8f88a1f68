"""One container is killed, removed, paused, or reaches a limit of the kernel; the engine itself is well.

All in one run, a pull request for each, and the same run resumed without the faults.
"""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

import pytest
from support.engine_rig import Rig, Trouble, instance_of, pulls
from support.openai_server import OpenAIServer, answer, run
from support.small_image import SMALL_IMAGE
from support.stories import Story

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from typing import Any

    from support.engines import Engine
    from support.faults import Told

pytestmark = [pytest.mark.docker, pytest.mark.network, pytest.mark.slow]
#: What is done to the container in which the hidden test of a check naps.
DONE_TO_IT = {"b1": ("kill",), "c1": ("rm", "-f"), "d1": ("pause",)}
AT_LIMITS = {
    "e1": Trouble("data = b'x' * 10**9", "not REVISED"),
    "f1": Trouble("data = b'x' * 10**9"),
    "g1": Trouble("children = [subprocess.Popen(['sleep', '20']) for _ in range(60)]", "not REVISED"),
}
LIMITS = ("--crbench-limit=memory=150m", "--crbench-limit=pids=40")


@pytest.fixture
def story(
    once: Callable[[str, Callable[[Story], None]], Story], own_engine: Engine, own_cache: Path, nap: str
) -> Story:
    """The run with all faults, and the one that was resumed without."""
    return once("containers", lambda story: _tell(story, own_engine, own_cache, nap))


def _tell(story: Story, engine: Engine, cache: Path, nap: str) -> None:
    naps = {check: Trouble(f"subprocess.run(['sleep', '{nap}{ord(check[0])}'])") for check in DONE_TO_IT}
    checks = ("a1", *DONE_TO_IT, *AT_LIMITS)
    dataset = pulls(story.folder / "dataset", {**naps, **AT_LIMITS}, checks)
    box = Rig(story.vendor, dataset, cache, engine, nap, SMALL_IMAGE, checks=checks, kept_as={"f1": "missed"})
    process = box.start(*LIMITS)
    try:
        for check, (verb, *options) in DONE_TO_IT.items():
            box.until_it_naps(process, f"{nap}{ord(check[0])}")
            engine.docker(verb, *options, *box.containers())
        story.keep("first", box.finish(process))
        story.keep("again", box.assert_recovers(*LIMITS))
    finally:
        box.end()


def look(story: Story, check: str, fault: Told) -> dict[str, Any]:
    """Assert status and message of a check in the run with the faults; the row of the resumed run."""
    instance = instance_of(check)
    row = story.rows("first")[instance]
    assert row["status"] == fault.status, row
    fault.assert_told(row["reason"])
    assert story.statuses("first")["first"] == "passed"
    return story.rows("again")[instance]


def test_a_container_is_killed_during_a_hidden_test(story: Story, fault: Told) -> None:
    """A container is killed during a hidden test.

    Status: infra_error
    Message: the sandbox's container has ended; it was killed from outside or its lifetime is over.
        Run it again
    """
    assert look(story, "b1", fault)["status"] == "passed"


def test_a_container_is_removed_during_a_hidden_test(story: Story, fault: Told) -> None:
    """A container is removed during a hidden test.

    Status: infra_error
    Message: the sandbox's container has ended; it was killed from outside or its lifetime is over.
        Run it again
    """
    assert look(story, "c1", fault)["status"] == "passed"


def test_a_container_is_paused_during_a_hidden_test(story: Story, fault: Told) -> None:
    """A container is paused during a hidden test, and nobody lets it go on.

    Status: infra_error
    Message: somebody paused the sandbox's container
    """
    assert look(story, "d1", fault)["status"] == "passed"


def test_head_reaches_the_memory_limit(story: Story, fault: Told) -> None:
    """The unmodified head is killed for memory.

    Status: infra_error
    Message: ran out of memory at the unmodified head; raise --crbench-limit memory
    """
    assert look(story, "e1", fault)["status"] == "passed"


def test_a_revision_reaches_the_memory_limit(story: Story, fault: Told) -> None:
    """A test is killed for memory after a revision; head ran properly under the same limit.

    That is a measurement: resuming does not repeat it.

    Status: missed
    Message: the test run ran out of memory after the revision
    """
    assert look(story, "f1", fault)["status"] == "missed"


def test_head_reaches_the_process_limit(story: Story, fault: Told) -> None:
    """The unmodified head cannot start a process, for the limit of the sandbox.

    Its failure would look like the one that the concern makes, and the check would be missed whatever the
    review says.

    Status: infra_error
    Message: reached the limit of processes and threads at the unmodified head; raise --crbench-limit pids
    """
    assert look(story, "g1", fault)["status"] == "passed"


def test_a_container_is_killed_during_an_agents_command(
    rig: Callable[..., Rig], nap: str, fault: Told
) -> None:
    """A container is killed during a command of the llm agent.

    The model's answers so far are kept: resumed, the agent asks only for what comes after.

    Status: infra_error
    Message: the sandbox's container has ended
    """
    box = rig(Trouble(), checks=("b1",))
    fix = "printf 'def b1():\\n    return \"b1\"\\n' > shop/b1_.py"
    script = [run(f"sleep {nap}"), run(fix), answer("Done.")]
    with OpenAIServer(script) as server:
        model = ["--crbench-agent=llm", "--crbench-model=scripted", f"--crbench-base-url={server.base_url}"]
        model += ["--crbench-llm=agent-command-timeout=300"]
        process = box.start(*model)
        box.until_it_naps(process)
        box.engine.docker("kill", *box.containers())
        box.assert_hit(box.finish(process), fault, "b1")
        before = box.kept()
        again = box.start("--crbench-resume", "--crbench-rerun-errors", *model)
        for pid in box.until_it_naps(again):
            os.kill(pid, signal.SIGKILL)
        done = box.finish(again)
        assert done.statuses() == box.undisturbed, done.output
        assert len(server.requests) == len(script)
    assert before.items() <= box.kept().items()
    assert box.reviews() == ["b1"]
    box.assert_clean()
