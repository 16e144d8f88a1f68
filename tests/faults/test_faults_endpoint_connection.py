"""Endpoints that no connection comes to; three runs at once, since all they do is wait."""

from __future__ import annotations

import secrets
import socket
import subprocess
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
from support.benchmarks import Pull, run, write_dataset
from support.broken_endpoints import BrokenModel
from support.openai_server import OpenAIServer
from support.stories import RESUME, Story, own_cache

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from support.faults import Told

pytestmark = [pytest.mark.network, pytest.mark.slow]
_NAMES = "/CN=localhost", "subjectAltName=IP:127.0.0.1"


@pytest.fixture
def stories(once: Callable[[str, Callable[[Story], None]], Story], cache: Path) -> dict[str, Story]:
    """By name of the fault: the run with it, and the same one resumed without."""
    whole = once("connection", lambda story: _tell(story, cache))
    return {name: Story(whole.folder / name) for name in ("refused", "distrusted", "unnamed")}


def _tell(story: Story, cache: Path) -> None:
    dataset = write_dataset(story.folder / "small", [Pull("a", fixable=("a1",))])
    own = own_cache(story.folder / "cache", cache)
    certificate = _certificate(story.folder)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    model = BrokenModel({})
    with OpenAIServer(model, certificate=certificate) as secured:

        def begin(name: str, url: str) -> None:
            (story.folder / name).mkdir()
            part = Story(story.folder / name)
            options = [f"--crbench-base-url={url}", f"--crbench-model=m-{secrets.token_hex(6)}"]
            options += ["--crbench-reviewer=human", "--crbench-agent=llm", "--crbench-agent-timeout=4"]
            options += ["-p", "no:xdist"]
            part.keep("first", run(part.vendor, dataset, own, *options, env={"CRBENCH_API_KEY": "sk-fault"}))

        def finish(name: str, **env: str) -> None:
            part = Story(story.folder / name)
            env["CRBENCH_API_KEY"] = "sk-fault"
            part.keep("again", run(part.vendor, dataset, own, *RESUME, "-p", "no:xdist", env=env))

        with ThreadPoolExecutor(3) as pool:
            urls = {
                "refused": f"http://127.0.0.1:{port}/v1",
                "distrusted": secured.base_url,
                "unnamed": "http://no-such-host.invalid/v1",
            }
            list(pool.map(begin, urls, urls.values()))
        with OpenAIServer(model, port=port), ThreadPoolExecutor(2) as pool:
            ends = [
                pool.submit(finish, "refused"),
                pool.submit(finish, "distrusted", SSL_CERT_FILE=certificate[0]),
            ]
            for end in ends:
                end.result()


def _certificate(folder: Path) -> tuple[str, str]:
    """Make a certificate that nobody trusts, and its key."""
    made, key = str(folder / "certificate.pem"), str(folder / "key.pem")
    argv = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-keyout", key]
    argv += ["-out", made, "-subj", _NAMES[0], "-addext", _NAMES[1]]
    subprocess.run(argv, check=True, capture_output=True)
    return made, key


def _look(story: Story, fault: Told) -> None:
    row = story.rows("first")["a"]
    assert row["status"] == fault.status
    fault.assert_told(row["reason"])
    assert "--crbench-base-url" in row["reason"]
    assert story.statuses("again") == {"a": "passed"}


def test_a_refused_connection(stories: dict[str, Story], fault: Told) -> None:
    """Nothing listens where the model endpoint should be.

    Status: infra_error
    Message: Connection refused. Check that it runs
    """
    _look(stories["refused"], fault)


def test_a_certificate_that_is_not_trusted(stories: dict[str, Story], fault: Told) -> None:
    """The model endpoint shows a certificate that this machine does not trust.

    Status: infra_error
    Message: Trust its certificate (SSL_CERT_FILE)
    """
    _look(stories["distrusted"], fault)


def test_a_name_that_does_not_resolve(stories: dict[str, Story], fault: Told) -> None:
    """The model endpoint's name does not resolve. Another name is another agent, hence another run.

    Status: infra_error
    Message: no connection to http://no-such-host.invalid/v1
    """
    row = stories["unnamed"].rows("first")["a"]
    assert row["status"] == fault.status
    fault.assert_told(row["reason"])
    assert "Check that it runs and --crbench-base-url" in row["reason"]
