"""Whole runs whose reviewer comes out of an image: with workers, killed and resumed, with the network."""

from __future__ import annotations

import signal
import socket
import subprocess
from pathlib import Path
from typing import Any

import docker
import pytest
from support import benchmarks
from support.benchmarks import Pull, Run, write_dataset
from support.images import BASE_IMAGE, gateway_of_the_bridge, image
from support.strays import until

pytestmark = [pytest.mark.docker, pytest.mark.network, pytest.mark.slow]
#: Suggests what each changed file's function should return.
TOOL = """#!/bin/sh
{ printf '['; comma=''
for path in $(sed -n 's:^+++ b/\\(shop/[a-z]*_.py\\)$:\\1:p' "$1"); do
  name=$(basename "$path" _.py)
  printf '%s{"path": "%s", "lines": [2, 2], "body": "Wrong.", "suggestion": "    return \\\\"%s\\\\""}' \\
    "$comma" "$path" "$name"
  comma=', '
done; printf ']'; } > "$2"
"""


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    pulls = [Pull("one", fixable=("price",)), Pull("two", fixable=("tax",), hard=("fee",))]
    return write_dataset(tmp_path / "data", pulls)


def options(name: str, command: str) -> list[str]:
    return [
        f"--crbench-reviewer=cmd:{command}",
        f"--crbench-reviewer-image={name}",
        "--crbench-agent=suggestions",
    ]


def labelled(session: str | None = None) -> list[dict[str, Any]]:
    client = docker.APIClient(version="auto")
    try:
        wanted = [f"crbench.session={session}"] if session else ["crbench.session"]
        return list(client.containers(all=True, filters={"label": wanted}))
    finally:
        client.close()


def test_two_workers_review_out_of_an_image_and_no_other_resumes_it(
    folder: Path, dataset: Path, cache: Path
) -> None:
    with image({"/usr/local/bin/mytool": TOOL}) as name, image({"/usr/local/bin/mytool": TOOL}) as other:
        done = benchmarks.run(folder, dataset, cache, *options(name, "mytool {diff} {out}"), "-n", "2")
        assert done.status == 0, done.output
        assert set(done.statuses().values()) == {"passed"}
        client = docker.APIClient(version="auto")
        wanted = {"name": name, "id": client.inspect_image(name)["Id"], "network": False}
        client.close()
        assert done.results()["run"]["reviewer"]["fingerprint"]["image"] == wanted
        assert f"(in {name}, network off)" in done.output
        assert "without network" in (done.runs[-1] / "summary.md").read_text()
        again = benchmarks.run(
            folder, dataset, cache, "--crbench-resume", f"--crbench-reviewer-image={other}"
        )
        assert again.status == 4, again.output
        assert "cannot resume" in again.output
        assert "reviewer" in again.output


def test_a_killed_runs_container_goes_and_the_run_is_finished(
    folder: Path, dataset: Path, cache: Path
) -> None:
    given = options(BASE_IMAGE, "sh -c 'sleep 4; echo []'")
    process = subprocess.Popen(
        benchmarks.command(dataset, cache, *given, "-k", "price"),
        cwd=folder,
        env=benchmarks.environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )

    def running() -> list[dict[str, Any]]:
        owned = f":{process.pid}:"
        return [c for c in labelled() if owned in c["Labels"]["crbench.owner"] and c["State"] == "running"]

    (left,) = until(running)
    process.send_signal(signal.SIGKILL)
    process.wait()
    session = left["Labels"]["crbench.session"]
    assert labelled(session)
    done = benchmarks.run(folder, dataset, cache, "--crbench-resume", "-k", "price")
    assert done.status == 0, done.output
    assert done.statuses() == {"one::price": "missed"}
    assert labelled(session) == []


def test_the_network_is_there_if_it_is_asked_for_and_is_recorded(
    folder: Path, dataset: Path, cache: Path
) -> None:
    gateway = gateway_of_the_bridge()
    with socket.create_server(("0.0.0.0", 0)) as server:
        port = server.getsockname()[1]
        connect = f'import socket; socket.create_connection(("{gateway}", {port}), 5)'
        given = options(BASE_IMAGE, f"sh -c 'python3 -c \"$0\" && echo []' '{connect}'")
        done = benchmarks.run(folder, dataset, cache, *given, "--crbench-reviewer-network", "-k", "price")
    assert done.status == 0, done.output
    assert done.statuses() == {"one::price": "missed"}
    run = done.results()["run"]
    assert run["reviewer"]["fingerprint"]["image"]["network"] is True
    assert run["options"]["reviewer_network"] is True
    assert "with the network" in " ".join(done.output.split())


@pytest.mark.parametrize(
    ("given", "env", "said"),
    [
        pytest.param(
            options(BASE_IMAGE, "sh"),
            {"DOCKER_HOST": "unix:///nonexistent.sock"},
            "no Docker engine answers",
            id="no-engine",
        ),
        pytest.param(
            ["--crbench-reviewer=human", f"--crbench-reviewer-image={BASE_IMAGE}"],
            {},
            "--crbench-reviewer-image is for programs",
            id="no-program",
        ),
        pytest.param(
            ["--crbench-reviewer=cmd:sh", "--crbench-reviewer-network"],
            {},
            "goes with --crbench-reviewer-image",
            id="no-image",
        ),
    ],
)
def test_what_cannot_work_ends_the_run_before_it_starts(
    folder: Path, dataset: Path, cache: Path, given: list[str], env: dict[str, str], said: str
) -> None:
    done: Run = benchmarks.run(folder, dataset, cache, *given, "--crbench-agent=suggestions", env=env)
    assert done.status == 4, done.output
    assert said in done.output
    assert done.runs == []
