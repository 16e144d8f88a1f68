"""Files of a revision that decide which interpreter or module is loaded.

The naive harnesses differ in how they start Python on the hidden test in the revised tree, as harnesses do;
each trusts the exit status.
"""

from __future__ import annotations

import importlib.util
import marshal
import struct

import pytest
from support.arena import (
    FIX,
    HEAD,
    HIDDEN,
    Arena,
    Files,
    Plain,
    assert_inert,
    assert_no_pass,
    assert_passed,
    docker_only,
    link,
)
from support.arena import executable as script

from pytest_crbench.core.status import Status

QUIT = "import os\nos._exit(0)\n"
PYTEST = ("{python}", "-m", "pytest", "-p", "no:cacheprovider", "tests/test_tax.py")


def naive(
    plain_sandbox: Plain,
    revision: Files,
    *command: str,
    env: dict[str, str] | None = None,
    head: Files = HEAD,
) -> bool:
    """Whether a plain harness takes the revision for a fix."""
    files = {**head, "tests/test_tax.py": HIDDEN, **revision}
    return plain_sandbox.run(files, *(command or PYTEST), env=env).returncode == 0


def bytecode(source: str, name: str = "shop/tax.py") -> bytes:
    """Unchecked byte code of the interpreter that runs this, which the sandboxes have as well."""
    code = compile(source, name, "exec")
    return importlib.util.MAGIC_NUMBER + struct.pack("<LQ", 1, 0) + marshal.dumps(code)


def linked_away(place: Plain) -> Files:
    """The module as a link to one of the standard library, where that lies in this sandbox."""
    done = place.run(HEAD, "{python}", "-c", "import colorsys; print(colorsys.__file__)")
    return link("shop/tax.py", done.stdout.decode().strip())


@docker_only
def test_sitecustomize(arena: Arena, plain_sandbox: Plain) -> None:
    """A sitecustomize.py at an import root runs before anything else where PYTHONPATH names the root: it ends
    the process, or sets PYTEST_PLUGINS or PYTEST_ADDOPTS for the pytest that follows.

    Defence: own environment (scoring/tests/pytest_runner.py, scoring/tests/inside/supervise.py)
    Holds: docker, local
    """
    adds = "import os\nos.environ['PYTEST_ADDOPTS'] = '--collect-only'\n"
    for text in (QUIT, adds):
        assert naive(plain_sandbox, {"sitecustomize.py": text}, env={"PYTHONPATH": "{tree}"})
    assert_inert(arena.rule({"sitecustomize.py": QUIT}))


@docker_only
def test_usercustomize(arena: Arena, plain_sandbox: Plain) -> None:
    """A usercustomize.py at an import root runs at start where the user's site is on: in an interpreter
    that is in no virtual environment.

    Defence: own environment (scoring/tests/pytest_runner.py, scoring/tests/inside/supervise.py)
    Holds: docker, local
    """
    base = (
        "import os, sys, sysconfig\n"
        "os.environ['PYTHONPATH'] += ':' + sysconfig.get_path('purelib')\n"
        "python = os.path.realpath(sys.executable)\n"
        "os.execv(python, [python, *sys.argv[1:]])\n"
    )
    command = ("{python}", "-c", base, "-m", "pytest", "tests/test_tax.py")
    assert naive(plain_sandbox, {"usercustomize.py": QUIT}, *command, env={"PYTHONPATH": "{tree}"})
    assert_inert(arena.rule({"usercustomize.py": QUIT}))


@docker_only
def test_a_pth_file(arena: Arena, plain_sandbox: Plain) -> None:
    """A .pth file at an import root has a line of code, which runs where the root is made a site folder.

    Defence: the tree is no site folder (scoring/tests/inside/launch.py)
    Holds: docker, local
    """
    adds = "import site; site.addsitedir('.'); import pytest; raise SystemExit(pytest.main(['tests']))"
    revision = {"shop.pth": "import os; os._exit(0)\n"}
    assert naive(plain_sandbox, revision, "{python}", "-c", adds)
    assert_inert(arena.rule(revision))


@docker_only
def test_a_python_of_its_own_on_the_path(arena: Arena, plain_sandbox: Plain) -> None:
    """The revision brings programs called python and pytest, at the root and in bin/, that say all is well.

    Defence: own environment (scoring/tests/pytest_runner.py, scoring/tests/inside/supervise.py)
    Holds: docker, local
    """
    revision = {
        name: script(name, "#!/bin/sh\necho '1 passed'\nexit 0\n")
        for name in ("python", "bin/python", "bin/python3", "bin/pytest")
    }
    path = {"PATH": "{tree}/bin:/usr/bin:/bin"}
    assert naive(plain_sandbox, revision, "/usr/bin/env", "python", "-m", "pytest", env=path)
    assert_inert(arena.rule(revision))


@docker_only
def test_a_virtual_environment_in_the_tree(arena: Arena, plain_sandbox: Plain) -> None:
    """The revision brings a .venv with an interpreter that says all is well, and a pyvenv.cfg at the root; a
    harness that takes the project's own environment runs it.

    Defence: own environment (scoring/tests/pytest_runner.py, scoring/tests/inside/supervise.py)
    Holds: docker, local
    """
    revision = {
        ".venv/bin/python": script(".venv/bin/python", "#!/bin/sh\nexit 0\n"),
        ".venv/pyvenv.cfg": "home = /usr/bin\n",
        "pyvenv.cfg": "home = /nowhere\n",
    }
    takes = 'test -x .venv/bin/python && exec .venv/bin/python -m pytest; exec "$0" -m pytest'
    assert naive(plain_sandbox, revision, "/bin/sh", "-c", takes, "{python}")
    assert_inert(arena.rule(revision))


@docker_only
@pytest.mark.parametrize("name", ["pytest.py", "_pytest/__init__.py", "pluggy.py"])
def test_a_module_named_like_the_test_runner(arena: Arena, plain_sandbox: Plain, name: str) -> None:
    """A module at an import root is called pytest, or like one of its parts: it is loaded in its place, and
    ends the process with status 0.

    Defence: shadowing modules are put back (scoring/tests/hidden_tests.py, scoring/tests/pytest_runner.py)
    Holds: docker, local
    """
    assert naive(plain_sandbox, {name: QUIT})
    ruling = arena.rule({name: QUIT})
    assert_inert(ruling)
    assert ruling.warnings == (f"put back to head, because it would steer the test run: {name}",)


@docker_only
@pytest.mark.parametrize("name", ["pdb.py", "code/__init__.py"])
def test_a_module_named_like_the_standard_library(arena: Arena, plain_sandbox: Plain, name: str) -> None:
    """A module at an import root is called like one of the standard library that pytest imports late, as it
    does pdb when it is configured: it ends the process with status 0 before a failure can be told.

    Defence: shadowing modules are put back (scoring/tests/hidden_tests.py, scoring/tests/pytest_runner.py)
    Holds: docker, local
    """
    assert naive(plain_sandbox, {name: QUIT})
    ruling = arena.rule({name: QUIT})
    assert_inert(ruling)
    assert ruling.warnings == (f"put back to head, because it would steer the test run: {name}",)


@docker_only
def test_stale_byte_code(arena: Arena, plain_sandbox: Plain) -> None:
    """The tree has byte code of another source, whose size and time are those of the source that lies there;
    it runs in its place.

    Defence: byte code is removed (scoring/tests/inside/supervise.py)
    Holds: docker, local
    """
    name = importlib.util.cache_from_source("shop/tax.py")
    code = marshal.dumps(compile(FIX["shop/tax.py"], "shop/tax.py", "exec"))
    size = len(FIX["shop/tax.py"].encode())
    assert size == len(HEAD["shop/tax.py"])
    stale = importlib.util.MAGIC_NUMBER + struct.pack("<LLL", 0, 0, size) + code
    dated = "import os, runpy; os.utime('shop/tax.py', (0, 0)); runpy.run_module('pytest')"
    assert naive(plain_sandbox, {name: stale}, "{python}", "-c", dated)
    assert_inert(arena.rule({name: stale}))


@docker_only
def test_planted_byte_code(arena: Arena, plain_sandbox: Plain) -> None:
    """The revision brings byte code that says of itself that it need not be compared with its source.

    Defence: byte code is removed (scoring/tests/inside/supervise.py)
    Holds: docker, local
    """
    name = importlib.util.cache_from_source("shop/tax.py")
    revision = {name: bytecode(FIX["shop/tax.py"])}
    assert naive(plain_sandbox, revision)
    assert_inert(arena.rule(revision))


@docker_only
def test_a_package_of_byte_code_hides_the_source(arena: Arena, plain_sandbox: Plain) -> None:
    """Beside the unchanged shop/tax.py lies a folder shop/tax with byte code alone: packages come first, and
    what is read in the revision is not what runs.

    Defence: byte code is removed (scoring/tests/inside/supervise.py)
    Holds: docker, local
    """
    revision = {"shop/tax/__init__.pyc": bytecode(FIX["shop/tax.py"])}
    assert naive(plain_sandbox, revision)
    assert_no_pass(arena.rule(revision), status=Status.MISSED)


@docker_only
def test_byte_code_in_place_of_the_source(arena: Arena, plain_sandbox: Plain) -> None:
    """The source is deleted, and byte code lies in its place that nobody can read.

    Defence: byte code is removed (scoring/tests/inside/supervise.py)
    Holds: docker, local
    """
    revision = {"shop/tax.pyc": bytecode(FIX["shop/tax.py"])}
    head = {"shop/__init__.py": ""}
    assert naive(plain_sandbox, revision, head=head)
    assert_no_pass(arena.rule(revision, deleted=("shop/tax.py",)), status=Status.MISSED)


@docker_only
def test_the_module_is_a_link_out_of_the_tree(arena: Arena, plain_sandbox: Plain) -> None:
    """The revision makes the module, or its folder, a symbolic link to one of the interpreter's own or of an
    installed package (a later release of the product, say), so that code from there is tested.

    Defence: modules come from the tree (scoring/tests/inside/recorder.py, scoring/tests/observe.py, scoring/tests/decide.py)
    Holds: docker, local
    """
    test = "import shop.tax\n\n\ndef test_tax():\n    assert shop.tax.rgb_to_hsv(0, 0, 0) == (0, 0, 0)\n"
    away = linked_away(plain_sandbox)
    assert naive(plain_sandbox, {**away, "tests/test_tax.py": test})
    away = linked_away(Plain(arena.backend, arena.place))
    assert_no_pass(arena.rule(away, test=test), "not from the revised tree", status=Status.MISSED)


def test_startup_files_beside_a_real_fix_take_no_pass_away(arena: Arena, plain_sandbox: Plain) -> None:
    """The revision brings all of that together with a fix: what must not run must not disturb either.

    Defence: own environment (scoring/tests/pytest_runner.py, scoring/tests/inside/supervise.py)
    Holds: docker, local
    """
    wrong = "raise RuntimeError('not for you')\n"
    cached = importlib.util.cache_from_source("shop/tax.py")
    revision = {
        "sitecustomize.py": wrong,
        "usercustomize.py": wrong,
        "pytest.py": wrong,
        "difflib.py": wrong,
        "shop.pth": "import os; os._exit(1)\n",
        "bin/python": script("bin/python", "#!/bin/sh\nexit 1\n"),
        cached: bytecode(wrong),
    }
    assert not naive(plain_sandbox, {**FIX, **revision}, env={"PYTHONPATH": "{tree}"})
    assert_inert(arena.rule(revision))
    assert_passed(arena.rule({**revision, **FIX}))
