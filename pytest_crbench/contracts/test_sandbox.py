"""What every sandbox promises (`core.sandbox`). What one says that it does not limit is skipped."""

from __future__ import annotations

import json
import os
import re
import secrets
import subprocess
import time
import uuid
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ..core.errors import CrbenchError, InfraError
from ..core.model import Environment, Tree
from ..core.sandbox import EnvironmentRef, File, Limits, SandboxKind, SandboxSettings
from ..host import digest
from ..run.assemble import sandbox_settings
from .sample import fails, is_text, plain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from ..core.sandbox import Backend, Sandbox
    from ..core.settings import Settings
    from . import Subject

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
def kit(
    part: Any, subject: Subject, settings: Settings, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Kit]:
    """The backend, with a cache of its own, an environment and a small tree."""
    assert isinstance(part, SandboxKind), f"{subject.name} is no instance of a subclass of SandboxKind"
    private = replace(settings, cache=tmp_path_factory.mktemp("cache"))
    wanted = sandbox_settings(private, secrets.token_hex(8), print)
    try:
        backend = part.make(wanted)
        backend.prepare([WANTED.python])
        environment = backend.environment(WANTED)
    except CrbenchError as error:
        fails(f"cannot be had here: {error}")
    yield Kit(backend, environment, small_tree(tmp_path_factory.mktemp("tree")), wanted)
    backend.reap(wanted.session)


def small_tree(root: Path) -> Tree:
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


@contextmanager
def growing_at_most(limit: int) -> Iterator[None]:
    """Assert that the memory of this process grows by no more than ``limit`` bytes meanwhile."""
    clear, status = Path("/proc/self/clear_refs"), Path("/proc/self/status")

    def read(name: str) -> int:
        lines = status.read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{name}:"))

    if not clear.exists():
        yield
        return
    clear.write_text("5")
    before = read("VmRSS")
    yield
    grown = read("VmHWM") - before
    assert grown < limit, f"{grown} bytes more"


def eventually(condition: Callable[[], bool], within: float = 10.0) -> bool:
    """Wait until a condition holds, for at most ``within`` seconds; whether it does."""
    end = time.monotonic() + within
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.1)
    return condition()


def code(text: str) -> list[str]:
    return ["-I", "-c", text]


def needs_limit(kit: Kit, name: str) -> None:
    if name not in kit.about["limits"]:
        pytest.skip(f"{kit.backend.name} says that it does not limit: {name}")


def needs_isolation(kit: Kit) -> None:
    if kit.about["isolation"] == "none":
        pytest.skip("this backend says that it does not isolate")


# What commands do


def test_tells_exit_status_and_both_streams_as_bytes(kit: Kit) -> None:
    with kit.open() as box:
        done = box.exec(
            [
                box.python,
                *code(
                    "import sys;sys.stdout.buffer.write(b'o\\xff\\x00\\r\\n');"
                    "sys.stderr.buffer.write(b'e\\xfe');sys.exit(3)"
                ),
            ],
            timeout=20,
        )
    assert (done.returncode, done.stdout, done.stderr) == (3, b"o\xff\x00\r\n", b"e\xfe")
    assert not done.timed_out
    assert not done.oom_killed
    assert not done.truncated
    assert 0 < done.duration < 20


def test_arguments_are_not_read_by_a_shell(kit: Kit) -> None:
    odd = ["$HOME", "a b", "*", "'", '"', "", "--", "x=1", "\n"]
    with kit.open() as box:
        done = box.exec([box.python, *code("import sys;print(sys.argv[1:])"), *odd], timeout=20)
    assert done.stdout.decode().strip() == repr(odd)


def test_environment_holds_nothing_of_the_host(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-host")
    look = (
        "import os,glob,json\n"
        "seen=[]\n"
        "for p in glob.glob('/proc/[0-9]*/environ'):\n"
        "  try: seen.append(open(p,'rb').read().decode(errors='replace'))\n"
        "  except OSError: pass\n"
        "print(json.dumps([dict(os.environ),seen]))"
    )
    with kit.open() as box:
        done = box.exec([box.python, *code(look)], timeout=20, env={"MINE": "a=b c"})
        env, seen = json.loads(done.stdout)
        assert env.pop("MINE") == "a=b c"
        assert env.pop("TZ") == "UTC"
        assert env.pop("LANG") == "C.UTF-8"
        assert env.pop("HOME").startswith(box.scratch)
        assert env.pop("PATH").split(":")[0] == str(Path(box.python).parent)
        env.pop("PWD", None)
        env.pop("TMPDIR", None)
        env.pop("LC_CTYPE", None)
        assert {name for name in env if not name.startswith("TASK_")} == set()
    if kit.about["isolation"] != "none":
        assert "sk-of-the-host" not in "".join(seen)


def test_starts_in_the_tree_or_where_it_is_told(kit: Kit) -> None:
    with kit.open() as box:
        here = box.exec(["pwd"], timeout=20).stdout.decode().strip()
        there = box.exec(["pwd"], timeout=20, cwd=box.workdir + "/pkg").stdout.decode().strip()
        assert (here, there) == (box.workdir, box.workdir + "/pkg")
        assert box.exec(["pwd"], timeout=20, cwd=box.workdir + "/absent").returncode == 126


def test_a_missing_program_is_an_exit_status(kit: Kit) -> None:
    with kit.open() as box:
        assert box.exec(["no-such-program"], timeout=20).returncode == 127


def test_has_the_pinned_packages_and_runs_pytest(kit: Kit) -> None:
    assert "markupsafe==2.1.5" in kit.environment.pins  # the newest of June 2024
    assert "pytest==8.4.2" in kit.environment.pins  # newer than that date, and exempt from it
    with kit.open() as box:
        box.put(
            [File("test_x.py", b"import markupsafe\ndef test(): assert markupsafe.__version__ == '2.1.5'\n")],
            box.scratch + "/t",
        )
        done = box.exec(
            [box.python, "-I", "-m", "pytest", "-q", "-p", "no:cacheprovider", box.scratch + "/t"],
            timeout=60,
        )
    assert done.returncode == 0, done
    assert b"1 passed" in done.stdout


def test_killed_by_a_signal_is_told_as_a_shell_does(kit: Kit) -> None:
    with kit.open() as box:
        done = box.exec([box.python, *code("import os;os.kill(os.getpid(),15)")], timeout=20)
    assert done.returncode == 128 + 15


# Time


def test_a_time_out_kills_all_that_was_started_but_not_the_files(kit: Kit) -> None:
    """A child with its own session survives the death of its process group (inspect#1357)."""
    mark = f"31{uuid.uuid4().int % 10**7}"
    with kit.open() as box:
        done = box.exec(
            [
                "sh",
                "-c",
                f"setsid sleep {mark} & (trap '' TERM; sleep {mark}1) & echo on > state; sleep {mark}2",
            ],
            timeout=1,
        )
        assert done.timed_out
        assert done.returncode is None
        assert not done.oom_killed
        assert done.duration < 12
        assert eventually(lambda: not _runs_on_host(f"sleep {mark}"))
        assert box.get(box.workdir + "/state") == b"on\n"
        assert box.exec(["echo", "next"], timeout=20).stdout == b"next\n"


def test_a_command_that_exits_like_a_time_out_is_not_one(kit: Kit) -> None:
    with kit.open() as box:
        for status in (124, 137):
            done = box.exec(["sh", "-c", f"exit {status}"], timeout=20)
            assert (done.returncode, done.timed_out, done.oom_killed) == (status, False, False)


def test_a_background_child_that_keeps_the_streams_does_not_hold_the_result(kit: Kit) -> None:
    with kit.open() as box:
        began = time.monotonic()
        done = box.exec(["sh", "-c", "sleep 300 & echo done"], timeout=60)
        assert (done.returncode, done.stdout) == (0, b"done\n")
        assert time.monotonic() - began < 15


def test_ends_itself_when_its_lifetime_is_over(kit: Kit) -> None:
    with kit.open(Limits(lifetime=2)) as box:
        assert box.exec(["true"], timeout=20).returncode == 0
        time.sleep(3)
        with pytest.raises(InfraError):
            box.exec(["true"], timeout=20)


# Output and memory


def test_a_flood_of_output_is_cut_and_does_not_fill_our_memory(kit: Kit) -> None:
    """100 MB of output once took 70 GB (LiveBench PR475)."""
    flood = "import os\nos.write(1,b'HEAD')\nfor _ in range(500): os.write(1,b'x'*2**20)\nos.write(1,b'TAIL')"
    with growing_at_most(60 * 1024**2), kit.open(Limits(output=100_000, lifetime=300)) as box:
        done = box.exec([box.python, *code(flood)], timeout=120)
    assert done.returncode == 0
    assert done.truncated
    assert len(done.stdout) < 101_000
    assert done.stdout.startswith(b"HEADx")
    assert done.stdout.endswith(b"xTAIL")
    dropped = re.search(rb"\[\.\.\. (\d+) bytes left out", done.stdout)
    assert dropped is not None
    assert int(dropped[1]) == 500 * 2**20 + 8 - 100_000


def test_memory_is_limited_and_a_kill_is_told_from_a_time_out(kit: Kit) -> None:
    hog = "x=[]\nwhile True: x.append(bytearray(8*2**20))"
    with kit.open(Limits(memory=200 * 2**20, lifetime=300)) as box:
        done = box.exec([box.python, *code(hog)], timeout=60)
        assert not done.timed_out
        if "memory" in kit.about["limits"]:
            assert done.oom_killed
            assert done.returncode is None
            again = box.exec(["sh", "-c", "kill -9 $$"], timeout=20)
            assert (again.returncode, again.oom_killed) == (137, False)
        else:
            assert "memory per process" in kit.about["limits"]
            assert b"MemoryError" in done.stderr
        assert box.exec(["echo", "alive"], timeout=20).stdout == b"alive\n"


def test_processes_are_limited(kit: Kit) -> None:
    needs_limit(kit, "processes")
    fork = (
        "import os,time\nn=0\n"
        "try:\n  while n<300:\n    n+=1\n    if os.fork()==0: time.sleep(30); os._exit(0)\n"
        "except OSError: pass\nprint(n)"
    )
    with kit.open(Limits(pids=40, lifetime=300)) as box:
        done = box.exec([box.python, *code(fork)], timeout=20)
        if done.stdout:
            assert int(done.stdout) <= 41


# Files


def test_holds_the_tree_exactly(kit: Kit) -> None:
    look = (
        "import os,json,stat\nr={}\n"
        "for d,ns,fs in os.walk(b'.'):\n"
        "  for f in fs+[n for n in ns if os.path.islink(os.path.join(d,n))]:\n"
        "    p=os.path.join(d,f); s=os.lstat(p).st_mode\n"
        "    l=stat.S_ISLNK(s)\n"
        "    r[os.path.relpath(p,b'.').hex()]=['120000' if l else '100755' if s&64 else '100644',"
        "(os.readlink(p) if l else open(p,'rb').read()).hex()]\n"
        "print(json.dumps(r))"
    )
    with kit.open() as box:
        seen = json.loads(box.exec([box.python, *code(look)], timeout=20).stdout)
    wanted = {
        os.fsencode(path).hex(): [mode, content.hex()] for path, mode, content in digest.walk(kit.tree.path)
    }
    assert seen == wanted


def test_files_go_in_and_come_out_unchanged(kit: Kit) -> None:
    files = [
        File("a/b/c.bin", bytes(range(256)) * 300),
        File("run", b"#!/bin/sh\necho put\n", "100755"),
        File("empty", b""),
        File("sp ace/\u00e9\n.txt", b"odd\r\n"),
        File("to", b"run", "120000"),
        File("\udcff-raw", b"raw"),
    ]
    with kit.open() as box:
        for destination in (box.scratch + "/new/deep", box.workdir, box.scratch):
            box.put(files, destination)
            for file in files:
                if file.mode != "120000" and not file.path.endswith("-raw"):
                    assert box.get(f"{destination}/{file.path}") == file.content
            assert box.exec([destination + "/run"], timeout=20).stdout == b"put\n"
            # The engine cannot be asked for one file whose name is not UTF-8; a shell and an export see it.
            assert box.exec(["sh", "-c", f"cat {destination}/*-raw"], timeout=20).stdout == b"raw"
            assert box.exec(["readlink", destination + "/to"], timeout=20).stdout == b"run\n"
            mine = f"test -O {destination}/a/b && echo x >> {destination}/a/b/c.bin && rm {destination}/run"
            assert box.exec(["sh", "-c", mine], timeout=20).returncode == 0


def test_put_replaces_what_is_there(kit: Kit) -> None:
    with kit.open() as box:
        made = "mkdir -p d/e && ln -s /etc l && ln -s pkg/__init__.py f && echo old > o"
        assert box.exec(["sh", "-c", made], timeout=20).returncode == 0
        box.put([File("d", b"1"), File("l/passwd-x", b"2"), File("f", b"3"), File("o", b"4")], box.workdir)
        assert [box.get(f"{box.workdir}/{n}") for n in ("d", "l/passwd-x", "f", "o")] == [
            b"1",
            b"2",
            b"3",
            b"4",
        ]
        assert box.get(box.workdir + "/pkg/__init__.py") == b"VALUE = 1\n"
    assert not Path("/etc/passwd-x").exists()


@pytest.mark.parametrize("path", ["../x", "/x", "a/../../x", ""])
def test_put_refuses_a_path_that_leaves_its_folder(kit: Kit, path: str) -> None:
    with kit.open() as box, pytest.raises(ValueError, match="folder"):
        box.put([File(path, b"x")], box.scratch)


def test_get_reads_regular_files_only(kit: Kit, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("of the host")
    with kit.open() as box:
        made = f"ln -s {secret} link; ln -s /etc/hostname abs; mkdir d; mkfifo pipe; ln -s {tmp_path} up"
        assert box.exec(["sh", "-c", made], timeout=20, cwd=box.scratch).returncode == 0
        for name in ("link", "abs", "d", "pipe", "absent", "up/secret", "d/absent"):
            with pytest.raises(FileNotFoundError):
                box.get(f"{box.scratch}/{name}")
        box.put([File("big", b"x" * 1000)], box.scratch)
        with pytest.raises(InfraError, match="999"):
            box.get(box.scratch + "/big", limit=999)
        assert len(box.get(box.scratch + "/big", limit=1000)) == 1000


@pytest.mark.parametrize(
    "made",
    [
        "echo x > d",
        "ln -s d d",
        "mkdir d; ln -s r d/r",
        "mkdir d; ln -s /proc/self/fd/0 d/r",
        "mkdir -p d/r",
        "mkdir d; mkfifo d/r",
        "mkdir d; echo x > d/r; mv d e; ln -s e d",
    ],
)
def test_get_of_what_a_program_put_in_the_way_is_no_failure_of_the_sandbox(kit: Kit, made: str) -> None:
    """An engine answers 500 to a file in the place of a folder, and to a loop of links."""
    with kit.open() as box:
        assert box.exec(["sh", "-c", made], timeout=20, cwd=box.scratch).returncode == 0
        try:
            data = box.get(box.scratch + "/d/r")
        except FileNotFoundError:
            data = b"x\n"
        assert data == b"x\n"
        # It is still there.
        assert box.exec(["true"], timeout=20).returncode == 0


def test_get_while_a_program_changes_the_file(kit: Kit) -> None:
    """The engine breaks its archive off where a file shrinks while it is read."""
    change = (
        "import os\nif os.fork(): os._exit(0)\nos.setsid()\nnull = os.open('/dev/null', os.O_RDWR)\n"
        "for n in (0, 1, 2): os.dup2(null, n)\nstream = open('r', 'wb')\n"
        "while True:\n    stream.truncate(9_000_000)\n    stream.truncate(0)\n"
    )
    with kit.open() as box:
        box.put([File("r", b"")], box.scratch)
        assert box.exec([box.python, "-c", change], timeout=20, cwd=box.scratch).returncode == 0
        for _ in range(16):
            assert not box.get(box.scratch + "/r").strip(b"\0")


def test_export_of_what_the_host_cannot_hold_is_too_large(kit: Kit, tmp_path: Path) -> None:
    deep = "import os\nfor _ in range(30):\n    os.mkdir('d' * 250)\n    os.chdir('d' * 250)\nopen('f', 'w')"
    with kit.open() as box:
        assert box.exec([box.python, "-c", deep], timeout=20).returncode == 0
        failure = ""
        try:
            box.export(tmp_path / "out")
        except InfraError as error:
            failure = error.reason
        # An engine may leave out what it cannot read itself.
        assert failure in ("", "too-large")


def test_export_skips_a_hard_link_to_what_is_left_out(kit: Kit, tmp_path: Path) -> None:
    made = "mkdir -p .git && echo x > .git/config && ln .git/config settings && chmod 555 .git"
    _exported(kit, made, tmp_path / "out")
    assert (tmp_path / "out" / "pkg" / "__init__.py").exists()


def test_a_repository_can_be_put_beside_the_tree(kit: Kit, tmp_path: Path) -> None:
    repo = tmp_path / "repo"
    git = ["git", "-C", str(repo), "-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run(["git", "init", "-q", str(repo)], check=True)
    (repo / "pkg").mkdir()
    (repo / "pkg" / "__init__.py").write_text("VALUE = 1\n")
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "-qm", "head"], check=True)
    with kit.open(git=repo / ".git") as box:
        done = box.exec(["git", "log", "--format=%s"], timeout=20)
        assert (done.returncode, done.stdout) == (0, b"head\n"), done
        assert box.exec(["git", "diff", "--quiet", "HEAD", "--", "pkg"], timeout=20).returncode == 0
        commit = "git config user.name a && git config user.email b && git add -A && git commit -qm more"
        assert box.exec(["sh", "-c", commit], timeout=20).returncode == 0
        box.export(tmp_path / "out")
    assert not (tmp_path / "out" / ".git").exists()


# Export


def _exported(kit: Kit, script: str, destination: Path) -> None:
    with kit.open() as box:
        done = box.exec(["sh", "-c", script], timeout=20)
        assert done.returncode == 0, done
        box.export(destination)
        with pytest.raises(InfraError):
            box.exec(["true"], timeout=20)


def test_export_without_changes_is_the_tree(kit: Kit, tmp_path: Path) -> None:
    _exported(kit, "true", tmp_path / "out")
    assert digest.of_tree(tmp_path / "out") == kit.tree.digest


def test_export_shows_edits_deletions_links_and_modes(kit: Kit, tmp_path: Path) -> None:
    out = tmp_path / "out"
    _exported(
        kit,
        "echo 'VALUE = 2' > pkg/__init__.py; rm kept.log; chmod +x .gitignore; mkdir -p .git/x deep/.git; "
        "echo no > .git/x/y; echo yes > deep/.git/z; ln -s /etc/passwd out; echo new > new; ln new hard; "
        "mkfifo pipe; mkdir locked; echo in > locked/f; chmod 000 locked; echo s > sealed; chmod 000 sealed",
        out,
    )
    assert (out / "pkg" / "__init__.py").read_text() == "VALUE = 2\n"
    assert not (out / "kept.log").exists()
    assert os.access(out / "run.sh", os.X_OK)
    assert (out / ".gitignore").stat().st_mode & 0o100
    assert not (out / ".git").exists()
    assert (out / "deep" / ".git" / "z").read_text() == "yes\n"
    assert str((out / "out").readlink()) == "/etc/passwd"
    assert str((out / "dangling").readlink()) == "/nowhere/at all"
    assert (out / "hard").read_text() == (out / "new").read_text() == "new\n"
    assert not (out / "pipe").exists()
    assert (out / "locked" / "f").read_text() == "in\n"
    assert (out / "sealed").read_text() == "s\n"


def test_export_writes_nothing_outside_its_folder(kit: Kit, tmp_path: Path) -> None:
    """A link in the place of a folder must not carry files of the export to where it points."""
    victim = tmp_path / "victim"
    victim.mkdir()
    out = tmp_path / "out"
    _exported(kit, f"rm -r pkg; ln -s {victim} pkg; ln -s ../victim up; mkdir a; ln -s {victim} a/b", out)
    assert list(victim.iterdir()) == []
    assert (out / "pkg").is_symlink()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out", "victim"]


def test_export_refuses_a_tree_that_is_too_large(kit: Kit, tmp_path: Path) -> None:
    with kit.open() as box:
        assert box.exec(["truncate", "-s", "300G", "huge"], timeout=20).returncode == 0
        with pytest.raises(InfraError, match="larger"):
            box.export(tmp_path / "out", limit=1024**2)


def test_sandboxes_do_not_share_anything(kit: Kit) -> None:
    with kit.open() as one, kit.open() as two:
        one.put([File("mine", b"1")], one.scratch)
        mark = f"/tmp/{uuid.uuid4().hex}"
        assert one.exec(["sh", "-c", f"echo x > pkg/mine; echo x > {mark}"], timeout=20).returncode == 0
        with pytest.raises(FileNotFoundError):
            two.get(two.scratch + "/mine")
        with pytest.raises(FileNotFoundError):
            two.get(two.workdir + "/pkg/mine")
        if kit.about["isolation"] != "none":
            assert two.exec(["test", "-e", mark], timeout=20).returncode == 1
        else:
            Path(mark).unlink()


# Isolation


def test_the_network_is_off(kit: Kit) -> None:
    needs_limit(kit, "network")
    reach = (
        "import socket\n"
        "for host in ('1.1.1.1','10.255.255.53'):\n"
        "  try: socket.create_connection((host,53),3); print('reached')\n"
        "  except OSError as e: print(type(e).__name__)\n"
        "print(sorted(n for _,n in socket.if_nameindex()))"
    )
    with kit.open() as box:
        done = box.exec([box.python, *code(reach)], timeout=20)
    assert b"reached" not in done.stdout
    assert b"'lo'" in done.stdout
    assert b"eth0" not in done.stdout


def test_local_sockets_work_without_a_network(kit: Kit) -> None:
    serve = (
        "import socket\ns=socket.create_server(('localhost',0))\n"
        "c=socket.create_connection(s.getsockname()[:2]);print('ok')"
    )
    with kit.open() as box:
        assert box.exec([box.python, *code(serve)], timeout=20).stdout == b"ok\n"


def test_commands_are_neither_root_nor_privileged(kit: Kit) -> None:
    needs_isolation(kit)
    with kit.open() as box:
        assert box.exec(["id", "-u"], timeout=20).stdout not in (b"0\n", b"")
        status = box.exec(["cat", "/proc/self/status"], timeout=20).stdout.decode()
        for kind in ("CapPrm", "CapEff", "CapBnd"):
            assert re.search(rf"{kind}:\s+0+$", status, re.M), status
        assert re.search(r"NoNewPrivs:\s+1", status)
        for target in ("/usr/x", "/etc/x", box.python, str(Path(box.python).parent / "x")):
            assert box.exec(["sh", "-c", f"echo x >> {target}"], timeout=20).returncode != 0, target


def test_cannot_see_the_host(kit: Kit, tmp_path: Path) -> None:
    needs_isolation(kit)
    (tmp_path / "secret").write_text("s")
    hidden = [tmp_path / "secret", kit.settings.cache, Path.home() / ".bashrc", Path(__file__)]
    with kit.open() as box:
        for path in hidden:
            assert box.exec(["test", "-e", str(path)], timeout=20).returncode == 1, path
        processes = box.exec(["sh", "-c", "ls -d /proc/[0-9]* | wc -l"], timeout=20).stdout
        assert int(processes) < 12
        assert box.exec(["hostname"], timeout=20).stdout in (b"sandbox\n", b"")


def test_names_do_not_tell_the_instance(kit: Kit) -> None:
    with kit.open() as box:
        said = box.exec(
            ["sh", "-c", "env; hostname; mount; cat /proc/1/cmdline /proc/self/cgroup"], timeout=20
        ).stdout
    assert kit.tree.path.name.encode() not in said
    assert kit.tree.digest.encode() not in said


# Ending


def test_close_can_be_called_twice_and_leaves_nothing(kit: Kit) -> None:
    with kit.open() as box:
        box.close()
        box.close()
        with pytest.raises(InfraError):
            box.exec(["true"], timeout=20)
        with pytest.raises(InfraError):
            box.put([File("x", b"")], box.scratch)
    sandboxes = kit.settings.cache / "sandboxes"
    assert not sandboxes.exists() or list(sandboxes.iterdir()) == []


def test_close_comes_also_after_an_error(kit: Kit) -> None:
    with pytest.raises(ZeroDivisionError), kit.open() as box:
        1 / 0  # noqa: B018
    with pytest.raises(InfraError):
        box.exec(["true"], timeout=20)


def test_an_environment_is_the_same_every_time(kit: Kit) -> None:
    again = kit.backend.environment(WANTED)
    assert again == kit.environment
    assert again.digest == kit.environment.digest
    found = kit.backend.foundation(WANTED.python)
    assert found is None or (kit.environment.base_name, kit.environment.base_id) == found


def test_description_is_plain_json(kit: Kit, subject: Subject) -> None:
    about = plain(kit.about)
    assert about["name"] == kit.backend.name
    assert not subject.registered or kit.backend.name == subject.name, "name must be that of the entry point"
    is_text(about["isolation"], "isolation")
    assert isinstance(about["limits"], list), "limits must list what the sandbox limits"
    assert about["not_isolated"], "not_isolated must say what the sandbox does not separate from the host"


def _runs_on_host(text: str) -> bool:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            if line.startswith(text):
                return True
    return False
