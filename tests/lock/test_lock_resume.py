"""A run is finished only with what it was begun with: its record names the digest that differs."""

from __future__ import annotations

import json
import shutil
import uuid
from pathlib import Path

import jsonschema
import pytest
from support.benchmarks import Pull, Run, run, write_dataset
from support.endpoint import BASE_IMAGE

import pytest_crbench
from pytest_crbench.core.run_record import RunRecord
from pytest_crbench.reports.results import load_results, read_rows
from pytest_crbench.reports.schema import json_schema
from pytest_crbench.statistics.score import latest

pytestmark = [pytest.mark.network, pytest.mark.slow]

ASKED = ("--crbench-reviewer=human", "--crbench-agent=suggestions")


class Recorded:
    """A finished run, to be copied and resumed under other conditions."""

    def __init__(self, root: Path, cache: Path) -> None:
        self.root, self.cache = root, cache
        self.vendor, self.dataset = root / "vendor", root / "two"

    def start(self, *arguments: str) -> Run:
        return run(self.vendor, self.dataset, self.cache, *ASKED, *arguments)

    def resume(self, *arguments: str, env: dict[str, str] | None = None) -> Run:
        return run(self.vendor, self.dataset, self.cache, "--crbench-resume", *arguments, env=env)

    def inputs(self) -> dict:
        return json.loads((self.run() / "run.json").read_text("utf-8"))["inputs"]

    def run(self) -> Path:
        (place,) = (self.vendor / ".crbench/runs").iterdir()
        return place

    def rows(self) -> int:
        return len((self.run() / "results.jsonl").read_text().splitlines())


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> Recorded:
    made = Recorded(tmp_path_factory.mktemp("finished"), cache)
    made.vendor.mkdir()
    (made.vendor / "pytest.ini").write_text("[pytest]\n")
    write_dataset(made.dataset, [Pull("first", fixable=("price",)), Pull("second", hard=("tax",))])
    done = made.start("-n", "2")
    assert done.status == 0, done.output
    return made


@pytest.fixture
def recorded(finished: Recorded, tmp_path: Path) -> Recorded:
    shutil.copytree(finished.root, tmp_path / "copy", symlinks=True)
    return Recorded(tmp_path / "copy", finished.cache)


def refused(done: Run, recorded: Recorded, *words: str, rows: int = 2) -> None:
    """Nothing was measured, and the one message names what differs."""
    assert done.status == 4, done.output
    for word in words:
        assert word in done.output, (word, done.output)
    assert "start a new run" in done.output
    assert recorded.rows() == rows


def package_copy(place: Path, file: str, before: str, after: str) -> dict[str, str]:
    """Variables with which another copy of this package, changed in one place, is the one imported."""
    source = Path(pytest_crbench.__file__).parent
    shutil.copytree(source, place / "pytest_crbench", ignore=shutil.ignore_patterns("__pycache__"))
    path = place / "pytest_crbench" / file
    text = path.read_text("utf-8")
    assert before in text
    path.write_text(text.replace(before, after, 1))
    return {"PYTHONPATH": str(place)}


def test_the_record_is_complete_and_follows_its_schema(finished: Recorded, repo_root: Path) -> None:
    lock = finished.inputs()
    published = json.loads((repo_root / "docs" / "run.schema.json").read_text("utf-8"))
    assert published == json_schema(RunRecord, "crbench-run"), (
        "run: python -m pytest_crbench.reports.schema run > docs/run.schema.json"
    )
    record = json.loads((finished.run() / "run.json").read_text("utf-8"))
    jsonschema.Draft202012Validator(published).validate(record)
    assert not (finished.run() / "lock.json").exists()
    assert set(lock["instances"]) == {"small::first", "small::second"}
    # Two workers built or found one environment and both noted it.
    (built,) = lock["environments"].values()
    assert {one["environment"] for one in lock["instances"].values()} == set(lock["environments"])
    assert built["base"]["id"].startswith(built["python"])
    assert any(pin.startswith("pytest==") for pin in built["pins"])
    assert json.loads((finished.run() / "results.json").read_text("utf-8"))["run"]["inputs"] == lock


def test_each_review_has_one_row_that_verdicts_name(finished: Recorded) -> None:
    results = json.loads((finished.run() / "results.json").read_text("utf-8"))
    assert [review["id"] for review in results["reviews"]] == [
        "small/first/review-1",
        "small/second/review-1",
    ]
    assert {row["review"] for row in results["verdicts"]} == {review["id"] for review in results["reviews"]}
    assert all((finished.run() / "evaluations" / one["id"]).is_dir() for one in results["reviews"])
    assert set(results["reviews"][0]["durations"]) == {"review", "revision"}
    rows = read_rows(finished.run() / "results.jsonl")
    assert latest(rows) == latest(load_results(finished.run()).verdicts)


def test_the_same_conditions_go_on_and_what_decides_nothing_is_told(recorded: Recorded) -> None:
    place = recorded.run() / "run.json"
    record = json.loads(place.read_text("utf-8"))
    record["inputs"]["libraries"]["filelock"] = "1.0"
    place.write_text(json.dumps(record))
    again = recorded.resume()
    assert "libraries.filelock was 1.0, is" in " ".join(again.output.split())
    assert again.status == 0, again.output
    assert again.results()["run"]["resumed"] is True
    assert again.statuses() == {"first::price": "passed", "second::tax": "missed"}


def as_version_1(run: Path) -> None:
    """Make of a run's folder what was written before `run.json` held the inputs."""
    record = json.loads((run / "run.json").read_text("utf-8"))
    inputs = record.pop("inputs")
    del record["schema"], record["schema_version"]
    more = {name: inputs[name] for name in ("platform", "git")} | {"python": inputs["python"]["version"]}
    (run / "run.json").write_text(json.dumps({**record, **more}))
    (run / "lock.json").write_text(json.dumps({"schema": "crbench-lock", "schema_version": 1, **inputs}))


def test_a_folder_with_a_lock_file_is_resumed_and_replayed(recorded: Recorded) -> None:
    old = recorded.run()
    as_version_1(old)
    again = recorded.resume("-k", "price")
    assert again.status == 0, again.output
    assert again.results()["run"]["resumed"] is True
    assert again.results()["run"]["inputs"] == recorded.inputs()
    as_version_1(old)
    replayed = run(recorded.vendor, recorded.dataset, recorded.cache, f"--crbench-replay={old.name}")
    assert replayed.statuses() == {"first::price": "passed", "second::tax": "missed"}, replayed.output
    (old / "lock.json").unlink()
    done = run(recorded.vendor, recorded.dataset, recorded.cache, f"--crbench-resume={old.name}")
    assert done.status == 4, done.output
    assert "no lock.json beside it. Start a new run" in " ".join(done.output.split())


def test_another_hidden_test_is_refused(recorded: Recorded) -> None:
    test = recorded.dataset / "first" / "test_price.py"
    test.write_text(test.read_text() + "# a remark\n")
    refused(recorded.resume(), recorded, "instances.small::first.checks.price was", ", is ")


def test_a_revision_of_another_pull_request_is_not_tested(recorded: Recorded) -> None:
    file = recorded.dataset / "second" / "instance.toml"
    file.write_text(file.read_text().replace("Adds prices.", "Adds dear prices."))
    name = next((recorded.vendor / ".crbench/runs").iterdir()).name
    again = run(recorded.vendor, recorded.dataset, recorded.cache, f"--crbench-replay={name}")
    refused(again, recorded, "cannot replay", "instances.small::second.pull_request was")


def test_another_version_of_this_package_and_another_prompt_are_refused(
    recorded: Recorded, tmp_path: Path
) -> None:
    version = pytest_crbench.__version__
    changed = package_copy(tmp_path / "other", "__init__.py", version, version + ".post1")
    prompt = tmp_path / "other/pytest_crbench/models/prompts/agent_system.j2"
    prompt.write_text(prompt.read_text("utf-8") + "Be quick.\n")
    done = recorded.resume(env=changed)
    refused(
        done,
        recorded,
        "prompts was",
        "package.source was",
        f"package.version was {version}, is {version}.post1",
    )


AGENT = """
import jsonschema
import pytest
from pytest_crbench.core.model import Revision


class Idle:
    name = "idle"
    runs_on_clean_review = False
    fingerprint = {"name": "idle", "version": VERSION}

    def revise(self, task):
        return Revision(b"", self.name, "finished")


@pytest.fixture(scope="session")
def crbench_agent():
    return Idle()
"""


def test_a_fixtures_agent_is_recorded_replayed_and_must_stay_the_same(
    recorded: Recorded, tmp_path: Path
) -> None:
    shutil.rmtree(recorded.vendor / ".crbench")
    conftest = recorded.vendor / "conftest.py"
    conftest.write_text(AGENT.replace("VERSION", "1"))
    done = recorded.start()
    assert done.status == 0, done.output
    assert "agent of a fixture in conftest.py" in done.output
    assert recorded.inputs()["fixtures"]["agent"]["fingerprint"] == {"name": "idle", "version": 1}
    name = done.runs[-1].name
    conftest.write_text(AGENT.replace("VERSION", "2"))
    again = recorded.resume("--crbench-rerun-errors")
    assert set(again.statuses().values()) == {"infra_error"}, again.output
    assert "fixtures.agent.fingerprint.version was 1, is 2" in " ".join(again.output.split())
    conftest.unlink()
    replayed = run(recorded.vendor, recorded.dataset, recorded.cache, f"--crbench-replay={name}")
    assert replayed.status == 0, replayed.output
    assert replayed.results()["run"]["agent"]["name"] == "idle"


@pytest.mark.docker
def test_another_image_under_the_same_tag_is_refused(tmp_path: Path, cache: Path) -> None:
    import docker

    engine = docker.from_env()
    tag = f"crbench-lock-test:{uuid.uuid4().hex[:8]}"
    made = Recorded(tmp_path, cache)
    made.vendor.mkdir()
    write_dataset(made.dataset, [Pull("first", fixable=("price",))])
    engine.images.get(BASE_IMAGE).tag(tag)
    other = None
    try:
        sandbox = ("--crbench-sandbox=docker", f"--crbench-base-image={tag}")
        done = made.start(*sandbox)
        assert done.status == 0, done.output
        before = engine.images.get(tag).id
        container = engine.containers.create(BASE_IMAGE, ["true"])
        other = container.commit(repository=tag.partition(":")[0], tag=tag.partition(":")[2], author="x")
        container.remove()
        assert other.id != before
        again = made.resume(*sandbox)
        refused(again, made, "base.id was " + before[:50], ", is " + other.id[:50], rows=1)
    finally:
        engine.images.remove(tag)
