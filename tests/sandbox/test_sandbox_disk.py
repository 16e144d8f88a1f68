"""The disk budget over images, and full disks, on an engine of the tests' own."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import time
import uuid
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import docker
import pytest
from support.benchmarks import environment
from support.engines import Engine, engine

from pytest_crbench.core.errors import InfraError
from pytest_crbench.core.model import Environment, Tree
from pytest_crbench.core.sandbox import Limits, SandboxSettings
from pytest_crbench.host import digest
from pytest_crbench.host.eviction import Uses
from pytest_crbench.sandbox.disk import evict_to, image_items
from pytest_crbench.sandbox.docker import DockerBackend
from pytest_crbench.sandbox.engine import connect
from pytest_crbench.sandbox.image import Built, build_tree

if TYPE_CHECKING:
    from collections.abc import Iterator

    from docker import APIClient

MB = 1024**2
OURS = "LABEL crbench=1"
WANTED = Environment(requirements=("markupsafe",), as_of="2024-06-01")
pytestmark = pytest.mark.docker
ROOT_ONLY = pytest.mark.skipif(os.geteuid() != 0, reason="an engine of its own takes root")


def add(client: APIClient, tag: str, *, below: str = "", size: int = MB, label: str = OURS) -> None:
    """An image that holds random bytes, on top of another one or of nothing."""
    content = BytesIO()
    text = f"FROM {below or 'scratch'}\n{label}\nCOPY bytes /{tag.replace(':', '-')}\n"
    with tarfile.open(fileobj=content, mode="w") as tar:
        for name, data in (("Dockerfile", text.encode()), ("bytes", os.urandom(size))):
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, BytesIO(data))
    content.seek(0)
    for line in client.build(fileobj=content, custom_context=True, tag=tag, decode=True, rm=True):
        assert "error" not in line, line


def used(cache: Path, tag: str, age: float) -> None:
    uses = Uses(cache)
    uses.touch("images", tag)
    [stamp] = [p for p in (cache / "used" / "images").iterdir() if p.name == tag.replace(":", "-")]
    os.utime(stamp, (time.time() - age,) * 2)


def tags(client: APIClient) -> set[str]:
    return {tag for image in client.images() for tag in image.get("RepoTags") or ()}


@pytest.fixture(scope="module")
def own() -> Iterator[Engine]:
    with engine() as started:
        yield started


@pytest.fixture
def client(own: Engine) -> Iterator[APIClient]:
    made = docker.APIClient(base_url=own.url, version="auto")
    yield made
    for container in made.containers(all=True):
        made.remove_container(container["Id"], force=True)
    for tag in tags(made):
        made.remove_image(tag, force=True)
    made.close()


@ROOT_ONLY
def test_images_go_by_their_last_use_but_not_those_in_use(client: APIClient, tmp_path: Path) -> None:
    """On somebody's base image ours: a user's, two environments, two trees on the one, one on the other."""
    add(client, "base:1", label="LABEL whose=theirs")
    add(client, "crbench-user:u", below="base:1")
    for name in ("1", "2"):
        add(client, f"crbench-env:{name}", below="crbench-user:u", size=2 * MB)
    for name, below, age in (("a", "1", 500), ("b", "1", 300), ("c", "2", 400)):
        add(client, f"crbench-tree:{name}", below=f"crbench-env:{below}")
        used(tmp_path, f"crbench-tree:{name}", age)
    for tag in ("crbench-user:u", "crbench-env:1", "crbench-env:2"):
        used(tmp_path, tag, 1000)
    settings = SandboxSettings(tmp_path, session="ours")

    def kept(keep: int = 0) -> set[str]:
        evict_to(client, settings, keep)
        return {tag.removeprefix("crbench-") for tag in tags(client)}

    # What they share counts once, and for the one below.
    sizes = {item.name: round(item.size / MB) for item in image_items(client, settings)}
    assert sizes == {
        "crbench-user:u": 1, "crbench-env:1": 2, "crbench-env:2": 2,
        "crbench-tree:a": 1, "crbench-tree:b": 1, "crbench-tree:c": 1,
    }  # fmt: skip

    # Another run began 450 seconds ago: what was used since then is its own.
    end_of_other, end_of_ours = Uses(tmp_path).begin("other"), Uses(tmp_path).begin("ours")
    os.utime(tmp_path / "used" / "runs" / "other.json", (time.time() - 450,) * 2)
    everything = {"base:1", "user:u", "env:1", "env:2", "tree:b", "tree:c"}
    assert kept() == everything
    end_of_other()

    # Containers, and names that somebody gave, keep an image with all that it was made from.
    container = client.create_container("crbench-tree:b", ["sleep"])
    client.tag("crbench-tree:c", "kept-by-hand", "1")
    assert kept() == everything | {"kept-by-hand:1"}
    client.remove_container(container["Id"])
    client.remove_image("kept-by-hand:1")

    # Of our own run's what was used just now stays; the rest would be built again.
    used(tmp_path, "crbench-tree:c", 0)
    assert kept() == {"base:1", "user:u", "env:2", "tree:c"}
    end_of_ours()

    # The least that is needed goes; never what is not ours.
    settings = replace(settings, session="")
    assert kept(int(3.5 * MB)) == {"base:1", "user:u", "env:2"}
    assert kept() == {"base:1"}


@ROOT_ONLY
def test_clean_keeps_as_much_as_it_is_told(own: Engine, client: APIClient, tmp_path: Path) -> None:
    for name, age in (("a", 500), ("b", 300)):
        add(client, f"crbench-tree:{name}")
        used(tmp_path, f"crbench-tree:{name}", age)
    old = tmp_path / "trees" / "old"
    old.mkdir(parents=True)
    (old / "file").write_bytes(b"x" * MB)
    os.utime(old, (time.time() - 2000,) * 2)

    def clean(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "pytest_crbench.cli", "clean", f"--cache={tmp_path}", *arguments]
        env = {**environment(), "DOCKER_HOST": own.url}
        return subprocess.run(command, capture_output=True, text=True, env=env, timeout=60, check=False)

    done = clean("--keep=1500k")
    assert done.returncode == 0, done.stderr
    assert "removed 1 image and 1 cache entry, 2.0 MB in all; 1.0 MB are left" in done.stdout
    assert tags(client) == {"crbench-tree:b"}
    assert not old.exists()
    wrong = clean("--keep=lots")
    assert wrong.returncode == 2
    assert "--keep=lots: expected a size" in wrong.stderr
    assert clean("--keep=1g", "--all").returncode == 2


@ROOT_ONLY
def test_a_full_engine_makes_room_once_and_says_what_to_do_if_that_is_not_enough(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    said: list[str] = []
    settings = SandboxSettings(tmp_path / "cache", session="ours", log=said.append)
    with engine(size="110M") as small:
        client = docker.APIClient(base_url=small.url, version="auto")
        add(client, "crbench-env:e")
        add(client, "crbench-tree:old", below="crbench-env:e", size=30 * MB)
        used(settings.cache, "crbench-tree:old", 300)
        for name, size in (("fits", 30 * MB), ("too-large", 60 * MB)):
            (tmp_path / "tree" / "file").write_bytes(os.urandom(size))
            tree = Tree(tmp_path / "tree", digest.of_tree(tmp_path / "tree"))
            built = Built("crbench-env:e", 1000, True)
            if name == "fits":
                tag = build_tree(client, settings, built, tree)
                assert tags(client) == {"crbench-env:e", tag}
                assert any("the disk is full: removed 1 image" in line for line in said)
            else:
                with pytest.raises(
                    InfraError, match=r"the engine's disk is full\. Free some space"
                ) as failed:
                    build_tree(client, settings, built, tree)
                assert failed.value.reason == "disk"
        client.close()


def test_an_environment_whose_image_is_gone_is_had_again(docker_kit: Any, tmp_path: Path) -> None:
    """Another process's eviction, or a clean-up, may take it from under a run that knows it."""
    backend = DockerBackend(connect(), docker_kit.settings)
    ref = backend.environment(WANTED)
    lost = replace(ref, handle=replace(ref.handle, tag="crbench-env:no-longer-there"))
    backend.environments[WANTED] = lost
    (tmp_path / "only").write_text(uuid.uuid4().hex)
    tree = Tree(tmp_path, digest.of_tree(tmp_path))
    with backend.open(lost, tree, limits=Limits(lifetime=60)) as box:
        assert box.get(box.workdir + "/only") == (tmp_path / "only").read_bytes()
    assert backend.environment(WANTED) == ref
