"""Images that cannot be had, or that somebody removes while a run uses them."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

import pytest
from support.engine_rig import Trouble

if TYPE_CHECKING:
    from collections.abc import Callable

    from support.engine_rig import Rig
    from support.engines import Engine
    from support.faults import Told

pytestmark = [pytest.mark.docker, pytest.mark.network, pytest.mark.slow]


def images(engine: Engine, repository: str) -> list[str]:
    """Names of our images of one kind."""
    return engine.docker(
        "images", "--no-trunc", "--format={{.Repository}}:{{.Tag}}", repository
    ).stdout.split()


def test_the_base_image_cannot_be_had(rig: Callable[..., Rig], fault: Told) -> None:
    """The base image is not in the engine, and no registry has it.

    Told before any work starts.

    Status: none
    Message: name another one with --crbench-base-image
    """
    box = rig()
    done = box.run("--crbench-base-image=registry.invalid/no-such-image:1")
    assert done.status == pytest.ExitCode.USAGE_ERROR, done.output
    fault.assert_told(done.output)
    assert "registry.invalid/no-such-image:1" in done.output
    assert box.reviews() == []


def test_the_tree_image_is_removed_between_two_sandboxes(
    rig: Callable[..., Rig], own_engine: Engine, nap: str, fault: Told
) -> None:
    """Somebody removes the image of the head tree between the control at head and the test of the revision.

    It is built again in the same run.

    Status: passed
    Message: coverage 2 of 2 measured
    """
    box = rig(Trouble(f"subprocess.run(['sleep', '{nap}'])", "not REVISED"))
    process = box.start()
    sleeping = box.until_it_naps(process)
    own_engine.docker("rmi", "-f", *images(own_engine, "crbench-tree"))
    for pid in sleeping:
        os.kill(pid, signal.SIGKILL)
    done = box.finish(process)
    box.assert_hit(done, fault)
    box.assert_clean()


def test_the_environment_image_is_removed_between_two_sandboxes(
    rig: Callable[..., Rig], own_engine: Engine, env_images: list[str], nap: str, fault: Told
) -> None:
    """Somebody removes all our images between two sandboxes (``docker image prune -a``).

    The environment is built again in the same run, if the package index can be reached: not here.

    Status: infra_error
    Message: was removed from the engine while a run used it. Building it again failed: pip install
    """
    box = rig(Trouble(f"subprocess.run(['sleep', '{nap}'])  # once more", "not REVISED"))
    process = box.start()
    sleeping = box.until_it_naps(process)
    own_engine.docker("rmi", "-f", *images(own_engine, "crbench-tree"), *images(own_engine, "crbench-env"))
    for pid in sleeping:
        os.kill(pid, signal.SIGKILL)
    try:
        box.assert_hit(box.finish(process), fault, "b1")
    finally:
        own_engine.copy(*env_images)
    box.assert_recovers()
    box.assert_clean(images=True)
    own_engine.copy(*env_images)
