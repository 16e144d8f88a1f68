"""``crbench instances check`` says what is broken and what is odd, and has an exit status for each."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from support.aacr import comment, pull, write
from support.benchmarks import Pull, environment, write_dataset


def crbench(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pytest_crbench.cli", *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        env=environment(),
        check=False,
    )


def test_the_published_data(aacr_data: Path) -> None:
    done = crbench("instances", "check", f"aacr:{aacr_data}")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert (
        lines[0] == "crbench: aacr: 196 instances, 1505 checks, 632 rejected comments, matched to references"
    )
    assert [line.split()[:2] for line in lines[1:]] == [
        ["1", "range-reversed"],
        ["70", "place-shared"],
        ["8", "side-left"],
        ["11", "note-repeated"],
        ["1", "note-in-both"],
        ["503", "trailing-space"],
        ["291", "suggestion-block"],
        ["1", "suggestion-cut-off"],
        ["1114", "written-by-model"],
        ["18", "no-human-comment"],
        ["4", "no-reference"],
    ]
    assert "74 % of the references" in done.stdout


def test_a_note_names_its_places(tmp_path: Path) -> None:
    odd = comment("Why?\n\n\x1b[31m", path="src/\u202ea.c", from_line=9, to_line=4)
    path = write(tmp_path, [pull(1, odd), pull(2)])
    short = crbench("instances", "check", f"aacr:{path}")
    assert "1  range-reversed" in short.stdout
    assert "src/" not in short.stdout
    long = crbench("instances", "check", "--where", f"aacr:{path}")
    assert "\n         team__project-1: src/ a.c:9-4\n" in long.stdout
    assert not set(long.stdout) & set("\x1b\u202e")


def test_json(tmp_path: Path) -> None:
    path = write(tmp_path / "a", [pull(1, comment("A. "))], [pull(1, comment("No."))])
    native = write_dataset(tmp_path / "n", [Pull("good", fixable=("price", "tax"))])
    done = crbench("instances", "check", "--json", f"aacr:{path}", str(native))
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["schema"] == "crbench-instances-1"
    first, second = told["datasets"]
    assert (first["spec"], first["name"], first["scoring"]) == (f"aacr:{path}", "aacr", "matching")
    assert (first["instances"], first["checks"], first["hidden_tests"], first["rejected"]) == (1, 1, 0, 1)
    (note,) = first["notes"]
    assert (note["name"], note["count"], note["where"]) == (
        "trailing-space",
        1,
        ["team__project-1: src/a.c:3-5"],
    )
    assert (second["scoring"], second["checks"], second["hidden_tests"]) == ("tests", 2, 2)
    assert {n["name"] for n in second["notes"]} == {"not-validated"}


@pytest.mark.parametrize("as_json", [False, True])
def test_what_is_broken(as_json: bool, tmp_path: Path) -> None:
    bad = write(tmp_path / "bad", [pull(1, comment(side="up")), pull(2, target_commit="x")])
    good = write(tmp_path / "good", [pull(1)])
    done = crbench("instances", "check", f"aacr:{bad}", f"aacr:{good}", *(["--json"] if as_json else []))
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    if as_json:
        broken, sound = json.loads(done.stdout)["datasets"]
        assert [p.partition(": ")[2].partition(":")[0] for p in broken["problems"]] == [
            "[0].comments[0].side",
            "[1].target_commit",
        ]
        assert sound["problems"] == []
    else:
        assert "[0].comments[0].side: found 'up', expected 'left' or 'right'" in done.stdout
        assert "[1].target_commit: found 'x', expected a full commit id" in done.stdout
        assert (
            "crbench: aacr: 1 instance, 1 check, matched to references\n         nothing odd" in done.stdout
        )
        assert done.stderr == f"crbench: BROKEN: aacr:{bad}\n"


def test_a_broken_native_dataset(tmp_path: Path) -> None:
    native = write_dataset(tmp_path / "n", [Pull("good", fixable=("price",))])
    file = native / "good" / "instance.toml"
    file.write_text(file.read_text().replace('level = "inline"', 'level = "line"'))
    done = crbench("instances", "check", str(native))
    assert done.returncode == 1
    assert "comment[0].level: found 'line', expected 'inline', 'file' or 'general'" in done.stdout


def test_notes_on_a_native_dataset(tmp_path: Path) -> None:
    native = write_dataset(tmp_path / "n", [Pull("good", fixable=("price",)), Pull("other", hard=("tax",))])
    file = native / "other" / "instance.toml"
    text = file.read_text().replace('fixed = "fixed"\n', "")
    text = text.replace('level = "inline"\npath', 'level = "file"\npath').replace("lines = [2, 2]\n", "")
    file.write_text(text + f'\n[validation]\ndigest = "{"0" * 64}"\n')
    done = crbench("instances", "check", "--where", str(native))
    assert done.returncode == 0
    told = [line.split()[:2] for line in done.stdout.splitlines()[1:]]
    assert told == [
        ["1", "not-validated"],
        ["good"],
        ["1", "changed-since-validation"],
        ["other"],
        ["1", "no-fixed-state"],
        ["other"],
        ["1", "no-lines"],
        ["other::tax"],
    ]


def test_the_bundled_dataset_has_nothing_that_matters() -> None:
    """Validated as it is, with a place for every comment."""
    done = crbench("instances", "check")
    assert done.returncode == 0
    assert [line.split()[1] for line in done.stdout.splitlines()[1:]] == ["place-shared"]


@pytest.mark.parametrize("spec", ["gone", "aacr:gone", "native:gone"])
def test_no_such_dataset_is_wrong_usage(spec: str) -> None:
    done = crbench("instances", "check", spec)
    assert done.returncode == 2
    assert "gone" in done.stderr
    assert "Traceback" not in done.stderr
    assert crbench("instances").returncode == 2


def test_a_dataset_without_hidden_tests_is_not_validated(tmp_path: Path) -> None:
    path = write(tmp_path, [pull(1)])
    done = crbench("validate", f"aacr:{path}")
    assert done.returncode == 2
    assert f"nothing to validate in aacr:{path}: its checks have no hidden tests" in done.stderr
    assert f"`crbench instances check aacr:{path}`" in done.stderr
    demo = crbench("demo", f"--dataset=aacr:{path}")
    assert demo.returncode == 2
    assert "is no copy of the bundled dataset" in demo.stderr
