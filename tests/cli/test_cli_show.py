"""``crbench show``: why a check was missed, from the files of a run."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from support.benchmarks import Pull, run, write_dataset

from pytest_crbench.cli import main


@pytest.fixture
def recorded(folder: Path, mixed: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    asked = ("--crbench-reviewer=human", "--crbench-agent=suggestions", "-k", "first")
    done = run(folder, mixed, cache, *asked)
    monkeypatch.chdir(folder)
    return done.runs[-1]


@pytest.fixture
def mixed(tmp_path: Path) -> Path:
    return write_dataset(tmp_path / "mixed", [Pull("first", fixable=("price",), hard=("tax",))])


def show(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert main(["show", *map(str, arguments)]) == 0
    return capsys.readouterr().out


def test_a_run_and_its_checks(recorded: Path, mixed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    listed = show(capsys, "latest").splitlines()
    assert listed[0].split() == ["passed", "small::first::price"]
    assert listed[1].startswith("missed          small::first::tax    failed: AssertionError: assert 'wrong'")

    # One check, however it is named, wherever the run is named.
    missed = show(capsys, recorded, "tax")
    assert missed == show(capsys, recorded / "results.json", "small::first::tax")
    assert "reference comment, shop/tax_.py:2\n    The tax is wrong.\n" in missed
    assert (
        "review by human: 2 comments, 1 on shop/tax_.py\n    shop/tax_.py:2\n        The tax is wrong."
        in missed
    )
    assert "    +++ b/shop/price_.py\n" in missed
    assert '    >       assert tax() == "tax"\n' in missed
    # The canaries' own failures are not those of the check.
    assert "sum(values)" not in missed
    assert "They are canaries" in missed
    assert missed.count("checks/tax.log") == 1
    assert str(mixed / "first") in missed

    passed = show(capsys, recorded, "price")
    assert ".py: passed\n" in passed
    assert "assert" not in passed

    # A run that was killed, whose dataset has moved; and what is not there.
    (recorded / "results.json").unlink()
    shutil.move(mixed, mixed.with_name("moved"))
    killed = show(capsys, recorded, "tax")
    assert "reference comment: unknown" in killed
    assert str(mixed) in killed
    (recorded / "evaluations" / "small" / "first" / "review-1" / "review.json").unlink()
    assert "review: there is none" in show(capsys, recorded, "tax")
    for arguments, said in (((recorded, "nosuch"), "nosuch is no check"), (("nosuch",), "no run 'nosuch'")):
        assert main(["show", *map(str, arguments)]) == 2
        out, err = capsys.readouterr()
        assert (out, err.startswith("crbench show: ")) == ("", True)
        assert said in err


def test_nothing_that_it_prints_steers_a_terminal(recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = recorded / "evaluations" / "small" / "first" / "review-1"
    review = json.loads((place / "review.json").read_text())
    review["value"]["comments"][1]["body"] = "\x1b[2J\n::error::gone\n" + "more\n" * 500
    (place / "review.json").write_text(json.dumps(review))
    log = place / "checks" / "tax.log"
    log.write_text(log.read_text().replace("assert tax()", "\x1b]0;x\x07assert tax()"))
    said = show(capsys, recorded, "tax")
    assert "\x1b" not in said
    assert "\n::error" not in said
    assert not any(line.lstrip().startswith("::error") for line in said.splitlines())
    assert "lines left out" in said
    assert len(said.splitlines()) < 120


def test_the_bundled_dataset_needs_no_name(
    folder: Path, cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ("--crbench-reviewer=none", "--crbench-scoring=matching", "--crbench-matcher=exact")
    done = run(folder, None, cache, *asked, "--crbench-offline", "-k", "pyjwt")
    assert done.status == 0, done.output
    check = done.rows()[0]
    assert main(["show", str(done.runs[-1]), f"{check['instance']}::{check['check']}"]) == 0
    assert "reference comment, " in capsys.readouterr().out
