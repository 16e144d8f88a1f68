"""Environments that cannot be built: what they require is not there, broken, never comes, or half of it."""

from __future__ import annotations

import secrets
import subprocess
from typing import TYPE_CHECKING

import pytest
from support.engine_rig import Rig, Trouble, instance_of, pulls
from support.images import gateway_of_the_bridge
from support.index_server import Index, serve
from support.small_image import SMALL_IMAGE
from support.stories import own_cache
from support.wheels import wheel

from pytest_crbench.core.errors import InfraError
from pytest_crbench.core.model import Environment
from pytest_crbench.core.sandbox import SandboxSettings
from pytest_crbench.host.indexes import settings_from_environment
from pytest_crbench.sandbox.choose import choose

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from typing import Any

    from support.faults import Told
    from support.stories import Story

pytestmark = [pytest.mark.network, pytest.mark.slow]
#: The projects, by the checks that need them; none is on any other index.
PROJECTS = {
    check: f"crbench-test-{what}"
    for check, what in (("b1", "missing"), ("c1", "broken"), ("d1", "half"), ("e1", "slow"))
}


@pytest.fixture
def story(once: Callable[[str, Callable[[Story], None]], Story], cache: Path) -> Story:
    """A run in the local sandbox with an index that fails in every way, and the same run when it is sound."""
    return once("index", lambda story: _tell(story, cache))


def _tell(story: Story, cache: Path) -> None:
    troubles = {check: Trouble(requires=(f"{name}==1.0",)) for check, name in PROJECTS.items()}
    checks = ("a1", *PROJECTS)
    dataset = pulls(story.folder / "dataset", troubles, checks)
    own = own_cache(story.folder / "cache", cache)
    with serve(Index()) as index:
        variables = {"PIP_EXTRA_INDEX_URL": index.url, "UV_HTTP_TIMEOUT": "1", "UV_HTTP_RETRIES": "0"}
        box = Rig(story.vendor, dataset, own, sandbox="local", checks=checks, environ_too=variables)
        sound = {name: wheel(name, size=200_000) for name in PROJECTS.values()}
        for check, name in PROJECTS.items():
            file, content = sound[name]
            if check != "b1":
                index.add(name, file, content[:1000] if check == "c1" else content)
            if check == "d1":
                index.breaks_off[file] = 100_000
            if check == "e1":
                index.hangs.add(f"/simple/{name}/")
        story.keep("first", box.run())
        index.hangs.clear()
        index.breaks_off.clear()
        for name, (file, content) in sound.items():
            index.add(name, file, content)
        story.keep("again", box.assert_recovers())


def look(story: Story, check: str, fault: Told) -> dict[str, Any]:
    """Assert status and message in the run with the fault, and that resuming measured the check."""
    instance = instance_of(check)
    row = story.rows("first")[instance]
    assert row["status"] == fault.status, row
    fault.assert_told(row["reason"])
    assert PROJECTS[check] in row["reason"]
    assert "Check the requirements" in row["reason"]
    assert story.statuses("first")["first"] == "passed"
    assert story.statuses("again")[instance] == "passed"
    return row


def test_a_requirement_does_not_exist(story: Story, fault: Told) -> None:
    """An instance requires a package that no index has.

    Status: infra_error
    Message: uv pip compile cannot resolve crbench-test-missing==1.0
    """
    look(story, "b1", fault)


def test_a_wheel_is_broken(story: Story, fault: Told) -> None:
    """An instance requires a package whose wheel is broken.

    Status: infra_error
    Message: uv pip compile cannot resolve crbench-test-broken==1.0
    """
    look(story, "c1", fault)


def test_the_index_breaks_off_in_the_middle_of_a_wheel(story: Story, fault: Told) -> None:
    """The package index closes the connection in the middle of a wheel, every time.

    Status: infra_error
    Message: uv pip compile cannot resolve crbench-test-half==1.0
    """
    look(story, "d1", fault)


def test_the_index_accepts_and_never_answers(story: Story, fault: Told) -> None:
    """The package index accepts connections and never answers.

    Status: infra_error
    Message: uv pip compile cannot resolve crbench-test-slow==1.0
    """
    look(story, "e1", fault)


# In a container: the index answered while the requirements were resolved, and fails when they are installed.


@pytest.fixture
def gateway() -> str:
    """The address of this machine that containers reach."""
    return gateway_of_the_bridge()


@pytest.fixture
def index(gateway: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Index]:
    """An index with one package, beside the ordinary one."""
    with serve(Index(), gateway) as made:
        monkeypatch.setenv("PIP_EXTRA_INDEX_URL", made.url)
        monkeypatch.setenv("PIP_TRUSTED_HOST", gateway)
        monkeypatch.setenv("PIP_RETRIES", "0")
        yield made


def built(cache: Path, index: Index, *, timeout: float = 60.0) -> tuple[InfraError, str]:
    """Build an environment that needs a package of the index, which fails; the error, and the session."""
    name = f"crbench-test-{secrets.token_hex(4)}"
    file, content = wheel(name, size=200_000)
    index.add(name, file, content)
    session = secrets.token_hex(8)
    settings = SandboxSettings(cache, session, base_image=SMALL_IMAGE, build_timeout=timeout)
    backend = choose("docker", settings_from_environment(settings))
    index.after_first[file] = index.after_first.pop("")
    with pytest.raises(InfraError) as caught:
        backend.environment(Environment(python=">=3.8", requirements=(f"{name}==1.0",)))
    assert name in str(caught.value)
    return caught.value, session


def left(session: str) -> list[str]:
    """Containers of a session."""
    listed = ["docker", "ps", "-aq", f"--filter=label=crbench.session={session}"]
    return subprocess.run(listed, check=True, capture_output=True, text=True).stdout.split()


@pytest.mark.docker
def test_the_index_breaks_off_while_an_image_is_built(own_cache: Path, index: Index, fault: Told) -> None:
    """The package index closes the connection in the middle of a wheel that an image is to hold.

    Status: infra_error
    Message: Check the network, the index settings and the CA bundle
    """
    index.after_first[""] = 100_000
    error, session = built(own_cache, index)
    assert error.status.value == fault.status
    assert error.reason == "install"
    fault.assert_told(str(error))
    assert left(session) == []


@pytest.mark.docker
def test_the_index_hangs_while_an_image_is_built(own_cache: Path, index: Index, fault: Told) -> None:
    """The package index stops answering while an image is built, and pip waits.

    The time limit of a build ends it, and its container with all that runs in it.

    Status: infra_error
    Message: did not end within 8 s
    """
    index.after_first[""] = None
    error, session = built(own_cache, index, timeout=8)
    assert error.status.value == fault.status
    fault.assert_told(str(error))
    assert left(session) == []
