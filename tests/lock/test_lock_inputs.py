"""What counts as an input of a run, and which differences decide."""

from __future__ import annotations

import copy
import json
import platform
from dataclasses import replace
from pathlib import Path

import pytest
from support.benchmarks import Pull, write_dataset
from support.records import inputs as no_inputs
from support.records import run_record

from pytest_crbench.core.errors import InfraError, UsageError
from pytest_crbench.core.model import Environment
from pytest_crbench.core.records import from_row, to_row
from pytest_crbench.core.run_record import EnvironmentInfo, Inputs, PackageInfo
from pytest_crbench.core.sandbox import SandboxSettings
from pytest_crbench.core.settings import Settings
from pytest_crbench.evaluation.run_record import (
    check_replayable,
    check_same,
    note,
    read_inputs,
    read_run,
    write_run,
)
from pytest_crbench.run import assemble, preflight, programs
from pytest_crbench.run.record import run_inputs
from pytest_crbench.sandbox.local import LocalBackend
from pytest_crbench.statistics.deviations import deviations


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    pulls = [Pull("first", fixable=("price",)), Pull("second", hard=("tax",))]
    dataset = write_dataset(tmp_path / "two", pulls)
    return Settings(reviewer="human", agent="suggestions", dataset=(str(dataset),), cache=tmp_path / "cache")


def inputs(settings: Settings) -> Inputs:
    reviewer, agent = programs.make_reviewer(settings), programs.make_agent(settings, None)
    backend = LocalBackend(SandboxSettings(cache=settings.cache, session="s"))
    deciders = assemble.make_deciders(settings, None, ["tests"])
    found = run_inputs(
        settings, assemble.open_datasets(settings), reviewer, agent, backend.describe(), deciders
    )
    return from_row(Inputs, json.loads(json.dumps(to_row(found))))


def test_what_was_named_is_what_is_recorded(settings: Settings) -> None:
    found = inputs(settings)
    assert found.python["version"] == platform.python_version()
    assert {"pytest", "pytest-xdist", "docker", "pydantic", "uv"} <= set(found.libraries)
    assert (found.tools["git"] or "")[0].isdigit()
    assert found.agent.name == "suggestions"
    assert check_same("run", found, inputs(settings)) == []


def test_an_edited_file_shows_where_it_counts(settings: Settings) -> None:
    before = inputs(settings)
    folder = Path(settings.dataset[0]) / "first"

    def places(section: str = "instances") -> set[str]:
        return {d.where for d in deviations(to_row(before), to_row(inputs(settings)), (section,))}

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
    now.sandbox.isolation = "nothing at all"
    with pytest.raises(UsageError, match=r"sandbox\.isolation was"):
        check_same("run", before, now)


def test_another_interpreter_below_the_environments_is_refused(settings: Settings, tmp_path: Path) -> None:
    """As after an upgrade of the system's Python: the record says what an environment was built on."""
    now = inputs(settings)
    backend = LocalBackend(SandboxSettings(cache=settings.cache, session="s"))
    specifier = Environment().python
    name, found = backend.foundation(specifier)
    for recorded in (found, "3.11.0 of-the-past"):
        built = now.model_copy(update={"environments": {"e": environment("d", specifier, name, recorded)}})
        run = tmp_path / recorded
        write_run(run, run_record(inputs=built))
        if recorded == found:
            assert preflight.resume(run, now, backend) == []
            continue
        with pytest.raises(UsageError, match=r"environments\.e\.base\.id was 3\.11\.0 of-the-past, is 3"):
            preflight.resume(run, now, backend)


def environment(digest: str, specifier: str = ">=3", name: str = "python", id: str = "3") -> EnvironmentInfo:
    base = {"name": name, "id": id}
    return EnvironmentInfo(digest=digest, python="3", specifier=specifier, pins=[], base=base)


def test_an_environment_that_changes_under_way_is_no_measurement(tmp_path: Path) -> None:
    note(tmp_path, "environments", "e", environment("a"))
    assert not list(tmp_path.iterdir()), "nothing is recorded where there is no run"
    write_run(tmp_path, run_record(inputs=no_inputs()))
    note(tmp_path, "environments", "e", environment("a"))
    note(tmp_path, "environments", "e", environment("a"))
    with pytest.raises(InfraError, match=r"environments\.e\.digest was a, is b.*new run") as caught:
        note(tmp_path, "environments", "e", environment("b"))
    assert caught.value.reason == "lock"
    assert read_inputs(tmp_path).environments == {"e": environment("a")}


def test_processes_that_note_at_once_lose_nothing(tmp_path: Path) -> None:
    from concurrent.futures import ProcessPoolExecutor

    record = run_record(inputs=no_inputs())
    write_run(tmp_path, record)
    with ProcessPoolExecutor(4) as pool:
        noted = pool.map(_note, [tmp_path] * 4, range(4))
        record.notes = ["the controller writes meanwhile"]
        write_run(tmp_path, record)
        list(noted)
    write_run(tmp_path, record)
    found = read_run(tmp_path)
    assert found == record
    assert found.notes
    assert set(read_inputs(tmp_path).environments) == {f"{w}-{n}" for w in range(4) for n in range(10)}


def _note(run: Path, worker: int) -> None:
    for number in range(10):
        note(run, "environments", f"{worker}-{number}", environment("x"))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "is missing or unreadable"),
        ("[]", "expected an object, found list"),
        ('{"schema": "crbench-run", "schema_version": 99}', "'schema_version': expected 2, found 99"),
        ('{"schema": "sarif", "schema_version": 2}', "'schema': expected 'crbench-run', found 'sarif'"),
        ('{"schema": "crbench-run", "schema_version": 2, "name": 3}', "'name': should be a valid string"),
        ('{"started": "then", "reviewer": {"name": "x"}}', "no lock.json beside it"),
    ],
)
def test_a_record_that_cannot_be_read_says_what_to_do(tmp_path: Path, content: str, said: str) -> None:
    (tmp_path / "run.json").write_text(content)
    with pytest.raises(UsageError, match=r"run\.json.*[Ss]tart a new run") as caught:
        read_inputs(tmp_path)
    assert said in str(caught.value)


def test_a_comparison_refuses_other_limits_and_tells_other_versions(settings: Settings) -> None:
    from pytest_crbench.statistics.compare import differing, remarks
    from pytest_crbench.statistics.results import Results

    known = inputs(settings)
    first = Results(run_record(inputs=known), ())
    other = Results(run_record(inputs=inputs(replace(settings, memory=2**30))), ())
    assert differing(first, other) == ("the limits differ (limits.memory 2147483648 and 1073741824)",)
    package = PackageInfo(version="9", source="f" * 64)
    newer = Results(run_record(inputs=known.model_copy(update={"package": package})), ())
    assert differing(first, newer) == ()
    (said,) = remarks(first, newer)
    assert "package.version" in said
    assert "and 9" in said
    assert remarks(first, Results(run_record(), ())) == (), "a run without inputs says nothing"


def test_a_replay_under_other_limits_is_told(settings: Settings) -> None:
    told = check_replayable("run", inputs(settings), inputs(replace(settings, test_timeout=99.0)))
    assert list(map(str, told)) == ["limits.test_timeout was 120.0, is 99.0"]
