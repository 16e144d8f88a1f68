"""Reviewers that break while they print their review; all in one run, a pull request for each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.broken_reviewers import look, tell

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from support.faults import Told
    from support.stories import Story

pytestmark = [pytest.mark.network, pytest.mark.slow]
MIB = 1024 * 1024
#: 16 MiB of a stream are kept; a worker that only measures has about 65 MiB.
BOUND = 180 * MIB
#: By the first letter of the instance's checks; all others are reviewed well.
FAULTS = {
    "b": "sleep {nap} & say",
    "c": "(setsid sh -c 'exec </dev/null >/dev/null 2>&1; sleep {nap} & exit' &) ; say",
    "d": "head -c 500000000 /dev/zero; say",
    "e": "head -c 500000000 /dev/zero >&2; say",
    "f": "kill -SEGV $$",
    "g": "say | head -c 40",
    "h": 'rm -rf "$PWD"; say',
    "i": "kill -KILL 0",
    "j": "kill -KILL $PPID; sleep {nap}",
}


@pytest.fixture
def story(once: Callable[[str, Callable[[Story], None]], Story], cache: Path) -> Story:
    """The run with all faults, and the one that was resumed with a sound reviewer."""
    return once("stdout", lambda story: tell(story, cache, FAULTS, "-n", "2", out=False))


def test_a_child_that_holds_the_pipes(story: Story, fault: Told) -> None:
    """A reviewer forks, and its child holds the pipes for ever.

    Status: passed
    Message: processes that it had left running
    """
    assert look(story, "b", fault)["durations"]["review"] < 60
    fault.assert_told(story.log("b"))


def test_a_daemon(story: Story, fault: Told) -> None:
    """A reviewer leaves a daemon behind (forked twice, in a session of its own).

    Status: passed
    Message: processes that it had left running
    """
    look(story, "c", fault)
    fault.assert_told(story.log("c"))


def test_a_flood_of_output(story: Story, fault: Told) -> None:
    """A reviewer floods its output with 500 MB.

    Peak memory of the controller and of every worker is bounded.

    Status: reviewer_error
    Message: wrote more than 16777216 bytes to stdout
    """
    fault.assert_told(look(story, "d", fault)["reason"])
    peaks = story.told("first")["peaks"]
    assert len(peaks) >= 3, "a controller and two workers"
    assert max(peaks) < BOUND, peaks
    kept = (story.run / "evaluations/small/d/review-1/review.stdout").stat().st_size
    assert 16 * MIB <= kept < 17 * MIB


def test_a_flood_of_errors(story: Story, fault: Told) -> None:
    """A reviewer floods its standard error with 500 MB, and prints a good review.

    Status: passed
    Message: reviewer: exit status 0
    """
    look(story, "e", fault)
    fault.assert_told(story.log("e"))
    assert (story.run / "evaluations/small/e/review-1/review.stderr").stat().st_size < 17 * MIB


def test_a_signal_ends_it(story: Story, fault: Told) -> None:
    """A reviewer crashes by a signal.

    Status: reviewer_error
    Message: was ended by SIGSEGV
    """
    fault.assert_told(look(story, "f", fault)["reason"])


def test_half_a_review(story: Story, fault: Told) -> None:
    """A reviewer prints half of its JSON and ends well.

    Status: reviewer_error
    Message: review: the JSON that begins in line 1 does not parse
    """
    fault.assert_told(look(story, "g", fault)["reason"])


def test_no_working_folder(story: Story, fault: Told) -> None:
    """A reviewer deletes the folder that it runs in.

    Status: passed
    Message: reviewer: exit status 0
    """
    look(story, "h", fault)
    fault.assert_told(story.log("h"))


def test_kill_0(story: Story, fault: Told) -> None:
    """A reviewer kills its whole process group (kill 0): the worker is not in it.

    Status: reviewer_error
    Message: was ended by SIGKILL (the system does that where memory runs out)
    """
    fault.assert_told(look(story, "i", fault)["reason"])


def test_the_worker_is_killed_by_its_reviewer(story: Story, fault: Told) -> None:
    """A reviewer kills the worker that runs it.

    Status: infra_error
    Message: the worker crashed
    """
    fault.assert_told(look(story, "j", fault)["reason"])
