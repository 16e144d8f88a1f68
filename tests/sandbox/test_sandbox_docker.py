"""What holds for containers and images only."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import subprocess
import sys
import tarfile
import threading
import time
import uuid
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from support.images import packed

from pytest_crbench.core.errors import InfraError
from pytest_crbench.core.model import Environment, File, Tree
from pytest_crbench.core.sandbox import Limits
from pytest_crbench.host.indexes import IndexSettings
from pytest_crbench.host.processes import SESSION_VARIABLE
from pytest_crbench.sandbox import image
from pytest_crbench.sandbox.choose import choose
from pytest_crbench.sandbox.clean import clean
from pytest_crbench.sandbox.docker import DockerBackend
from pytest_crbench.sandbox.engine import connect

if TYPE_CHECKING:
    import io
    from collections.abc import Iterator
    from pathlib import Path

    from docker import APIClient

    from pytest_crbench.core.sandbox import SandboxSettings

pytestmark = [pytest.mark.docker, pytest.mark.network]


@pytest.fixture(scope="module")
def client() -> Iterator[APIClient]:
    made = connect()
    yield made
    made.close()


def running(client: APIClient, session: str) -> list[dict[str, Any]]:
    return list(client.containers(all=True, filters={"label": f"crbench.session={session}"}))


def test_containers_have_only_what_they_need(docker_kit: Any, client: APIClient) -> None:
    with docker_kit.open(Limits(memory=300 * 2**20, cpus=1.5, pids=77, lifetime=99)) as box:
        who = box.exec(
            ["sh", "-c", "id -u; grep Cap /proc/self/status; kill -TERM 1; kill -KILL -1"], timeout=9
        )
        [container] = running(client, docker_kit.settings.session)
        said = client.inspect_container(container["Id"])
    host = said["HostConfig"]
    assert host["CapDrop"] == ["ALL"]
    assert not host["CapAdd"]
    assert not host["Privileged"]
    assert not host["Binds"]
    assert host["SecurityOpt"] == ["no-new-privileges"]
    assert host["NetworkMode"] == "none"
    assert host["Init"] is True
    # A restart after a time-out would race with the engine's own removal; closing and reaping remove it.
    assert host["AutoRemove"] is False
    assert host["Memory"] == host["MemorySwap"] == 300 * 2**20
    assert host["NanoCpus"] == 1.5e9
    assert host["PidsLimit"] == 77
    uid, *capabilities = who.stdout.decode().splitlines()
    assert int(uid) > 0
    # What it could ever get (bounding set) included: none.
    assert {line.split()[1] for line in capabilities} == {"0" * 16}
    # The first process is another user's: what runs in a sandbox cannot end it.
    assert b"not permitted" in who.stderr
    assert said["State"]["Running"]
    assert said["Config"]["Labels"]["crbench"] == "1"
    assert said["Config"]["Cmd"] == ["sleep", "99"]
    assert running(client, docker_kit.settings.session) == []


def test_a_container_killed_from_outside_is_no_result(docker_kit: Any, client: APIClient) -> None:
    """A dead sandbox was once logged as a success (inspect#4709)."""
    with docker_kit.open() as box:
        [container] = running(client, docker_kit.settings.session)
        threading.Timer(1.0, lambda: client.kill(container["Id"])).start()
        with pytest.raises(InfraError, match=r"outside|gone"):
            box.exec(["sleep", "30"], timeout=60)
        with pytest.raises(InfraError):
            box.exec(["true"], timeout=20)
        with pytest.raises(InfraError):
            box.get(box.workdir + "/run.sh")


def test_a_command_that_uses_up_all_processes_and_dies_is_a_result(docker_kit: Any) -> None:
    program = (
        "import os, signal, time\n"
        "while True:\n"
        "    try:\n"
        "        child = os.fork()\n"
        "    except OSError:\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "    if not child:\n"
        "        os.setsid()\n"
        "        time.sleep(600)\n"
    )
    with docker_kit.open(Limits(pids=40, lifetime=300)) as box:
        done = box.exec([box.python, "-c", program], timeout=60)
        assert (done.returncode, done.timed_out, done.oom_killed) == (137, False, False)
        assert box.exec(["echo", "here"], timeout=20).stdout == b"here\n"


def test_a_container_removed_from_outside_is_no_result(docker_kit: Any, client: APIClient) -> None:
    with docker_kit.open() as box:
        [container] = running(client, docker_kit.settings.session)
        client.remove_container(container["Id"], force=True)
        for use in (
            lambda: box.exec(["true"], timeout=20),
            lambda: box.put([], box.scratch),
            lambda: box.get(box.workdir + "/run.sh"),
        ):
            with pytest.raises(InfraError):
                use()


def test_a_silent_engine_is_no_result(
    docker_kit: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import docker

    with docker_kit.open() as box:
        nowhere = docker.APIClient(base_url=f"unix://{tmp_path}/none.sock", version="1.41", timeout=5)
        monkeypatch.setattr(box, "client", nowhere)
        with pytest.raises(InfraError, match="engine"):
            box.exec(["true"], timeout=20)
        monkeypatch.undo()


def test_ends_a_command_that_the_inner_limit_does_not_end(
    docker_kit: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The outer deadline: as if ``timeout`` inside had been stopped."""
    from pytest_crbench.sandbox import container

    monkeypatch.setattr(container, "OUTER", 1.0)
    with docker_kit.open() as box:
        began = time.monotonic()
        done = box.exec(["sh", "-c", "kill -STOP $PPID; echo out; sleep 60"], timeout=2)
        assert time.monotonic() - began < 45
        assert (done.returncode, done.timed_out, done.stdout) == (None, True, b"out\n")
        assert box.exec(["echo", "alive"], timeout=20).stdout == b"alive\n"


def test_without_the_timeout_program_python_stands_in(docker_kit: Any) -> None:
    environment = replace(
        docker_kit.environment, handle=replace(docker_kit.environment.handle, has_timeout=False)
    )
    with docker_kit.backend.open(environment, docker_kit.tree, limits=Limits(lifetime=200)) as box:
        assert box.exec(["sh", "-c", "exit 7"], timeout=20).returncode == 7
        done = box.exec(["sleep", "60"], timeout=1)
        assert done.timed_out
        assert done.returncode is None


def test_containers_of_a_dead_owner_are_reaped_and_others_are_not(docker_kit: Any, client: APIClient) -> None:
    """SIGKILL leaves no time to clean up; the next start does it."""
    session = secrets.token_hex(8)
    settings = docker_kit.settings
    script = (
        "import os,signal\n"
        "from pathlib import Path\n"
        "from pytest_crbench.core.model import Tree\n"
        "from pytest_crbench.sandbox.choose import choose\n"
        "from pytest_crbench.core.sandbox import *\n"
        "from pytest_crbench.core.sandbox import SandboxSettings\n"
        "from pytest_crbench.sandbox.image import Built\n"
        f"s=SandboxSettings(cache=Path({str(settings.cache)!r}),session={session!r})\n"
        f"b=choose('docker',s)\ne=EnvironmentRef({docker_kit.environment.digest!r},'3',(),{docker_kit.environment.handle!r})\n"
        f"c=b.open(e,Tree(Path({str(docker_kit.tree.path)!r}),{docker_kit.tree.digest!r}),limits=Limits(lifetime=200))\n"
        "c.__enter__();os.kill(os.getpid(),signal.SIGKILL)\n"
    )
    with docker_kit.open():
        killed = subprocess.run([sys.executable, "-c", script], check=False, capture_output=True, timeout=60)
        assert killed.returncode == -9, killed.stderr
        assert len(running(client, session)) == 1
        docker_kit.backend.reap(None)
        assert running(client, session) == []
        assert len(running(client, settings.session)) == 1


def test_a_session_can_be_reaped_by_name(docker_kit: Any, client: APIClient) -> None:
    session = secrets.token_hex(8)
    backend = DockerBackend(client, replace(docker_kit.settings, session=session))
    with backend.open(docker_kit.environment, docker_kit.tree, limits=Limits(lifetime=200)):
        assert backend.reap(session) == 1
        assert running(client, session) == []


def test_an_image_that_was_removed_is_built_again(docker_kit: Any, client: APIClient, tmp_path: Path) -> None:
    from pytest_crbench.host import digest

    (tmp_path / "only").write_text(uuid.uuid4().hex)
    tree = Tree(tmp_path, digest.of_tree(tmp_path))
    for _ in range(2):
        with docker_kit.backend.open(docker_kit.environment, tree, limits=Limits(lifetime=60)) as box:
            assert box.get(box.workdir + "/only") == (tmp_path / "only").read_bytes()
            [container] = running(client, docker_kit.settings.session)
            tag = client.inspect_container(container["Id"])["Config"]["Image"]
        client.remove_image(tag)


# Building


def test_two_processes_build_one_environment_once(docker_kit: Any, client: APIClient, tmp_path: Path) -> None:
    """Both want it at the same moment; the loser of the lock waits and uses what the winner built."""
    settings = docker_kit.settings
    script = (
        "import sys\nfrom pathlib import Path\n"
        "from pytest_crbench.core.model import Environment\n"
        "from pytest_crbench.sandbox.choose import choose\n"
        "from pytest_crbench.core.sandbox import *\nfrom pytest_crbench.host.indexes import *\n"
        f"s=SandboxSettings(cache=Path({str(tmp_path)!r}),session='x',base_image={settings.base_image!r},"
        "log=lambda line: print(line, flush=True))\n"
        "e=choose('docker',settings_from_environment(s)).environment("
        "Environment(requirements=('six','toml'),as_of='2023-02-03'))\nprint('DIGEST',e.digest)\n"
    )
    both = [
        subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(2)
    ]
    said = [process.communicate(timeout=180) for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    lines = [line for out, _err in said for line in out.decode().splitlines()]
    digests = {line for line in lines if line.startswith("DIGEST")}
    assert len(digests) == 1
    tag = f"crbench-env:{digests.pop().split()[1]}"
    built = [line for line in lines if line.startswith("building environment image")]
    assert len(built) == 1, lines
    assert any("waiting for another worker" in line for line in lines), lines
    client.remove_image(tag)


def test_index_credentials_and_ca_bundle_are_in_no_image(
    docker_kit: Any, client: APIClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Build through an index URL with a password, then look through every byte of the image."""
    password = f"pw{secrets.token_hex(12)}"
    log: list[str] = []
    index = IndexSettings(docker_kit.settings.index_url).urls()[0]
    settings = replace(
        docker_kit.settings,
        cache=tmp_path / "cache",
        index_url=index.replace("://", f"://someone:{password}@", 1),
        log=log.append,
    )
    marker = f"# bundle {secrets.token_hex(8)}\n".encode()
    assert settings.ca_bundle is not None, "this test wants a CA bundle in SSL_CERT_FILE"
    bundle = tmp_path / "bundle.pem"
    bundle.write_bytes(marker + settings.ca_bundle.read_bytes())
    settings = replace(settings, ca_bundle=bundle)
    # A date of its own, so that the pins (and so the image) are this test's.
    wanted = Environment(requirements=("six",), as_of="2021-02-03")
    environment = DockerBackend(client, settings).environment(wanted)
    tag = environment.handle.tag
    try:
        assert "six==1.15.0" in environment.pins
        haystacks = {
            "history": json.dumps(client.history(tag)).encode(),
            "config": json.dumps(client.inspect_image(tag)).encode(),
            "log": "\n".join(log).encode(),
        }
        for file in (tmp_path / "cache").rglob("*"):
            if file.is_file() and "uv" not in file.relative_to(tmp_path / "cache").parts:
                haystacks[str(file)] = file.read_bytes()
        for needle in (password.encode(), marker):
            for place, data in haystacks.items():
                assert needle not in data, place
            assert not _image_holds(client, tag, needle)
    finally:
        client.remove_image(tag)


def _image_holds(client: APIClient, tag: str, needle: bytes) -> bool:
    with (tar_file := _saved(client, tag)), tarfile.open(fileobj=tar_file) as image:
        layers = 0
        for member in image:
            if not member.isreg():
                continue
            source = image.extractfile(member)
            assert source is not None
            if not member.name.endswith("layer.tar"):
                if needle in source.read():
                    return True
                continue
            layers += 1
            if member.size > 120 * 2**20:  # the base image's own layer was made before
                continue
            if needle in source.read():
                return True
        assert layers >= 3
    return False


def _saved(client: APIClient, tag: str) -> io.BufferedRandom:
    import tempfile

    stream: Any = tempfile.TemporaryFile()  # noqa: SIM115  (the caller closes it)
    for chunk in client.get_image(tag):
        stream.write(chunk)
    stream.seek(0)
    return stream


def test_an_installation_that_fails_says_what_pip_said(
    docker_kit: Any, client: APIClient, tmp_path: Path
) -> None:
    from pytest_crbench.sandbox import image

    base = image.find_base(client, docker_kit.settings, ">=3.11")
    with pytest.raises(InfraError, match="No matching distribution") as caught:
        image.build_environment(client, docker_kit.settings, base, ("six==0.0.1",), "f" * 64)
    assert caught.value.reason == "install"
    assert image.find_image(client, f"crbench-env:{'f' * 64}") is None
    assert running(client, docker_kit.settings.session) == []


def test_a_base_image_that_cannot_be_had_names_the_option(docker_kit: Any, client: APIClient) -> None:
    settings = replace(docker_kit.settings, base_image="no-such-image.invalid/x:{python}", build_timeout=20.0)
    with pytest.raises(InfraError, match="--crbench-base-image") as caught:
        DockerBackend(client, settings).environment(Environment(python=">=3.12"))
    assert "no-such-image.invalid/x:3.12" in str(caught.value)


def test_a_base_image_with_another_python_is_refused(docker_kit: Any, client: APIClient) -> None:
    with pytest.raises(InfraError, match=r"has Python 3\.\d+\.\d+, but the environment asks for >=3\.15"):
        DockerBackend(client, docker_kit.settings).environment(Environment(python=">=3.15"))


def test_an_editable_installation_is_a_link_to_the_tree_and_changes_nothing_there(
    docker_kit: Any, tmp_path: Path
) -> None:
    """What an installation leaves in the tree would look like an agent's work."""
    from pytest_crbench.host import digest

    root = tmp_path / "tree"
    (root / "src" / "edited").mkdir(parents=True)
    (root / "src" / "edited" / "__init__.py").write_text("VALUE = 1\n")
    (root / "pyproject.toml").write_text(
        '[build-system]\nrequires = ["setuptools>=64"]\nbuild-backend = "setuptools.build_meta"\n'
        '[project]\nname = "edited"\nversion = "4.5.6"\n'
    )
    tree = Tree(root, digest.of_tree(root))
    environment = docker_kit.backend.environment(
        Environment(requirements=("markupsafe",), as_of="2024-06-01", install="editable")
    )
    assert environment.digest != docker_kit.environment.digest
    with docker_kit.backend.open(environment, tree, limits=Limits(lifetime=100)) as box:
        box.put([File("src/edited/__init__.py", b"VALUE = 2\n")], box.workdir)
        look = "import edited,importlib.metadata as m;print(edited.VALUE,edited.__file__,m.version('edited'))"
        done = box.exec([box.python, "-I", "-B", "-c", look], timeout=20, cwd="/")
        assert done.stdout == b"2 /workspace/src/edited/__init__.py 4.5.6\n", done
        box.put([File("src/edited/__init__.py", b"VALUE = 1\n")], box.workdir)
        box.export(tmp_path / "out")
    assert digest.of_tree(tmp_path / "out") == tree.digest


@pytest.mark.parametrize(
    ("files", "version", "shown"),
    [
        ({"setup.py": "from setuptools import setup\n"
          "setup(name='edited', version='4.5.6', py_modules=['edited'])\n"},
         "", b"4.5.6\n"),
        ({"pyproject.toml": '[build-system]\nrequires = ["setuptools>=64", "setuptools-scm>=8"]\n'
          'build-backend = "setuptools.build_meta"\n[project]\nname = "edited"\ndynamic = ["version"]\n'
          "[tool.setuptools_scm]\n"}, "7.8", b"7.8\n"),
    ],
)  # fmt: skip
def test_an_editable_installation_has_metadata(
    docker_kit: Any, tmp_path: Path, files: dict[str, str], version: str, shown: bytes
) -> None:
    from pytest_crbench.host import digest

    for name, text in {**files, "edited.py": ""}.items():
        (tmp_path / name).write_text(text)
    tree = Tree(tmp_path, digest.of_tree(tmp_path))
    environment = docker_kit.backend.environment(Environment(install="editable", version=version))
    with docker_kit.backend.open(environment, tree, limits=Limits(lifetime=100)) as box:
        look = "import importlib.metadata as m; print(m.version('edited'))"
        done = box.exec([box.python, "-I", "-B", "-c", look], timeout=20, cwd="/")
        assert done.stdout == shown, done


def test_a_build_that_fails_shows_the_end_of_its_log(docker_kit: Any, tmp_path: Path) -> None:
    from pytest_crbench.host import digest

    noise = "print('noise\\n' * 2000)\n"
    (tmp_path / "setup.py").write_text(
        noise + "raise RuntimeError('no compiler for https://me:pass@host/x')\n"
    )
    environment = docker_kit.backend.environment(Environment(install="editable"))
    tree = Tree(tmp_path, digest.of_tree(tmp_path))
    with (
        pytest.raises(InfraError) as caught,
        docker_kit.backend.open(environment, tree, limits=Limits(lifetime=100)),
    ):
        pass
    said = str(caught.value)[:800]  # what results keep
    assert "RuntimeError: no compiler for https://" in said
    assert "me:pass" not in said
    assert "Check the network" not in said


# Choosing and cleaning


def test_auto_takes_docker_where_an_engine_answers(sandbox_settings: SandboxSettings) -> None:
    assert choose("auto", sandbox_settings).name == "docker"


def test_clean_removes_what_is_nobodys(docker_kit: Any, client: APIClient, tmp_path: Path) -> None:
    """Another invocation's container lives on; one whose owner ended is removed."""
    settings = replace(docker_kit.settings, cache=tmp_path)
    dead = client.create_container(
        docker_kit.environment.handle.tag,
        ["sleep", "100"],
        labels={"crbench": "1", "crbench.owner": f"{os.uname().nodename}:999999999:1"},
    )["Id"]
    with docker_kit.open() as box:
        cleaned = clean(settings, images=False)
        assert cleaned.containers >= 1
        assert box.exec(["true"], timeout=20).returncode == 0
    assert dead not in [c["Id"] for c in client.containers(all=True)]


def test_children_carry_no_session_variable_of_the_host(docker_kit: Any) -> None:
    with docker_kit.open() as box:
        assert SESSION_VARIABLE.encode() not in box.exec(["env"], timeout=20).stdout


def test_an_image_of_another_platform_is_told_as_one(docker_kit: Any, client: APIClient) -> None:
    """Nothing of it runs: the kernel says "exec format error", the engine that the container has ended."""
    foreign = "s390x" if client.version()["Arch"] != "s390x" else "amd64"
    # The header of a program for a processor that is not this one.
    program = b"\x7fELF\x02\x02\x01" + bytes(9) + b"\x00\x02\x00\x16" + bytes(100)
    name = f"test-{uuid.uuid4().hex[:12]}:latest"
    layer = packed({f"/usr/bin/{p}": program.decode("latin-1") for p in ("sleep", "python3", "sh")})
    about = {
        "architecture": foreign,
        "os": "linux",
        "config": {},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"]},
    }
    parts = [{"Config": "config.json", "RepoTags": [name], "Layers": ["layer.tar"]}]
    saved = {"config.json": json.dumps(about), "manifest.json": json.dumps(parts)}
    client.load_image(packed({**saved, "layer.tar": layer.decode("latin-1")}, encoding="latin-1"))
    try:
        settings = replace(docker_kit.settings, base_image=name)
        with pytest.raises(InfraError, match=rf"is for linux/{foreign}, .*exec format error"):
            image.have_base(client, settings, name)
    finally:
        client.remove_image(name, force=True)
