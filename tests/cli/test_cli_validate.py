"""``crbench validate`` catches every way in which an instance can be broken."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest
from support.benchmarks import Pull, environment, run, write_dataset

GOOD = Pull("good", fixable=("price",), expect="AssertionError")


def validate(dataset: Path, cache: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pytest_crbench.cli", "validate", str(dataset), "--sandbox=local",
         f"--cache={cache}", "--repeats=2", *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        env=environment(),
        check=False,
    )  # fmt: skip


def broken(tmp_path: Path, source: str, **fields: object) -> Path:
    return write_dataset(
        tmp_path / "data", [GOOD, Pull("bad", hard=("tax",), tests={"tax": source}, **fields)]
    )


def test_a_sound_dataset_holds_and_is_recorded(tmp_path: Path, cache: Path) -> None:
    dataset = write_dataset(tmp_path / "data", [GOOD])
    before = (dataset / "good" / "instance.toml").read_text()
    done = validate(dataset, cache, "--write", f"--json={tmp_path / 'report.json'}")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 of 1 check of 1 instance hold" in done.stdout
    (check,) = json.loads((tmp_path / "report.json").read_text())["checks"]
    assert check["head"] == ["failed (AssertionError)"] * 2
    assert check["fixed"] == ["passed"] * 2
    assert check["modules_from_tree"] == 2
    after = (dataset / "good" / "instance.toml").read_text()
    assert after.startswith(before.rstrip())
    recorded = tomllib.loads(after)["validation"]
    assert recorded["repeats"] == 2
    assert validate(dataset, cache, "--write").returncode == 0
    assert (dataset / "good" / "instance.toml").read_text() == after


def test_a_test_that_passes_at_head_is_caught(tmp_path: Path, cache: Path) -> None:
    done = validate(
        broken(tmp_path, "from shop.tax_ import tax\n\n\ndef test_tax():\n    assert tax()\n"), cache
    )
    assert done.returncode == 1
    assert "at head it must have failed in its call phase, but passed" in done.stdout
    assert "broken: bad::tax" in done.stdout
    assert "1 of 2 checks" in done.stdout


def test_the_expected_exception_is_asked_for_once(tmp_path: Path, cache: Path) -> None:
    """What --accept writes keeps the rest of the file, and is compared from then on."""
    source = (
        "from shop.tax_ import tax\n\n\ndef test_tax():\n    said = tax()\n"
        "    if said != 'tax':\n        raise ValueError(said)\n"
    )
    dataset = broken(tmp_path, source) / "bad"
    file = dataset / "instance.toml"
    before = file.read_text()
    asked = validate(dataset, cache, "--write")
    assert asked.returncode == 1, asked.stdout
    assert "head, line 7: raise ValueError(said)  # ValueError: wrong" in asked.stdout
    assert "is ValueError at this line what the comment is about?" in asked.stdout
    assert "to be confirmed (see above): bad::tax" in asked.stdout
    assert file.read_text() == before
    assert validate(dataset, cache, "--accept").returncode == 0
    expected = tomllib.loads(before)
    expected["comment"][0]["expect"] = "ValueError"
    assert tomllib.loads(file.read_text()) == expected
    assert [line for line in file.read_text().splitlines() if "expect" not in line] == before.splitlines()
    assert validate(dataset, cache).returncode == 0
    test = dataset / "test_tax.py"
    test.write_text(source.replace("ValueError", "KeyError"))
    later = validate(dataset, cache, "--accept")
    assert later.returncode == 1
    assert "fails with KeyError, but the instance expects ValueError" in later.stdout
    assert "broken: bad::tax" in later.stdout


def test_a_run_measures_nothing_where_head_fails_for_another_reason(tmp_path: Path, cache: Path) -> None:
    dataset = write_dataset(tmp_path / "data", [GOOD, Pull("bad", fixable=("tax",), expect="ValueError")])
    done = run(tmp_path, dataset, cache, "--crbench-reviewer=human", "--crbench-agent=suggestions")
    assert done.statuses() == {"good::price": "passed", "bad::tax": "invalid"}, done.output
    assert "ends with AssertionError" in done.output
    assert "the instance expects ValueError" in done.output


def test_a_name_that_no_longer_exists_is_pointed_out(tmp_path: Path, cache: Path) -> None:
    """A test of Python 2 fails at head whatever the code does; at fixed it ends before it gets there."""
    source = (
        "from shop.tax_ import tax\n\n\ndef test_tax():\n    assert tax() == 'tax' or unicode(tax()) == 'x'\n"
    )
    dataset = broken(tmp_path, source)
    done = validate(dataset, cache, "--accept", "-k", "bad")
    assert done.returncode == 1
    assert "head, line 5: assert tax() == 'tax' or unicode" in done.stdout
    assert "fails with NameError, as a test does that is wrong" in done.stdout
    assert "expect" not in (dataset / "bad" / "instance.toml").read_text()


def test_places_and_trees_that_are_no_change_are_caught(tmp_path: Path, cache: Path) -> None:
    dataset = write_dataset(tmp_path / "data", [GOOD, Pull("bad", hard=("tax",), expect="AssertionError")])
    for side in ("base", "head", "fixed"):
        (dataset / "bad" / side / "shop" / "old.py").write_text("".join(f"a{n} = {n}\n" for n in range(90)))
        (dataset / "good" / side / "shop" / "price_.py").open("a").write("\n" * 90)
    file = dataset / "bad" / "instance.toml"
    file.write_text(file.read_text().replace('path = "shop/tax_.py"', 'path = "shop/old.py"'))
    file = dataset / "good" / "instance.toml"
    file.write_text(file.read_text().replace("lines = [2, 2]", "lines = [50, 51]"))
    done = validate(dataset, cache, "--repeats=1")
    assert done.returncode == 1
    assert "the comment is about line 2 of shop/old.py, which the diff" in done.stdout
    assert "the comment is about lines 50-51 of shop/price_.py, which the diff" in done.stdout


def test_a_flaky_test_is_named(tmp_path: Path, cache: Path) -> None:
    source = (
        "import os\nfrom shop.tax_ import tax\n\n\ndef test_tax():\n"
        "    kinds = [KeyError, ValueError, TypeError, OSError, EOFError, NameError, IndexError]\n"
        "    if tax() != 'tax':\n        raise kinds[os.urandom(1)[0] % 7]()\n"
    )
    done = validate(broken(tmp_path, source), cache, "--repeats=8", "-k", "bad")
    assert done.returncode == 1
    assert "flaky, quarantine them: bad::tax" in done.stdout


def test_an_import_error_is_no_failing_test(tmp_path: Path, cache: Path) -> None:
    source = "from shop.nowhere import tax\n\n\ndef test_tax():\n    assert tax() == 'tax'\n"
    done = validate(broken(tmp_path, source), cache)
    assert done.returncode == 1
    assert "in its call phase, but error (ModuleNotFoundError)" in done.stdout


def test_a_test_that_fails_at_fixed_is_caught(tmp_path: Path, cache: Path) -> None:
    source = "from shop.tax_ import tax\n\n\ndef test_tax():\n    assert tax() == 'never'\n"
    done = validate(broken(tmp_path, source), cache)
    assert done.returncode == 1
    assert "at fixed it must have passed in its call phase, but failed (AssertionError)" in done.stdout


def test_a_module_from_elsewhere_is_caught(tmp_path: Path, cache: Path) -> None:
    """Pytest has loaded its own iniconfig before the tree is looked at: the test would test that one."""
    source = "import iniconfig\n\n\ndef test_tax():\n    assert iniconfig.tax == 'tax'\n"
    dataset = broken(tmp_path, source)
    for side in ("base", "head", "fixed"):
        (dataset / "bad" / side / "iniconfig.py").write_text("tax = 'tax'\n")
    done = validate(dataset, cache)
    assert done.returncode == 1
    assert "module iniconfig came from" in done.stdout
    assert "not from the tree" in done.stdout


def test_a_comment_about_nothing_is_caught(tmp_path: Path, cache: Path) -> None:
    dataset = write_dataset(
        tmp_path / "data", [GOOD, Pull("bad", hard=("tax",)), Pull("worse", hard=("tip",))]
    )
    file = dataset / "bad" / "instance.toml"
    file.write_text(file.read_text().replace("lines = [2, 2]", "lines = [2, 200]"))
    file = dataset / "worse" / "instance.toml"
    file.write_text(file.read_text().replace('path = "shop/tip_.py"', 'path = "shop/nowhere.py"'))
    done = validate(dataset, cache)
    assert done.returncode == 1
    assert "the comment names line 200 of shop/tax_.py, which has 2 at head" in done.stdout
    assert "the comment is about shop/nowhere.py, which head does not have" in done.stdout


def test_what_could_not_be_run_is_not_broken(tmp_path: Path, cache: Path) -> None:
    dataset = write_dataset(tmp_path / "data", [GOOD, Pull("lost", hard=("tax",), python="<3.0")])
    done = validate(dataset, cache)
    assert done.returncode == 2
    assert "broken" not in done.stdout
    assert "1 check could not be run" in done.stderr


def test_a_missing_tree_is_told_before_anything_runs(tmp_path: Path, cache: Path) -> None:
    dataset = broken(tmp_path, "def test_tax():\n    assert 0\n")
    shutil.rmtree(dataset / "bad" / "fixed")
    done = validate(dataset, cache)
    assert done.returncode == 2
    assert "source.fixed" in done.stderr
    assert str(dataset / "bad") in done.stderr


@pytest.mark.parametrize(
    "how",
    [
        "subprocess.check_output([sys.executable, 'say.py'], text=True).strip()",
        "subprocess.check_output(['python3', '-c', 'from shop.tax_ import *;print(tax())'], text=1).strip()",
        "subprocess.check_output('python3 ./say.py', shell=True, text=True).strip()",
        "runpy.run_path('say.py')['said']",
    ],
)
def test_what_a_program_runs_of_the_tree_counts(tmp_path: Path, cache: Path, how: str) -> None:
    source = f"import runpy\nimport subprocess\nimport sys\n\n\ndef test_tax():\n    assert {how} == 'tax'\n"
    pull = Pull("runs", hard=("tax",), tests={"tax": source}, expect="AssertionError")
    dataset = write_dataset(tmp_path / "data", [pull])
    for side, said in (("base", "base"), ("head", "wrong"), ("fixed", "tax")):
        (dataset / "runs" / side / "say.py").write_text(f"said = {said!r}\nprint(said)\n")
    done = validate(dataset, cache, "--repeats=1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"runs \d files? of the tree", done.stdout)


def test_a_program_from_elsewhere_does_not_count(tmp_path: Path, cache: Path) -> None:
    source = (
        "import subprocess\nimport sys\n\n\ndef test_tax():\n    text = open('shop/tax_.py').read()\n"
        "    code = 'import json, sys; print(sys.argv[1])'\n"
        "    assert '\"tax\"' in subprocess.check_output([sys.executable, '-c', code, text], text=True)\n"
    )
    done = validate(broken(tmp_path, source), cache, "--repeats=1", "-k", "bad")
    assert done.returncode == 1
    assert "nothing of the tree was imported or run" in done.stdout


def test_a_warm_cache_does_not_hide_a_url_that_is_gone(tmp_path: Path, cache: Path) -> None:
    dataset = write_dataset(tmp_path / "data", [GOOD])
    folder, repository = dataset / "good", tmp_path / "repository"
    repository.mkdir()

    def git(*arguments: str) -> str:
        argv = ["git", "-c", "user.name=t", "-c", "user.email=t@example.com", *arguments]
        return subprocess.run(argv, cwd=repository, check=True, capture_output=True, text=True).stdout.strip()

    git("init", "-q")
    commits = {}
    for side in ("base", "head", "fixed"):
        shutil.copytree(folder / side, repository, dirs_exist_ok=True)
        git("add", "-A")
        git("commit", "-q", "-m", side)
        commits[side] = git("rev-parse", "HEAD")
    text = (
        (folder / "instance.toml").read_text().replace('kind = "tree"', f'kind = "git"\nurl = "{repository}"')
    )
    for side, commit in commits.items():
        text = text.replace(f'{side} = "{side}"', f'{side} = "{commit}"')
    (folder / "instance.toml").write_text(text)
    assert validate(dataset, cache, "--fresh").returncode == 0
    assert "sources come from the cache where it has them" in validate(dataset, cache).stdout
    repository.rename(tmp_path / "elsewhere")
    gone = validate(dataset, cache, "--fresh")
    assert gone.returncode == 2
    assert "cannot be fetched" in gone.stdout
    assert str(repository) in gone.stdout


def test_wrong_usage(tmp_path: Path, cache: Path) -> None:
    dataset = write_dataset(tmp_path / "data", [GOOD])
    for arguments, said in (
        (["-k", "nosuch"], "no instance matches -k nosuch"),
        (["--repeats=0"], "--repeats and --jobs take whole numbers of at least 1"),
        (["--sandbox=vm"], "choose one of auto, docker, local"),
        (["--memory=lots"], "--crbench-limit memory=lots: expected a size such as 512m or 2g"),
    ):
        done = validate(dataset, cache, *arguments)
        assert done.returncode == 2
        assert said in done.stderr
        assert "Traceback" not in done.stderr


def test_the_first_error_is_shown_and_ends_the_command(tmp_path: Path, cache: Path) -> None:
    """Ten instances wait, and one is under way, when one raises what nobody expects."""
    dataset = write_dataset(tmp_path / "data", [Pull(f"p{n:02}", fixable=("price",)) for n in range(12)])
    program = (
        "import sys\n"
        "from pytest_crbench import cli\n"
        "from pytest_crbench.commands import validate\n"
        "real = validate.validate_one\n"
        "def one(evaluator, instance, *rest):\n"
        "    if instance.id == 'p01':\n"
        "        raise RuntimeError('the first error')\n"
        "    return real(evaluator, instance, *rest)\n"
        "validate.validate_one = one\n"
        "sys.exit(cli.main(sys.argv[1:]))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, "validate", str(dataset), "--sandbox=local", f"--cache={cache}"],
        capture_output=True,
        text=True,
        timeout=60,
        env=environment(),
        check=False,
    )
    assert done.returncode == 1
    assert "RuntimeError: the first error" in done.stderr
    assert "p11" not in done.stdout


@pytest.mark.parametrize("waiting", [0, 10])
def test_ctrl_c_ends_the_test_that_runs(tmp_path: Path, cache: Path, waiting: int) -> None:
    mark = tmp_path / "runs"
    source = "import time\n\n\ndef test_tax():\n    time.sleep(100)\n"
    pulls = [Pull(f"bad{n}", hard=("tax",), tests={"tax": source}) for n in range(waiting + 1)]
    dataset = write_dataset(tmp_path / "data", pulls)
    own = tmp_path / "cache"  # with nobody else's sandboxes
    with subprocess.Popen(
        [sys.executable, "-m", "pytest_crbench.cli", "validate", str(dataset), "--sandbox=local", "--jobs=1",
         f"--cache={own}"],
        stdout=mark.open("w"),
        stderr=subprocess.STDOUT,
        env=environment(),
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as process:  # fmt: skip
        sandboxes = own / "sandboxes"
        deadline = time.monotonic() + 90
        while not (sandboxes.is_dir() and any(sandboxes.glob("*/**/supervise.py"))):
            assert time.monotonic() < deadline, mark.read_text()
            time.sleep(0.1)
        began = time.monotonic()
        process.send_signal(signal.SIGINT)
        try:
            assert process.wait(60) == 130
        finally:
            process.kill()
    assert time.monotonic() - began < 30
    assert "crbench: interrupted" in mark.read_text()
    assert "Traceback" not in mark.read_text()


def test_a_folder_that_clean_may_not_enter_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from pytest_crbench import cli
    from pytest_crbench.sandbox import clean

    def refuse(*_args: object) -> None:
        raise PermissionError(13, "Permission denied", "/cache/sandboxes")

    # The first thing that it does: the machine's engine is left alone.
    monkeypatch.setattr(clean, "clean_engine", refuse)
    assert cli.main(["clean", f"--cache={tmp_path}"]) == 2
    assert "cannot clean /cache/sandboxes: Permission denied" in capsys.readouterr().err


def test_help_is_told_where_the_locale_is_not_utf_8() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest_crbench.cli", "--help"],
        capture_output=True,
        text=True,
        env=environment() | {"PYTHONIOENCODING": "ascii:strict"},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "--crbench-" in done.stdout
