"""The parts that need neither an engine nor a network."""

from __future__ import annotations

import io
import json
import os
import secrets
import signal
import subprocess
import sys
import tarfile
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from docker.errors import APIError
from hypothesis import given
from hypothesis import strategies as st

from pytest_crbench.contracts.test_sandbox import eventually
from pytest_crbench.core.errors import InfraError, InvalidInstanceError, UsageError
from pytest_crbench.core.model import File
from pytest_crbench.core.sandbox import SandboxSettings
from pytest_crbench.host import digest, processes
from pytest_crbench.host.indexes import IndexSettings, settings_from_environment
from pytest_crbench.sandbox import archive, beneath, interpreters, uv
from pytest_crbench.sandbox.choose import choose
from pytest_crbench.sandbox.engine import Kept, engine_errors
from pytest_crbench.sandbox.local import LocalBackend

if TYPE_CHECKING:
    pass


def settings(tmp_path: Path, **more: Any) -> SandboxSettings:
    return SandboxSettings(cache=tmp_path / "cache", session=secrets.token_hex(4), **more)


# Choosing


def test_an_unknown_sandbox_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="auto, docker, local"):
        choose("podman", settings(tmp_path))


def test_no_engine_is_told_or_auto_falls_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    with pytest.raises(InfraError, match="--crbench-sandbox=local"):
        choose("docker", settings(tmp_path))
    assert choose("auto", settings(tmp_path)).name == "local"


def test_an_engine_that_hangs_is_given_up_soon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import socket

    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(tmp_path / "s"))
        silent.listen()
        monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/s")
        began = time.monotonic()
        assert choose("auto", settings(tmp_path)).name == "local"
        assert time.monotonic() - began < 6


def test_importing_the_backends_imports_nothing_heavy() -> None:
    script = (
        "import sys, pytest_crbench.sandbox.choose\n"
        "import pytest_crbench.sandbox.local, pytest_crbench.sandbox.docker\n"
        "print([m for m in ('docker','requests','jinja2','uv','packaging') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True, timeout=60)
    assert done.stdout == b"[]\n"


# Settings and credentials


def test_settings_come_from_the_variables_of_pip_and_uv(tmp_path: Path) -> None:
    bundle = tmp_path / "ca.pem"
    bundle.write_text("x")
    filled = settings_from_environment(
        settings(tmp_path),
        {
            "PIP_CERT": "/absent",
            "SSL_CERT_FILE": str(bundle),
            "PIP_INDEX_URL": "https://p",
            "UV_EXTRA_INDEX_URL": "https://a https://b",
        },
    )
    assert (filled.ca_bundle, filled.index_url) == (bundle, "https://p")
    assert filled.extra_index_urls == ("https://a", "https://b")
    given = settings(tmp_path, index_url="https://mine")
    assert settings_from_environment(given, {"PIP_INDEX_URL": "https://p"}).index_url == "https://mine"


def test_credentials_are_removed_from_what_tools_say(tmp_path: Path) -> None:
    some = settings(
        tmp_path, index_url="https://me:s3cret@host/simple", extra_index_urls=("https://t0ken@other/simple",)
    )
    said = "tried https://me:s3cret@host/simple, then s3cret and https://t0ken@other, http://x:y@z/"
    clean = uv.redact(said, some)
    for secret in ("s3cret", "t0ken", "x:y"):
        assert secret not in clean
    assert "host/simple" in clean
    assert IndexSettings.of(some).public() == ["https://host/simple", "https://other/simple"]


# Python versions


@pytest.mark.parametrize(
    ("specifier", "minor"),
    [
        (">=3.11", "3.11"),
        (">=3.9,<3.12", "3.9"),
        ("==3.12.*", "3.12"),
        (">3.12", "3.12"),
        (">=3.11.5", "3.11"),
        ("", "3.9"),
        ("~=3.13.1", "3.13"),
    ],
)
def test_the_lowest_minor_version_is_taken(specifier: str, minor: str) -> None:
    assert interpreters.minor_for(specifier) == minor


@pytest.mark.parametrize("specifier", ["<3.0", ">=4", "three"])
def test_an_impossible_python_is_the_instances_fault(specifier: str) -> None:
    with pytest.raises(InvalidInstanceError, match=r"environment\.python"):
        interpreters.minor_for(specifier)


def test_a_python_that_is_not_here_is_told(tmp_path: Path) -> None:
    with pytest.raises(InfraError, match="--crbench-sandbox=docker") as caught:
        interpreters.find_local("==3.9.0", None)
    assert caught.value.reason == "no-interpreter"


# Owners


def test_an_owner_is_gone_when_its_process_ended_or_its_number_is_used_again() -> None:
    mine = processes.own_token()
    assert not processes.is_gone(mine)
    host, pid, start = mine.rsplit(":", 2)
    assert processes.is_gone(f"{host}:{pid}:{int(start) - 1}")
    child = subprocess.Popen(["true"])
    child.wait()
    assert processes.is_gone(f"{host}:{child.pid}:1")
    assert not processes.is_gone(f"another-machine:{child.pid}:1")
    for odd in ("", "x", "::", f"{host}:x:1"):
        assert not processes.is_gone(odd)


# Output


@given(st.lists(st.binary(max_size=50), max_size=40), st.integers(2, 200))
def test_head_and_tail_are_kept_and_the_gap_is_counted(chunks: list[bytes], limit: int) -> None:
    kept = Kept(limit)
    for chunk in chunks:
        kept.feed(chunk)
    data, half = b"".join(chunks), limit // 2
    result, cut = kept.result()
    if len(data) <= 2 * half:
        assert (result, cut) == (data, False)
    else:
        gap = b"\n[... %d bytes left out ...]\n" % (len(data) - 2 * half)
        assert (result, cut) == (data[:half] + gap + data[-half:], True)


# Archives


def tar_of(*members: tuple[str, Any]) -> tarfile.TarFile:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as tar:
        for name, what in members:
            info = tarfile.TarInfo(name)
            if isinstance(what, bytes):
                info.size = len(what)
                tar.addfile(info, io.BytesIO(what))
            else:
                info.type, info.linkname = what
                tar.addfile(info)
    return archive.read_stream(iter([stream.getvalue()]), 10**7)


@pytest.mark.parametrize(
    "members",
    [
        [("../evil", b"x")],
        [("w/../../evil", b"x")],
        [("/evil", b"x"), ("w//evil", b"x")],
        [("w/l", (tarfile.SYMTYPE, "../..")), ("w/l/evil", b"x")],
        [("w/l", (tarfile.SYMTYPE, "..")), ("w/l", b"x"), ("w/l/evil", b"x")],
        [("w/h", (tarfile.LNKTYPE, "../../secret"))],
        [("w/s", (tarfile.SYMTYPE, "../../secret")), ("w/h", (tarfile.LNKTYPE, "w/s"))],
    ],
)
def test_no_archive_writes_or_reads_outside(members: list[Any], tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    inner = tmp_path / "a" / "out"
    with suppress(InfraError):
        archive.unpack(tar_of(("w", (tarfile.DIRTYPE, "")), *members), inner, 10**6)
    outside = {p for p in tmp_path.rglob("*") if not p.is_relative_to(inner)}
    assert outside == {tmp_path / "secret", tmp_path / "a"}
    for path in inner.rglob("*"):
        if path.is_file() and not path.is_symlink():
            assert path.read_text() != "secret"


def test_devices_are_skipped_and_sizes_are_bounded(tmp_path: Path) -> None:
    special = [
        (f"w/{k}", (t, ""))
        for k, t in (("c", tarfile.CHRTYPE), ("b", tarfile.BLKTYPE), ("p", tarfile.FIFOTYPE))
    ]
    archive.unpack(tar_of(("w", (tarfile.DIRTYPE, "")), *special, ("w/x", b"1")), tmp_path / "out", 10)
    assert [p.name for p in (tmp_path / "out").iterdir()] == ["x"]
    with pytest.raises(InfraError, match="larger"):
        archive.unpack(tar_of(("w/x", b"1" * 6), ("w/y", b"1" * 6)), tmp_path / "two", 10)


def test_an_archive_that_breaks_off_is_told(tmp_path: Path) -> None:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as tar:
        info = tarfile.TarInfo("w/x")
        info.size = 5000
        tar.addfile(info, io.BytesIO(b"x" * 5000))
    with pytest.raises(InfraError):
        archive.unpack(archive.read_stream(iter([stream.getvalue()[:2000]]), 10**6), tmp_path / "o", 10**6)


def test_writing_beneath_a_folder_follows_no_link(tmp_path: Path) -> None:
    root, victim = tmp_path / "root", tmp_path / "victim"
    root.mkdir()
    victim.mkdir()
    (root / "d").symlink_to(victim)
    (root / "f").symlink_to(victim / "f")
    beneath.write(root, "", [File("d/x", b"1"), File("f", b"2")])
    beneath.write(root, "d/deep", [File("y", b"3", "100755")])
    assert list(victim.iterdir()) == []
    assert (root / "d" / "x").read_bytes() == b"1"
    assert (root / "f").read_bytes() == b"2"
    assert os.access(root / "d" / "deep" / "y", os.X_OK)
    (root / "up").symlink_to(victim)
    (victim / "secret").write_text("s")
    with pytest.raises(FileNotFoundError):
        beneath.read(root, "up/secret", 10)


# Leftovers of the local backend


def test_a_killed_owners_folder_and_processes_are_reaped(tmp_path: Path) -> None:
    """Without bubblewrap a command survives the SIGKILL of its owner; reaping finds it by its mark."""
    some = settings(tmp_path)
    number = f"77{secrets.randbelow(10**7)}"
    tree = tmp_path / "tree"
    tree.mkdir()
    script = (
        "import sys\nfrom pathlib import Path\n"
        "from pytest_crbench.core.model import Tree\n"
        "from pytest_crbench.sandbox.local import *\n"
        "from pytest_crbench.core.sandbox import *\n"
        "from pytest_crbench.core.sandbox import SandboxSettings\n"
        f"b=LocalBackend(SandboxSettings(cache=Path({str(some.cache)!r}),session='s'),'')\n"
        "e=EnvironmentRef('d','3',(),LocalEnvironment(Path('/usr'),Interpreter('3','p','/usr','m','glibc')))\n"
        f"with b.open(e,Tree(Path({str(tree)!r}),{digest.of_tree(tree)!r}),limits=Limits()) as box:\n"
        f"  print('ready',flush=True); box.exec(['sleep',{number!r}],timeout=500)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        assert eventually(lambda: _running(number))
        backend = LocalBackend(some, "")
        assert backend.reap(None) == 0
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        assert _running(number)
        assert backend.reap(None) == 1
        assert eventually(lambda: not _running(number))
        assert list((some.cache / "sandboxes").iterdir()) == []
    finally:
        process.kill()


def _running(number: str) -> bool:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if f"sleep\0{number}\0".encode() in (entry / "cmdline").read_bytes():
                    return True
            except OSError:
                continue
    return False


def test_cleaning_without_an_engine_still_cleans_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pytest_crbench.sandbox.clean import clean

    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    some = settings(tmp_path)
    for name, token in (
        ("live", processes.own_token()),
        ("dead", processes.own_token().rsplit(":", 1)[0] + ":1"),
    ):
        folder = some.cache / "sandboxes" / name
        folder.mkdir(parents=True)
        (folder / "owner.json").write_text(json.dumps({"session": "s", "owner": token}))
    cleaned = clean(some, cache=True)
    assert (cleaned.sandboxes, cleaned.in_use, cleaned.cache_entries) == (1, 1, 0)
    assert any("engine" in note for note in cleaned.notes)
    assert [p.name for p in (some.cache / "sandboxes").iterdir()] == ["live"]
    cleaned = clean(some, cache=True, force=True)
    assert cleaned.sandboxes == 1
    assert list(some.cache.iterdir()) == []


@pytest.mark.parametrize(
    "said",
    [
        "No such container: 4f",
        "No such exec instance: 91",
        "Container 4f is not running",
        "removal of container 4f is already in progress",
        "container 4f is marked for removal and cannot be started",
    ],
)
def test_a_container_that_somebody_ended_is_told_of_in_the_same_words(said: str) -> None:
    """Which call of the engine notices first depends on the moment."""
    with (
        pytest.raises(InfraError, match="the sandbox's container has ended") as caught,
        engine_errors("looking"),
    ):
        raise APIError("404 Client Error", explanation=said)
    assert caught.value.reason == "sandbox-gone"
