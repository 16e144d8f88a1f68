"""What stands in the way of every check is told once, before work starts."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import pytest
from support.benchmarks import MODES, Pull, run, write_dataset

FREE = ("--crbench-reviewer=human", "--crbench-agent=suggestions")


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    return write_dataset(tmp_path / "small", [Pull("one", fixable=("price",)), Pull("two", hard=("tax",))])


def refused(folder: Path, dataset: Path, cache: Path, *arguments: str, **env: str) -> str:
    """The one message of a run that does not start and leaves no run behind."""
    done = run(folder, dataset, cache, *FREE, *arguments, env=env)
    assert done.status == 4, done.output
    assert done.runs == []
    assert done.output.count("crbench: ") == 1, done.output
    return done.output


@pytest.mark.parametrize("option", ["--crbench-cache", "--crbench-run-dir"])
def test_a_disk_that_is_all_but_full(folder: Path, dataset: Path, tmp_path: Path, option: str) -> None:
    """Each on a disk of its own; the floor is more than any disk has, on the one that is named."""
    small = Path("/dev/shm")
    other = {"--crbench-cache": tmp_path, "--crbench-run-dir": folder}[option]
    if not small.is_dir() or shutil.disk_usage(small).free >= shutil.disk_usage(other).free:
        pytest.skip("takes a second file system with less space")
    least = (shutil.disk_usage(small).free + shutil.disk_usage(other).free) // 2
    place = small / "crbench-test-nothing"
    said = refused(
        folder,
        dataset,
        tmp_path / "cache",
        f"--crbench-limit=min-free={least}",
        f"{option}={place}",
        *MODES["xdist"],
    )
    assert f"{place}: " in said
    assert f"choose another folder ({option})" in said
    assert "Free some space (crbench clean)" in said
    assert not place.exists()


def test_git_is_missing(folder: Path, dataset: Path, tmp_path: Path) -> None:
    said = refused(folder, dataset, tmp_path / "cache", PATH=str(tmp_path))
    assert "git was not found on PATH: install it" in said


def test_the_disk_budget_holds_from_the_start(folder: Path, dataset: Path, tmp_path: Path) -> None:
    """What earlier runs left goes, the oldest first, and no more than must."""
    for name, age in (("old", 900), ("recent", 300)):
        place = tmp_path / "cache" / "trees" / name
        place.mkdir(parents=True)
        (place / "file").write_bytes(b"x" * 1024**2)
        os.utime(place, (time.time() - age,) * 2)
    done = run(folder, dataset, tmp_path / "cache", *FREE, "--crbench-limit=disk-budget=1500k", "-k", "none")
    told = "crbench: disk budget 1.5 MB: removed 0 images and 1 cache entry, 1.0 MB in all"
    assert told in done.output
    assert not (tmp_path / "cache" / "trees" / "old").exists()
    assert (tmp_path / "cache" / "trees" / "recent").exists()
    # The run has ended: the next one may take what it used.
    assert list((tmp_path / "cache" / "used" / "runs").iterdir()) == []


@pytest.mark.docker
def test_a_base_image_that_nobody_has(folder: Path, dataset: Path, tmp_path: Path) -> None:
    """It used to be looked for, in vain, by every check."""
    image = "no-such-registry.invalid/python:3"
    done = run(
        folder, dataset, tmp_path / "cache", *FREE,
        "--crbench-sandbox=docker", f"--crbench-base-image={image}",
    )  # fmt: skip
    assert done.status == 4, done.output
    assert done.runs == []
    assert done.output.count(f"base image {image} is not here and cannot be pulled") == 1
    assert "--crbench-base-image" in done.output
