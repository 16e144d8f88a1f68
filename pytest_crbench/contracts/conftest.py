"""Which suites run, and what they show to the parts."""

from __future__ import annotations

import secrets
from dataclasses import replace
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ..core.errors import CrbenchError
from ..host import digest
from ..run import assemble
from . import SETTINGS, Subject, sample
from .sample import fails

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..core.model import Dataset
    from ..core.sandbox import Backend
    from ..core.settings import Settings


def _subjects(config: pytest.Config) -> list[Subject]:
    return [Subject.parse(text) for text in config.getoption("crbench_contract", None) or ()]


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out the suites of kinds that nobody asked for."""
    kind = collection_path.stem.removeprefix("test_")
    asked = {subject.kind for subject in _subjects(config)}
    return True if collection_path.name.startswith("test_") and kind not in asked else None


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Module | None:
    """Take the suites for tests, whatever the user's own are called (``python_files``)."""
    known = any(fnmatch(file_path.name, pattern) for pattern in parent.config.getini("python_files"))
    ours = file_path.parent == Path(__file__).parent and file_path.name.startswith("test_")
    return pytest.Module.from_parent(parent, path=file_path) if ours and not known else None


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run each suite for each of its parts."""
    kind = metafunc.module.__name__.rpartition("test_")[2]
    if "subject" in metafunc.fixturenames:
        found = [subject for subject in _subjects(metafunc.config) if subject.kind == kind]
        metafunc.parametrize("subject", found, ids=[s.spec for s in found], indirect=True, scope="session")


@pytest.fixture(scope="session")
def subject(request: pytest.FixtureRequest) -> Subject:
    """The part to look at, as it was named."""
    found: Subject = request.param
    return found


@pytest.fixture(scope="session")
def part(subject: Subject, request: pytest.FixtureRequest) -> Any:
    """The part itself."""
    try:
        return subject.load(request.config.invocation_params.dir)
    except CrbenchError as error:
        fails(str(error))


@pytest.fixture(scope="session")
def settings(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """The options of this run; what a run would write goes to a temporary folder."""
    return replace(request.config.stash[SETTINGS], run_dir=tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    """The two pull requests of `sample`."""
    return sample.dataset_at(sample.write_dataset(tmp_path_factory.mktemp("contracts") / "data"))


@pytest.fixture(scope="session")
def pulls(data: Dataset, settings: Settings) -> dict[str, sample.Pull]:
    """Both, fetched, by id."""
    return sample.pulls_of(data, settings)


@pytest.fixture(scope="session")
def backend(settings: Settings) -> Iterator[Callable[[], Backend]]:
    """Makes the sandbox that the options name, when it is first asked for."""
    made: list[Backend] = []
    session = secrets.token_hex(8)

    def make() -> Backend:
        if not made:
            made.append(assemble.make_backend(settings, settings.sandbox, session, print))
        return made[0]

    yield make
    for one in made:
        one.reap(session)


@pytest.fixture
def unchanged(pulls: dict[str, sample.Pull], data: Dataset) -> Iterator[None]:
    """Trees, repositories and dataset are what they were, whatever a part did with its copies."""
    trees = {tree.path: tree.digest for p in pulls.values() for tree in (p.trees.base, p.trees.head)}
    places = [*trees, *(pull.workspace.path for pull in pulls.values()), *([data.path] if data.path else [])]
    before = {place: digest.of_tree(place) for place in places}
    yield
    changed = [str(place) for place in places if digest.of_tree(place) != before[place]]
    assert not changed, f"the part has written to what is not its own: {', '.join(changed)}"
