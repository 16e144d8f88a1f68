"""Everything that goes into a run, by digest and version: the content of its lock file."""

from __future__ import annotations

import os
import platform
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import __version__
from ..core.scoring import SCORINGS
from ..evaluation.identity import environment_name
from ..host import digest
from ..text.secrets import scrubbed_value

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ..core.agent import Agent
    from ..core.model import Dataset, Instance
    from ..core.reviewer import Reviewer
    from ..core.scoring import Decider
    from ..core.settings import Settings

#: Installed packages whose behaviour reaches results, or the reports of pytest.
LIBRARIES = (
    *("pytest", "pytest-xdist", "pluggy", "docker", "GitPython", "unidiff", "jinja2", "openai", "pydantic"),
    *("filelock", "packaging", "pypi-simple", "uv", "numpy", "scipy", "bm25s", "tree-sitter"),
)
_SOURCE = (".py", ".j2", ".json", ".toml")


def run_inputs(
    settings: Settings,
    datasets: Iterable[Dataset],
    reviewer: Reviewer,
    agent: Agent,
    sandbox: Mapping[str, Any],
    deciders: Mapping[str, Decider],
) -> dict[str, Any]:
    """Return all that is known before any work starts, as plain JSON (docs/results-format.md)."""
    from ..models import prompts

    found: dict[str, Any] = scrubbed_value(
        _inputs(settings, datasets, reviewer, agent, sandbox, prompts.digest_of_all())
    )
    found["options"] = {
        "repeats": settings.repeats,
        "scoring": list(deciders),
        "comments": settings.comments,
    }
    for name, decider in deciders.items():
        if inputs := SCORINGS.get(name).inputs(decider):
            found["options"] |= {**inputs, "offline": settings.offline}
    return found


def _inputs(
    settings: Settings,
    datasets: Iterable[Dataset],
    reviewer: Reviewer,
    agent: Agent,
    sandbox: Mapping[str, Any],
    prompts: str,
) -> dict[str, Any]:
    return {
        "package": {"version": __version__, "source": package_digest()},
        "prompts": prompts,
        "instances": {f"{d.name}::{i.id}": _instance(i) for d in datasets for i in d.instances},
        "reviewer": program(reviewer),
        "agent": program(agent),
        "sandbox": {"name": sandbox["name"], "isolation": sandbox.get("isolation")},
        "limits": {
            "memory": settings.memory,
            "cpus": settings.cpus,
            "pids": settings.pids,
            "test_timeout": settings.test_timeout,
        },
        "environments": {},
        "fixtures": {},
        "python": {
            "version": platform.python_version(),
            "implementation": platform.python_implementation(),
        },
        "platform": {"system": platform.system(), "machine": platform.machine(), "cpus": os.cpu_count()},
        "engine": {
            key: value
            for key, value in sandbox.items()
            if key not in ("name", "isolation", "base_image", "no_docker")
        },
        "libraries": _libraries(),
        "tools": {"git": _git_version()},
        "git": git_state(),
    }


def program(made: Reviewer | Agent) -> dict[str, Any]:
    """Return what a reviewer or a coding agent is: its name, and all that decides what it does."""
    fingerprint = scrubbed_value(dict(made.fingerprint))
    return {"name": made.name, "digest": digest.of(fingerprint), "fingerprint": fingerprint}


def package_digest() -> str:
    """Digest of the source of this package as it is installed, without the prompts, which have their own."""
    root = Path(__file__).parents[1]
    found = {
        path.relative_to(root).as_posix(): digest.of_file(path)
        for path in sorted(root.rglob("*"))
        if path.suffix in _SOURCE and "_instances" not in path.parts and not _is_prompt(path)
    }
    return digest.of(found)


def git_state(folder: Path | None = None) -> dict[str, Any] | None:
    """Revision of the repository that the run is started in, and whether it is changed; None if none."""
    try:
        return {
            "revision": _ask("rev-parse", "HEAD", cwd=folder),
            "dirty": bool(_ask("status", "--porcelain", cwd=folder)),
        }
    except (OSError, subprocess.SubprocessError):
        return None


def _instance(instance: Instance) -> dict[str, Any]:
    return {
        "digest": instance.digest,
        "pull_request": instance.request_digest,
        "checks": {check.id: check.digest for check in instance.checks},
        "environment": environment_name(instance.environment),
    }


def _is_prompt(path: Path) -> bool:
    return path.parent.name == "prompts" and path.suffix == ".j2"


def _libraries() -> dict[str, str]:
    from importlib.metadata import PackageNotFoundError, version

    found = {}
    for name in LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def _git_version() -> str | None:
    try:
        return _ask("--version").removeprefix("git version ")
    except (OSError, subprocess.SubprocessError):
        return None


def _ask(*arguments: str, cwd: Path | None = None) -> str:
    done = subprocess.run(
        ["git", *arguments],
        capture_output=True,
        text=True,
        timeout=10,
        check=True,
        errors="replace",
        cwd=cwd,
    )
    return done.stdout.strip()
