"""What every test of a fault may use."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest
from filelock import FileLock
from support.engine_rig import Rig, Trouble, prepared_images, pulls
from support.engines import engine
from support.faults import Told, parse
from support.small_image import SMALL_IMAGE
from support.stories import Story

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from support.engines import Engine


@pytest.fixture
def fault(request: pytest.FixtureRequest) -> Iterator[Told]:
    """What the test's docstring says of its fault; the test must look for the message."""
    told = Told(parse(request.module.__name__, request.function.__name__, request.function.__doc__))
    yield told
    assert told.looked or request.session.testsfailed, (
        "the test did not look for the message that its docstring names"
    )


@pytest.fixture(scope="session")
def once(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, Callable[[Story], None]], Story]:
    """Give a story that is made once for the session, whichever workers its tests run on."""
    base = tmp_path_factory.getbasetemp()
    base = base.parent if base.name.startswith("popen-") else base

    def get(name: str, make: Callable[[Story], None]) -> Story:
        folder = base / f"story-{name}"
        with FileLock(base / f"story-{name}.lock"):
            failed = folder / "failed"
            if failed.exists():
                pytest.fail(failed.read_text(), pytrace=False)
            if not (folder / "made").exists():
                folder.mkdir()
                try:
                    make(Story(folder))
                except BaseException as error:
                    failed.write_text(f"the runs of {name} failed: {error!r}")
                    raise
                (folder / "made").touch()
        return Story(folder)

    return get


@pytest.fixture(scope="session")
def env_images(cache: Path) -> list[str]:
    """The small base image and an environment on it, in the shared engine, where there is a network."""
    return prepared_images(cache)


@pytest.fixture(scope="session")
def own_cache(cache: Path, env_images: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache for the runs on engines of their own; it holds the pins, which need the package index."""
    own = tmp_path_factory.mktemp("cache")
    for name in ("pins", "images"):
        (own / name).symlink_to(cache / name)
    return own


@pytest.fixture(scope="session")
def own_engine(env_images: list[str]) -> Iterator[Engine]:
    """An engine that a test may stop, kill and fill, if it starts it again."""
    with engine() as own:
        own.copy(*env_images)
        yield own


@pytest.fixture(scope="session")
def nap() -> str:
    """Seconds that a troubled test sleeps: a number that occurs nowhere else on this machine."""
    return f"7{random.randrange(10**9):09d}"


@pytest.fixture
def rig(tmp_path: Path, own_engine: Engine, own_cache: Path, nap: str) -> Iterator[Callable[..., Rig]]:
    """Make a vendor's folder and its pull requests; the test of ``b1`` naps where trouble is wanted."""
    made: list[Rig] = []

    def make(trouble: Trouble | None = None, *, checks: tuple[str, ...] = ("a1", "b1")) -> Rig:
        napping = Trouble(f"subprocess.run(['sleep', '{nap}'])")
        dataset = pulls(tmp_path / "dataset", {"b1": trouble or napping}, checks)
        one = Rig(
            tmp_path / "vendor", dataset, own_cache, own_engine, nap, base_image=SMALL_IMAGE, checks=checks
        )
        made.append(one)
        return one

    yield make
    for one in made:
        one.end()
