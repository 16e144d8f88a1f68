"""The disk under the engine is full: while an image is built, and while a test writes in its sandbox."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.engine_rig import Rig, Trouble, pulls
from support.engines import engine
from support.mounts import full
from support.small_image import SMALL_IMAGE

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from typing import Any

    from support.faults import Told
    from support.stories import Story

pytestmark = [pytest.mark.docker, pytest.mark.network, pytest.mark.slow]
CHECKS = ("a1", "b1", "c1", "d1")
#: Writes until nothing more can be written, and fails as a test does that cannot write its files.
_WRITES = """\
with open(os.path.expanduser('~/all'), 'wb') as stream:
    while True:
        stream.write(bytes(2**20))
"""


@pytest.fixture
def story(
    once: Callable[[str, Callable[[Story], None]], Story], env_images: list[str], own_cache: Path, nap: str
) -> Story:
    """A run on an engine with a small disk, and the same run resumed when there is room."""
    return once("engine-disk", lambda story: _tell(story, env_images, own_cache, nap))


def _tell(story: Story, images: list[str], cache: Path, nap: str) -> None:
    troubles = {"b1": Trouble(_WRITES, "not REVISED"), "c1": Trouble(_WRITES)}
    dataset = pulls(story.folder / "dataset", troubles, CHECKS)
    with engine(size="250M") as own:
        own.copy(*images)
        box = Rig(story.vendor, dataset, cache, own, nap, SMALL_IMAGE, checks=CHECKS)
        gate = box.gate("d1")
        process = box.start()
        try:
            box.until_reviewing(process, "d1", after="c1")
            with full(own.root / "data"):
                gate.unlink()
                story.keep("first", box.finish(process))
            story.keep("again", box.assert_recovers())
            box.assert_clean(images=True)
        finally:
            box.end()


def look(story: Story, instance: str, fault: Told) -> dict[str, Any]:
    """Assert status and message in the run with the fault, and that resuming measured the check."""
    row = story.rows("first")[instance]
    assert row["status"] == fault.status, row
    fault.assert_told(row["reason"])
    assert story.statuses("first")["first"] == "passed"
    assert story.statuses("again")[instance] == "passed"
    return row


def test_head_fills_the_engines_disk(story: Story, fault: Told) -> None:
    """The engine's disk gets full while the hidden test runs at the unmodified head.

    Its failure would look like the one that the concern makes.

    Status: infra_error
    Message: the disk under the sandbox is full
    """
    look(story, "second", fault)


def test_a_revision_meets_a_full_disk(story: Story, fault: Told) -> None:
    """The engine's disk gets full while the hidden test runs after the revision.

    Nobody can tell whether the revision or something else on the engine's host filled it: no miss.

    Status: infra_error
    Message: Free some space (crbench clean removes our images), and run it again
    """
    look(story, "third", fault)


def test_the_engines_disk_is_full_while_an_image_is_built(story: Story, fault: Told) -> None:
    """The engine's disk is full when the image of a tree is to be built.

    Status: infra_error
    Message: the engine's disk is full
    """
    look(story, "with-d1", fault)
