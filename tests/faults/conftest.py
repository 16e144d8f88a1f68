"""What every test of a fault may use."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from filelock import FileLock
from support.faults import Told, parse
from support.stories import Story

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@pytest.fixture
def fault(request: pytest.FixtureRequest) -> Iterator[Told]:
    """What the test's docstring says of its fault; the test must look for the message."""
    told = Told(parse(request.module.__name__, request.function.__name__, request.function.__doc__))
    yield told
    assert told.looked, "the test did not look for the message that its docstring names"


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
