"""What every test runner promises (`core.runner`).

Without an ``ARGUMENT`` it runs hidden tests written for pytest; else those of the dataset at that path, which
needs the trees that resolve its comments (``fixed``).
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ..core.model import Changes, Check, File
from ..core.runner import Observation, Runner
from ..core.sandbox import Limits
from ..datasets import open_dataset
from ..workspace.revision import capture, changes
from . import sample
from .sample import is_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..core.sandbox import Backend
    from ..core.settings import Settings
    from . import Subject

#: What code under test may do, as the only module that the hidden test of the sample imports.
HOSTILE = {
    "exits": "import os\nos._exit(0)\n",
    "raises SystemExit": "raise SystemExit(0)\n",
    "does not parse": "def tax(:\n",
    "never ends": "while True:\n    pass\n",
    "floods": "for _ in range(300):\n    print('x' * 100_000)\n\n\ndef tax(price):\n    return 1\n",
}


@pytest.fixture(scope="session")
def runner(part: Any, subject: Subject) -> Runner:
    """The runner."""
    assert isinstance(part, Runner), f"{subject.name} is no instance of a subclass of Runner"
    return part


@pytest.fixture(scope="session")
def of_user(subject: Subject, settings: Settings, request: pytest.FixtureRequest) -> dict[str, sample.Pull]:
    """The pull requests of the dataset that the user named."""
    path = request.config.invocation_params.dir / Path(subject.argument or "absent").expanduser()
    return sample.pulls_of(open_dataset(f"native:{path}"), settings) if subject.argument else {}


@pytest.fixture(scope="session")
def shown(of_user: dict[str, sample.Pull], pulls: dict[str, sample.Pull]) -> list[sample.Pull]:
    """The pull requests whose hidden tests are run."""
    found = [pull for pull in (of_user or pulls).values() if pull.trees.fixed is not None]
    assert found, "no instance of the dataset has the tree that resolves its comments (source.fixed)"
    return found


@pytest.fixture(scope="session")
def observe(runner: Runner, backend: Callable[[], Backend], settings: Settings) -> Callable[..., Observation]:
    """Runs a check's hidden test at head, with some changes applied."""

    def observe(
        pull: sample.Pull, check: Check, made: Changes | None = None, seconds: float | None = None
    ) -> Observation:
        here, wanted = backend(), pull.instance.environment
        tops = tuple(sorted({path.name for path in pull.trees.head.path.iterdir() if path.is_dir()}))
        limits = Limits(settings.memory, settings.cpus, settings.pids, lifetime=900)
        with here.open(here.environment(wanted), pull.trees.head, limits=limits) as sandbox:
            found = runner.run(
                sandbox,
                check,
                wanted,
                tops=tops,
                changed=made.files if made else (),
                deleted=made.deleted if made else (),
                timeout=seconds or settings.test_timeout,
            )
        assert isinstance(found, Observation), (
            f"run() must return an Observation, found {type(found).__name__}"
        )
        return found

    return observe


def test_names_itself(runner: Runner, subject: Subject) -> None:
    is_text(runner.name, "name")
    assert not subject.registered or runner.name == subject.name, "name must be the name of the entry point"
    is_text(runner.version, "version")
    assert runner.version == runner.version, "version must be the same every time"
    assert runner.suffix.startswith("."), f"suffix must be one of a file, found {runner.suffix!r}"


def test_a_hidden_test_fails_at_head_and_passes_at_fixed(
    shown: list[sample.Pull], observe: Callable[..., Observation]
) -> None:
    for pull in shown:
        fixed = pull.trees.fixed
        assert fixed is not None
        made = changes(pull.trees.head, capture(pull.trees.head, fixed.path))
        for check in (check for check in pull.instance.checks if check.test):
            head, after = observe(pull, check), observe(pull, check, made)
            assert head.proper, f"{pull.instance.id}, {check.id} at head: {head}"
            assert head.outcome == "failed", f"{pull.instance.id}, {check.id} at head: {head.outcome}"
            assert head.exception, "an Observation of a failure must name the exception"
            assert after.proper, f"{pull.instance.id}, {check.id} at fixed: {after}"
            assert after.outcome == "passed", f"{pull.instance.id}, {check.id} at fixed: {after.outcome}"
            assert 0 < after.duration < 900


def test_deleting_what_is_tested_is_no_pass(
    shown: list[sample.Pull], observe: Callable[..., Observation]
) -> None:
    pull = shown[0]
    check = next(check for check in pull.instance.checks if check.test)
    gone = tuple(entry.path for entry in _files(pull.trees.head.path))
    found = observe(pull, check, Changes(deleted=gone))
    assert not (found.proper and found.outcome == "passed"), found


@pytest.mark.parametrize("name", list(HOSTILE))
def test_what_the_code_does_is_an_observation_and_no_pass(
    name: str, subject: Subject, pulls: dict[str, sample.Pull], observe: Callable[..., Observation]
) -> None:
    if subject.argument:
        pytest.skip("the sample's tests are written for pytest, and another dataset is named")
    pull = pulls["plain"]
    made = Changes((File("shop/tax.py", HOSTILE[name].encode()),))
    found = observe(pull, pull.instance.checks[0], made, 5.0)
    assert not (found.proper and found.outcome == "passed"), found
    if name == "never ends":
        assert found.ending == "timed-out", f"ending must be timed-out, found {found.ending}"


@pytest.mark.parametrize("path", ["a", "pytest.py", "sub/conftest.py", "näme/x y", "." * 100])
def test_says_of_every_path_whether_it_steers(
    runner: Runner, pulls: dict[str, sample.Pull], path: str
) -> None:
    environment = replace(pulls["plain"].instance.environment, import_roots=(".", "src"))
    for installed in ((), ("pytest", "yaml")):
        assert isinstance(runner.steers(path, environment, installed), bool), "steers() must return a bool"


def _files(root: Path) -> list[File]:
    files = (path for path in sorted(root.rglob("*")) if path.is_file() and not path.is_symlink())
    return [File(path.relative_to(root).as_posix(), b"") for path in files]
