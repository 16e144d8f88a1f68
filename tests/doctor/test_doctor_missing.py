"""On a machine that lacks something, ``crbench doctor`` names it, says what to do, and exits with 1."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.aacr import pull
from support.aacr import write as write_aacr
from support.benchmarks import Pull, environment, write_dataset
from support.doctor import doctor
from support.index_server import Index, serve

if TYPE_CHECKING:
    from collections.abc import Iterator

LOCAL = ("--sandbox=local", "--agent=suggestions")
ROOT_ONLY = pytest.mark.skipif(os.geteuid() != 0, reason="what it takes away from the machine, only root may")


@pytest.fixture
def index() -> Iterator[str]:
    """An index that has what every environment needs."""
    with serve(Index()) as served:
        served.add("pytest", "pytest-8.4.2.tar.gz", b"")
        yield served.url


@pytest.fixture
def dataset(tmp_path: Path) -> str:
    """The option that names a small dataset."""
    return f"--dataset={write_dataset(tmp_path / 'small', [Pull('one', hard=('price',))])}"


def test_a_machine_with_everything_is_ready_and_left_as_it_was(
    folder: Path, index: str, tmp_path: Path
) -> None:
    said = doctor(folder, *LOCAL, f"--index-url={index}", f"--cache={tmp_path / 'cache'}")
    assert said.status == 0, said.output
    assert "missing" not in said.output
    assert said.output.splitlines()[-1].startswith("crbench doctor: a run can start")
    assert said.line("dataset").endswith("releases: 30 instances, 44 checks")
    assert not (tmp_path / "cache").exists()
    assert [p.name for p in folder.iterdir()] == ["pytest.ini"]


@ROOT_ONLY
def test_without_engine_space_network_and_key_the_advice_for_each(
    folder: Path, dataset: str, tmp_path: Path
) -> None:
    small = tmp_path / "disk"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8M", "tmpfs", small], check=True)
    try:
        said = doctor(
            folder, "--sandbox=docker", dataset, "--index-url=https://192.0.2.1/simple",
            f"--cache={small}/cache", before=("unshare", "-n"), DOCKER_HOST="unix:///nonexistent/docker.sock",
        )  # fmt: skip
        assert list(small.iterdir()) == []
    finally:
        subprocess.run(["umount", small], check=True)
    assert said.status == 1
    assert "the socket does not exist. Install and start a Docker engine" in said.line("docker engine")
    told = f"{small}/cache: 8.0 MB free, about 128 MB wanted. Free some space (crbench clean --all)"
    assert told in said.line("cache")
    assert said.level("run folder") == "ok"
    told = "there is no way to it (Network is unreachable). Connect this machine to a network"
    assert told in said.line("package index")
    assert "neither CRBENCH_API_KEY nor OPENAI_API_KEY is set. Put the key into" in said.line("model key")
    assert said.output.splitlines()[-1] == "crbench doctor: 5 things missing"


def test_what_never_answers_is_given_up_in_time(folder: Path, dataset: str, tmp_path: Path) -> None:
    """Without an engine that answers, ``auto`` takes the local sandbox."""
    with socket.socket(socket.AF_UNIX) as engine, socket.create_server(("127.0.0.1", 0)) as silent:
        engine.bind(str(tmp_path / "sock"))
        engine.listen()
        said = doctor(
            folder, dataset, "--agent=suggestions",
            f"--index-url=http://127.0.0.1:{silent.getsockname()[1]}/simple",
            DOCKER_HOST=f"unix://{tmp_path / 'sock'}",
        )  # fmt: skip
    assert said.status == 1
    # On a busy machine the look itself is given up; the advice is the same.
    assert re.search("it does not answer in time|no answer within", said.line("package index"))
    assert said.level("docker engine") == "warning"
    assert "Restart the engine" in said.line("docker engine")
    assert said.level("interpreters") == "ok"
    # 8 on a quiet machine; without limits it would not end.
    assert said.seconds < 60


@ROOT_ONLY
def test_a_socket_that_one_may_not_use(folder: Path, dataset: str, index: str, tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "sock"))
        server.listen()
        (tmp_path / "sock").chmod(0o600)
        # Root may open any socket: without its capabilities it may not open another user's.
        os.chown(tmp_path / "sock", 12345, 12345)
        said = doctor(
            folder, "--sandbox=docker", "--agent=suggestions", dataset, f"--index-url={index}",
            before=("setpriv", "--bounding-set=-all", "--inh-caps=-all"),
            DOCKER_HOST=f"unix://{tmp_path / 'sock'}",
        )  # fmt: skip
    assert said.status == 1, said.output
    assert "permission denied. Join the group of the socket (docker)" in said.line("docker engine")


def test_no_programs(folder: Path, dataset: str, index: str, tmp_path: Path) -> None:
    """Without bubblewrap a run works, but unisolated."""
    said = doctor(
        folder, *LOCAL, dataset, f"--index-url={index}", "--reviewer=cmd:no-such-reviewer {base}",
        f"--cache={tmp_path / 'small' / 'dataset.toml' / 'cache'}", PATH=str(tmp_path),
    )  # fmt: skip
    assert said.status == 1
    assert said.line("git") == "missing  git                not found on PATH. Install git, or put it on PATH"
    assert said.level("bubblewrap") == "warning"
    assert said.level("reviewer") == "missing"
    assert "no-such-reviewer" in said.line("reviewer")
    assert "dataset.toml is not a folder. Choose another folder (--cache)" in said.line("cache")


def test_the_configuration_of_the_folder_counts_and_keys_are_not_told(folder: Path, index: str) -> None:
    """What ``pytest`` would use here, is what is looked at; the command line wins."""
    (folder / "pytest.ini").write_text(
        "[pytest]\naddopts = --crbench-sandbox=local\ncrbench_reviewer = none\ncrbench_model = ini-model\n"
        f"crbench_dataset = nowhere\ncrbench_index_url = {index}\n"
    )
    (folder / "conftest.py").write_text("import os\nprint('noise')\nos.system('echo noise')\n")
    said = doctor(folder, "--json", "--model=given", OPENAI_API_KEY="sk-hush-hush")
    assert said.status == 1
    report = json.loads(said.output)
    checks = {check["name"]: check for check in report["checks"]}
    assert report["schema"] == "crbench-doctor-1"
    assert report["ready"] is False
    assert [name for name, check in checks.items() if check["level"] == "missing"] == ["dataset"]
    assert "no dataset 'nowhere'" in checks["dataset"]["found"]
    assert checks["model"]["found"] == "given"
    assert checks["model key"]["found"] == "set in OPENAI_API_KEY"
    assert "docker engine" not in checks
    assert "sk-hush" not in said.output
    assert sorted(p.name for p in folder.iterdir()) == ["conftest.py", "pytest.ini"]


def test_a_pytest_that_does_not_start_here_is_told(folder: Path, dataset: str, index: str) -> None:
    (folder / "conftest.py").write_text("import no_such_module\n")
    said = doctor(folder, *LOCAL, dataset, f"--index-url={index}")
    assert said.status == 1
    assert "No module named 'no_such_module'" in said.line("pytest")
    assert said.level("package index") == "ok"


def test_a_value_that_an_option_does_not_take_is_wrong_usage(folder: Path) -> None:
    said = doctor(folder, "--memory=plenty")
    assert said.status == 2
    assert "--crbench-limit memory=plenty: expected a size" in said.output


def test_interrupted_it_ends_at_once(folder: Path, dataset: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        process = subprocess.Popen(
            [sys.executable, "-m", "pytest_crbench.cli", "doctor", *LOCAL, dataset,
             f"--index-url=http://127.0.0.1:{silent.getsockname()[1]}/simple"],
            cwd=folder, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        silent.settimeout(60)
        silent.accept()
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=30)
    assert process.returncode == 130
    assert output.endswith("crbench: interrupted\n")
    assert "Traceback" not in output


def test_matching_alone_needs_no_sandbox_and_no_agent(folder: Path, tmp_path: Path) -> None:
    """Neither an engine nor an index nor a coding agent's model is asked for what runs nothing."""
    data = write_aacr(tmp_path / "data", [pull(1)])
    lacks = {
        "DOCKER_HOST": "unix:///nonexistent/docker.sock",
        "CRBENCH_API_KEY": None,
        "OPENAI_API_KEY": None,
    }
    options = (f"--dataset=aacr:{data}", "--sandbox=docker", f"--cache={tmp_path / 'cache'}")
    said = doctor(folder, *options, "--matcher=exact", **lacks)
    assert said.status == 0, said.output
    assert said.line("matching").endswith("meanings by exact")
    looked_at = {line[9:].split("  ")[0] for line in said.output.splitlines()[:-1]}
    assert not {"docker engine", "package index", "uv", "coding agent", "model", "model key"} & looked_at
    assert "packages" in looked_at
    judge = doctor(folder, *options, **lacks)
    assert judge.status == 1
    assert "needs a model and a key" in judge.line("matching")
    assert judge.output.splitlines()[-1] == "crbench doctor: 1 thing missing"


def test_what_is_scored_both_ways_needs_both(folder: Path, dataset: str, tmp_path: Path) -> None:
    said = doctor(
        folder, dataset, "--sandbox=docker", "--scoring=tests,matching", "--matcher=exact",
        f"--cache={tmp_path / 'cache'}", "--agent=suggestions", DOCKER_HOST="unix:///nonexistent/docker.sock",
    )  # fmt: skip
    assert said.status == 1
    assert said.level("matching") == "ok"
    assert said.level("docker engine") == "missing"
