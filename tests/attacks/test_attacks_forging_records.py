"""Code of a revision that goes for what the harness records.

The naive harness takes more care than most: a parent process that imports nothing of the tree, and a recorder
in the test process, beside the hidden test, that writes each outcome as JSON into the parent's pipe. The
parent writes the last outcome of the hidden test into a file, which the harness reads.
"""

from __future__ import annotations

import json

from support.arena import HEAD, HIDDEN, Arena, Files, Plain, assert_inert, assert_no_pass

from pytest_crbench.core.status import Status

RECORDER = """
import json, os

import pytest

RECORDS = int(os.environ["RECORDS"])


def record(**fields):
    os.write(RECORDS, (json.dumps(fields) + "\\n").encode())


@pytest.hookimpl(trylast=True)
def pytest_runtest_logreport(report):
    if report.when == "call":
        record(event="report", test=report.nodeid, outcome=report.outcome)
"""
SUPERVISOR = """
import json, os, subprocess, sys, time

SECRET = "seal-" + "7" * 32
plan = {"result": "/tmp/result.json", "test": "hidden/test_tax.py"}
open("/tmp/plan.json", "w").write(json.dumps(plan))
receive, send = os.pipe()
known = {**os.environ, "RECORDS": str(send), "PYTHONPATH": os.getcwd()}
command = [sys.executable, "-m", "pytest", "--rootdir=hidden", "--confcutdir=hidden", plan["test"]]
process = subprocess.Popen(command, env=known, pass_fds=[send], stdout=subprocess.DEVNULL)
os.close(send)
lines = open(receive).read().splitlines()
process.wait()


def parsed(line):
    try:
        return json.loads(line)
    except ValueError:
        return {}


reports = [r for r in map(parsed, lines) if r.get("event") == "report" and r.get("when") in (None, "call")]
outcomes = [r["outcome"] for r in reports if "test_tax" in r["test"]]
plan = json.load(open("/tmp/plan.json"))
open(plan["result"], "w").write(json.dumps({"outcome": outcomes[-1] if outcomes else "absent"}))
time.sleep(float(os.environ.get("BUSY", "0")))
print(open("/tmp/result.json").read())
"""
#: What forgers share: where the hidden test lies, what is run around it, and the records that tell of a pass.
KNOWS = """
import json, os, signal, stat, subprocess, sys, time


def place():
    frame = sys._getframe(0)
    while not os.path.basename(frame.f_code.co_filename).startswith("test_"):
        frame = frame.f_back
    return os.path.split(os.path.abspath(frame.f_code.co_filename))


def around():
    folder, own = place()
    try:
        return open(os.path.join(folder, "order")).read().split()
    except OSError:
        return [own]


def report(test, when, failed=False):
    return dict(event="report", test=test, when=when, outcome="failed" if failed else "passed",
                xfail=False, exception="AssertionError" if failed else "", message="")


def rest(test, failed=False):
    yield dict(event="returned", test=test, raised="AssertionError" if failed else "", patched=[])
    yield report(test, "call", failed)
    yield report(test, "teardown")


def start(test):
    yield report(test, "setup")
    yield dict(event="called", test=test)


def told(test):
    # What remains to be recorded while the hidden test is called, if it passes.
    yield from rest(test)
    names = around()
    for name in names[names.index(place()[1]) + 1 :]:
        canary = name + "::" + test.rpartition("::")[2]
        yield from start(canary)
        yield from rest(canary, name == names[4])
    yield dict(event="modules", files={}, executed=[])
    yield dict(event="finished", exitstatus=1)


def whole(test):
    # All records of a run in which the hidden test passes.
    names, name = around(), test.rpartition("::")[2]
    yield dict(event="collected", tests=[n + "::" + name for n in names])
    for n in names[: names.index(place()[1])]:
        yield from start(n + "::" + name)
        yield from rest(n + "::" + name, n == names[1])
    yield from start(test)
    yield from told(test)


def current():
    return os.environ["PYTEST_CURRENT_TEST"].rpartition(" ")[0]
"""


def naive(plain_sandbox: Plain, revision: Files, **env: str) -> bool:
    """Whether the careful, but trusting, harness takes the revision for a fix."""
    files = {
        **HEAD,
        "hidden/test_tax.py": HIDDEN,
        "hidden/conftest.py": RECORDER,
        "supervise.py": SUPERVISOR,
        **revision,
    }
    done = plain_sandbox.run(files, "{python}", "supervise.py", env=env)
    try:
        return bool(json.loads(done.stdout)["outcome"] == "passed")
    except ValueError:
        return False


def product(code: str) -> dict[str, str]:
    """The module under test, which knows what forgers know."""
    return {"shop/tax.py": KNOWS + code}


def test_forged_records_in_every_pipe(arena: Arena, plain_sandbox: Plain) -> None:
    """The product writes records of a pass, of the canaries and of a proper end into every pipe among its
    descriptors, and ends the process before the true ones are made.

    Defence: records carry a keyed hash (scoring/tests/inside/recorder.py, scoring/tests/inside/supervise.py)
    Holds: docker, local
    """
    revision = product("""
def tax():
    # The true recorder has told of the collection, of two canaries, and of this test's set-up and call.
    numbered = enumerate(told(current()), 13)
    data = "".join("%s %s\\n" % ("0" * 32, json.dumps([n, r])) for n, r in numbered)
    if len(around()) == 1:  # a harness without canaries has no numbers either
        data = "".join(json.dumps(r) + "\\n" for r in told(current()))
    for fd in map(int, os.listdir("/proc/self/fd")):
        try:
            if stat.S_ISFIFO(os.fstat(fd).st_mode):
                os.write(fd, data.encode())
        except OSError:
            pass
    os._exit(1)
""")
    assert naive(plain_sandbox, revision)
    assert_no_pass(arena.rule(revision), "record", status=Status.TAMPERED)


def test_records_are_rewritten_as_they_are_made(arena: Arena, plain_sandbox: Plain) -> None:
    """The product replaces json.dumps and os.write by functions that tell of a pass wherever there was none.

    Defence: the recorder binds what it needs early (scoring/tests/inside/recorder.py)
    Holds: docker, local
    """
    revision = product("""
_dumps, _write = json.dumps, os.write
json.dumps = lambda *a, **k: _dumps(*a, **k).replace("failed", "passed").replace("AssertionError", "")
os.write = lambda fd, data: _write(fd, data.replace(b"failed", b"passed"))


def tax():
    return "wrong"
""")
    assert naive(plain_sandbox, revision)
    assert_inert(arena.rule(revision))


def test_a_child_process_goes_on_recording(arena: Arena, plain_sandbox: Plain) -> None:
    """The product forks in the call: the parent waits, the child comes back with what the test wants to see,
    and records it on the same pipe before the parent ends the whole process with status 0.

    Defence: records carry a keyed hash (scoring/tests/inside/recorder.py, scoring/tests/inside/supervise.py)
    Holds: docker, local
    """
    revision = product("""
def tax():
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        os._exit(0)
    return "right"
""")
    assert naive(plain_sandbox, revision)
    assert_no_pass(arena.rule(revision))


def test_the_result_file_is_written_over_by_a_process_in_the_background(
    arena: Arena, plain_sandbox: Plain
) -> None:
    """The product starts a process with a session of its own that outlives the test, waits for result files
    in all places that it may write to, and overwrites each by one that tells of a pass.

    Defence: the result is sealed (scoring/tests/inside/supervise.py, scoring/tests/pytest_runner.py)
    Holds: docker, local
    """
    revision = product("""
if not os.fork():
    os.setsid()
    if os.fork():
        os._exit(0)
    folder, known = place()[0], os.listdir(place()[0])
    null = os.open("/dev/null", os.O_RDWR)
    for fd in map(int, os.listdir("/proc/self/fd")):
        try:
            os.dup2(null, fd)
        except OSError:
            pass
    end = time.monotonic() + 8
    while time.monotonic() < end:
        new = [os.path.join(folder, n) for n in os.listdir(folder) if n not in known and "." not in n]
        for path in [p for p in ("/tmp/result.json", *new) if os.path.isfile(p)]:
            result = json.dumps({
                "outcome": "passed", "returncode": 1, "timed_out": False, "forged": 0, "output": "",
                "seconds": 1.0, "limits": [], "installed": [],
                "records": list(whole(place()[1] + "::test_tax"))})
            with open(path + ".own", "w") as stream:
                stream.write(result if path.startswith("/tmp") else "0" * 64 + "\\n" + result)
            os.replace(path + ".own", path)
        time.sleep(0.005)
    os._exit(0)


def tax():
    return "wrong"
""")
    assert naive(plain_sandbox, revision, BUSY="1")
    # Who overwrites it in time is found out; who comes too late changes nothing.
    assert_no_pass(arena.rule(revision))


def test_the_plan_is_rewritten(arena: Arena, plain_sandbox: Plain) -> None:
    """The product rewrites the supervisor's plan, or whatever lies beside the hidden test, so that the result
    is read from a file of its own.

    Defence: the result is sealed (scoring/tests/inside/supervise.py, scoring/tests/pytest_runner.py)
    Holds: docker, local
    """
    revision = product("""
for folder in (place()[0], "/tmp"):
    for name in os.listdir(folder):
        path = os.path.join(folder, name)
        if name.endswith(".json"):
            plan = json.load(open(path))
            plan["result"] = "/tmp/other.json"
            open(path, "w").write(json.dumps(plan))
open("/tmp/result.json", "w").write('{"outcome": "passed"}')


def tax():
    return "wrong"
""")
    assert naive(plain_sandbox, revision)
    assert_inert(arena.rule(revision))


def test_the_supervisor_is_killed(arena: Arena, plain_sandbox: Plain) -> None:
    """The product writes a result of its own and kills its parent, which would have written the true one.

    Defence: the result is sealed (scoring/tests/inside/supervise.py, scoring/tests/pytest_runner.py)
    Holds: docker, local
    """
    revision = product("""
def tax():
    for folder in (place()[0], "/tmp"):
        for name in ("result.json", "result"):
            open(os.path.join(folder, name), "w").write('{"outcome": "passed", "records": ""}')
    os.write(1, b'{"outcome": "passed"}')
    os.kill(os.getppid(), signal.SIGKILL)
    os._exit(0)
""")
    files = {**HEAD, **revision, "hidden/test_tax.py": HIDDEN, "hidden/conftest.py": RECORDER}
    shows = '"$0" supervise.py >/dev/null; cat /tmp/result.json'
    done = plain_sandbox.run({**files, "supervise.py": SUPERVISOR}, "/bin/sh", "-c", shows, "{python}")
    assert json.loads(done.stdout)["outcome"] == "passed"
    assert_no_pass(arena.rule(revision), status=Status.MISSED)


def test_the_supervisor_is_looked_into(arena: Arena, plain_sandbox: Plain) -> None:
    """The product reads its parent's memory, environment and descriptors for what a record or a result is
    authenticated with, and tells a file of them what it found.

    Defence: the supervisor is opaque (scoring/tests/inside/supervise.py)
    Holds: docker, local
    """
    look = """
def look():
    found = []
    parent = "/proc/%d/" % os.getppid()
    for name in ("environ", "maps", "mem"):
        try:
            with open(parent + name, "rb") as stream:
                stream.seek(0 if name != "mem" else int(open(parent + "maps").read().split("-")[0], 16))
                found.append(name if stream.read(64) else "")
        except (OSError, ValueError):
            pass
    try:
        found += [os.readlink(parent + "fd/" + fd) for fd in os.listdir(parent + "fd")]
    except OSError:
        pass
    return found


def tax():
    return look() and "seen" or "opaque"
"""
    test = HIDDEN.replace("== 'right'", "== 'seen'")
    revision = product(look)
    assert plain_sandbox.run(
        {**HEAD, **revision, "hidden/test_tax.py": test, "hidden/conftest.py": RECORDER, "s.py": SUPERVISOR},
        "{python}",
        "s.py",
    ).stdout.startswith(b'{"outcome": "passed"')
    assert_no_pass(arena.rule(revision, test=test), "assert 'opaque' == 'seen'", status=Status.MISSED)


def test_the_supervisor_is_traced(arena: Arena, plain_sandbox: Plain) -> None:
    """The product attaches to its parent as a debugger does, which could then be made to say anything.

    Defence: the supervisor is opaque (scoring/tests/inside/supervise.py)
    Holds: docker, local
    """
    code = """
def tax():
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    attached = libc.ptrace(16, os.getppid(), None, None) == 0
    if attached:
        os.waitpid(os.getppid(), 0x40000000)
        libc.ptrace(17, os.getppid(), None, None)
    return "traced" if attached else "errno %d" % ctypes.get_errno()
"""
    test = HIDDEN.replace("== 'right'", "== 'traced'")
    revision = product(code)
    assert plain_sandbox.run(
        {**HEAD, **revision, "hidden/test_tax.py": test, "hidden/conftest.py": RECORDER, "s.py": SUPERVISOR},
        "{python}",
        "s.py",
    ).stdout.startswith(b'{"outcome": "passed"')
    assert_no_pass(arena.rule(revision, test=test), "assert 'errno 1' == 'traced'", status=Status.MISSED)


def test_hidden_test_and_canaries_are_rewritten_from_within(arena: Arena, plain_sandbox: Plain) -> None:
    """The product, when it is imported, writes passing tests over all test files that lie beside the hidden
    one, and that one itself, for the run that is under way and for any that follows.

    Defence: canaries (scoring/tests/pytest_runner.py, scoring/tests/observe.py, scoring/tests/decide.py)
    Holds: docker, local
    """
    revision = product("""
for name in around():
    path = os.path.join(place()[0], name)
    if open(path).read() != "def test_tax():\\n    pass\\n":
        open(path, "w").write("def test_tax():\\n    pass\\n")


def tax():
    return "wrong"
""")
    files = {**HEAD, **revision, "hidden/test_tax.py": HIDDEN, "hidden/conftest.py": RECORDER}
    twice = '"$0" supervise.py >/dev/null; "$0" supervise.py'
    done = plain_sandbox.run({**files, "supervise.py": SUPERVISOR}, "/bin/sh", "-c", twice, "{python}")
    assert json.loads(done.stdout)["outcome"] == "passed"
    assert_no_pass(arena.rule(revision))
