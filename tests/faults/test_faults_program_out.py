"""Reviewers that hang, or put into {out} what is no file; all in one run, a pull request for each."""

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
FAULTS = {
    "b": "trap '' TERM; answer; while true; do sleep {nap}; done",
    "c": "answer; exec >&- 2>&-; sleep {nap}",
    "d": "kill -STOP $$; answer",
    "e": 'mkfifo "$out"',
    "f": 'ln -s /dev/zero "$out"',
    "g": 'truncate -s 10G "$out"',
    "h": 'answer; truncate -s 40 "$out"',
    "i": 'rm -rf "$(dirname "$out")"',
    "j": 'answer; chmod 0 "$out"; mv "$out" "$out.moved"; mkdir "$out"',
}


@pytest.fixture
def story(once: Callable[[str, Callable[[Story], None]], Story], cache: Path) -> Story:
    """The run with all faults, and the one that was resumed with a sound reviewer."""
    given = ("-n", "3", "--crbench-reviewer-timeout=4")
    return once("out", lambda story: tell(story, cache, FAULTS, *given, out=True))


def test_sigterm_is_ignored(story: Story, fault: Told) -> None:
    """A reviewer hangs and ignores SIGTERM.

    Status: reviewer_error
    Message: was stopped after 4 s. Raise --crbench-reviewer-timeout
    """
    fault.assert_told(look(story, "b", fault)["reason"])


def test_closed_pipes(story: Story, fault: Told) -> None:
    """A reviewer closes its pipes and sleeps.

    Status: reviewer_error
    Message: was stopped after 4 s. Raise --crbench-reviewer-timeout
    """
    fault.assert_told(look(story, "c", fault)["reason"])


def test_a_stopped_reviewer(story: Story, fault: Told) -> None:
    """A reviewer stops itself (SIGSTOP), so that SIGTERM does not reach it.

    Status: reviewer_error
    Message: was stopped after 4 s. Raise --crbench-reviewer-timeout
    """
    fault.assert_told(look(story, "d", fault)["reason"])


def test_a_fifo_for_a_file(story: Story, fault: Told) -> None:
    """A reviewer makes {out} a pipe that nobody writes to.

    Status: reviewer_error
    Message: something that is no regular file
    """
    fault.assert_told(look(story, "e", fault)["reason"])


def test_a_device_for_a_file(story: Story, fault: Told) -> None:
    """A reviewer makes {out} a link to /dev/zero.

    Status: reviewer_error
    Message: something that is no regular file
    """
    fault.assert_told(look(story, "f", fault)["reason"])


def test_a_review_of_10_gigabytes(story: Story, fault: Told) -> None:
    """A reviewer makes {out} a sparse file of 10 GB.

    Status: reviewer_error
    Message: wrote a review of more than 16777216 bytes
    """
    fault.assert_told(look(story, "g", fault)["reason"])


def test_half_a_file(story: Story, fault: Told) -> None:
    """A reviewer leaves {out} half-written.

    Status: reviewer_error
    Message: review: the JSON that begins in line 1 does not parse
    """
    fault.assert_told(look(story, "h", fault)["reason"])


def test_the_private_folder_is_gone(story: Story, fault: Told) -> None:
    """A reviewer deletes its private folder, {out} and the workspace with it.

    Status: reviewer_error
    Message: the reviewer wrote nothing. That there are no findings must be said
    """
    fault.assert_told(look(story, "i", fault)["reason"])


def test_a_folder_for_a_file(story: Story, fault: Told) -> None:
    """A reviewer makes {out} a folder.

    Status: reviewer_error
    Message: something that is no regular file
    """
    fault.assert_told(look(story, "j", fault)["reason"])
