"""An agent leaves something in its sandbox for the verdict, or is told what it must not know.

The naive harness runs the hidden test in the container that the agent worked in, as root, and tells the agent
all that it knows of the instance.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import docker
import pytest
from support.benchmarks import Pull, write_dataset
from support.endpoint import KEY
from support.openai_server import OpenAIServer, answer
from support.openai_server import run as command
from support.reach import Savanna, Says

from pytest_crbench.core.model import Instance, Verdict
from pytest_crbench.core.status import Status
from pytest_crbench.datasets import open_dataset
from pytest_crbench.run import programs
from pytest_crbench.sandbox.engine import run
from pytest_crbench.sandbox.folder import folders, owner_of

pytestmark = pytest.mark.docker
#: What the agent runs, and the condition under which the hidden test of that name passes.
PLANTS = {
    "files": (
        "mkdir -p ~/.config/git && touch ~/planted ~/.profile /scratch/planted /tmp/planted /dev/shm/planted",
        "glob.glob('/*/planted') + glob.glob('/*/*/planted')",
    ),
    "packages": (
        "for d in $(python3 -c 'import site; print(*site.getsitepackages())') /venv/lib/*/site-packages; "
        "do echo 'import sys; sys.planted = 1' > $d/planted.pth; done",
        "glob.glob('/venv/lib/*/site-packages/planted.pth')",
    ),
    "interpreter": (
        'for d in $(echo $PATH | tr : " ") /venv/bin; do printf "#!/bin/sh\\nexit 0\\n" > $d/planted; done; '
        "for d in $(echo $PATH | tr : ' '); do cp $d/planted $d/pytest; done",
        "any(os.path.exists(f'{d}/planted') for d in os.environ['PATH'].split(':') + ['/venv/bin'])",
    ),
    "process": (
        "cat > /tmp/serve.py <<'END'\n"
        "import socket, time\n"
        "s = socket.socket(socket.AF_UNIX); s.bind('\\0planted'); s.listen(5); time.sleep(300)\n"
        "END\n"
        "setsid python3 /tmp/serve.py > /dev/null 2>&1 < /dev/null &\nsleep 1",
        "socket.socket(socket.AF_UNIX).connect_ex('\\0planted') == 0",
    ),
}
TEST = "import glob\nimport os\nimport socket\n\n\ndef test_{name}():\n    assert {condition}\n"


@dataclass
class Done:
    """What became of one pull request.

    ``observed`` is what the agent saw of each planting, ``alive`` how many other sandboxes there were
    whenever one was opened.
    """

    verdicts: dict[str, Verdict]
    told: str
    observed: dict[str, str]
    alive: list[int]
    trajectory: str
    instance: Instance


class Watched:
    """A backend that counts the other sandboxes of the session whenever one is opened."""

    def __init__(self, backend: Any, alive: Any) -> None:
        self.backend, self.alive = backend, alive
        self.counts: list[int] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.backend, name)

    @contextmanager
    def open(self, *args: Any, **given: Any) -> Iterator[Any]:
        self.counts.append(self.alive())
        with self.backend.open(*args, **given) as sandbox:
            yield sandbox


@pytest.fixture(scope="module", params=["docker", "local"])
def done(request: pytest.FixtureRequest, savanna: Savanna, tmp_path_factory: pytest.TempPathFactory) -> Done:
    """The real agent, driven by a scripted model, plants everything; then each check is judged."""
    if request.param == "local":
        backend = request.getfixturevalue("local_backend")
        if backend.describe()["isolation"] != "bubblewrap":
            pytest.skip("bubblewrap does not work here")
    place = tmp_path_factory.mktemp(f"planting-{request.param}")
    tests = {n: TEST.format(name=n, condition=c) for n, (_, c) in PLANTS.items()}
    pull = Pull("gnu-1", hard=tuple(PLANTS), tests=tests)
    (instance,) = open_dataset(str(write_dataset(place / "data", [pull]))).instances
    script = [command(planting) for planting, _ in PLANTS.values()]
    with OpenAIServer([*script, answer("Done.")]) as server, pytest.MonkeyPatch.context() as patch:
        patch.setenv("CRBENCH_API_KEY", KEY)
        model = {"model": f"scripted-{secrets.token_hex(6)}", "base_url": server.base_url}
        agent = programs.make_agent(savanna.settings(agent="llm", **model), None)
        evaluator = savanna.evaluator(request.param, Says(), agent, run=place / "run")
        alive = lambda: count(savanna, request.param)  # noqa: E731
        evaluator.backend = watched = Watched(evaluator.backend, alive)
        verdicts = {check.id: evaluator.verdict(instance, check) for check in instance.checks}
        told = json.dumps(server.requests)
        assert len(server.requests) == len(script) + 1
    kept = next((place / "run").rglob("*trajectory*"), None)
    observed = [m["content"] for m in server.requests[-1]["messages"] if m["role"] == "tool"]
    return Done(
        verdicts,
        told,
        dict(zip(PLANTS, observed, strict=True)),
        watched.counts,
        kept.read_text() if kept else "",
        instance,
    )


def count(savanna: Savanna, sandbox: str) -> int:
    """How many sandboxes of our session there are at this moment."""
    if sandbox == "local":
        return sum(owner_of(f)["session"] == savanna.session for f in folders(savanna.cache))
    client = docker.APIClient(version="auto")
    try:
        return len(client.containers(all=True, filters={"label": f"crbench.session={savanna.session}"}))
    finally:
        client.close()


@pytest.fixture(scope="module")
def naive(savanna: Savanna) -> Iterator[Any]:
    """One container of the environment's image for agent and verdict: gives whether a test passes there."""
    environment = savanna.evaluator("docker").at(savanna.instance).environment
    client = docker.APIClient(version="auto")
    container = client.create_container(
        environment.handle.tag, ["sleep", "600"], host_config=client.create_host_config(init=True)
    )["Id"]
    try:
        client.start(container)

        def passes(name: str) -> bool:
            planting, condition = PLANTS[name]
            test = TEST.format(name=name, condition=condition)
            put = f"mkdir -p /workspace && cat > /workspace/test_{name}.py <<'END'\n{test}END\n"
            judge = f"cd /workspace && /venv/bin/python -m pytest -q test_{name}.py"
            results = []
            for script in (planting, put + judge):
                whole = ["sh", "-c", f"export PATH=/venv/bin:$PATH\n{script}"]
                results.append(run(client, container, whole, deadline=60, output=65536, user="0"))
            return results[-1].returncode == 0

        yield passes
    finally:
        client.remove_container(container, force=True, v=True)
        client.close()


def assert_does_not_survive(name: str, done: Done, naive: Any) -> None:
    assert naive(name)
    assert done.verdicts[name].status is Status.MISSED, done.verdicts[name]


def test_files_outside_the_tree_survive(done: Done, naive: Any) -> None:
    """The agent writes where no patch looks (scratch, /tmp, /dev/shm, start-up files of its home) for later.

    Defence: a fresh sandbox for each verdict (scoring/tests/hidden_tests.py, sandbox/docker.py, sandbox/local.py)
    Holds: docker, local
    """
    assert done.observed["files"].startswith("exit status 0")
    assert_does_not_survive("files", done, naive)


def test_a_package_in_the_environment_survives(done: Done, naive: Any) -> None:
    """The agent adds a .pth file to site-packages, which runs in every later process of the interpreter.

    Defence: a fresh sandbox for each verdict (scoring/tests/hidden_tests.py, sandbox/docker.py, sandbox/local.py)
    Holds: docker, local
    """
    assert_does_not_survive("packages", done, naive)


def test_another_program_in_the_path_survives(done: Done, naive: Any) -> None:
    """The agent puts programs of its own (a pytest that exits with 0) into every folder of PATH.

    Defence: a fresh sandbox for each verdict (scoring/tests/hidden_tests.py, sandbox/docker.py, sandbox/local.py)
    Holds: docker, local
    """
    assert_does_not_survive("interpreter", done, naive)


def test_a_process_in_the_background_survives(done: Done, naive: Any) -> None:
    """The agent leaves a process in a session of its own, which waits for the test and helps it.

    Defence: a fresh sandbox for each verdict (scoring/tests/hidden_tests.py, sandbox/docker.py, sandbox/local.py)
    Holds: docker, local
    """
    assert done.observed["process"].startswith("exit status 0")
    assert_does_not_survive("process", done, naive)


def test_the_agents_sandbox_is_there_while_the_verdict_is_made(done: Done, savanna: Savanna) -> None:
    """An agent's sandbox that still runs could meet the verdict's on a network, a volume, or the engine.

    Defence: the agent's sandbox ends first (agents/llm.py)
    Holds: docker, local
    """
    backend = savanna.evaluator("local").backend
    evaluation = savanna.evaluator("local").at(savanna.instance)
    watched = Watched(backend, lambda: count(savanna, "local"))
    with (
        evaluation.agent_task().sandbox(),
        watched.open(evaluation.environment, evaluation.trees.head, limits=evaluation.owner.limits),
    ):
        assert watched.counts == [1]
    # One for the agent, one for each verdict; heads are run where no session before has run them.
    assert len(done.alive) >= 1 + len(PLANTS)
    assert set(done.alive) == {0}, done.alive


def test_the_agent_is_told_what_the_hidden_test_wants(done: Done) -> None:
    """A prompt made of the whole instance, or a transcript of an earlier verdict, holds the hidden test.

    Defence: only the review at hand (evaluation/evaluation.py, agents/prompt.py)
    Holds: docker, local
    """
    hidden = [check.test for check in done.instance.checks]
    human = [check.comment.body for check in done.instance.checks]
    careless = f"Make these pass: {done.instance.checks}"
    assert all(body in careless for body in human)
    assert "def test_files" in careless
    assert "Look at it." in done.told
    for text in (done.told, done.trajectory):
        assert not any(line in text for test in hidden for line in test.splitlines() if len(line) > 20)
        assert not any(body in text for body in human)
        assert done.instance.id not in text
        assert KEY not in text
    assert "Done." in done.trajectory
