"""The docker backend, one environment and one small tree for all tests of the sandboxes."""

from __future__ import annotations

import os
import secrets
from typing import TYPE_CHECKING

import pytest

from pytest_crbench.contracts.test_sandbox import WANTED, Kit
from pytest_crbench.contracts.test_sandbox import small_tree as write_small_tree
from pytest_crbench.core.sandbox import SandboxSettings
from pytest_crbench.host.indexes import settings_from_environment

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_crbench.core.model import Tree
    from pytest_crbench.core.sandbox import Backend

BASE_IMAGE = os.environ.get("CRBENCH_TEST_BASE_IMAGE", "crbench-base:bookworm")


@pytest.fixture(scope="session")
def sandbox_settings(tmp_path_factory: pytest.TempPathFactory) -> SandboxSettings:
    cache = tmp_path_factory.mktemp("cache")
    given = SandboxSettings(cache=cache, session=secrets.token_hex(8), base_image=BASE_IMAGE, log=print)
    return settings_from_environment(given)


@pytest.fixture(scope="session")
def small_tree(tmp_path_factory: pytest.TempPathFactory) -> Tree:
    return write_small_tree(tmp_path_factory.mktemp("tree"))


@pytest.fixture(scope="session")
def docker_backend(sandbox_settings: SandboxSettings) -> Iterator[Backend]:
    from pytest_crbench.sandbox.choose import choose

    backend = choose("docker", sandbox_settings)
    yield backend
    backend.reap(sandbox_settings.session)


@pytest.fixture
def docker_kit(docker_backend: Backend, sandbox_settings: SandboxSettings, small_tree: Tree) -> Kit:
    return Kit(docker_backend, docker_backend.environment(WANTED), small_tree, sandbox_settings)
