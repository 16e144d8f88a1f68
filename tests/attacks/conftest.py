"""The sandboxes that attacks are tried in: ours, and a plain one for the naive harness of each file."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.arena import Arena, Plain
from support.reach import Savanna

from pytest_crbench.sandbox.choose import choose
from pytest_crbench.sandbox.settings import SandboxSettings, settings_from_environment

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
def savanna(cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Savanna:
    """A benchmark full of markers, on a machine where another pull request has been judged already."""
    made = Savanna(tmp_path_factory.mktemp("machine"), cache)
    made.furnish()
    return made
