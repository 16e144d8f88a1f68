"""A reviewer or an agent looks for answers and keys on the machine.

The naive harness starts a container as they are often started: as root, with the vendor's folder and the
engine's socket mounted, the host's variables passed on, and the hidden tests in the tree.
"""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import docker
import pytest
from support.images import BASE_IMAGE, gateway_of_the_bridge, packed
from support.reach import INSTANCE, KEYS, Place, Savanna

from pytest_crbench.host.digest import of_tree
from pytest_crbench.sandbox.engine import run
from pytest_crbench.text.printable import decode

pytestmark = pytest.mark.docker
PROCESSES = (
    "env; for f in /proc/[0-9]*/environ /proc/[0-9]*/cmdline; do tr '\\0' '\\n' < $f; echo; done 2>/dev/null"
)
CONNECT = """
python3 - <<'END'
import socket
for address in {addresses!r}:
    try:
        socket.create_connection(address, timeout=3).close()
        print("reached", address)
    except OSError as error:
        print("failed", error)
END
"""


@pytest.fixture(scope="module")
def naive(savanna: Savanna) -> Iterator[Place]:
    client = docker.APIClient(version="auto")
    mounts = [f"{savanna.vendor}:{savanna.vendor}", "/var/run/docker.sock:/var/run/docker.sock"]
    container = client.create_container(
        BASE_IMAGE,
        ["sleep", "600"],
        hostname=INSTANCE,
        name=f"{INSTANCE}-{savanna.session}",
        labels={"instance": INSTANCE},
        environment=dict.fromkeys(KEYS, f"sk-{savanna.marks['key']}") | {"BENCHMARK": "crbench"},
        volumes=[str(savanna.vendor), "/var/run/docker.sock"],
        host_config=client.create_host_config(init=True, binds=mounts),
    )["Id"]
    try:
        test = (savanna.data / INSTANCE / "test_price.py").read_text()
        fixed = f"# {savanna.marks['fixed']}\n"
        client.put_archive(container, "/", packed({"workspace/test_price.py": test, "fixed/shop.py": fixed}))
        client.start(container)

        def look(script: str) -> str:
            done = run(client, container, ["sh", "-c", script], deadline=60, output=1024**2, user="0")
            return decode(done.stdout + done.stderr)

        yield Place("naive", look)
    finally:
        client.remove_container(container, force=True, v=True)
        client.close()


def assert_out_of_sight(what: str, place: Place, naive: Place, savanna: Savanna) -> None:
    assert what in savanna.found(naive.once(savanna.scan))
    text = place.once(savanna.scan)
    assert savanna.marks["head"] in text, f"the scan does not work: {text}"
    assert savanna.found(text) == set(), text


def test_the_hidden_test_lies_somewhere(place: Place, naive: Place, savanna: Savanna) -> None:
    """The hidden test is looked for by its words in every file that can be read.

    Defence: a container that holds one folder (sandbox/enclosure.py)
    Defence: containers without mounts (sandbox/docker.py)
    Defence: folders of the sandbox and the system only (sandbox/bubblewrap.py)
    Holds: docker, local
    """
    assert_out_of_sight("hidden", place, naive, savanna)


def test_the_fixed_tree_lies_somewhere(place: Place, naive: Place, savanna: Savanna) -> None:
    """The fixed state is in the cache, where validation put it; a program that sees it has only to copy.

    Defence: a container that holds one folder (sandbox/enclosure.py)
    Defence: containers without mounts (sandbox/docker.py)
    Defence: folders of the sandbox and the system only (sandbox/bubblewrap.py)
    Holds: docker, local
    """
    assert_out_of_sight("fixed", place, naive, savanna)


def test_other_instances_lie_beside_this_one(place: Place, naive: Place, savanna: Savanna) -> None:
    """The dataset's folder holds the tests of all instances, for one that asks today and answers tomorrow.

    Defence: a container that holds one folder (sandbox/enclosure.py)
    Defence: containers without mounts (sandbox/docker.py)
    Defence: folders of the sandbox and the system only (sandbox/bubblewrap.py)
    Holds: docker, local
    """
    assert_out_of_sight("other", place, naive, savanna)


def test_what_the_human_reviewers_said_lies_somewhere(place: Place, naive: Place, savanna: Savanna) -> None:
    """The comments behind the hidden tests are the model answer; saying them again is the perfect review.

    Defence: a container that holds one folder (sandbox/enclosure.py)
    Defence: containers without mounts (sandbox/docker.py)
    Defence: folders of the sandbox and the system only (sandbox/bubblewrap.py)
    Holds: docker, local
    """
    assert_out_of_sight("comment", place, naive, savanna)


def test_logs_of_earlier_verdicts_can_be_read(place: Place, naive: Place, savanna: Savanna) -> None:
    """The run directory keeps what hidden tests printed when they failed: what they want to see.

    Defence: a container that holds one folder (sandbox/enclosure.py)
    Defence: containers without mounts (sandbox/docker.py)
    Defence: folders of the sandbox and the system only (sandbox/bubblewrap.py)
    Holds: docker, local
    """
    assert_out_of_sight("verdict", place, naive, savanna)


def test_files_of_the_host_can_be_read(place: Place, naive: Place, savanna: Savanna) -> None:
    """A file is asked for by its path on the host: in the vendor's repository, in a home, in /etc.

    Defence: a container that holds one folder (sandbox/enclosure.py)
    Defence: containers without mounts (sandbox/docker.py)
    Defence: folders of the sandbox and the system only (sandbox/bubblewrap.py)
    Holds: docker, local
    """
    script = f"cat {savanna.vendor}/notes.txt /etc/shadow /etc/hostname; ls {savanna.vendor} {Path.home()}"
    assert "host" in savanna.found(naive.look(script))
    text = place.look(script)
    assert savanna.found(text) == set()
    assert "notes.txt" not in text.replace(f"{savanna.vendor}/notes.txt", "")
    assert socket.gethostname() not in text
    assert ":99999:" not in text  # no line of a shadow file


def test_results_and_cache_are_written_to(place: Place, naive: Place, savanna: Savanna) -> None:
    """A program that can write into the run directory, the dataset or the cache can write its own verdicts.

    Defence: a container that holds one folder (sandbox/enclosure.py)
    Defence: containers without mounts (sandbox/docker.py)
    Defence: folders of the sandbox and the system only (sandbox/bubblewrap.py)
    Holds: docker, local
    """
    targets = [savanna.run, savanna.data, savanna.vendor, savanna.cache, savanna.cache / "shared"]
    script = "".join(f"mkdir -p {t}; echo forged > {t}/forged-{savanna.session}\n" for t in targets)
    naive.look(script)
    forged = [path for t in targets if (path := t / f"forged-{savanna.session}").exists()]
    assert savanna.run / f"forged-{savanna.session}" in forged
    for path in forged:
        path.unlink()
    before = of_tree(savanna.data)
    place.look(script)
    assert [t for t in targets if (t / f"forged-{savanna.session}").exists()] == []
    assert of_tree(savanna.data) == before


def test_the_engines_socket_gives_the_whole_machine(place: Place, naive: Place, savanna: Savanna) -> None:
    """Whoever reaches the engine's socket starts a container that mounts the host's root.

    Defence: a container that holds one folder (sandbox/enclosure.py)
    Defence: containers without mounts (sandbox/docker.py)
    Defence: folders of the sandbox and the system only (sandbox/bubblewrap.py)
    Holds: docker, local
    """
    script = """
python3 - <<'END'
import socket
for path in ("/var/run/docker.sock", "/run/docker.sock", "/host/docker.sock", "/host/run/docker.sock"):
    try:
        s = socket.socket(socket.AF_UNIX); s.connect(path)
        s.sendall(b"GET /version HTTP/1.0\\r\\n\\r\\n"); print(s.recv(4096))
    except OSError as error:
        print("failed", error)
END
ls -d /var/run/docker.sock /run/docker.sock /run/containerd
"""
    assert "ApiVersion" in naive.look(script)
    text = place.look(script)
    assert "ApiVersion" not in text
    assert text.count("failed") == 4, text


def test_keys_are_in_the_environment(place: Place, naive: Place, savanna: Savanna) -> None:
    """Keys of models, indexes and clouds are variables of the host, and of each process that inherits them.

    Defence: variables by name only (reviewers/command.py, sandbox/container.py, sandbox/bubblewrap.py)
    Holds: docker, local
    """
    assert all(os.environ[name].endswith(savanna.marks["key"]) for name in KEYS)
    assert "key" in savanna.found(naive.look(PROCESSES))
    text = place.look(PROCESSES)
    assert "PATH=" in text
    assert "key" not in savanna.found(text)
    assert not any(name in text for name in KEYS)


def test_names_tell_which_instance_it_is(place: Place, naive: Place, savanna: Savanna) -> None:
    """Host name, variables, command lines, mounts and folders are asked for the instance, or for a benchmark.

    Defence: names that tell nothing (reviewers/command.py, host/processes.py)
    Defence: options out of the command line (sandbox/bubblewrap.py)
    Holds: docker, local
    """
    script = f"hostname; cat /etc/hosts; pwd; ls -la / .. . ~; {PROCESSES}"
    seen = naive.look(script)
    assert INSTANCE in seen
    assert "crbench" in seen
    text = place.look(script)
    for word in (INSTANCE, "quagga", "savanna", "crbench", str(savanna.cache), savanna.session[:12] + "x"):
        assert word not in text.lower(), word
    assert INSTANCE not in place.look("cat /proc/self/mountinfo /proc/self/cgroup")


def test_labels_and_images_tell_which_instance_it_is(naive: Place, savanna: Savanna) -> None:
    """What an engine says of a container and its image reaches whoever has a way to ask; it names nothing.

    Defence: labels of the owner only (sandbox/build.py)
    Holds: docker
    """
    client = docker.APIClient(version="auto")
    try:
        (careless,) = client.containers(filters={"label": f"instance={INSTANCE}"})
        assert INSTANCE in json.dumps(client.inspect_container(careless["Id"]))
        evaluator = savanna.evaluator("docker")
        mine = {"label": f"crbench.session={savanna.session}"}
        before = {one["Id"] for one in client.containers(filters=mine)}
        with evaluator.at(savanna.instance).agent_task().sandbox():
            (ours,) = (one for one in client.containers(filters=mine) if one["Id"] not in before)
            said = client.inspect_container(ours["Id"])
        image = client.inspect_image(said["Image"])
        history = client.history(said["Image"])
    finally:
        client.close()
    text = json.dumps([said, image, history])
    for word in (INSTANCE, "savanna", str(savanna.cache), str(savanna.vendor), *savanna.marks.values()):
        assert word not in text, word


@contextmanager
def listener() -> Iterator[int]:
    """A service on all addresses of this machine; gives its port."""
    with socket.create_server(("0.0.0.0", 0)) as server:
        server.settimeout(0.2)
        ended = threading.Event()

        def serve() -> None:
            while not ended.is_set():
                try:
                    server.accept()[0].close()
                except TimeoutError:
                    continue

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield server.getsockname()[1]
        finally:
            ended.set()
            thread.join()


def test_services_of_the_host_can_be_reached(place: Place, naive: Place, savanna: Savanna) -> None:
    """A helper on the host, or one that the vendor runs there, answers on the bridge's or the loop's address.

    Defence: a reviewer's container without network (sandbox/enclosure.py)
    Defence: a sandbox without network (sandbox/docker.py)
    Defence: namespaces of its own (sandbox/bubblewrap.py)
    Holds: docker, local
    """
    gateway = gateway_of_the_bridge()
    with listener() as port:
        script = CONNECT.format(addresses=[(gateway, port), ("127.0.0.1", port)])
        assert "reached" in naive.look(script)
        text = place.look(script)
    assert text.count("failed") == 2, text
    assert "reached" not in text


def test_the_network_brings_the_answer(place: Place, naive: Place, savanna: Savanna) -> None:
    """With a route out, a program fetches upstream's later commits, asks a model, or the cloud's metadata.

    Defence: a reviewer's container without network (sandbox/enclosure.py)
    Defence: a sandbox without network (sandbox/docker.py)
    Defence: namespaces of its own (sandbox/bubblewrap.py)
    Holds: docker, local
    """
    script = "cat /proc/net/route; ls /sys/class/net 2>/dev/null; cut -d: -f1 /proc/net/dev"
    assert "eth0" in naive.look(script)
    words = set(place.look(script).split())
    assert "lo" in words
    assert not any(word.startswith(("eth", "en", "wl", "veth", "docker", "br-")) for word in words), words
    out = [("169.254.169.254", 80), ("1.1.1.1", 53), ("pypi.org", 443)]
    assert place.look(CONNECT.format(addresses=out)).count("failed") == 3


def test_root_in_the_container_is_root_on_the_host(place: Place, naive: Place, savanna: Savanna) -> None:
    """With root or its capabilities, a program mounts devices, makes nodes, traces what runs beside it.

    Defence: nobody without capabilities (sandbox/enclosure.py, sandbox/docker.py, sandbox/bubblewrap.py)
    Holds: docker, local
    """
    script = (
        "id -u; grep -E '^(Cap(Eff|Bnd)|NoNewPrivs)' /proc/self/status; mknod /tmp/node b 8 0 && echo made"
    )
    seen = naive.look(script).split()
    assert seen[0] == "0"
    uid, *said = place.look(script).split()
    told = dict(zip(said[0::2], said[1::2], strict=False))
    assert int(uid) != 0
    assert int(told["CapEff:"], 16) == 0
    assert int(told["CapBnd:"], 16) == 0
    assert told["NoNewPrivs:"] == "1"
    assert "made" not in said


def test_a_review_that_is_a_link_reads_a_file_of_the_host(savanna: Savanna, tmp_path: Path) -> None:
    """The reviewer leaves a link in place of its review; a harness that follows it publishes what it names.

    Defence: a review is a regular file (sandbox/enclosure.py, sandbox/transfer.py)
    Holds: docker
    """
    from pytest_crbench.core.errors import ReviewerError
    from pytest_crbench.run import programs

    target = savanna.vendor / "notes.txt"
    (tmp_path / "review").symlink_to(target)
    assert savanna.marks["host"] in (tmp_path / "review").read_text()
    spec = f"cmd:sh -c 'ln -s {target} {{out}}'"
    settings = savanna.settings(reviewer=spec, reviewer_image=BASE_IMAGE)
    reviewer = programs.make_reviewer(settings, session=savanna.session)
    evaluation = savanna.evaluator("local", reviewer).at(savanna.instance, 2001)
    with pytest.raises(ReviewerError) as caught:
        _ = evaluation.review
    assert caught.value.reason == "unreadable"
    assert not any(
        savanna.marks["host"].encode() in path.read_bytes()
        for path in evaluation.directory.rglob("*")
        if path.is_file()
    )
