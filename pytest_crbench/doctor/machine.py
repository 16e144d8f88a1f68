"""What ``crbench doctor`` looks at on this machine: interpreter, packages, git, folders."""

from __future__ import annotations

import platform
import re
import shutil
import subprocess
from importlib import metadata
from typing import TYPE_CHECKING

from ..core.finding import Finding, missing, ok, warning
from ..host.space import room, size, why_unwritable

if TYPE_CHECKING:
    from pathlib import Path

_OLDEST_GIT = (2, 20)


def look_at_packages() -> list[Finding]:
    """The interpreter, and the packages that we need, in the versions that we need."""
    from packaging.requirements import Requirement

    found = [ok("python", f"{platform.python_version()} on {platform.system()} {platform.machine()}")]
    if platform.system() != "Linux":
        found = [warning("python", found[0].found, "Run it on Linux: nothing else is tested")]
    versions, wrong = {}, []
    for text in metadata.requires("pytest-crbench") or ():
        wanted = Requirement(text)
        if wanted.marker is not None and not wanted.marker.evaluate({"extra": ""}):
            continue
        try:
            versions[wanted.name] = metadata.version(wanted.name)
        except metadata.PackageNotFoundError:
            wrong.append(f"{wanted.name} is not installed")
            continue
        if not wanted.specifier.contains(versions[wanted.name], prereleases=True):
            wrong.append(f"{wanted.name} is {versions[wanted.name]}, not {wanted.specifier}")
    shown = ", ".join(f"{name} {versions[name]}" for name in ("pytest", "pytest-xdist") if name in versions)
    ours = metadata.version("pytest-crbench")
    if wrong:
        advice = "Install it again where pytest runs: pip install pytest-crbench"
        return [*found, missing("packages", f"pytest-crbench {ours}; {'; '.join(wrong)}", advice)]
    return [*found, ok("packages", f"pytest-crbench {ours}, {shown}")]


def look_at_git() -> Finding:
    """Look for git, which makes workspaces and reads revisions."""
    program = shutil.which("git")
    if program is None:
        return missing("git", "not found on PATH", "Install git, or put it on PATH")
    try:
        done = subprocess.run([program, "--version"], capture_output=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return missing("git", f"{program} cannot be run ({type(error).__name__})", "Install git anew")
    said = done.stdout.decode(errors="replace")
    version = re.search(r"(\d+)\.(\d+)[.\w]*", said)
    if done.returncode != 0 or version is None:
        return missing("git", f"{program} --version: exit status {done.returncode}", "Install git anew")
    if (int(version[1]), int(version[2])) < _OLDEST_GIT:
        oldest = ".".join(map(str, _OLDEST_GIT))
        return warning(
            "git", f"{version[0]} at {program}", f"Install git {oldest} or later: nothing older is tested"
        )
    return ok("git", f"{version[0]} at {program}")


def look_at_folder(name: str, folder: Path, wanted: int, least: int, option: str) -> Finding:
    """Look whether a run may write to a folder, and how much room there is. Makes nothing.

    Args:
        name: of the finding.
        folder: it need not be there yet.
        wanted: bytes that a run takes, about; less room is a warning.
        least: bytes without which a run does not start.
        option: the option that names another folder.
    """
    choose = f"Choose another folder ({option})"
    try:
        if why := why_unwritable(folder):
            return missing(name, f"cannot write to {folder}: {why}", choose)
        found = room(folder)
    except OSError as error:
        return missing(name, f"{folder}: {error.strerror}", choose)
    wanted = max(wanted, least)
    said = f"{folder}: {size(found.free)} free, about {size(wanted)} wanted"
    advice = f"Free some space (crbench clean --all), or choose another folder ({option})"
    if found.out_of_inodes:
        return missing(name, f"{folder}: only {found.inodes} more files can be made there (inodes)", advice)
    if found.free < least:
        return missing(name, said, advice)
    return warning(name, said, advice) if found.free < wanted else ok(name, said)
