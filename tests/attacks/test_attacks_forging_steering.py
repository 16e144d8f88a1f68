"""Files of a revision that steer how pytest runs.

The naive harness writes the hidden test into the revised tree and trusts the exit status of a plain pytest.
"""

from __future__ import annotations

from support.arena import FIX, HEAD, HIDDEN, Arena, Files, Plain, assert_inert, assert_passed, docker_only

FORGE = """
import pytest


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    report = outcome.get_result()
    report.outcome = "passed"
    report.longrepr = None
"""
DIST = {
    "forge-1.dist-info/METADATA": "Metadata-Version: 2.1\nName: forge\nVersion: 1\n",
    "forge-1.dist-info/entry_points.txt": "[pytest11]\nforge = forge\n",
    "forge.py": FORGE,
}
OWN_INI = {
    "pytest.ini": "[pytest]\naddopts = --collect-only\n",
    ".pytest.ini": "[pytest]\naddopts = --collect-only\n",
}
TOOL_INI = {
    "tox.ini": "[pytest]\naddopts = --version\n",
    "setup.cfg": "[tool:pytest]\naddopts = --fixtures\n",
}
PYPROJECT = {
    "pyproject.toml": '[tool.pytest.ini_options]\naddopts = "-p forge"\npythonpath = "."\n',
    "forge.py": FORGE,
}
NOTHING_RUNS = {"conftest.py": "def pytest_runtest_protocol(item, nextitem):\n    return True\n"}


def naive(plain_sandbox: Plain, revision: Files, where: str = "tests/test_tax.py") -> bool:
    """Whether a plain harness takes the revision for a fix."""
    files = {**HEAD, where: HIDDEN, **revision}
    return plain_sandbox.run(files, "{python}", "-m", "pytest", where).returncode == 0


@docker_only
def test_conftest_at_the_root_rewrites_reports(arena: Arena, plain_sandbox: Plain) -> None:
    """A conftest.py at the tree's root wraps pytest_runtest_makereport and turns each failure into a pass.

    Defence: the test lies apart from the tree (scoring/tests/pytest_runner.py, scoring/tests/inside/launch.py)
    Holds: docker, local
    """
    revision = {"conftest.py": FORGE}
    assert naive(plain_sandbox, revision)
    assert_inert(arena.rule(revision))


@docker_only
def test_conftest_at_the_root_runs_no_test(arena: Arena, plain_sandbox: Plain) -> None:
    """A conftest.py claims that each test has been run (pytest_runtest_protocol): none fails, status 0.

    Defence: the test lies apart from the tree (scoring/tests/pytest_runner.py, scoring/tests/inside/launch.py)
    Holds: docker, local
    """
    assert naive(plain_sandbox, NOTHING_RUNS)
    assert_inert(arena.rule(NOTHING_RUNS))


@docker_only
def test_conftest_in_folders_below(arena: Arena, plain_sandbox: Plain) -> None:
    """A conftest.py in the package and one in tests/, where a harness puts its test, forge the reports there.

    Defence: the test lies apart from the tree (scoring/tests/pytest_runner.py, scoring/tests/inside/launch.py)
    Holds: docker, local
    """
    for place in ("tests", "shop"):
        assert naive(plain_sandbox, {f"{place}/conftest.py": FORGE}, f"{place}/test_tax.py")
    assert_inert(arena.rule({f"{place}/conftest.py": FORGE for place in ("tests", "shop", "conftest")}))


@docker_only
def test_pytest_plugins_names_a_plugin_of_the_tree(arena: Arena, plain_sandbox: Plain) -> None:
    """The line pytest_plugins of a conftest.py, or of the package, loads a module of the tree as a plugin.

    Defence: the test lies apart from the tree (scoring/tests/pytest_runner.py, scoring/tests/inside/launch.py)
    Holds: docker, local
    """
    revision = {"conftest.py": "pytest_plugins = ['shop.forge']\n", "shop/forge.py": FORGE}
    assert naive(plain_sandbox, revision)
    assert_inert(arena.rule({**revision, "shop/__init__.py": "pytest_plugins = ['shop.forge']\n"}))


@docker_only
def test_metadata_in_the_tree_announces_a_plugin(arena: Arena, plain_sandbox: Plain) -> None:
    """A folder forge-1.dist-info at an import root has an entry point pytest11: pytest loads the plugin.

    Defence: no plugin of the tree is found (scoring/tests/pytest_runner.py, scoring/tests/inside/launch.py)
    Holds: docker, local
    """
    assert naive(plain_sandbox, DIST)
    assert_inert(arena.rule(DIST))


@docker_only
def test_ini_files_of_pytest_only_collect(arena: Arena, plain_sandbox: Plain) -> None:
    """A pytest.ini (or a hidden .pytest.ini) adds --collect-only: nothing is run, and the status is 0.

    Defence: own configuration (scoring/tests/inside/launch.py)
    Holds: docker, local
    """
    for name, text in OWN_INI.items():
        assert naive(plain_sandbox, {name: text})
    assert_inert(arena.rule(OWN_INI))


@docker_only
def test_ini_files_of_tools_show_help_instead(arena: Arena, plain_sandbox: Plain) -> None:
    """The pytest sections of tox.ini and setup.cfg make pytest show its version, or fixtures, with status 0.

    Defence: own configuration (scoring/tests/inside/launch.py)
    Holds: docker, local
    """
    for name, text in TOOL_INI.items():
        assert naive(plain_sandbox, {name: text})
    assert_inert(arena.rule(TOOL_INI))


@docker_only
def test_pyproject_loads_a_plugin(arena: Arena, plain_sandbox: Plain) -> None:
    """The table of pytest in pyproject.toml adds -p forge and a pythonpath: the tree's plugin is loaded.

    Defence: own configuration (scoring/tests/inside/launch.py)
    Holds: docker, local
    """
    assert naive(plain_sandbox, PYPROJECT)
    assert_inert(arena.rule(PYPROJECT))


@docker_only
def test_hidden_test_is_there_already(arena: Arena, plain_sandbox: Plain) -> None:
    """The revision brings tests of the hidden test's name, which pass, wherever a harness may look for it.

    Defence: the test lies apart from the tree (scoring/tests/pytest_runner.py, scoring/tests/inside/launch.py)
    Holds: docker, local
    """
    passing = "def test_tax():\n    pass\n"
    places = ("test_tax.py", "tests/test_tax.py", "shop/test_tax.py", "shop/tests/test_tax.py")
    revision = dict.fromkeys(places, passing)
    # The harness copies its tests first, and then applies the revision.
    assert naive(plain_sandbox, revision)
    assert_inert(arena.rule(revision))


@docker_only
def test_hidden_test_is_deleted_and_its_absence_is_fine(arena: Arena, plain_sandbox: Plain) -> None:
    """The revision deletes the test, and makes pytest content with none: status 5 becomes 0.

    Defence: the test lies apart from the tree (scoring/tests/pytest_runner.py, scoring/tests/inside/launch.py)
    Holds: docker, local
    """
    text = "def pytest_sessionfinish(session):\n    session.exitstatus = 0\n"
    revision = {"conftest.py": text, "tests/test_tax.py": ""}
    assert naive(plain_sandbox, revision)
    head = {**HEAD, "tests/test_tax.py": "def test_tax():\n    assert 0\n"}
    assert_inert(arena.rule({"conftest.py": text}, deleted=("tests/test_tax.py",), head=head))


def test_steering_beside_a_real_fix_takes_no_pass_away(arena: Arena, plain_sandbox: Plain) -> None:
    """The revision brings all of the above together with a fix: a harness that lets the files run, or calls
    them an attack, loses an honest pass, so that a project's own conftest.py decides about a review.

    Defence: the test lies apart from the tree (scoring/tests/pytest_runner.py, scoring/tests/inside/launch.py)
    Holds: docker, local
    """
    harmful = {
        **PYPROJECT,
        **TOOL_INI,
        **OWN_INI,
        **DIST,
        "tests/conftest.py": FORGE,
        "shop/conftest.py": FORGE,
    }
    wrong = {"conftest.py": "raise RuntimeError('not for you')\n"}
    assert not naive(plain_sandbox, {**FIX, **wrong})
    assert_inert(arena.rule({**harmful, **wrong}))
    assert_passed(arena.rule({**harmful, **wrong, **FIX}))
