"""What every kind of dataset promises (`core.datasets`). ``ARGUMENT`` is the path of a dataset of it."""

from __future__ import annotations

import re
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ..core.datasets import DatasetKind, Note
from ..core.errors import UsageError
from ..core.model import Dataset, Instance, ReviewComment
from ..core.scoring import SCORINGS
from ..host import digest
from .sample import fails, is_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from . import Subject

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")


@pytest.fixture(scope="session")
def kind(part: Any, subject: Subject) -> DatasetKind:
    """The kind of dataset."""
    assert isinstance(part, DatasetKind), f"{subject.name} is no instance of a subclass of DatasetKind"
    return part


@pytest.fixture(scope="session")
def path(subject: Subject, request: pytest.FixtureRequest) -> Path:
    """The dataset that the user named."""
    if not subject.argument:
        pytest.skip("no dataset is named: write --crbench-contract=dataset:NAME:PATH")
    return Path(request.config.invocation_params.dir / Path(subject.argument).expanduser())


@pytest.fixture(scope="session")
def offline() -> Iterator[None]:
    """No connection can be made."""

    def refuse(*_arguments: Any, **_options: Any) -> None:
        fails("a dataset must be loaded offline; this one connects to somewhere")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "connect", refuse)
        patch.setattr(socket, "getaddrinfo", refuse)
        yield


@pytest.fixture(scope="session")
def loaded(kind: DatasetKind, path: Path, offline: None) -> Dataset:
    """The dataset."""
    try:
        found = kind.load(path)
    except Exception as error:
        fails(f"cannot load {path}: {type(error).__name__}: {error}")
    assert isinstance(found, Dataset), f"load() must return a Dataset, found {type(found).__name__}"
    return found


def test_the_same_every_time_and_offline(kind: DatasetKind, path: Path, loaded: Dataset) -> None:
    folder = path if path.is_dir() else path.parent
    before = digest.of_tree(folder)
    again = kind.load(path)
    assert [i.id for i in again.instances] == [i.id for i in loaded.instances], "the order must be stable"
    assert again == loaded
    assert digest.of_tree(folder) == before, "loading a dataset must not change its files"


def test_names_and_digests(loaded: Dataset) -> None:
    assert _NAME.fullmatch(loaded.name), f"the name {loaded.name!r} begins node ids: letters, digits, ._-"
    is_text(loaded.digest, "digest")
    assert loaded.scoring in SCORINGS, f"there is no scoring {loaded.scoring!r}"
    assert isinstance(loaded.instances, tuple)
    assert loaded.instances, "a dataset without instances measures nothing"
    names = [instance.id.casefold() for instance in loaded.instances]
    assert len(set(names)) == len(names), "ids of instances must differ (case does not count)"


def test_instances(loaded: Dataset) -> None:
    for instance in loaded.instances:
        where = f"instance {instance.id!r}"
        assert isinstance(instance, Instance), where
        assert _NAME.fullmatch(instance.id), f"{where}: an id holds letters, digits, '.', '_' and '-'"
        assert instance.dataset == loaded.name, f"{where}: dataset must be the dataset's name"
        assert instance.digest, f"{where} has no digest"
        assert instance.checks, f"{where} has no checks"
        ids = [check.id.casefold() for check in instance.checks]
        assert len(set(ids)) == len(ids), f"{where}: ids of checks must differ"
        for check in instance.checks:
            assert _NAME.fullmatch(check.id), f"{where}: {check.id!r} is no id of a check"
            assert check.digest, f"{where}: check {check.id} has no digest"
            assert isinstance(check.comment, ReviewComment), where
            assert not check.test or check.kind, f"{where}: check {check.id} has a test and no kind"
            for name, value in instance.facets(check).items():
                assert isinstance(name, str), where
                assert isinstance(value, str), f"{where}: the facet {name} must be text, found {value!r}"


def test_the_folder_of_its_files(kind: DatasetKind, path: Path) -> None:
    folder = kind.folder(path)
    assert isinstance(folder, Path)
    assert path.absolute().is_relative_to(folder.absolute()), "no sandbox may show the files of a dataset"


def test_notes(kind: DatasetKind, path: Path, loaded: Dataset) -> None:
    for note in kind.notes(path, loaded):
        assert isinstance(note, Note), f"notes() must return Notes, found {type(note).__name__}"
        is_text(note.name, "the name of a note")


@pytest.mark.parametrize("name", ["absent", "ab\nsent", "x" * 300])
def test_what_is_not_there_is_a_usage_error(kind: DatasetKind, tmp_path: Path, name: str) -> None:
    wanted = tmp_path / name
    assert isinstance(kind.folder(wanted), Path), "folder() answers also for what is not there"
    with pytest.raises(UsageError) as caught:
        kind.load(wanted)
    assert name.partition("\n")[0][:40] in str(caught.value), "the error must name the path"


@pytest.mark.parametrize("content", [b"", b"\xff\xfe\x00", b"{", b'{"a": 1}', b"[1]", b"<x/>"])
def test_what_is_no_dataset_is_a_usage_error(kind: DatasetKind, tmp_path: Path, content: bytes) -> None:
    folder = tmp_path / "set"
    folder.mkdir()
    (folder / "dataset.toml").write_bytes(content)
    for wanted in (folder, folder / "dataset.toml"):
        with pytest.raises(UsageError):
            kind.load(wanted)
