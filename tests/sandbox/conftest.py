"""Backends, one environment and one small tree for all tests of the sandboxes."""

from __future__ import annotations

import os
import secrets
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_crbench.core.model import Environment, Tree
from pytest_crbench.core.sandbox import Limits, SandboxSettings
from pytest_crbench.host import digest
from pytest_crbench.host.indexes import settings_from_environment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from pytest_crbench.core.sandbox import Backend, EnvironmentRef, Sandbox

BASE_IMAGE = os.environ.get("CRBENCH_TEST_BASE_IMAGE", "crbench-base:bookworm")
WANTED = Environment(requirements=("markupsafe",), as_of="2024-06-01")


@dataclass(frozen=True)
class Kit:
    """A backend with an environment and a tree."""

    backend: Backend
    environment: EnvironmentRef
    tree: Tree
    settings: SandboxSettings

    @property
    def about(self) -> dict[str, Any]:
        return self.backend.describe()

    def open(self, limits: Limits | None = None, **options: Any) -> AbstractContextManager[Sandbox]:
        return self.backend.open(
            self.environment, self.tree, limits=limits or Limits(lifetime=300), **options
        )


@pytest.fixture(scope="session")
def sandbox_settings(tmp_path_factory: pytest.TempPathFactory) -> SandboxSettings:
    cache = tmp_path_factory.mktemp("cache")
    given = SandboxSettings(cache=cache, session=secrets.token_hex(8), base_image=BASE_IMAGE, log=print)
    return settings_from_environment(given)


@pytest.fixture(scope="session")
def small_tree(tmp_path_factory: pytest.TempPathFactory) -> Tree:
    root = tmp_path_factory.mktemp("tree")
    (root / "pkg").mkdir()
    (root / "pkg" / "__init__.py").write_text("VALUE = 1\n")
    (root / "run.sh").write_text("#!/bin/sh\necho ran\n")
    (root / "run.sh").chmod(0o755)
    (root / "link").symlink_to("pkg/__init__.py")
    (root / "dangling").symlink_to("/nowhere/at all")
    (root / ".gitignore").write_text("*.log\n")
    (root / "kept.log").write_bytes(b"\x00\xff binary\r\n")
    (root / "odd name\n\u00e9").write_text("odd")
    (Path(os.fsdecode(os.fsencode(root) + b"/not-utf8-\xff"))).write_text("raw")
    return Tree(root, digest.of_tree(root))


@pytest.fixture(scope="session")
def docker_backend(sandbox_settings: SandboxSettings) -> Iterator[Backend]:
    from pytest_crbench.sandbox.choose import choose

    backend = choose("docker", sandbox_settings)
    yield backend
    backend.reap(sandbox_settings.session)


def _local(settings: SandboxSettings, program: str | None) -> Backend:
    from pytest_crbench.sandbox.local import LocalBackend

    return LocalBackend(settings, program)


@pytest.fixture(
    scope="session",
    params=[
        pytest.param("docker", marks=[pytest.mark.docker, pytest.mark.network]),
        pytest.param("bubblewrap", marks=pytest.mark.network),
        pytest.param("plain", marks=pytest.mark.network),
    ],
)
def kit(request: pytest.FixtureRequest, sandbox_settings: SandboxSettings, small_tree: Tree) -> Kit:
    if request.param == "docker":
        backend = request.getfixturevalue("docker_backend")
    elif request.param == "bubblewrap":
        if shutil.which("bwrap") is None:
            pytest.skip("bubblewrap is not installed")
        backend = _local(sandbox_settings, None)
        assert backend.describe()["isolation"] == "bubblewrap", "bwrap is there but does not work"
    else:
        backend = _local(sandbox_settings, "")
    return Kit(backend, backend.environment(WANTED), small_tree, sandbox_settings)


@pytest.fixture
def docker_kit(docker_backend: Backend, sandbox_settings: SandboxSettings, small_tree: Tree) -> Kit:
    return Kit(docker_backend, docker_backend.environment(WANTED), small_tree, sandbox_settings)


@pytest.fixture
def eventually() -> Callable[..., bool]:
    """Wait until a condition holds, for at most ``within`` seconds; whether it does."""
    import time

    def wait(condition: Callable[[], bool], within: float = 10.0) -> bool:
        end = time.monotonic() + within
        while time.monotonic() < end:
            if condition():
                return True
            time.sleep(0.1)
        return condition()

    return wait
