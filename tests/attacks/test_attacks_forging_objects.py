"""Code of a revision that leaves every function of pytest as it is, and changes what is around them.

The naive harness is that of the attacks on the process.
"""

from __future__ import annotations

import pytest
from attacks.test_attacks_forging_process import naive, product
from support.arena import HEAD, HIDDEN, Arena, Plain, assert_inert, assert_no_pass, docker_only

from pytest_crbench.core.model import Environment
from pytest_crbench.core.status import Status

CONFIG = """
import sys
import pluggy, pytest

frame = sys._getframe(0)
while not isinstance(frame.f_locals.get("self"), pytest.Module):
    frame = frame.f_back
module = frame.f_locals["self"]
config = module.config


class Content:
    @pytest.hookimpl(tryfirst=True)
    def pytest_pyfunc_call(self, pyfuncitem):
        return True if hasattr(pyfuncitem.module, "tax") else None

"""
MANAGERS = {
    "pytest's own": "config.pluginmanager.register(Content())\n",
    "a private one": (
        "from _pytest import hookspec\n"
        "private = pluggy.PluginManager('pytest')\n"
        "private.add_hookspecs(hookspec)\n"
        "private.register(config.pluginmanager.get_plugin('python'))\n"
        "private.register(Content())\n"
        "config.pluginmanager.hook.pytest_pyfunc_call = private.hook.pytest_pyfunc_call\n"
    ),
}


def test_the_class_of_tests_is_another(arena: Arena, plain_sandbox: Plain) -> None:
    """The product puts a class of its own in the place of pytest's class of test functions, of which it makes
    the tests that it has not made yet. Every function of pytest is as it was.

    Defence: classes are as they were (scoring/tests/inside/intact.py)
    Holds: docker, local
    """
    revision = product(
        "import _pytest.python as p\n"
        "class Function(p.Function):\n"
        "    def runtest(self):\n"
        "        if not hasattr(self.module, 'tax'): super().runtest()\n"
        "p.Function = Function\n"
    )
    assert naive(plain_sandbox, revision)
    assert_no_pass(arena.rule(revision), "_pytest.python.Function", status=Status.TAMPERED)


def test_a_class_gets_a_method_more(arena: Arena, plain_sandbox: Plain) -> None:
    """The product gives pytest's class of test functions a method that it did not have, which hides the one
    of its base class through which each hook is called.

    Defence: nothing is added to what runs the test (scoring/tests/inside/intact.py)
    Holds: docker, local
    """
    revision = product(
        "import _pytest.python as p\n"
        "old = p.Function.ihook\n"
        "class Hooks:\n"
        "    def __init__(self, item): self.item = item\n"
        "    def __getattr__(self, name):\n"
        "        if name == 'pytest_pyfunc_call' and hasattr(self.item.module, 'tax'):\n"
        "            return lambda **given: True\n"
        "        return getattr(old.__get__(self.item), name)\n"
        "p.Function.ihook = property(Hooks)\n"
    )
    assert naive(plain_sandbox, revision)
    assert_no_pass(arena.rule(revision), "Function.ihook", status=Status.TAMPERED)


@pytest.mark.parametrize("manager", MANAGERS)
def test_a_plugin_runs_the_test(arena: Arena, plain_sandbox: Plain, manager: str) -> None:
    """The product registers a plugin that says of the hidden test that it has been called, with pytest's
    manager of plugins, or with one of its own whose hook it puts in the place of pytest's.

    Defence: hooks are as they were (scoring/tests/inside/intact.py)
    Holds: docker, local
    """
    revision = product(CONFIG + MANAGERS[manager])
    assert naive(plain_sandbox, revision)
    assert_no_pass(arena.rule(revision), status=Status.TAMPERED)


def test_one_object_has_a_method_of_its_own(arena: Arena, plain_sandbox: Plain) -> None:
    """The product finds the module's collector, and has it give each test a method of its own to run by, as
    an attribute of that object: its class is as it was.

    Defence: objects hide no part of their class (scoring/tests/inside/intact.py)
    Holds: docker, local
    """
    revision = product(
        CONFIG + "old = module._genfunctions\n"
        "def made(name, function):\n"
        "    module.__dict__.pop('_genfunctions', None)\n"
        "    for item in old(name, function):\n"
        "        item.runtest = lambda: None\n"
        "        yield item\n"
        "module._genfunctions = made\n"
    )
    assert naive(plain_sandbox, revision)
    assert_no_pass(arena.rule(revision), "runtest of one object", status=Status.TAMPERED)


@pytest.mark.parametrize("function", ["sys.settrace", "sys.setprofile"])
def test_a_trace_function_changes_the_tests_variables(
    arena: Arena, plain_sandbox: Plain, function: str
) -> None:
    """The product sets a trace or profile function when it is imported, which gives a variable of the hidden
    test another value before the assertion.

    Defence: nothing watches the test (scoring/tests/inside/intact.py)
    Holds: docker, local
    """
    test = HIDDEN.replace("assert tax() ==", "value = [tax()]\n    assert value[0] ==")
    revision = product(
        "import sys\n"
        "def watch(frame, event, argument):\n"
        "    name = frame.f_code.co_name\n"
        "    if name == 'test_tax' and isinstance(frame.f_locals.get('value'), list):\n"
        "        frame.f_locals['value'][0] = 'right'\n"
        "    return watch\n"
        f"{function}(watch)\n"
    )
    if function == "sys.setprofile":  # it is not called for each line, but for each call
        test = test.replace("    assert", "    len(value)\n    assert")
    assert naive(plain_sandbox, revision, test)
    assert_no_pass(arena.rule(revision, test=test), "function", status=Status.TAMPERED)


def test_the_tests_module_expects_something_else(arena: Arena, plain_sandbox: Plain) -> None:
    """The product, called by the hidden test, changes what the test's module calls the right answer.

    Defence: the test's names are as they were (scoring/tests/inside/intact.py, scoring/tests/inside/recorder.py)
    Holds: docker, local
    """
    test = HIDDEN.replace("\n\ndef", "\nRIGHT = 'right'\n\n\ndef").replace("== 'right'", "== RIGHT")
    revision = product(
        "import sys\n",
        "\n\ndef tax():\n    sys._getframe(1).f_globals['RIGHT'] = 'wrong'\n    return 'wrong'\n",
    )
    assert naive(plain_sandbox, revision, test)
    assert_no_pass(arena.rule(revision, test=test), "RIGHT of the test's module", status=Status.TAMPERED)


@docker_only
@pytest.mark.network
@pytest.mark.parametrize("name", ["six.py", "six/__init__.py"])
def test_a_module_named_like_a_requirement(arena: Arena, name: str) -> None:
    """A new module at an import root is called like an installed package that the hidden test itself uses:
    the test gets what the revision likes.

    Defence: requirements are put back (scoring/tests/pytest_runner.py, scoring/tests/hidden_tests.py)
    Holds: docker, local
    """
    test = HIDDEN.replace("from", "import six\nfrom").replace("tax() ==", "six.ensure_str(tax()) ==")
    revision = {name: "def ensure_str(text):\n    return 'right'\n"}
    environment = Environment(python=">=3.8", requirements=("six==1.16.0",))
    backend = arena.backend
    files = {**HEAD, **revision, "tests/test_tax.py": test}
    tree = Plain(backend, arena.place)
    with tree.open(files) as sandbox:  # the tree comes first, whether or not the package is installed
        command = [sandbox.python, "-m", "pytest", "-q", "tests/test_tax.py"]
        assert sandbox.exec(command, timeout=60).returncode == 0
    ruling = arena.rule(revision, test=test, environment=environment)
    assert_inert(ruling)
    assert ruling.warnings == (f"put back to head, because it would steer the test run: {name}",)
