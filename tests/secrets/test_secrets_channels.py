"""Keys in every channel, said again by everything that answers: no byte that a run leaves holds one.

The keys are planted where users put them. Reviewer, model, endpoint, index, hidden test and a failing test of
the vendor's own say them all again, as they are, escaped for JSON, quoted for a URL and in Base64. Then every
file of the run, what the cache gained, the terminal, JUnit's file, the step summary and the debug log are
searched.
"""

from __future__ import annotations

import base64
import json
import secrets as random
import shlex
import sys
import time
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from support.benchmarks import Pull, Run, run, write_dataset
from support.endpoint import DOCKER, LOCAL
from support.index_server import Index, serve
from support.openai_server import OpenAIServer, Step, answer, status
from support.openai_server import run as command

from pytest_crbench.text.secrets import REDACTED

pytestmark = [pytest.mark.network, pytest.mark.slow]

CHANNELS = (
    *("api-key", "openai-key", "passed-through", "named-like-a-key", "login-of-the-endpoint"),
    *("query-of-the-endpoint", "token-in-the-command-line", "registry", "git-login"),
    *("index-option", "index-variable", "proxy"),
)


def forms(secret: str) -> dict[str, str]:
    """What must not be found, by what it is; made here without the code under test."""
    login = base64.b64encode(f"u:{secret}".encode()).decode()
    return {
        "as it is": secret,
        "in JSON": json.dumps(secret)[1:-1],
        "in a URL": quote(secret, safe=""),
        "in Base64": base64.b64encode(secret.encode()).decode(),
        # The characters that the password alone decides.
        "in a login": login[3 : 8 * (2 + len(secret)) // 6],
        "as Python writes it": repr(secret)[1:-1],
        "its beginning": secret[:14],
    }


@pytest.fixture
def planted() -> dict[str, str]:
    return {channel: f'{random.token_hex(8)}"\\{channel[:3]}/+&<' for channel in CHANNELS}


def everything(planted: dict[str, str]) -> str:
    """All keys in all forms, as hostile or careless programs would write them."""
    said = [
        form for secret in planted.values() for what, form in forms(secret).items() if "begin" not in what
    ]
    said += [base64.b64encode(f"u:{secret}".encode()).decode() for secret in planted.values()]
    return "\n".join(said)


REVIEWER = """
import json, os, sys
spill = open(sys.argv[1]).read()
assert os.environ["HANDED_OVER"] in spill
print(spill, file=sys.stderr)
files = os.popen("git ls-files").read().split()
if "shop/tax_.py" in files:
    print("died of", spill.splitlines()[0], file=sys.stderr)
    sys.exit(3)
path = next(f for f in files if f.endswith("_.py") and "init" not in f)
comment = {"path": path, "lines": [2, 2], "body": spill, "rule": spill.splitlines()[0]}
print(json.dumps({"comments": [comment]}))
"""
OWN_TEST = """
import logging, sys, warnings
SPILL = open(PATH).read()


def test_of_the_vendors_own(crbench_evaluate):
    print(SPILL)
    logging.getLogger("httpx").warning("HTTP Request: %s", SPILL)
    try:
        raise ValueError(SPILL)
    except ValueError:
        logging.exception("with a traceback")
    assert crbench_evaluate("first") == SPILL
"""
HIDDEN = """
from shop.price_ import price

BACKWARDS = {backwards!r}


def test_price():
    print(BACKWARDS[::-1])
    assert price() == BACKWARDS[::-1]
"""


class Echo(OpenAIServer):
    """Says everything in a tool call, in an answer and, of one pull request, in an error."""

    def __init__(self, spill: str) -> None:
        super().__init__([])
        self.spill = spill

    def take(self, headers: dict[str, str], body: dict[str, Any]) -> Step:
        super().take(headers, body)
        if "shop/fee_.py" in json.dumps(body):
            return status(400, message=self.spill)
        if len(body["messages"]) > 2:
            return answer(self.spill)
        return command(f"echo {shlex.quote(self.spill)} > shop/note.txt")


def leaks(planted: dict[str, str], places: dict[str, bytes]) -> list[str]:
    return [
        f"{channel} {what} in {place}"
        for place, content in places.items()
        for channel, secret in planted.items()
        for what, form in forms(secret).items()
        if form.encode() in content
    ]


def left_behind(done: Run, cache: Path, since: float, *others: Path) -> dict[str, bytes]:
    """Every file that a run wrote, and what it printed."""
    found = {"the terminal": done.output.encode()}
    inside = [p for p in cache.rglob("*") if p.is_file() and p.lstat().st_mtime >= since - 1]
    for path in (*(done.folder / ".crbench").rglob("*"), *inside, *others):
        if path.is_file() and not path.is_symlink():
            found[str(path)] = path.read_bytes()
    return found


@pytest.mark.parametrize(
    ("where", "workers"),
    [
        pytest.param(LOCAL, (), id="local-serial"),
        pytest.param(DOCKER, ("-n", "2"), id="docker-two-workers", marks=pytest.mark.docker),
    ],
)
def test_no_key_is_left_behind(
    folder: Path,
    tmp_path: Path,
    cache: Path,
    planted: dict[str, str],
    where: tuple[str, ...],
    workers: tuple[str, ...],
) -> None:
    spill = everything(planted)
    (tmp_path / "spill").write_text(spill)
    (tmp_path / "reviewer.py").write_text(REVIEWER)
    (folder / "test_own.py").write_text(OWN_TEST.replace("PATH", repr(str(tmp_path / "spill"))))
    first = Pull("first", hard=("price",), tests={"price": HIDDEN.format(backwards=spill[::-1])})
    pulls = [first, Pull("second", hard=("tax",)), Pull("third", hard=("fee",))]
    dataset = write_dataset(tmp_path / "three", pulls)
    registry = base64.b64encode(f"me:{planted['registry']}".encode()).decode()
    (tmp_path / "docker").mkdir()
    (tmp_path / "docker" / "config.json").write_text(
        json.dumps({"auths": {"registry.example": {"auth": registry}}})
    )

    since = time.time()
    with Echo(spill) as server:
        endpoint = server.base_url.replace(
            "http://", f"http://me:{quote(planted['login-of-the-endpoint'], safe='')}@"
        )
        reviewer = [sys.executable, str(tmp_path / "reviewer.py"), str(tmp_path / "spill")]
        token = f"--token={planted['token-in-the-command-line']}"
        asked = [
            f"--crbench-reviewer=cmd:{shlex.join([*reviewer, token])}",
            "--crbench-reviewer-env=HANDED_OVER",
            "--crbench-agent=llm",
            f"--crbench-base-url={endpoint}?sig={quote(planted['query-of-the-endpoint'], safe='')}",
            f"--crbench-model=scripted-{random.token_hex(6)}",
        ]
        asked += [
            "--junitxml=junit.xml",
            "--log-file=debug.log",
            "--log-file-level=DEBUG",
            "-rA",
            "--tb=long",
        ]
        environment = {
            "CRBENCH_API_KEY": planted["api-key"],
            "OPENAI_API_KEY": planted["openai-key"],
            "HANDED_OVER": planted["passed-through"],
            "SOME_SERVICE_TOKEN": planted["named-like-a-key"],
            "GIT_REMOTE": f"https://me:{quote(planted['git-login'], safe='')}@git.example/x.git",
            "PIP_INDEX_URL_UNUSED": f"https://me:{quote(planted['index-option'], safe='')}@index.example/",
            "OTHER_PASSWORD": planted["index-variable"],
            "FTP_PROXY": f"http://me:{quote(planted['proxy'], safe='')}@proxy.example:3128",
            "DOCKER_CONFIG": str(tmp_path / "docker"),
            "GITHUB_STEP_SUMMARY": str(folder / "step.md"),
        }
        done = run(folder, dataset, cache, *asked, *where, *workers, "test_own.py", env=environment)
    statuses = done.statuses()
    assert statuses["second::tax"] == "reviewer_error", done.output
    assert set(statuses.values()) == {"reviewer_error", "missed", "infra_error"}, done.output
    others = [folder / name for name in ("junit.xml", "debug.log", "step.md")]
    assert all(path.is_file() for path in others)
    places = left_behind(done, cache, since, *others)
    assert sum(REDACTED.encode() in content for content in places.values()) > 10, "nothing was said at all"
    found = leaks(planted, places)
    assert not found, "\n".join(found[:40])
    # The run can be finished only by who has the token: what is recorded is not a command.
    again = run(folder, dataset, cache, "--crbench-resume", *where, env=environment)
    assert again.status == 4
    assert "--crbench-reviewer of" in again.output
    assert "give the option again" in again.output


def test_no_login_of_an_index_or_a_repository_is_left_behind(
    folder: Path, tmp_path: Path, planted: dict[str, str]
) -> None:
    """Failures name what failed: the index that says the login again, the repository that is not there."""
    spill = everything(planted)
    cache = tmp_path / "cache"
    dataset = write_dataset(tmp_path / "two", [Pull("first", hard=("price",)), Pull("second", hard=("tax",))])
    index = Index(style=f"text/plain; said={quote(spill[:200])}", credentials="somebody:else")
    with serve(index):
        login = f"me:{quote(planted['index-option'], safe='')}@"
        git = index.url.replace("/simple", "/none.git").replace(
            "://", f"://me:{quote(planted['git-login'], safe='')}@"
        )
        file = dataset / "second" / "instance.toml"
        text = file.read_text()
        trees = text[text.index("[source]") : text.index("[pull_request]")]
        source = f'[source]\nkind = "git"\nurl = "{git}"\nbase = "{"a" * 40}"\nhead = "{"b" * 40}"\n\n'
        file.write_text(text.replace(trees, source))
        since = time.time()
        done = run(
            folder,
            dataset,
            cache,
            "--crbench-reviewer=none",
            "--crbench-agent=none",
            f"--crbench-index-url={index.url.replace('://', '://' + login)}",
            *LOCAL,
            env={
                "PIP_INDEX_URL": f"https://me:{quote(planted['index-variable'], safe='')}@127.0.0.1:9/simple",
                "PIP_EXTRA_INDEX_URL": f"http://me:{quote(planted['index-variable'], safe='')}@127.0.0.1:9/",
                "HTTPS_PROXY": f"http://me:{quote(planted['proxy'], safe='')}@127.0.0.1:9",
            },
        )
    assert set(done.statuses().values()) == {"infra_error"}, done.output
    found = leaks(planted, left_behind(done, cache, since))
    assert not found, "\n".join(found[:40])
