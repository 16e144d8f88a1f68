"""Archives and trees that come out of a sandbox to write elsewhere on the host.

Naive is `tarfile.extractall` as it was for thirty years.
"""

from __future__ import annotations

import io
import tarfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from support.arena import ENVIRONMENT

from pytest_crbench.core.errors import InfraError
from pytest_crbench.core.model import File, Tree
from pytest_crbench.core.sandbox import Limits
from pytest_crbench.host import digest
from pytest_crbench.sandbox import archive, beneath
from pytest_crbench.workspace.revision import capture, changes

Member = tuple[str, bytes | tuple[bytes, str]]  # a name, and a content, or a type and what it points to


def tar_of(members: list[Member]) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as tar:
        for name, what in members:
            info = tarfile.TarInfo(name)
            info.mode = 0o755
            if isinstance(what, bytes):
                info.size = len(what)
                tar.addfile(info, io.BytesIO(what))
            else:
                info.type, info.linkname = what
                tar.addfile(info)
    return stream.getvalue()


def naive(data: bytes, place: Path) -> None:
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        if hasattr(tarfile, "fully_trusted_filter"):
            tar.extractall(place, filter="fully_trusted")
        else:
            tar.extractall(place)


@pytest.mark.parametrize("trick", ["absolute", "climbing", "through a link", "hard link", "duplicate"])
def test_an_archive_that_writes_outside(tmp_path: Path, trick: str) -> None:
    """What comes out of a sandbox is named absolutely or with .., is written through a link that came
    before it, is a hard link to a file of the host, or replaces a file by a link and then writes it
    again.

    Defence: archives are read entry by entry (sandbox/archive.py)
    """
    victim = tmp_path / "victim"
    victim.write_text("the host's")
    evil = b"owned"
    members: list[Member] = {
        "absolute": [(str(victim), evil)],
        "climbing": [("workspace/../../victim", evil)],
        "through a link": [("workspace/d", (tarfile.SYMTYPE, str(tmp_path))), ("workspace/d/victim", evil)],
        "hard link": [("workspace/h", (tarfile.LNKTYPE, str(victim))), ("workspace/h", evil)],
        "duplicate": [("workspace/x", (tarfile.SYMTYPE, str(victim))), ("workspace/x", evil)],
    }[trick]  # type: ignore[assignment]
    data = tar_of(members)
    if trick != "duplicate":  # Python 3.11 removes what is in the way; others write through it
        (tmp_path / "naive" / "workspace").mkdir(parents=True)
        naive(data, tmp_path / "naive")
        harmed = victim.read_bytes() == evil or (tmp_path / "naive/workspace/h").samefile(victim)
        assert harmed, "the attack is real"
    victim.unlink()
    victim.write_text("the host's")
    out = tmp_path / "ours" / "out"
    with suppress(InfraError):
        archive.unpack(archive.read_stream(iter([data]), 10**6), out, 10**6)
    assert victim.read_text() == "the host's", "attack: the host's file is written"
    assert all(p.is_relative_to(out) for p in (tmp_path / "ours").rglob("*") if p != out)


def test_files_for_a_sandbox_are_written_through_its_links(tmp_path: Path) -> None:
    """An agent in a local sandbox puts a link where the harness will write next (a command file, a
    test, an input): a file of the host is overwritten, or one of its folders filled.

    Defence: no link on the way (sandbox/beneath.py)
    """
    root, home = tmp_path / "root", tmp_path / "home"
    root.mkdir()
    home.mkdir()
    (home / "key").write_text("the host's")
    (root / "command.sh").symlink_to(home / "key")
    (root / "input").symlink_to(home)
    (tmp_path / "naive").mkdir()
    (tmp_path / "naive/command.sh").symlink_to(home / "copy")
    (tmp_path / "naive/command.sh").write_text("evil")
    assert (home / "copy").read_text() == "evil"
    (home / "copy").unlink()
    beneath.write(root, "", [File("command.sh", b"evil"), File("input/x", b"evil")])
    assert (home / "key").read_text() == "the host's"
    assert [p.name for p in home.iterdir()] == ["key"]
    with pytest.raises(FileNotFoundError):
        beneath.read(tmp_path / "naive", "command.sh", 10**6)


HOSTILE = r"""
import os, socket
os.makedirs("pkg/.git/hooks")
open("pkg/.git/config", "w").write("[core]\nfsmonitor = evil\n")
os.symlink("/etc/passwd", "stolen")
os.symlink("/proc/1/environ", "environ")
os.symlink("/", "root")
os.mkfifo("pipe")
socket.socket(socket.AF_UNIX).bind("sock")
os.link("tax.py", "hard")
os.chmod("tax.py", 0o4777)
open(b"odd\nname\xff", "w").write("odd")
with open("tax.py", "a") as f: f.write("# edited\n")
os.mkdir("shut"); open("shut/in", "w").write("in"); os.chmod("shut", 0)
here = os.getcwd()
for _ in range(20): os.mkdir("d" * 100); os.chdir("d" * 100)
open("deep", "w").write("deep")
"""


@pytest.mark.parametrize("backend", ["local", pytest.param("docker", marks=pytest.mark.docker)])
def test_a_hostile_tree_comes_out_of_a_sandbox(
    tmp_path: Path, backend: str, request: pytest.FixtureRequest
) -> None:
    """An agent leaves all of it at once in its sandbox: links to the host's files, a pipe, a socket, a
    nested repository with a program in its configuration, hard links, set-uid bits, names that are no
    text, deep and shut folders. The copy on the host must hold the files, and nothing of the host.

    Defence: links are never followed (host/trees.py)
    Defence: links stay links (sandbox/archive.py, sandbox/beneath.py)
    Holds: docker, local
    """
    root = tmp_path / "head"
    root.mkdir()
    (root / "tax.py").write_text("x = 1\n")
    head = Tree(root, digest.of_tree(root))
    chosen: Any = request.getfixturevalue(f"{backend}_backend")
    out = tmp_path / "out"
    with chosen.open(chosen.environment(ENVIRONMENT), head, limits=Limits()) as sandbox:
        done = sandbox.exec([sandbox.python, "-c", HOSTILE], timeout=60)
        assert done.returncode == 0, done.stderr
        sandbox.export(out)
    host = Path("/etc/passwd").read_bytes()
    assert (out / "stolen").read_bytes() == host, "who follows links here leaks the host's file"
    patch = capture(head, out)
    found = {f.path: f for f in changes(head, patch).files}
    assert host not in patch
    deep = "/".join(["d" * 100] * 20) + "/deep"
    names = {"tax.py", "hard", "odd\nname\udcff", "shut/in", deep, "stolen", "environ", "root"}
    assert set(found) == names
    assert {n for n, f in found.items() if f.mode == "120000"} == {"stolen", "environ", "root"}
    assert found["tax.py"].content == b"x = 1\n# edited\n" == found["hard"].content
    assert found["tax.py"].mode == "100755"
