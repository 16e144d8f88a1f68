"""A program out of an image of its vendor's: the same seam as on the host, in a container of its own."""

from __future__ import annotations

import json
import secrets
import shlex
import time
from typing import TYPE_CHECKING, Any

import docker
import pytest
from support.images import BASE_IMAGE, image, packed
from support.registry import registry
from support.reviewing import given, loaded

from pytest_crbench.core.errors import InfraError, ReviewerError, UsageError
from pytest_crbench.core.sandbox import Limits, SandboxSettings
from pytest_crbench.reviewers import host
from pytest_crbench.reviewers.load import load
from pytest_crbench.sandbox.enclosure import DockerEnclosure

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pytest_crbench.core.model import Review

pytestmark = pytest.mark.docker
COMMENT = '{"comments": [{"path": "/pr/repository/app/core.py", "line": 6, "body": "Use is."}]}'
KEY = "sk-vendor-0123456789abcdef"


class Place:
    """Reviews the small pull request out of one image; ``session`` labels the containers of this test."""

    def __init__(self, project: Any, folder: Path) -> None:
        self.project, self.folder = project, folder
        self.session = secrets.token_hex(8)
        self.client = docker.APIClient(version="auto")

    def enclosure(self, name: str = BASE_IMAGE, **given: Any) -> DockerEnclosure:
        settings = SandboxSettings(cache=self.folder / "cache", session=self.session)
        return DockerEnclosure(name, settings, **{"limits": Limits(), **given})

    def review(
        self, script: str, *, name: str = BASE_IMAGE, limits: Limits | None = None, **options: Any
    ) -> Review:
        """Run ``sh -c script`` and assert that its container is gone."""
        enclosure = self.enclosure(name, limits=limits or Limits())
        reviewer = loaded(f"cmd:sh -c {shlex.quote(script)}", enclosure, **{"timeout": 60.0, **options})
        try:
            return reviewer.review(self.project.task(self.folder / "run"))
        finally:
            assert self.containers() == []

    def fails(self, script: str, **given: Any) -> ReviewerError:
        with pytest.raises(ReviewerError) as caught:
            self.review(script, **given)
        return caught.value

    def kept(self, name: str) -> str:
        return (self.folder / "run" / f"review.{name}").read_text()

    def containers(self) -> list[Any]:
        return list(self.client.containers(all=True, filters={"label": f"crbench.session={self.session}"}))


@pytest.fixture
def place(project: Any, tmp_path: Path) -> Iterator[Place]:
    made = Place(project, tmp_path)
    yield made
    made.client.close()


def test_it_reads_the_two_commits_and_writes_its_review(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOST_ONLY_VARIABLE", "x")
    review = place.review(
        "{{ id -u; pwd; env; git log --format=%H {base}..{head}; git status --porcelain; cat {diff}; "
        'touch written "$HOME/x" "$TMPDIR/x"; }} >&2; echo '
        + shlex.quote(COMMENT.replace("{", "{{").replace("}", "}}"))
        + " > {out}"
    )
    (comment,) = review.comments
    assert (comment.path, comment.lines, comment.flags) == ("app/core.py", (6, 6), ())
    assert review.duration > 0
    said = place.kept("stderr").split("\n")
    assert said[:2] == ["1000", "/pr/repository"]
    assert place.project.head in said
    assert "diff --git a/app/core.py b/app/core.py" in said
    assert not any(line.startswith((" M", "??", "HOST_ONLY")) for line in said)
    assert place.kept("out").strip() == COMMENT
    assert json.loads(place.kept("run.json"))["returncode"] == 0


def test_statuses_and_silence_are_told_apart(place: Place) -> None:
    crashed = place.fails("echo '[]'; echo quota used up >&2; exit 3")
    assert crashed.reason == "crashed"
    assert "exit status 3" in str(crashed)
    assert "quota used up" in str(crashed)
    assert place.review("echo '[]'; exit 3", exit_ok=(0, 3)).comments == ()
    assert place.fails("true").reason == "empty"
    assert place.fails("true {out}").reason == "empty"
    assert place.fails("echo No issues.").reason == "unreadable"
    assert place.kept("stdout") == "No issues.\n"


def test_at_its_time_limit_all_of_it_is_killed(place: Place) -> None:
    began = time.monotonic()
    error = place.fails("echo started; trap '' TERM; setsid sleep 300 & sleep 301", timeout=2.0)
    assert error.reason == "timeout"
    assert time.monotonic() - began < 30
    assert place.kept("stdout") == "started\n"


@pytest.mark.parametrize(
    ("script", "said"),
    [
        pytest.param("head -c 3000000 /dev/zero", "more than 100000 bytes to stdout", id="stdout"),
        pytest.param("head -c 3000000 /dev/zero > {out}", "a review of more than 100000 bytes", id="file"),
        pytest.param("ln -s /etc/passwd {out}", "no regular file", id="link"),
        pytest.param("mkdir {out}; touch {out}/x", "no regular file", id="folder"),
    ],
)
def test_what_is_no_review_is_unreadable(
    place: Place, script: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host, "OUTPUT_LIMIT", 100_000)
    error = place.fails(script)
    assert error.reason == "unreadable"
    assert said in str(error)
    assert sum(p.stat().st_size for p in (place.folder / "run").iterdir()) < 300_000


def test_memory_is_limited_and_told(place: Place) -> None:
    error = place.fails("exec python3 -c 'bytearray(400 * 2**20)'", limits=Limits(memory=64 * 1024**2))
    assert error.reason == "crashed"
    assert "64 MiB of memory" in str(error)


def test_it_cannot_make_its_failure_look_like_the_engines(place: Place) -> None:
    """An infra_error is in no rate: a tool could choose what it is measured on."""
    assert place.fails("kill 1; kill -9 1; kill -9 -1").reason == "empty"


def test_a_container_that_somebody_else_ends_is_nobodys_score(place: Place) -> None:
    reviewer = load("cmd:sleep 60", given(timeout=60.0), place.enclosure())

    def log(line: str) -> None:
        place.project.logged.append(line)

    import threading

    def end() -> None:
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            found = [c for c in place.containers() if c["State"] == "running"]
            if found and place.client.top(found[0]["Id"])["Processes"][-1][-1].endswith("sleep 60"):
                place.client.kill(found[0]["Id"])
                return
            time.sleep(0.05)

    thread = threading.Thread(target=end)
    thread.start()
    with pytest.raises(InfraError) as caught:
        reviewer.review(place.project.task(place.folder / "run", log=log))
    thread.join()
    assert caught.value.reason == "sandbox-gone"
    assert place.containers() == []


def test_a_named_variable_reaches_the_program_and_nothing_that_is_kept(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VENDOR_KEY", KEY)
    monkeypatch.setenv("OTHER_KEY", "sk-other-0123456789")
    seen: list[str] = []
    create = docker.APIClient.create_container

    def spy(self: Any, *args: Any, **given: Any) -> Any:
        made = create(self, *args, **given)
        seen.append(json.dumps(self.inspect_container(made["Id"])))
        return made

    monkeypatch.setattr(docker.APIClient, "create_container", spy)
    place.review(
        'echo "key $VENDOR_KEY, ${{#VENDOR_KEY}} long, other $OTHER_KEY" >&2; '
        "tr '\\0' '\\n' < /proc/1/environ >&2; echo '[]'",
        environment=("VENDOR_KEY",),
    )
    assert place.kept("stderr").startswith(f"key [redacted], {len(KEY)} long, other \n")
    assert len(seen) >= 2
    assert not any("sk-" in text for text in seen)
    for file in place.folder.rglob("*"):
        assert not file.is_file() or KEY.encode() not in file.read_bytes()


def test_the_images_own_user_and_variables_are_kept_and_its_entrypoint_is_not(place: Place) -> None:
    accounts = "root:x:0:0::/root:/bin/sh\ntool:x:1234:1234::/srv/home:/bin/sh\n"
    files = {
        "/etc/passwd": accounts,
        "/srv/home/settings": "mine",
        "/srv/bin/mytool": "#!/bin/sh\necho '[]'\n",
    }
    config = {
        "User": "tool",
        "Env": ["PATH=/srv/bin:/usr/bin:/bin", "TOOL_MODE=fast"],
        "Entrypoint": ["false"],
        "Volumes": {"/data": {}},
    }
    with image(files, config) as name:
        review = place.review(
            "id -un >&2; echo $TOOL_MODE >&2; cat ~/settings >&2; touch x; mytool", name=name
        )
        assert review.comments == ()
        assert place.kept("stderr") == "tool\nfast\nmine"
        said = load("cmd:mytool", given(), place.enclosure(name)).fingerprint["image"]
        assert said == {
            "name": name,
            "id": place.client.inspect_image(name)["Id"],
            "network": False,
        }


def test_root_is_never_the_user(place: Place) -> None:
    with image({"/srv/tool": "#!/bin/sh\necho '[]'\n"}, {"User": "0:0"}, mode=0o700) as name:
        place.review("id -u >&2; whoami >&2; grep ^Cap /proc/self/status >&2; echo '[]'", name=name)
        uid, user, *capabilities = place.kept("stderr").split("\n")
        assert (uid, user) == ("1000", "user")
        assert all(line.endswith("0" * 16) for line in capabilities if line)
        error = place.fails("exec /srv/tool", name=name)
        assert "Permission denied" in str(error)


@pytest.mark.parametrize(
    ("spec", "config", "said"),
    [
        pytest.param("cmd:mytol x", {}, "there is no program 'mytol' in the image", id="no-program"),
        pytest.param("cmd:/srv/mytool x", {}, "looked /srv/mytool", id="no-path"),
        pytest.param("cmd:sh {cwd}/x", {}, "no placeholder {cwd}", id="cwd"),
        pytest.param("cmd:{python} x", {}, "no placeholder {python}", id="python"),
        pytest.param("cmd:sh", {"/pr/x": ""}, "has a /pr already", id="folder-taken"),
        pytest.param("human", {}, "--crbench-reviewer-image is for programs", id="no-program-at-all"),
        pytest.param("file:{instance}", {}, "--crbench-reviewer-image is for programs", id="file"),
    ],
)
def test_what_cannot_run_is_told_before_any_work(
    place: Place, spec: str, config: dict[str, str], said: str
) -> None:
    def check(name: str) -> None:
        with pytest.raises(UsageError) as caught:
            load(spec, given(), place.enclosure(name))
        assert said in str(caught.value)
        assert place.containers() == []

    if config:
        with image(config) as name:
            check(name)
    else:
        check(BASE_IMAGE)


def test_an_image_that_is_not_here_is_pulled_and_then_pinned(place: Place) -> None:
    with registry(packed({"/bin/tool": "a tool without a system"})) as (name, asked):
        try:
            with pytest.raises(UsageError, match="the image has no `sleep`"):
                load("cmd:tool", given(), place.enclosure(name))
            assert any("/manifests/1" in path for path in asked)
            assert place.client.inspect_image(name)["Id"]
        finally:
            place.client.remove_image(name, force=True)
    with pytest.raises(UsageError, match="is not here and cannot be pulled") as caught:
        load("cmd:tool", given(), place.enclosure(name))
    assert "--crbench-reviewer-image" in str(caught.value)


def test_no_engine_is_told_before_any_work(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{place.folder}/none.sock")
    with pytest.raises(UsageError, match="no Docker engine answers") as caught:
        load("cmd:sh", given(), place.enclosure())
    assert "leave out --crbench-reviewer-image" in str(caught.value)


def test_a_name_that_moves_during_a_run_changes_nothing(place: Place) -> None:
    with image({"/usr/bin/mytool": "#!/bin/sh\necho '[]'\n"}) as first, image({}) as second:
        pinned = place.client.inspect_image(first)["Id"]
        repository, _, tag = first.partition(":")
        place.client.tag(first, f"{repository}-kept", tag)
        place.client.tag(second, repository, tag, force=True)
        try:
            reviewer = load("cmd:mytool", given(), place.enclosure(first, pinned=pinned))
            assert reviewer.fingerprint["image"]["id"] == pinned
            assert reviewer.review(place.project.task(place.folder / "run")).comments == ()
        finally:
            place.client.remove_image(f"{repository}-kept:{tag}", force=True)
