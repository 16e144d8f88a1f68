"""The instances that ship, checked against their own files rather than against the loader."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path

import pytest

from pytest_crbench.core.errors import UsageError
from pytest_crbench.datasets import bundled, bundled_names, open_dataset


def raw_files(repo_root: Path) -> dict[str, dict]:
    found = sorted((repo_root / "instances" / "releases").glob("*/instance.toml"))
    return {path.parent.name: tomllib.loads(path.read_text(encoding="utf-8")) for path in found}


def test_all_instances_and_checks_are_there(repo_root):
    dataset = open_dataset("releases")
    raw = raw_files(repo_root)
    assert len(dataset.instances) == len(raw) == 30
    assert sum(len(i.checks) for i in dataset.instances) == 44
    assert [i.id for i in dataset.instances] == sorted(raw)
    assert dataset.name == "releases"
    assert "in our own words" in dataset.notice


def test_counts_by_kind_and_category_are_those_of_the_files(repo_root):
    checks = [check for i in open_dataset("releases").instances for check in i.checks]
    comments = [comment for file in raw_files(repo_root).values() for comment in file["comment"]]
    assert Counter(c.kind for c in checks) == Counter(c["kind"] for c in comments)
    assert Counter(c.kind for c in checks) == {"behavioral": 31, "structural": 13}
    by_category = Counter(c.category for c in checks)
    assert by_category == Counter(c["category"] for c in comments)
    assert by_category["Security"] == 3
    assert sum(by_category.values()) == 44
    assert len(by_category) == 10


def test_every_value_of_the_files_arrives(repo_root):
    raw = raw_files(repo_root)
    for instance in open_dataset("releases").instances:
        file = raw[instance.id]
        assert instance.path == repo_root / "instances" / "releases" / instance.id
        assert (instance.title, instance.body) == (
            file["pull_request"]["title"],
            file["pull_request"]["body"],
        )
        assert instance.repo == instance.source.package == file["source"]["package"]
        for side in ("base", "head", "fixed"):
            artifact = getattr(instance.source, side)
            assert (artifact.file, artifact.sha256) == (
                file["source"][side]["file"],
                file["source"][side]["sha256"],
            )
        assert instance.environment.as_of == file["created_at"]
        assert instance.environment.import_roots in ((".",), ("src", "."))
        for check, comment in zip(instance.checks, file["comment"], strict=True):
            assert check.test.encode() == (instance.path / comment["test"]).read_bytes()
            assert list(check.comment.lines) == comment["lines"]
            assert (check.id, check.comment.body) == (comment["id"], comment["body"])


def test_canaries_differ_and_no_test_file_is_unused(repo_root):
    raw = raw_files(repo_root)
    assert len({file["canary"] for file in raw.values()}) == 30
    for identity, file in raw.items():
        used = {comment["test"] for comment in file["comment"]}
        there = {p.name for p in (repo_root / "instances" / "releases" / identity).glob("test_*.py")}
        assert there == used, identity


def test_hidden_tests_compile_and_define_a_test(repo_root):
    for path in sorted((repo_root / "instances" / "releases").glob("*/test_*.py")):
        code = compile(path.read_text(encoding="utf-8"), str(path), "exec")
        assert any(name.startswith("test_") for name in code.co_names), path


def test_loading_is_the_same_each_time():
    assert open_dataset("releases") == open_dataset("releases")


def test_loading_is_quick_and_needs_no_network():
    program = (
        "import socket, sys, time\n"
        "def refuse(*a, **k): raise AssertionError('network')\n"
        "socket.socket.connect = refuse; socket.getaddrinfo = refuse\n"
        "began = time.process_time()\n"
        "from pytest_crbench.datasets import open_dataset\n"
        "open_dataset('releases')\n"
        "first = time.process_time() - began\n"
        "began = time.process_time(); open_dataset('releases')\n"
        "print(first, time.process_time() - began, 'requests' in sys.modules, 'pytest' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    first, again, network_library, pytest_there = done.stdout.split()
    assert network_library == "False"
    assert pytest_there == "False"
    # Of the processor, as the machine may be busy; on an idle one it is about 0.17 s and 0.02 s.
    assert float(first) < 2.0
    assert float(again) < 0.3


def test_unknown_names_are_told_what_there_is():
    with pytest.raises(UsageError, match=r"no bundled dataset 'nothing'; there are: releases"):
        bundled("nothing")
    with pytest.raises(UsageError, match="neither a bundled one"):
        open_dataset("nothing")
    assert bundled_names() == ("releases",)


def test_a_folder_beside_the_installed_package_is_not_taken_for_ours(tmp_path, repo_root):
    """An ``instances`` folder in site-packages, next to a package without its data, is somebody else's."""
    subprocess.run(["cp", "-r", str(repo_root / "pytest_crbench"), str(tmp_path)], check=True)
    (tmp_path / "instances" / "releases").mkdir(parents=True)
    (tmp_path / "instances" / "releases" / "dataset.toml").write_text("")
    program = "from pytest_crbench.datasets import bundled_names; print(bundled_names())"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout == "()\n"


def test_the_recorded_validations_are_of_these_instances() -> None:
    """A changed instance must be validated again: crbench validate --write."""
    for instance in open_dataset("releases").instances:
        assert instance.path is not None
        recorded = tomllib.loads((instance.path / "instance.toml").read_text("utf-8"))["validation"]
        assert recorded["digest"] == instance.digest, instance.id
        assert all(check.expect for check in instance.checks), instance.id
        assert recorded["repeats"] >= 3
