"""The cache: made once, repaired when changed, deletable at any time; and folders as a source."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys

import pytest
from support.archives import sdist
from support.index_server import Index, serve

from pytest_crbench.core.errors import InfraError, InvalidInstanceError
from pytest_crbench.core.model import Artifact, Source
from pytest_crbench.datasets import open_dataset
from pytest_crbench.host import digest
from pytest_crbench.host.indexes import IndexSettings
from pytest_crbench.host.trees import discard, stamp
from pytest_crbench.sources import fetch

ARCHIVE = sdist(*((f"demo-1/m{n}.py", f"n = {n}\n".encode()) for n in range(50)))
SHA = hashlib.sha256(ARCHIVE).hexdigest()
SOURCE = Source("pypi", Artifact("demo-1.tar.gz", SHA), Artifact("demo-1.tar.gz", SHA), package="demo")


@pytest.fixture
def index(monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with serve(Index()) as served:
        served.add("demo", "demo-1.tar.gz", ARCHIVE)
        yield served


def get(index, tmp_path, log=None, **options):
    settings = IndexSettings(index.url)
    return fetch(
        SOURCE,
        cache=tmp_path / "cache",
        index=settings,
        log=(log if log is not None else []).append,
        **options,
    )


def test_the_layout_is_the_documented_one(index, tmp_path):
    trees = get(index, tmp_path)
    cache = tmp_path / "cache"
    assert (cache / "archives" / SHA / "demo-1.tar.gz").read_bytes() == ARCHIVE
    assert trees.head.path.parent.parent == cache / "trees"
    record = json.loads((trees.head.path.parent / "record.json").read_bytes())
    assert record["digest"] == trees.head.digest == digest.of_tree(trees.head.path)


@pytest.mark.parametrize("damage", ["edit", "add", "remove", "mode", "record", "half"])
def test_a_changed_tree_is_made_again(index, tmp_path, damage):
    good = get(index, tmp_path)
    tree = good.head.path
    for folder in (tree, tree.parent):
        folder.chmod(0o755)
    if damage == "edit":
        (tree / "m1.py").chmod(0o644)
        (tree / "m1.py").write_text("n = 9\n")  # the same length
    elif damage == "add":
        (tree / "m99.py").write_text("")
    elif damage == "remove":
        (tree / "m1.py").unlink()
    elif damage == "mode":
        (tree / "m1.py").chmod(0o755)
    elif damage == "record":
        (tree.parent / "record.json").write_text("{")
    else:
        shutil.rmtree(tree)
    log: list[str] = []
    again = get(index, tmp_path, log=log, offline=True)
    assert again == good
    assert digest.of_tree(again.head.path) == good.head.digest
    assert not list((tmp_path / "cache" / "trees").glob(".*")), "nothing is left aside"
    assert log == ["demo-1.tar.gz: the cached tree was changed; it is made again"]


def test_a_change_that_keeps_size_and_time_is_found(index, tmp_path):
    good = get(index, tmp_path)
    file = good.head.path / "m1.py"
    before = file.stat()
    file.chmod(0o644)
    file.write_text("n = 9\n")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    file.chmod(0o444)
    assert get(index, tmp_path).head.path.joinpath("m1.py").read_text() == "n = 1\n"


def test_a_record_that_agrees_with_a_changed_tree_is_found_by_verify(index, tmp_path):
    good = get(index, tmp_path)
    file = good.head.path / "m1.py"
    file.chmod(0o644)
    file.write_text("n = 9\n")
    file.chmod(0o444)
    record = good.head.path.parent / "record.json"
    said = {**json.loads(record.read_bytes()), "stamp": stamp(good.head.path)}
    record.write_text(json.dumps(said))
    assert get(index, tmp_path).head.path.joinpath("m1.py").read_text() == "n = 9\n"
    assert get(index, tmp_path, verify=True).head.path.joinpath("m1.py").read_text() == "n = 1\n"


def test_a_copied_cache_with_other_times_is_still_good(index, tmp_path):
    get(index, tmp_path)
    shutil.copytree(tmp_path / "cache", tmp_path / "elsewhere", symlinks=True)
    for path in (tmp_path / "elsewhere").rglob("*"):
        os.utime(path, (1, 1))
    log: list[str] = []
    trees = fetch(SOURCE, cache=tmp_path / "elsewhere", offline=True, log=log.append)
    assert log == []
    assert (trees.head.path / "m1.py").read_text() == "n = 1\n"


def test_a_changed_archive_is_fetched_again(index, tmp_path):
    good = get(index, tmp_path)
    (tmp_path / "cache" / "archives" / SHA / "demo-1.tar.gz").write_bytes(b"changed")
    discard(tmp_path / "cache" / "trees")
    with pytest.raises(InfraError, match="not in the cache"):
        get(index, tmp_path, offline=True)
    log: list[str] = []
    assert get(index, tmp_path, log=log).head.digest == good.head.digest
    assert index.requests["/files/demo/demo-1.tar.gz"] == 2


def test_what_a_killed_process_left_is_no_hindrance(index, tmp_path):
    good = get(index, tmp_path)
    folder = good.head.path.parent
    left = folder.with_name(f".{folder.name}.new")
    left.joinpath("tree", "d").mkdir(parents=True)
    left.joinpath("tree", "d", "half").write_text("x")
    left.joinpath("tree", "d").chmod(0o555)
    discard(folder)
    assert get(index, tmp_path, offline=True) == good
    assert not left.exists()


def test_the_whole_cache_may_be_deleted(index, tmp_path):
    good = get(index, tmp_path)
    discard(tmp_path / "cache")
    assert not (tmp_path / "cache").exists()
    assert get(index, tmp_path) == good


PROGRAM = """
import sys
from pathlib import Path
from pytest_crbench.core.model import Artifact, Source
from pytest_crbench.host.indexes import IndexSettings
from pytest_crbench.sources import fetch
cache, url, sha = sys.argv[1:]
side = Artifact("demo-1.tar.gz", sha)
sys.stdin.readline()
source = Source("pypi", side, side, package="demo")
trees = fetch(source, cache=Path(cache), index=IndexSettings(url), log=print)
print(trees.head.digest)
"""


def test_processes_that_come_at_once_download_once(index, tmp_path):
    index.failures["/files/demo/demo-1.tar.gz"] = [(503, {"Retry_After": "1"})]  # so that they overlap
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "cache"), index.url, SHA]
    running = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(3)
    ]
    for process in running:
        process.stdin.write("go\n")
        process.stdin.flush()
    outputs = [process.communicate(timeout=60)[0].split("\n") for process in running]
    assert [process.returncode for process in running] == [0, 0, 0]
    digests = {lines[-2] for lines in outputs}
    assert len(digests) == 1
    assert index.requests["/files/demo/demo-1.tar.gz"] == 2, "one refused, one served"
    assert sum("downloading demo-1.tar.gz" in lines for lines in outputs) == 1


def folders(tmp_path):
    for name in ("base", "head", "fixed"):
        (tmp_path / name / "pkg").mkdir(parents=True)
        (tmp_path / name / "pkg" / "a.py").write_bytes(name.encode() + b"\r\n")
    (tmp_path / "head" / "run").write_bytes(b"")
    (tmp_path / "head" / "run").chmod(0o755)
    (tmp_path / "head" / "link").symlink_to("pkg/a.py")
    return Source("tree", tmp_path / "base", tmp_path / "head", tmp_path / "fixed")


def test_folders_are_copied_exactly(tmp_path):
    source = folders(tmp_path)
    trees = fetch(source, cache=tmp_path / "cache", fixed=True, offline=True)
    for tree, name in ((trees.base, "base"), (trees.head, "head"), (trees.fixed, "fixed")):
        assert list(digest.walk(tree.path)) == list(digest.walk(tmp_path / name))
        assert tree.digest == digest.of_tree(tmp_path / name)
        assert tree.path.is_relative_to(tmp_path / "cache")
    (tmp_path / "head" / "pkg" / "a.py").write_bytes(b"edited")
    assert (trees.head.path / "pkg" / "a.py").read_bytes() == b"head\r\n"
    edited = fetch(source, cache=tmp_path / "cache")
    assert (edited.head.path / "pkg" / "a.py").read_bytes() == b"edited"
    assert edited.base == trees.base


def test_folders_that_are_not_there_or_lead_out(tmp_path):
    source = folders(tmp_path)
    (tmp_path / "head" / "out").symlink_to("/etc/passwd")
    with pytest.raises(InvalidInstanceError, match="a link to '/etc/passwd', which leaves the tree"):
        fetch(source, cache=tmp_path / "cache")
    shutil.rmtree(tmp_path / "base")
    with pytest.raises(InvalidInstanceError, match=r"source\.base: there is no folder"):
        fetch(source, cache=tmp_path / "cache")


def test_a_cache_that_cannot_be_written(tmp_path):
    source = folders(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(InfraError) as caught:
        fetch(source, cache=tmp_path / "file" / "cache")
    assert caught.value.reason == "disk"


@pytest.mark.network
def test_one_real_instance(tmp_path):
    """Compared with what the standard library unpacks from the same archives."""
    import tarfile

    instance = next(i for i in open_dataset("releases").instances if i.id == "xmltodict-0.14.0")
    trees = fetch(instance.source, cache=tmp_path / "cache", fixed=True)
    sides = ((trees.base, "base"), (trees.head, "head"), (trees.fixed, "fixed"))
    for tree, side in sides:
        artifact = getattr(instance.source, side)
        archive = tmp_path / "cache" / "archives" / artifact.sha256 / artifact.file
        with tarfile.open(archive) as tar:
            tar.extractall(tmp_path / side, filter="data")
        (top,) = (tmp_path / side).iterdir()
        assert digest.of_tree(top) == tree.digest
    assert (trees.head.path / "xmltodict.py").is_file()
    assert len({tree.digest for tree, _ in sides}) == 3
    assert fetch(instance.source, cache=tmp_path / "cache", fixed=True, offline=True) == trees
