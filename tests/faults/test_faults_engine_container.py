"""One container is killed, removed, paused, or reaches a limit of the kernel; the engine itself is well."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from support.engine_rig import Rig
    from support.faults import Told

pytestmark = [pytest.mark.docker, pytest.mark.network, pytest.mark.slow]


def test_a_container_is_killed_during_a_hidden_test(rig: Callable[..., Rig], fault: Told) -> None:
    """A container is killed during a hidden test.

    Status: infra_error
    Message: the sandbox's container has ended; it was killed from outside or its lifetime is over.
        Run it again
    """
    box = rig(checks=("a1", "b1", "c1"))
    process = box.start()
    box.until_it_naps(process)
    box.engine.docker("kill", *box.containers())
    box.assert_hit(box.finish(process), fault, "b1")
    box.assert_recovers()


def test_a_container_is_removed_during_a_hidden_test(rig: Callable[..., Rig], fault: Told) -> None:
    """A container is removed during a hidden test.

    Status: infra_error
    Message: the sandbox's container has ended; it was killed from outside or its lifetime is over.
        Run it again
    """
    box = rig()
    process = box.start()
    box.until_it_naps(process)
    box.engine.docker("rm", "-f", *box.containers())
    box.assert_hit(box.finish(process), fault, "b1")
    box.assert_recovers()


def test_a_container_is_paused_during_a_hidden_test(rig: Callable[..., Rig], fault: Told) -> None:
    """A container is paused during a hidden test, and nobody lets it go on.

    Status: infra_error
    Message: somebody paused the sandbox's container
    """
    box = rig()
    process = box.start()
    box.until_it_naps(process)
    box.engine.docker("pause", *box.containers())
    box.assert_hit(box.finish(process), fault, "b1")
    box.assert_recovers()


def test_head_reaches_the_memory_limit(rig: Callable[..., Rig], fault: Told) -> None:
    """The unmodified head is killed for memory.

    The second pull request's test takes more than the limit before any revision.

    Status: infra_error
    Message: ran out of memory at the unmodified head; raise --crbench-memory
    """
    box = rig("data = b'x' * 10**9", "not REVISED")
    box.assert_hit(box.run("--crbench-memory=150m"), fault, "b1")
    box.assert_recovers("--crbench-memory=150m")


def test_a_revision_reaches_the_memory_limit(rig: Callable[..., Rig], fault: Told) -> None:
    """A test is killed for memory after a revision; head ran properly under the same limit.

    That is a measurement: resuming does not repeat it.

    Status: missed
    Message: the test run ran out of memory after the revision
    """
    box = rig("data = b'x' * 10**9")
    done = box.run("--crbench-memory=150m")
    box.assert_hit(done, fault, "b1", output="".join(row["reason"] for row in done.results()["verdicts"]))
    kept = box.kept()
    again = box.run("--crbench-resume", "--crbench-rerun-errors", trouble=False)
    assert (again.statuses(), box.kept()) == (done.statuses(), kept)
    box.assert_clean()


def test_head_reaches_the_process_limit(rig: Callable[..., Rig], fault: Told) -> None:
    """The unmodified head cannot start a process, for the limit of the sandbox.

    Its failure would look like the one that the concern makes, and the check would be missed whatever the
    review says.

    Status: infra_error
    Message: reached the limit of processes and threads at the unmodified head; raise --crbench-pids
    """
    box = rig("children = [subprocess.Popen(['sleep', '20']) for _ in range(60)]", "not REVISED")
    box.assert_hit(box.run("--crbench-pids=40"), fault, "b1")
    box.assert_recovers("--crbench-pids=40")
