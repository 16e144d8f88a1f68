"""What is fetched from git servers: two commits and no more; and how soon a server that fails is told."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest
from support.git_server import Repo, git_daemon, git_http, has_daemon, silent, static_http

from pytest_crbench.core.errors import InfraError
from pytest_crbench.core.model import Source, Trees
from pytest_crbench.host import digest
from pytest_crbench.sources import fetch, git


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    return Repo(tmp_path / "served" / "team" / "project.git")


def get(
    url: str, base: str, head: str, cache: Path, log: list[str] | None = None, **options: dict[str, str]
) -> Trees:
    lines = [] if log is None else log
    return fetch(Source("git", base, head, url=url), cache=cache, log=lines.append, **options)


def files(trees: Trees) -> tuple[list[str], list[str]]:
    base, head = ([path for path, _, _ in digest.walk(side.path)] for side in (trees.base, trees.head))
    return base, head


def objects(cache: Path, kind: str) -> set[str]:
    """Every object of a kind in the one mirror, reachable or not."""
    (place,) = (cache / "mirrors").iterdir()
    listing = subprocess.check_output(
        ["git", "cat-file", "--batch-all-objects", "--batch-check"], cwd=place, text=True
    )
    return {name for name, what, _ in (line.split() for line in listing.splitlines()) if what == kind}


def test_exactly_base_and_head_come_over_http(repo: Repo, tmp_path: Path) -> None:
    log: list[str] = []
    cache = tmp_path / "cache"
    with git_http(tmp_path / "served") as server:
        url = f"{server.url}/team/project.git"
        trees = get(url, repo.base, repo.head, cache, log)
        assert files(trees) == (["file-1"], ["file-3"])
        assert objects(cache, "commit") == {repo.base, repo.head}
        assert len(objects(cache, "blob")) == 2
        assert not any("all that it has" in line for line in log)
        before = len(server.requests)
        assert get(url, repo.base, repo.head, cache) == trees
        assert len(server.requests) == before, "what is in the cache is not asked for"


@pytest.mark.skipif(not has_daemon(), reason="git's own server (git-daemon) is not installed")
def test_exactly_base_and_head_come_over_gits_protocol(repo: Repo, tmp_path: Path) -> None:
    with git_daemon(tmp_path / "served") as url:
        trees = get(f"{url}/team/project.git", repo.base, repo.head, tmp_path / "cache")
    assert files(trees) == (["file-1"], ["file-3"])
    assert objects(tmp_path / "cache", "commit") == {repo.base, repo.head}


def test_pull_requests_of_one_repository_share_a_mirror(repo: Repo, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    with git_http(tmp_path / "served") as server:
        url = f"{server.url}/team/project.git"
        get(url, repo.base, repo.head, cache)
        get(url, repo.head, repo.commits[4], cache)
    assert objects(cache, "commit") == {repo.base, repo.head, repo.commits[4]}


def test_a_mirror_elsewhere_takes_the_place_of_the_url(
    repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As docs/aacr.md says, for data that names GitHub where only a mirror can be reached."""
    with git_http(tmp_path / "served") as server:
        config = tmp_path / "gitconfig"
        config.write_text(f'[url "{server.url}/"]\n\tinsteadOf = https://github.invalid/\n')
        monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
        trees = get("https://github.invalid/team/project.git", repo.base, repo.head, tmp_path / "cache")
    assert files(trees) == (["file-1"], ["file-3"])


def test_a_commit_that_the_server_does_not_have(repo: Repo, tmp_path: Path) -> None:
    """Told after two questions: all that the server has would take minutes, and not hold the commit."""
    gone, log = "7" * 40, list[str]()
    cache = tmp_path / "cache"
    with git_http(tmp_path / "served") as server:
        url = f"{server.url}/team/project.git"
        with pytest.raises(InfraError) as caught:
            get(url, repo.base, gone, cache, log)
        assert server.asked("info/refs") == 4  # is it there, and the fetch, for base and for head
    assert objects(cache, "commit") == {repo.base}
    said = str(caught.value)
    assert f"{url}: commit {gone} cannot be fetched" in said
    assert "not our ref" in said
    assert "leave that pull request out" in said
    assert caught.value.reason == "commit"


def test_a_server_without_the_newer_protocol_gives_all_that_it_has(
    repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log: list[str] = []
    setting = {"COUNT": "1", "KEY_0": "protocol.version", "VALUE_0": "0"}
    for name, value in setting.items():
        monkeypatch.setenv(f"GIT_CONFIG_{name}", value)
    with git_http(tmp_path / "served") as server:
        server.config = {"protocol.version": "0", "uploadpack.allowAnySHA1InWant": "false"}
        url = f"{server.url}/team/project.git"
        trees = get(url, repo.base, repo.head, tmp_path / "cache", log)
    assert files(trees) == (["file-1"], ["file-3"])
    assert [line for line in log if "gives no single commit" in line and "unadvertised" in line]


def test_a_server_of_plain_files_gives_all_that_it_has(repo: Repo, tmp_path: Path) -> None:
    repo.git("update-server-info")
    with static_http(tmp_path / "served") as url:
        trees = get(f"{url}/team/project.git", repo.base, repo.head, tmp_path / "cache")
    assert files(trees) == (["file-1"], ["file-3"])


@pytest.mark.parametrize(
    ("status", "word"), [(500, "500"), (403, "403"), (404, "not found"), (401, "could not read")]
)
def test_a_server_that_refuses_is_asked_once(status: int, word: str, repo: Repo, tmp_path: Path) -> None:
    with git_http(tmp_path / "served") as server:
        server.status = status
        with pytest.raises(InfraError, match="the repository cannot be reached") as caught:
            get(f"{server.url}/team/project.git", repo.base, repo.head, tmp_path / "cache")
        assert len(server.requests) <= 2  # once more with the credentials that git does not have
    assert word in str(caught.value)
    assert repo.base in str(caught.value)
    assert caught.value.reason == "unreachable"


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:9/x.git",
        "https://no-such-host.invalid/x.git",
        "git://127.0.0.1:9/x.git",
        "/nowhere/x",
    ],
)
def test_no_network_is_told_at_once(url: str, tmp_path: Path) -> None:
    began = time.monotonic()
    with pytest.raises(InfraError, match="the repository cannot be reached") as caught:
        get(url, "1" * 40, "2" * 40, tmp_path / "cache")
    assert time.monotonic() - began < 20
    for part in (url, "1" * 40, "--crbench-rerun-errors", "git ls-remote"):
        assert part in str(caught.value)


@pytest.mark.parametrize("connects", [True, False], ids=["says-nothing", "drops-packets"])
@pytest.mark.parametrize("scheme", ["http", "git"])
def test_a_host_that_does_not_answer_is_waited_for_once(
    scheme: str, connects: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(git, "ANSWER_SECONDS", 1.0)
    known: dict[str, str] = {}
    with silent(connects=connects) as (host, _listener):
        began = time.monotonic()
        with pytest.raises(InfraError, match="no answer within 1 s"):
            get(f"{scheme}://{host}/one.git", "1" * 40, "2" * 40, tmp_path / "cache", silent=known)
        first = time.monotonic() - began
        assert first >= 1.0
        began = time.monotonic()
        with pytest.raises(InfraError, match=f"{host} has not answered before") as caught:
            get(f"{scheme}://{host}/two.git", "3" * 40, "4" * 40, tmp_path / "cache", silent=known)
        assert time.monotonic() - began < first
    assert caught.value.reason == "unreachable"
    assert list(known) == [host]


def test_a_host_that_answers_again_is_used(repo: Repo, tmp_path: Path) -> None:
    """What failed at once may come back at once: only silence is remembered."""
    known: dict[str, str] = {}
    with git_http(tmp_path / "served") as server:
        url = f"{server.url}/team/project.git"
        server.status = 503
        with pytest.raises(InfraError, match="503"):
            get(url, repo.base, repo.head, tmp_path / "cache", silent=known)
        server.status = None
        assert files(get(url, repo.base, repo.head, tmp_path / "cache", silent=known))
    assert known == {}
