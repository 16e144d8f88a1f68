"""Revisions that would rather not be measured.

A check that is left out of the rate is as good as a pass for a reviewer that would miss it. The naive harness
runs a plain pytest, counts status 0 as a pass and 1 as a miss, and takes everything else for a failure of its
own machinery, which it leaves out.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from support.arena import (
    HEAD,
    HIDDEN,
    Arena,
    Files,
    Plain,
    assert_inert,
    assert_no_pass,
    docker_only,
    link,
    write,
)

from pytest_crbench.core.errors import StageError
from pytest_crbench.core.model import File
from pytest_crbench.core.sandbox import Limits
from pytest_crbench.core.status import Status


def counted(plain_sandbox: Plain, revision: Files, limits: Limits | None = None, timeout: float = 30) -> bool:
    """Whether the check is in the rate of a plain harness."""
    with plain_sandbox.open({**HEAD, "tests/test_tax.py": HIDDEN, **revision}, limits) as sandbox:
        done = sandbox.exec([sandbox.python, "-m", "pytest", "tests/test_tax.py"], timeout=timeout)
        # It looks at what is left before it believes a status.
        alive = sandbox.exec(["/bin/sh", "-c", "/bin/true; /bin/true"], timeout=30).returncode == 0
    return alive and done.returncode in (0, 1)


def product(tax: str) -> dict[str, str]:
    return {"shop/tax.py": f"import os, signal, sys, time\n\n\ndef tax():\n{tax}"}


@docker_only
def test_the_test_never_ends(arena: Arena, plain_sandbox: Plain) -> None:
    """The product hangs when it is called, and ignores signals, so that the test's run times out.

    Defence: what head can do is the revision's to do (scoring/tests/decide.py)
    Holds: docker, local
    """
    revision = product(
        "    signal.signal(signal.SIGTERM, signal.SIG_IGN)\n    while True:\n        time.sleep(1)\n"
    )
    assert not counted(plain_sandbox, revision, timeout=3)
    assert_no_pass(arena.rule(revision, timeout=5), "timed out", status=Status.MISSED)


@docker_only
def test_the_memory_is_eaten(arena: Arena) -> None:
    """The product takes memory until it is killed.

    Defence: what head can do is the revision's to do (scoring/tests/decide.py)
    Holds: docker
    """
    revision = product("    kept = []\n    while True:\n        kept.append(b'x' * 2**24)\n")
    limits = Limits(memory=256 * 2**20)
    assert not counted(Plain(arena.backend, arena.place), revision, limits)
    assert_no_pass(arena.rule(revision, limits=limits), "ran out of memory", status=Status.MISSED)


@pytest.mark.parametrize("then", ["return 'wrong'", "os.kill(os.getppid(), 9); os.kill(os.getpid(), 9)"])
@docker_only
def test_the_processes_are_used_up(arena: Arena, then: str) -> None:
    """The product forks, in sessions of their own, until there is no process left with which a harness could
    look at the result, or at what became of the process that should have written it, which it kills.

    Defence: what head can do is the revision's to do (scoring/tests/decide.py)
    Holds: docker
    """
    revision = product(
        "    while True:\n"
        "        try:\n"
        "            child = os.fork()\n"
        f"        except OSError:\n            {then}\n"
        "        if not child:\n"
        "            os.setsid()\n"
        "            while True:\n                time.sleep(60)\n"
    )
    limits = Limits(pids=64)
    assert not counted(Plain(arena.backend, arena.place), revision, limits)
    assert_no_pass(arena.rule(revision, limits=limits), status=Status.MISSED)


@pytest.mark.parametrize("how", ["all", "own"])
def test_the_test_process_dies(arena: Arena, plain_sandbox: Plain, how: str) -> None:
    """The product kills its own process, or all that it may kill, so that it looks as if the machine had.

    Defence: what head can do is the revision's to do (scoring/tests/decide.py)
    Holds: docker, local
    """
    kill = "    try:\n        os.kill(-1, 9)\n    except OSError:\n        pass\n" if how == "all" else ""
    revision = product(f"{kill}    os.kill(os.getpid(), signal.SIGSEGV)\n")
    assert not counted(plain_sandbox, revision)
    assert_no_pass(arena.rule(revision), status=Status.MISSED)


def test_descriptors_are_closed(arena: Arena, plain_sandbox: Plain) -> None:
    """The product closes every descriptor of its process, so that no outcome can be told.

    Defence: what head can do is the revision's to do (scoring/tests/decide.py)
    Holds: docker, local
    """
    revision = product("    os.closerange(0, 256)\n    return 'wrong'\n")
    assert not counted(plain_sandbox, revision)
    assert_no_pass(arena.rule(revision), status=Status.MISSED)


def test_garbage_is_poured_into_every_pipe(arena: Arena, plain_sandbox: Plain) -> None:
    """The product writes megabytes of rubbish into every descriptor, among it half a record, so that what a
    harness reads is too long, or not to be read, and it gives up.

    Defence: records carry a keyed hash (scoring/tests/inside/recorder.py, scoring/tests/inside/supervise.py)
    Holds: docker, local
    """
    revision = product(
        "    for fd in map(int, os.listdir('/proc/self/fd')):\n"
        "        try:\n"
        "            os.write(fd, b'{\"event\": ')\n"
        "            for _ in range(80):\n                os.write(fd, os.urandom(2**16))\n"
        "        except OSError:\n            pass\n"
        "    os._exit(70)\n"
    )
    assert not counted(plain_sandbox, revision)
    assert_no_pass(arena.rule(revision))


def test_a_folder_stands_where_the_test_must_go(arena: Arena, tmp_path: Path) -> None:
    """The revision makes folders of the names that a hidden test may have, or a link that leads to itself:
    the harness cannot write its test, and takes that for a failure of its own.

    Defence: the test lies apart from the tree (scoring/tests/pytest_runner.py, scoring/tests/inside/launch.py)
    Holds: docker, local
    """
    folders = {f"{place}test_tax.py/README": "" for place in ("", "tests/", "shop/")}
    for name, revision in (("folder", folders), ("loop", link("tests", "tests"))):
        write(tmp_path / name, {**HEAD, **revision})
        with pytest.raises(OSError, match=r"Is a directory|Too many levels|File exists"):
            write(tmp_path / name, {"tests/test_tax.py": HIDDEN})
    assert_inert(arena.rule({**folders, **link("test", "test")}))


def test_the_next_check_is_poisoned(arena: Arena, plain_sandbox: Plain) -> None:
    """While the test of one check runs, the product writes files outside the tree (the home folder, the
    temporary one, beside the tests, beside the packages), which steer the next check's test there.

    Defence: each test has a sandbox of its own (scoring/tests/hidden_tests.py)
    Holds: docker, local
    """
    forge = "def pytest_runtest_protocol(item, nextitem):\\n    return True\\n"
    revision = product(
        "    frame = sys._getframe(1)\n"
        "    beside = os.path.dirname(os.path.abspath(frame.f_code.co_filename))\n"
        "    above = os.path.dirname(beside)\n"
        "    home, library = os.path.expanduser('~'), os.path.dirname(os.__file__)\n"
        "    places = [beside, above, home, library, '/tmp', '/scratch']\n"
        "    for place in places:\n"
        "        try:\n"
        f"            open(os.path.join(place, 'conftest.py'), 'w').write('{forge}')\n"
        "        except OSError:\n            pass\n"
        "    open(__file__, 'w').write('def tax(): return \"right\"')\n"
        "    return 'wrong'\n"
    )
    with plain_sandbox.open({**HEAD, "tests/test_tax.py": HIDDEN, **revision}) as sandbox:
        command = [sandbox.python, "-m", "pytest", "tests/test_tax.py"]
        first, second = (sandbox.exec(command, timeout=60).returncode for _ in range(2))
    assert (first, second) == (1, 0)
    assert_inert(arena.rule(revision))
    assert_inert(arena.rule({}))


def test_what_stands_in_the_way_is_a_link(arena: Arena, tmp_path: Path) -> None:
    """Head has a link to a folder outside the tree, and the revision a file below the link's name: who writes
    it follows the link, and changes a file of the machine, or of what runs the test.

    Defence: changes follow no link (scoring/tests/inside/supervise.py)
    Holds: docker, local
    """
    outside = tmp_path / "outside"
    outside.mkdir()
    write(tmp_path / "tree", {**HEAD, **link("data", str(outside))})
    write(tmp_path / "tree", {"data/planted.py": "x = 1\n"})
    assert (outside / "planted.py").exists()
    test = "import os\n\n\ndef test_tax():\n    assert os.path.exists('/scratch/planted.py')\n"
    ruling = arena.rule({"data/planted.py": "x = 1\n"}, head={**HEAD, **link("data", "/scratch")}, test=test)
    assert_no_pass(ruling, status=Status.MISSED)


BESIDE = (
    "frame = sys._getframe(0)\n"
    "while 'test_' not in os.path.basename(frame.f_code.co_filename): frame = frame.f_back\n"
    "folder = os.path.dirname(os.path.abspath(frame.f_code.co_filename))\n"
)
#: A process that outlives the test, and waits for the file that tells how it went.
AFTERWARDS = (
    "known = os.listdir(folder)\n"
    "if not os.fork():\n"
    "    os.setsid()\n"
    "    null = os.open('/dev/null', os.O_RDWR)\n"
    "    for fd in map(int, os.listdir('/proc/self/fd')):\n"
    "        try:\n            os.dup2(null, fd)\n"
    "        except OSError:\n            pass\n"
    "    end = time.monotonic() + 20\n"
    "    while time.monotonic() < end:\n"
    "        for name in os.listdir(folder):\n"
    "            path = os.path.join(folder, name)\n"
    "            if name not in known and '.' not in name and os.path.isfile(path):\n"
    "                {then}\n"
    "    os._exit(0)\n"
)
IN_ITS_PLACE = {
    "a file for its folder": "os.rename(folder, folder + '-'); open(folder, 'w').close()\n",
    "a loop of links": "os.rename(folder, folder + '-'); os.symlink(folder, folder)\n",
    "nothing": "os.rename(folder, folder + '-')\n",
    "a huge file": AFTERWARDS.format(then="os.truncate(path, 2**37)"),
    "a link to itself": AFTERWARDS.format(then="os.unlink(path); os.symlink(path, path); os._exit(0)"),
    "a pipe": AFTERWARDS.format(then="os.unlink(path); os.mkfifo(path); os._exit(0)"),
}


def read(plain_sandbox: Plain, revision: Files) -> bool:
    """Whether a harness that waits a little, and then reads a result, has one."""
    with plain_sandbox.open({**HEAD, **revision}) as sandbox:
        folder = f"{sandbox.scratch}/out"
        sandbox.put([File("test_tax.py", HIDDEN.encode())], folder)
        shell = (
            'PYTHONPATH=. "$0" -B -m pytest -q -p no:cacheprovider "$1/test_tax.py"; code=$?; '
            'echo "$code" > "$1/result.part"; mv "$1/result.part" "$1/result"; sleep 1'
        )
        sandbox.exec(["/bin/sh", "-c", shell, sandbox.python, folder], timeout=60)
        try:
            return sandbox.get(f"{folder}/result").strip() in (b"0", b"1")
        except (FileNotFoundError, StageError):
            return False


@pytest.mark.parametrize("what", IN_ITS_PLACE)
def test_something_else_stands_where_the_result_should_be(
    arena: Arena, plain_sandbox: Plain, what: str
) -> None:
    """The product, or a process that it leaves behind, puts into the result's place what no file is read
    from: a file for its folder, a loop of links, a pipe, a file of 128 GB. The engine
    answers with an error of its own, and the check is called a fault of the machine.

    Defence: the result's place is the revision's to spoil (scoring/tests/pytest_runner.py, sandbox/container.py)
    Holds: docker, local
    """
    at_import = "import os, sys, time\n" + BESIDE + IN_ITS_PLACE[what]
    revision = {"shop/tax.py": at_import + "\n\ndef tax():\n    return 'wrong'\n"}
    assert not read(plain_sandbox, revision)
    assert read(plain_sandbox, {})
    assert_no_pass(arena.rule(revision))


FULL = """
try:
    with open("/dev/shm/x", "wb", 0) as stream:
        while True:
            stream.write(bytes(2**20))
except OSError:
    pass
os.rename(folder, folder + "-")
os.symlink("/dev/shm", folder)
"""


@docker_only
def test_the_result_is_led_to_a_full_disk(arena: Arena, plain_sandbox: Plain) -> None:
    """The product fills a small file system of the sandbox, and puts a link to it into the place of the
    result's folder: the result cannot be written, and the disk of the machine is called full.

    Defence: the result's folder is held by its descriptor (scoring/tests/inside/supervise.py)
    Holds: docker
    """
    at_import = "import os, sys, time\n" + BESIDE + FULL
    revision = {"shop/tax.py": at_import + "\n\ndef tax():\n    return 'wrong'\n"}
    assert not read(plain_sandbox, revision)
    assert_no_pass(arena.rule(revision))


@docker_only
def test_a_path_spells_out_a_full_disk(arena: Arena) -> None:
    """The revision adds a path that the supervisor cannot write, and whose name is the error message of a
    full disk. A harness that searches the message believes that the disk is full.

    Defence: a full disk has an exit status of its own (scoring/tests/pytest_runner.py, scoring/tests/inside/supervise.py)
    Holds: docker, local
    """
    words = "No space left on device"
    head = {**HEAD, f"{words}/kept.pyc": b"planted"}
    with Plain(arena.backend, arena.place).open(head) as sandbox:
        shell = ["/bin/sh", "-c", f"echo x > '{words}'"]
        assert words in sandbox.exec(shell, timeout=20).stderr.decode()
    # What a revision leaves out of a folder (byte code) keeps it from being replaced by a file.
    assert_no_pass(arena.rule({words: "x"}, head=head), status=Status.MISSED)
