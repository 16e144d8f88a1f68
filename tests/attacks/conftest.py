"""The sandboxes that attacks are tried in: ours, and a plain one for the naive harness of each file."""

from __future__ import annotations

import os
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from support.arena import Arena, Plain
from support.reach import KEYS, Place, Savanna, agents_place, reviewers_place

from pytest_crbench.core.sandbox import SandboxSettings
from pytest_crbench.host.indexes import settings_from_environment
from pytest_crbench.sandbox.choose import choose

BASE_IMAGE = os.environ.get("CRBENCH_TEST_BASE_IMAGE", "crbench-base:bookworm")


@pytest.fixture(scope="session")
def attack_settings(cache: Path) -> SandboxSettings:
    wanted = SandboxSettings(cache=cache, session=secrets.token_hex(8), base_image=BASE_IMAGE)
    return settings_from_environment(wanted)


@pytest.fixture(scope="session")
def local_backend(attack_settings: SandboxSettings) -> Iterator[Any]:
    backend = choose("local", attack_settings)
    yield backend
    backend.reap(attack_settings.session)


@pytest.fixture(scope="session")
def docker_backend(attack_settings: SandboxSettings) -> Iterator[Any]:
    backend = choose("docker", attack_settings)
    yield backend
    backend.reap(attack_settings.session)


@pytest.fixture(scope="session", params=[pytest.param("docker", marks=pytest.mark.docker), "local"])
def arena(request: pytest.FixtureRequest, cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Arena:
    """Judges revisions in each sandbox."""
    name = request.param
    backend = request.getfixturevalue(f"{name}_backend")
    if name == "local" and backend.describe()["isolation"] != "bubblewrap":
        pytest.skip("bubblewrap does not work here")
    return Arena(name, backend, cache / "shared", tmp_path_factory.mktemp(f"arena-{name}"))


@pytest.fixture(scope="session")
def plain_sandbox(
    request: pytest.FixtureRequest, local_backend: Any, tmp_path_factory: pytest.TempPathFactory
) -> Plain:
    """Opens sandboxes for naive harnesses: local ones are fast, but only bubblewrap keeps an attack in."""
    isolated = local_backend.describe()["isolation"] == "bubblewrap"
    backend = local_backend if isolated else request.getfixturevalue("docker_backend")
    return Plain(backend, tmp_path_factory.mktemp("plain"))


@pytest.fixture(scope="module")
def savanna(cache: Path) -> Iterator[Savanna]:
    """A benchmark full of markers, on a machine where another pull request has been judged already.

    Everybody of the machine may read it: what keeps a program from it is not its owner.
    """
    with tempfile.TemporaryDirectory(prefix="machine-") as folder:
        Path(folder).chmod(0o755)
        made = Savanna(Path(folder), cache)
        made.furnish()
        yield made


PLACES = {"reviewer": reviewers_place, "docker": agents_place, "local": agents_place}


@pytest.fixture(
    scope="module",
    params=[
        pytest.param("reviewer", marks=pytest.mark.docker),
        pytest.param("docker", marks=pytest.mark.docker),
        "local",
    ],
)
def place(request: pytest.FixtureRequest, savanna: Savanna) -> Iterator[Place]:
    """Where programs under test run: a reviewer's container, and the agent's sandboxes."""
    if request.param == "local":
        backend = request.getfixturevalue("local_backend")
        if backend.describe()["isolation"] != "bubblewrap":
            pytest.skip("bubblewrap does not work here")
    with ExitStack() as stack, pytest.MonkeyPatch.context() as patch:
        made = PLACES[request.param](savanna, request.param, stack)
        for name in KEYS:
            patch.setenv(name, f"sk-{savanna.marks['key']}")
        yield made
