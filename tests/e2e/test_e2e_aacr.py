"""A run on data of AACR-Bench's form, its repositories on a git server of ours in GitHub's place."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from support.aacr import comment, pull, write
from support.benchmarks import Run, run
from support.git_server import Repo, git_http, silent

REVIEWER = "--crbench-reviewer=human"
EXACT = "--crbench-matcher=exact"


def data(folder: Path, base: str, head: str) -> Path:
    """One pull request whose commits there are, and one whose commits nobody has."""
    said = [comment(f"Why {n}?", path="file-3", from_line=1, to_line=1) for n in range(3)]
    found = pull(1, *said[:2], source_commit=base, target_commit=head)
    lost = pull(2, *said, githubPrUrl="https://github.com/team/lost/pull/2", source_commit="7" * 40)
    return write(folder, [found, lost])


def instead(folder: Path, url: str) -> dict[str, str]:
    """What makes git ask another server than GitHub."""
    config = folder / "gitconfig"
    config.write_text(f'[url "{url}/"]\n\tinsteadOf = https://github.com/\n')
    return {"GIT_CONFIG_GLOBAL": str(config)}


def reasons(done: Run) -> Counter[tuple[str, str]]:
    rows = done.rows()
    return Counter((row["instance"], row["status"]) for row in rows)


def test_a_pull_request_whose_commits_are_gone(folder: Path, tmp_path: Path) -> None:
    """It is asked for once by all its checks in all processes, and the other one is measured."""
    repo = Repo(tmp_path / "served" / "team" / "project.git")
    Repo(tmp_path / "served" / "team" / "lost.git")
    dataset = data(tmp_path / "data", repo.base, repo.head)
    with git_http(tmp_path / "served") as server:
        env = instead(tmp_path, server.url)
        spec = Path(f"aacr:{dataset}")
        done = run(folder, spec, tmp_path / "cache", REVIEWER, EXACT, "--crbench-min-coverage=0.9",
                   "--crbench-fail-under=0.5", "-n", "2", env=env)  # fmt: skip
        asked = Counter(path.partition("?")[0] for _, path, _ in server.requests)
    assert reasons(done) == {("team__project-1", "passed"): 2, ("team__lost-2", "infra_error"): 3}, (
        done.output
    )
    assert done.status == 10, "too little was measured to decide"
    assert asked["/team/lost.git/info/refs"] == 2
    told = {row["reason"] for row in done.rows() if row["status"] == "infra_error"}
    (reason,) = told
    for part in ("7" * 40, "https://github.com/team/lost.git", "not our ref", "leave that pull request out"):
        assert part in reason


def test_a_run_without_network_ends_soon_and_says_why(folder: Path, tmp_path: Path) -> None:
    """Packets are dropped: nobody says so, and each pull request could wait for minutes."""
    dataset = write(tmp_path / "data", [pull(n) for n in range(1, 7)])
    patience = "from pytest_crbench.sources import git\n\ngit.ANSWER_SECONDS = 2.0\n"
    (folder / "conftest.py").write_text(patience)
    with silent(connects=False) as (host, _listener):
        env = instead(tmp_path, f"http://{host}")
        done = run(folder, Path(f"aacr:{dataset}"), tmp_path / "cache", REVIEWER, EXACT, env=env, timeout=100)
    assert set(done.statuses().values()) == {"infra_error"}
    assert "no answer within 2 s" in done.output
    causes = Counter("has not answered before" in row["reason"] for row in done.rows())
    assert causes == {False: 1, True: 5}
