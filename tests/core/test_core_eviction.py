"""What was used least recently goes, down to a size; never what a run under way uses."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pytest_crbench.core.errors import InfraError
from pytest_crbench.host.eviction import Uses, cache_items, evict, with_room
from pytest_crbench.host.space import is_full

KB = 1024


def entry(cache: Path, name: str, *, age: float, kind: str = "trees", size: int = 100 * KB) -> Path:
    """An entry that was last used ``age`` seconds ago."""
    folder = cache / kind / name
    (folder / "tree").mkdir(parents=True)
    (folder / "tree" / "file").write_bytes(b"x" * size)
    # As trees in the cache are: nobody may write.
    (folder / "tree").chmod(0o555)
    used(cache, name, age=age, kind=kind)
    return folder


def used(cache: Path, name: str, *, age: float, kind: str = "trees") -> None:
    Uses(cache).touch(kind, name)
    when = time.time() - age
    os.utime(cache / "used" / kind / name, (when, when))


def left(cache: Path) -> list[str]:
    return sorted(path.name for kind in ("trees", "archives") for path in (cache / kind).glob("*"))


def test_the_least_recently_used_go_first_and_what_fits_stays(tmp_path: Path) -> None:
    entry(tmp_path, "recent", age=10)
    entry(tmp_path, "oldest", age=300)
    entry(tmp_path, "old", age=200, kind="archives")
    done = evict(cache_items(tmp_path), 150 * KB)
    assert left(tmp_path) == ["recent"]
    assert done.entries == 2
    assert done.images == 0
    assert 200 * KB <= done.freed < 300 * KB
    assert 100 * KB <= done.left <= 150 * KB
    assert Uses(tmp_path).last("trees", "oldest") is None
    assert evict(cache_items(tmp_path), 150 * KB).entries == 0


def test_using_it_again_saves_it(tmp_path: Path) -> None:
    entry(tmp_path, "first", age=300)
    entry(tmp_path, "second", age=200)
    Uses(tmp_path).touch("trees", "first")
    evict(cache_items(tmp_path), 150 * KB)
    assert left(tmp_path) == ["first"]


def test_an_entry_without_a_stamp_is_as_old_as_itself(tmp_path: Path) -> None:
    """Caches of earlier versions have none."""
    for name, age in (("young", 10), ("aged", 500)):
        folder = entry(tmp_path, name, age=0)
        Uses(tmp_path).forget("trees", name)
        os.utime(folder, (time.time() - age,) * 2)
    evict(cache_items(tmp_path), 150 * KB)
    assert left(tmp_path) == ["young"]


def test_what_a_run_under_way_uses_stays_whatever_the_size(tmp_path: Path) -> None:
    entry(tmp_path, "before", age=300)
    end = Uses(tmp_path).begin("session")
    entry(tmp_path, "since", age=0)
    done = evict(cache_items(tmp_path), 0)
    assert left(tmp_path) == ["since"]
    assert done.left > 0
    end()
    evict(cache_items(tmp_path), 0)
    assert left(tmp_path) == []


def test_a_run_that_was_killed_protects_nothing(tmp_path: Path) -> None:
    program = (
        "import sys, time; from pathlib import Path; from pytest_crbench.host.eviction import Uses\n"
        "Uses(Path(sys.argv[1])).begin('killed'); print('begun', flush=True); time.sleep(60)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert Uses(tmp_path).oldest_run() is not None
        assert Uses(tmp_path).oldest_run(but="killed") is None
        process.kill()
    assert Uses(tmp_path).oldest_run() is None
    assert list((tmp_path / "used" / "runs").iterdir()) == []


def test_an_entry_that_comes_into_use_meanwhile_stays(tmp_path: Path) -> None:
    entry(tmp_path, "a", age=300)
    entry(tmp_path, "b", age=200)
    listed = cache_items(tmp_path)
    Uses(tmp_path).touch("trees", "a")
    evict(listed, 0)
    assert left(tmp_path) == ["a"]


def test_files_of_two_names_count_once(tmp_path: Path) -> None:
    """Uv links the files of its cache into environments: removing one of the two frees nothing."""
    folder = entry(tmp_path, "cached", age=300, kind="uv")
    (tmp_path / "environments" / "env").mkdir(parents=True)
    os.link(folder / "tree" / "file", tmp_path / "environments" / "env" / "file")
    sizes = {item.kind: item.size for item in cache_items(tmp_path)}
    assert sizes["uv"] >= 100 * KB
    assert sizes["environments"] < 10 * KB


def test_what_a_killed_eviction_left_is_removed(tmp_path: Path) -> None:
    (tmp_path / "trees" / ".half.evicted" / "tree").mkdir(parents=True)
    assert cache_items(tmp_path) == []
    assert list((tmp_path / "trees").iterdir()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small file system takes root")
def test_on_a_full_disk_what_is_old_makes_room_for_one_more_try(tmp_path: Path) -> None:
    small = tmp_path / "disk"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1M", "tmpfs", small], check=True)
    said: list[str] = []

    def write() -> int:
        try:
            return (small / "new").write_bytes(b"x" * 700 * KB)
        except OSError as error:
            (small / "new").unlink()
            raise InfraError(f"cannot write: {error.strerror}", reason="disk") from error

    try:
        entry(small, "old", age=300, size=600 * KB)
        assert with_room(write, lambda: cache_items(small), said.append) == 700 * KB
        assert left(small) == []
        assert said == ["the disk is full: removed 0 images and 1 cache entry, 600 kB in all; trying again"]
        # Nothing is left that could go: the failure stands.
        (small / "new").rename(small / "other")
        with pytest.raises(InfraError, match="No space left") as failed:
            with_room(write, lambda: cache_items(small), said.append)
        assert is_full(str(failed.value))
    finally:
        subprocess.run(["umount", small], check=True)
