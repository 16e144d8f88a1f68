"""What ``crbench doctor`` looks at for the sandboxes. Pulls nothing and leaves nothing in the engine."""

from __future__ import annotations

import shutil
import socket
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.errors import CrbenchError, InfraError
from ..core.finding import Finding, missing, ok, warning
from ..host.indexes import IndexSettings
from ..host.space import room, size
from ..text.printable import decode, printable
from . import bubblewrap
from .build import build_container
from .engine import connect, engine_address, engine_errors, explain
from .image import base_name, find_image
from .install import reachable_index
from .interpreters import PROBE, find_local, parse_probe, satisfies
from .uv import find_uv

if TYPE_CHECKING:
    from collections.abc import Sequence

    from docker import APIClient

    from ..core.sandbox import SandboxSettings

#: Seconds for one call, for one command in a container, and for all of the container.
_CALL = 8.0
_COMMAND = 10.0
#: Seconds that the whole look may take: without and with a question to the network from a container.
LIMIT, DEEP_LIMIT = 15.0, 60.0
_ROOM = 2 * 1024**3
_LIMITS = {"MemoryLimit": "memory", "PidsLimit": "processes", "CpuCfsQuota": "CPUs"}
_ASK = """\
import os, ssl, sys, urllib.request
url = os.environ["PIP_INDEX_URL"].rstrip("/") + "/pytest/"
context = ssl.create_default_context(cafile=os.environ.get("PIP_CERT"))
try:
    print(urllib.request.urlopen(url, timeout=8, context=context).status)
except Exception as error:
    sys.exit(type(error).__name__ + ": " + str(error))
"""


@dataclass(frozen=True)
class Wanted:
    """What a run wants of an engine: Python specifiers of its instances, and about how many bytes."""

    pythons: tuple[str, ...]
    room: int


def look_at_docker(settings: SandboxSettings, wanted: Wanted, *, deep: bool) -> list[Finding]:
    """Look at the engine, its limits and space, and the base images; with ``deep`` at the way out."""
    try:
        client = connect(_CALL)
    except InfraError as error:
        said, advice = explain(error.__cause__ or error)
        return [missing("docker engine", said, f"{advice}, or use --sandbox=local")]
    # A container that is lost ends itself soon.
    settings = replace(settings, build_timeout=_COMMAND)
    try:
        with engine_errors("asking the engine about itself"):
            info = dict(client.info())
        found = [_engine(client, info), _limits(info), _space(info, wanted)]
        for name, specifiers in _bases(settings, wanted).items():
            found += _base(client, settings, name, specifiers, deep=deep)
        return found
    except InfraError as error:
        return [missing("docker engine", printable(str(error)), "Look at the engine's log, then try again")]
    finally:
        client.close()


def _engine(client: APIClient, info: dict[str, Any]) -> Finding:
    version, groups = info.get("ServerVersion", "?"), f"cgroup v{info.get('CgroupVersion', '?')}"
    said = f"{version} at {engine_address()}, API {client.api_version}, {groups}, {info.get('Driver')}"
    if str(info.get("OSType", "linux")) != "linux":
        return missing("docker engine", said, "Switch it to Linux containers")
    return ok("docker engine", said)


def _limits(info: dict[str, Any]) -> Finding:
    lacking = [what for key, what in _LIMITS.items() if info.get(key) is False]
    if lacking:
        advice = "Switch these cgroup controllers on at the engine's host: a sandbox could take all there is"
        return warning("engine limits", f"the engine cannot limit {', '.join(lacking)}", advice)
    return ok("engine limits", "memory, processes and CPUs can be limited")


def _space(info: dict[str, Any], wanted: Wanted) -> Finding:
    root = Path(str(info.get("DockerRootDir") or "/nonexistent"))
    # An engine in another machine (also a virtual one) has folders of the same names.
    if info.get("Name") != socket.gethostname() or not root.is_dir():
        return ok("engine space", f"{root} is not on this machine; how much is free there cannot be known")
    try:
        free = room(root).free
    except OSError as error:
        return ok("engine space", f"how much is free in {root} cannot be known ({error.strerror})")
    said = f"{size(free)} free in {root}, about {size(wanted.room)} wanted"
    advice = "Free some space (crbench clean, docker system prune), or move the engine's data-root"
    if free < wanted.room // 4:
        return missing("engine space", said, advice)
    return warning("engine space", said, advice) if free < wanted.room else ok("engine space", said)


def _bases(settings: SandboxSettings, wanted: Wanted) -> dict[str, list[str]]:
    """Base images by name, each with the specifiers that it has to satisfy."""
    found: dict[str, list[str]] = {}
    for specifier in wanted.pythons or ("",):
        found.setdefault(base_name(settings, specifier), []).append(specifier)
    return found


def _base(
    client: APIClient, settings: SandboxSettings, name: str, specifiers: Sequence[str], *, deep: bool
) -> list[Finding]:
    image = find_image(client, name)
    if image is None:
        return [_pullable(client, name, "base image", "--base-image")]
    try:
        with build_container(client, settings, image["Id"], network=deep) as execute:
            asked = execute(["python3", "-I", "-c", PROBE], _COMMAND)
            try:
                version = parse_probe(decode(asked.stdout)).version
            except ValueError:
                advice = "Name an image with Python 3.8 or later by --base-image"
                return [missing("base image", f"{name} has no working python3 on its PATH", advice)]
            lacking = [
                what
                for what, command in (
                    ("the venv module", ["python3", "-I", "-c", "import venv, ensurepip"]),
                    ("git", ["git", "--version"]),
                )
                if execute(command, _COMMAND).returncode != 0
            ]
            found = [_contents(name, version, specifiers, lacking)]
            if deep:
                found.append(_way_out(client, settings, execute))
            return found
    except CrbenchError as error:
        advice = "Name an image that has sleep, python3 and git by --base-image"
        return [missing("base image", f"{name} cannot be started: {printable(str(error), 200)}", advice)]


def _contents(name: str, version: str, specifiers: Sequence[str], lacking: Sequence[str]) -> Finding:
    said = f"{name}, Python {version}"
    unmet = [s for s in specifiers if not satisfies(version, s)]
    if len(unmet) == len(specifiers) or "the venv module" in lacking:
        what = f"but not {unmet[0]}" if unmet else "without the venv module"
        return missing(
            "base image", f"{said}, {what}", "Name another one by --base-image, such as python:{python}-slim"
        )
    if unmet:
        advice = "Put {python} in the name of the base image, to have one for each version"
        return warning("base image", f"{said}, but some instances want {', '.join(unmet)}", advice)
    if lacking:
        advice = "Name an image with git by --base-image, if agents are to use it"
        return warning("base image", f"{said}, without {', '.join(lacking)}", advice)
    return ok("base image", f"{said}, venv, git")


def look_at_image(name: str, what: str, option: str) -> tuple[Finding, bool]:
    """Look whether an image could be pulled if it is not here, and whether it is here; nothing is pulled.

    Args:
        name: of the image.
        what: it is for; the name of the finding.
        option: that names another one.
    """
    try:
        client = connect(_CALL)
    except InfraError as error:
        said, advice = explain(error.__cause__ or error)
        said = f"there is no engine to run {name} in: {said}"
        return missing(what, said, f"{advice}, or leave {option} out"), False
    try:
        if find_image(client, name) is None:
            return _pullable(client, name, what, option), False
        return ok(what, f"{name} is here"), True
    finally:
        client.close()


def _pullable(client: APIClient, name: str, what: str, option: str) -> Finding:
    """Ask the registry, through the engine, whether the image is there; nothing is pulled."""
    try:
        with engine_errors(f"looking for {name}"):
            client.inspect_distribution(name)  # type: ignore[no-untyped-call]
    except InfraError as error:
        advice = f"Pull, load or build it, or name another one by {option}"
        said = printable(str(error).removeprefix(f"looking for {name}: "), 200)
        return missing(what, f"{name} is not here, and the registry does not give it: {said}", advice)
    return ok(what, f"{name} is not here yet; the registry has it, the first run pulls it")


def _way_out(client: APIClient, settings: SandboxSettings, execute: Any) -> Finding:
    with reachable_index(client, settings, execute) as (_folder, env):
        env["PIP_INDEX_URL"] = IndexSettings.of(settings).urls()[0]
        asked = execute(["python3", "-I", "-c", _ASK], _COMMAND, env)
    if asked.returncode == 0:
        return ok("container network", "a build container reaches the package index")
    answer = printable(decode(asked.stderr).strip() or "no answer in time", 200)
    said = IndexSettings.of(settings).redact(answer)
    advice = "Check the engine's DNS and proxy settings, HTTPS_PROXY and the CA bundle: builds use them"
    return missing("container network", f"a build container does not reach the package index: {said}", advice)


def look_at_uv() -> list[Finding]:
    """Look for uv, which resolves environments for both sandboxes."""
    found = find_uv()
    if found is None:
        return [
            missing(
                "uv", "the uv program was not found", "Install it where pytest-crbench is: pip install uv"
            )
        ]
    return [ok("uv", found)]


def look_at_local(pythons: Sequence[str]) -> list[Finding]:
    """Look for bubblewrap, and for interpreters that satisfy the instances' specifiers."""
    return [_bubblewrap(), *_interpreters(pythons)]


def _bubblewrap() -> Finding:
    works = bubblewrap.find()
    if works:
        return ok("bubblewrap", f"{bubblewrap.version(works)} at {works}, user namespaces work")
    program = shutil.which("bwrap")
    if program is None:
        advice = "Install bubblewrap, or use Docker: without it the code under review runs as you, unisolated"
        return warning("bubblewrap", "not found on PATH", advice)
    advice = (
        "Allow user namespaces (sysctl user.max_user_namespaces, kernel.unprivileged_userns_clone, "
        "kernel.apparmor_restrict_unprivileged_userns), or use Docker: without them the code under review "
        "runs as you, unisolated"
    )
    return warning("bubblewrap", f"{program} does not work here: user namespaces are not allowed", advice)


def _interpreters(pythons: Sequence[str]) -> list[Finding]:
    found, lacking = {}, []
    uv = find_uv()
    for specifier in pythons:
        try:
            found[specifier] = find_local(specifier, uv)
        except CrbenchError:
            lacking.append(specifier)
    versions = ", ".join(sorted({f"{i.version} ({i.path})" for i in found.values()})) or "none"
    if not lacking:
        return [ok("interpreters", printable(versions))]
    advice = "Install such a Python and put it on PATH, or use Docker"
    said = printable(f"no Python {' and no '.join(lacking)}; found: {versions}")
    return [(warning if found else missing)("interpreters", said, advice)]
