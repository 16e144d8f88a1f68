"""A wheel, installed where nothing else is, does what the README says."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from uv import find_uv_bin

from pytest_crbench.core.sandbox import SandboxSettings
from pytest_crbench.host.indexes import settings_from_environment
from pytest_crbench.sandbox.uv import uv_environment

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.slow, pytest.mark.network]


@dataclass(frozen=True)
class Installed:
    """An environment that holds the wheel and its dependencies, and an empty folder to start in."""

    wheel: Path
    bin: Path
    folder: Path

    def run(self, *command: str, status: int = 0) -> str:
        done = subprocess.run(
            [str(self.bin / command[0]), *command[1:]],
            cwd=self.folder,
            env=surroundings(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=400,
            check=False,
        )
        assert done.returncode == status, done.stdout
        return done.stdout


def surroundings() -> dict[str, str]:
    gone = ("PYTHON", "PYTEST_", "CRBENCH_", "TASK_", "OPENAI_", "VIRTUAL_ENV", "GITHUB_STEP_SUMMARY")
    return {name: value for name, value in os.environ.items() if not name.startswith(gone)}


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Installed:
    place = tmp_path_factory.mktemp("wheel")
    root = request.config.rootpath
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    subprocess.run(
        [*pip, "wheel", "--no-deps", "--wheel-dir", str(place / "dist"), str(root)],
        check=True,
        env=surroundings(),
    )
    (wheel,) = (place / "dist").glob("*.whl")
    venv = place / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(venv)], check=True)
    # uv reads no configuration of pip's; this is how the plugin calls it as well.
    settings = settings_from_environment(SandboxSettings(cache=place / "cache", session=""))
    install = [
        find_uv_bin(),
        "pip",
        "install",
        "--quiet",
        "--python",
        str(venv / "bin" / "python"),
        str(wheel),
    ]
    subprocess.run(install, check=True, env=uv_environment(settings), cwd=place)
    (place / "empty").mkdir()
    return Installed(wheel, venv / "bin", place / "empty")


def test_the_wheel_holds_the_package_and_nothing_else(installed: Installed, repo_root: Path) -> None:
    with zipfile.ZipFile(installed.wheel) as packed:
        names = packed.namelist()
    tops = {name.split("/")[0] for name in names}
    (metadata,) = (top for top in tops if top.endswith(".dist-info"))
    assert tops == {"pytest_crbench", metadata}

    def shipped(folder: Path, prefix: str) -> set[str]:
        files = (p for p in folder.rglob("*") if p.is_file() and "__pycache__" not in p.parts)
        return {prefix + str(p.relative_to(folder)) for p in files}

    wanted = shipped(repo_root / "pytest_crbench", "pytest_crbench/")
    wanted |= shipped(repo_root / "instances", "pytest_crbench/_instances/")
    assert {name for name in names if name.startswith("pytest_crbench/")} == wanted
    for needed in ("py.typed", "models/prompts/agent_system.j2", "sandbox/templates/user.Dockerfile.j2"):
        assert f"pytest_crbench/{needed}" in names
    assert any(name.startswith(f"{metadata}/") and name.endswith("/LICENSE") for name in names)


def test_commands_work(installed: Installed) -> None:
    assert installed.run("crbench", "--version").startswith("crbench ")
    for command in ("demo", "validate", "compare", "gate", "clean"):
        assert f"crbench {command}" in installed.run("crbench", command, "--help")
    assert "unrecognized arguments" in installed.run("crbench", "demo", "--nonsense", status=2)


def test_pytest_knows_the_plugin_and_leaves_other_runs_alone(installed: Installed) -> None:
    assert "--crbench-reviewer=SPEC" in installed.run("pytest", "--help")
    assert "crbench" not in installed.run("pytest", "-p", "no:cacheprovider", status=5).split("plugins:")[0]
    assert list(installed.folder.iterdir()) == []


def test_the_contracts_come_with_it(installed: Installed) -> None:
    output = installed.run(
        "pytest",
        *("--pyargs", "pytest_crbench.contracts", "-p", "no:cacheprovider"),
        *("--crbench-contract=reviewer:human", "--crbench-contract=report:markdown"),
    )
    assert "14 passed" in output


def test_the_bundled_dataset_is_collected_by_name(installed: Installed) -> None:
    output = installed.run("pytest", "--crbench-reviewer=human", "--collect-only", "-q")
    assert output.count("releases::") == 44
    assert "44 tests collected" in output


def test_one_instance_is_really_evaluated(installed: Installed) -> None:
    """One comment with a suggestion that resolves it, so the check passes."""
    output = installed.run(
        "pytest",
        "--crbench-reviewer=human",
        "--crbench-agent=suggestions",
        "--crbench-sandbox=local",
        f"--crbench-cache={installed.folder.parent / 'cache'}",
        "-p",
        "no:cacheprovider",
        "--crbench-fail-under=1",
        "releases::cachetools-7.2.4",
    )
    assert "1 passed" in output
    assert output.strip().splitlines()[-1].startswith("crbench: PASSED, overall 1.000 >= 1")
    (run,) = (installed.folder / ".crbench" / "runs").iterdir()
    assert {"results.json", "summary.md", "run.json"} <= {path.name for path in run.iterdir()}
