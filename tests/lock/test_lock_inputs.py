"""What counts as an input of a run, and which differences decide."""

from __future__ import annotations

import copy
import json
import platform
from dataclasses import replace
from pathlib import Path

import pytest
from support.benchmarks import Pull, write_dataset

from pytest_crbench.core.errors import InfraError, UsageError
from pytest_crbench.core.model import Environment
from pytest_crbench.core.settings import Settings
from pytest_crbench.evaluation.lock import LockFile, check_replayable, check_same
from pytest_crbench.run import assemble, lockstep, programs
from pytest_crbench.run.inputs import run_inputs
from pytest_crbench.sandbox.local import LocalBackend
from pytest_crbench.sandbox.settings import SandboxSettings
from pytest_crbench.statistics.deviations import deviations


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    pulls = [Pull("first", fixable=("price",)), Pull("second", hard=("tax",))]
    dataset = write_dataset(tmp_path / "two", pulls)
    return Settings(reviewer="human", agent="suggestions", dataset=(str(dataset),), cache=tmp_path / "cache")


def inputs(settings: Settings) -> dict:
    reviewer, agent = programs.make_reviewer(settings), programs.make_agent(settings, None)
    backend = LocalBackend(SandboxSettings(cache=settings.cache, session="s"))
    deciders = assemble.make_deciders(settings, None, ["tests"])
    found = run_inputs(
        settings, assemble.open_datasets(settings), reviewer, agent, backend.describe(), deciders
    )
    return json.loads(json.dumps(found))


def test_what_was_named_is_what_is_recorded(settings: Settings) -> None:
    found = inputs(settings)
    assert found["python"]["version"] == platform.python_version()
    assert {"pytest", "pytest-xdist", "docker", "pydantic", "uv"} <= set(found["libraries"])
    assert found["tools"]["git"][0].isdigit()
    assert found["agent"]["name"] == "suggestions"
    assert check_same("run", found, inputs(settings)) == []


def test_an_edited_file_shows_where_it_counts(settings: Settings) -> None:
    before = inputs(settings)
    folder = Path(settings.dataset[0]) / "first"

    def places(section: str = "instances") -> set[str]:
        return {d.where for d in deviations(before, inputs(settings), (section,))}

    test = folder / "test_price.py"
    source = test.read_text()
    test.write_text(source + "# a remark\n")
    assert places() == {"instances.small::first.checks.price", "instances.small::first.digest"}
    with pytest.raises(UsageError, match=r"checks\.price was [0-9a-f]{50}.*, is [0-9a-f]{50}.*new run"):
        check_same("run", before, inputs(settings))
    # The tests of a replay are the ones that there are now: that they changed is told.
    assert [d.where for d in check_replayable("run", before, inputs(settings))] == [
        "instances.small::first.checks.price"
    ]
    test.write_text(source)
    assert places() == set()
    head = folder / "head" / "shop" / "price_.py"
    head.write_text(head.read_text() + "\n")
    assert places() >= {"instances.small::first.pull_request", "instances.small::first.checks.price"}
    with pytest.raises(UsageError, match="cannot replay run"):
        check_replayable("run", before, inputs(settings))


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"memory": 2**30}, "limits.memory"),
        ({"test_timeout": 5.0}, "limits.test_timeout"),
        ({"repeats": 2}, "options.repeats"),
        ({"agent": "none"}, "agent.name"),
        ({"reviewer": "human:bare"}, "reviewer.fingerprint"),
    ],
)
def test_an_option_that_decides_is_refused(settings: Settings, change: dict, where: str) -> None:
    with pytest.raises(UsageError, match="cannot resume run") as caught:
        check_same("run", inputs(settings), inputs(replace(settings, **change)))
    assert where in str(caught.value)


def test_a_missing_separation_from_the_host_is_refused(settings: Settings) -> None:
    before = inputs(settings)
    now = copy.deepcopy(before)
    now["sandbox"]["isolation"] = "nothing at all"
    with pytest.raises(UsageError, match=r"sandbox\.isolation was"):
        check_same("run", before, now)


def test_another_interpreter_below_the_environments_is_refused(settings: Settings, tmp_path: Path) -> None:
    """As after an upgrade of the system's Python: the record says what an environment was built on."""
    lock, now = LockFile(tmp_path / "run"), inputs(settings)
    backend = LocalBackend(SandboxSettings(cache=settings.cache, session="s"))
    specifier = Environment().python
    name, found = backend.foundation(specifier)
    built = {"digest": "d", "python": "3", "specifier": specifier, "pins": [], "base": {"name": name}}
    for recorded in (found, "3.11.0 of-the-past"):
        built["base"]["id"] = recorded
        lock.write({**now, "environments": {"e": built}})
        if recorded == found:
            assert lockstep.resume(lock.run, now, backend) == []
            continue
        with pytest.raises(UsageError, match=r"environments\.e\.base\.id was 3\.11\.0 of-the-past, is 3"):
            lockstep.resume(lock.run, now, backend)


def test_an_environment_that_changes_under_way_is_no_measurement(tmp_path: Path) -> None:
    lock = LockFile(tmp_path)
    lock.note("environments", "e", {"digest": "a"})
    assert not lock.path.exists(), "nothing is recorded where there is no run"
    lock.write({})
    lock.note("environments", "e", {"digest": "a"})
    lock.note("environments", "e", {"digest": "a"})
    with pytest.raises(InfraError, match=r"environments\.e\.digest was a, is b.*new run") as caught:
        lock.note("environments", "e", {"digest": "b"})
    assert caught.value.reason == "lock"
    assert lock.read()["environments"] == {"e": {"digest": "a"}}


def test_processes_that_note_at_once_lose_nothing(tmp_path: Path) -> None:
    from concurrent.futures import ProcessPoolExecutor

    LockFile(tmp_path).write({})
    with ProcessPoolExecutor(4) as pool:
        list(pool.map(_note, [tmp_path] * 4, range(4)))
    assert set(LockFile(tmp_path).read()["environments"]) == {f"{w}-{n}" for w in range(4) for n in range(10)}


def _note(run: Path, worker: int) -> None:
    for number in range(10):
        LockFile(run).note("environments", f"{worker}-{number}", {"digest": "x"})


def test_a_lock_file_that_cannot_be_read_says_what_to_do(tmp_path: Path) -> None:
    lock = LockFile(tmp_path)
    for content in ("", "[]", '{"schema": "crbench-lock", "schema_version": 99}'):
        lock.path.write_text(content)
        with pytest.raises(UsageError, match=r"lock\.json.*[Ss]tart a new run"):
            lock.read()


def test_a_comparison_refuses_other_limits_and_tells_other_versions(settings: Settings) -> None:
    from pytest_crbench.statistics.compare import differing, remarks
    from pytest_crbench.statistics.results import Results

    first = Results({}, (), lock=inputs(settings))
    other = Results({}, (), lock=inputs(replace(settings, memory=2**30)))
    assert differing(first, other) == ("the limits differ (limits.memory 2147483648 and 1073741824)",)
    newer = Results({}, (), lock={**first.lock, "package": {"version": "9", "source": "f" * 64}})
    assert differing(first, newer) == ()
    (said,) = remarks(first, newer)
    assert "package.version" in said
    assert "and 9" in said
    assert remarks(first, Results({}, ())) == (), "a run without a lock file says nothing"


def test_a_replay_under_other_limits_is_told(settings: Settings) -> None:
    told = check_replayable("run", inputs(settings), inputs(replace(settings, test_timeout=99.0)))
    assert list(map(str, told)) == ["limits.test_timeout was 120.0, is 99.0"]
