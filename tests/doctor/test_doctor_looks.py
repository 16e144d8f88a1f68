"""What each look of ``crbench doctor`` makes of servers, sockets and programs that misbehave for real."""

from __future__ import annotations

import os
import socket
import subprocess
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from unittest import mock

import pytest
from support.index_server import Index, serve
from support.openai_server import OpenAIServer

from pytest_crbench.agents.doctor import look_at_model
from pytest_crbench.core.finding import Finding, Level
from pytest_crbench.core.sandbox import SandboxSettings
from pytest_crbench.core.settings import Settings
from pytest_crbench.host.indexes import IndexSettings
from pytest_crbench.sandbox.doctor import Wanted, look_at_docker, look_at_local
from pytest_crbench.sources.doctor import look_at_indexes

if TYPE_CHECKING:
    from collections.abc import Iterator

BASE_IMAGE = "crbench-base:bookworm"


@contextmanager
def answering(answer: bytes) -> Iterator[int]:
    """A port that gives every connection the same answer."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve_all() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                connection.recv(4096)
                connection.sendall(answer)
                connection.close()

        thread = threading.Thread(target=serve_all, daemon=True)
        thread.start()
        try:
            yield server.getsockname()[1]
        finally:
            # Closing alone does not wake it, and its descriptor's number would soon be another socket's.
            server.shutdown(socket.SHUT_RDWR)
            thread.join(10)


def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


# Indexes


def asked(url: str, ca_bundle: Path | None = None) -> Finding:
    found = look_at_indexes(IndexSettings(url, (), ca_bundle))
    assert len(found) == 1, found
    return found[0]


def test_an_index_at_a_closed_port() -> None:
    found = asked(f"http://127.0.0.1:{closed_port()}/simple")
    assert found.level is Level.MISSING
    assert found.found.endswith("the connection was refused")
    assert found.advice.startswith("Check the index's address and port")


def test_an_index_whose_name_does_not_resolve() -> None:
    found = asked("https://user:hunter22@no-such-index.invalid/simple")
    assert found.level is Level.MISSING
    assert found.found.startswith("https://no-such-index.invalid/simple: its name does not resolve")
    assert "DNS settings" in found.advice


def test_an_index_with_a_certificate_of_an_unknown_authority(tmp_path: Path) -> None:
    key, cert = tmp_path / "key.pem", tmp_path / "cert.pem"
    make = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-days",
        "2",
        "-subj",
        "/CN=127.0.0.1",
    ]
    make += ["-keyout", str(key), "-out", str(cert), "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run(make, check=True, capture_output=True)
    with serve(Index(), certificate=(cert, key)) as served:
        served.add("pytest", "pytest-8.4.2.tar.gz", b"")
        unknown, known = asked(served.url), asked(served.url, cert)
        plain = asked(served.url.replace("https", "http"))
    assert unknown.level is Level.MISSING
    assert "its certificate is not trusted" in unknown.found
    assert unknown.advice.startswith("Name the CA bundle that knows it: --ca-bundle")
    assert known.level is Level.OK
    assert plain.level is Level.MISSING


def test_a_bundle_that_holds_no_certificate(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("no certificate\n")
    found = asked("https://127.0.0.1/simple", tmp_path / "ca.pem")
    assert found.name == "CA bundle"
    assert found.level is Level.MISSING


def test_an_index_that_wants_a_login() -> None:
    with serve(Index(credentials="user:right-password")) as served:
        served.add("pytest", "pytest-8.4.2.tar.gz", b"")
        refused = asked(served.url.replace("://", "://user:wrong-password@"))
        let_in = asked(served.url.replace("://", "://user:right-password@"))
    assert "HTTP 401, access refused" in refused.found
    assert refused.advice.startswith("Give user and password")
    assert "wrong-password" not in str(refused)
    assert let_in.level is Level.OK


def test_an_index_without_pytest_and_one_out_of_order() -> None:
    with serve(Index()) as served:
        assert "it has no pytest" in asked(served.url).found
        served.failures["/simple/pytest/"] = [(503, {})]
        assert asked(served.url).level is Level.WARNING


@pytest.mark.parametrize(
    ("status", "told"),
    [("403 Forbidden", "refuses to connect there"), ("407 Proxy", "wants a user and a password")],
)
def test_a_proxy_that_refuses(monkeypatch: pytest.MonkeyPatch, status: str, told: str) -> None:
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    with answering(f"HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n".encode()) as port:
        monkeypatch.setenv("https_proxy", f"http://user:hunter22@127.0.0.1:{port}")
        found = asked("https://index.invalid/simple")
    assert f"the proxy {told}" in found.found
    assert found.advice.startswith("Correct HTTPS_PROXY")
    assert "hunter22" not in str(found)


def test_a_proxy_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.setenv("https_proxy", f"http://127.0.0.1:{closed_port()}")
    found = asked("https://index.invalid/simple")
    assert found.found.endswith("the proxy does not answer (the connection was refused)")
    assert found.advice.startswith("Correct HTTPS_PROXY")


def test_a_clock_that_is_wrong() -> None:
    head = b"HTTP/1.1 200 OK\r\nDate: Sat, 01 Jan 2000 00:00:00 GMT\r\nContent-Length: 0\r\n\r\n"
    with answering(head) as port:
        found = look_at_indexes(IndexSettings(f"http://127.0.0.1:{port}/simple"))
    assert [f.name for f in found] == ["package index", "clock"]
    assert found[1].level is Level.WARNING
    assert found[1].found.endswith("minutes ahead of the package index")
    assert found[1].advice.startswith("Set the clock")


# Engine


def engine(tmp_path: Path, base_image: str = BASE_IMAGE, *, python: str = ">=3.8") -> list[Finding]:
    settings = SandboxSettings(tmp_path, "doctor-test", base_image)
    return look_at_docker(settings, Wanted((python,), 0), deep=False)


@pytest.mark.parametrize(
    ("host", "said", "advice"),
    [
        ("unix:///nonexistent/docker.sock", "the socket does not exist", "Install and start a Docker engine"),
        ("tcp://no-engine.invalid:2375", "its name does not resolve", "Correct DOCKER_HOST, or see to it"),
        ("nonsense", "nonsense: ", "Correct DOCKER_HOST: unix://PATH or tcp://HOST:PORT"),
    ],
)
def test_a_docker_host_that_leads_nowhere(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, host: str, said: str, advice: str
) -> None:
    monkeypatch.setenv("DOCKER_HOST", host)
    [found] = engine(tmp_path)
    assert found.level is Level.MISSING
    assert said in found.found
    assert found.advice.startswith(advice)


def test_a_socket_that_nobody_listens_on(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "sock"))
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path / 'sock'}")
    [found] = engine(tmp_path)
    assert found.found.endswith("the connection was refused")
    assert found.advice.startswith("Start the engine")


def test_an_engine_behind_tls_without_certificates(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"tcp://127.0.0.1:{closed_port()}")
    monkeypatch.setenv("DOCKER_TLS_VERIFY", "1")
    monkeypatch.setenv("DOCKER_CERT_PATH", str(tmp_path))
    [found] = engine(tmp_path)
    assert found.advice.startswith("Correct DOCKER_CERT_PATH")


@pytest.mark.docker
def test_base_images_that_will_not_do(tmp_path: Path) -> None:
    """Nothing is pulled, nothing written, and no container is left."""
    import docker

    good, newer, absent = (
        engine(tmp_path),
        engine(tmp_path, python=">=3.99"),
        engine(tmp_path, "no-such-registry.invalid/python:3"),
    )
    assert [f.level for f in good if f.name == "base image"] == [Level.OK]
    [found] = [f for f in newer if f.name == "base image"]
    assert found.level is Level.MISSING
    assert "but not >=3.99" in found.found
    assert "--base-image" in found.advice
    [found] = [f for f in absent if f.name == "base image"]
    assert found.level is Level.MISSING
    assert found.found.startswith("no-such-registry.invalid/python:3 is not here, and the registry")
    left = docker.APIClient(version="auto").containers(
        all=True, filters={"label": "crbench.session=doctor-test"}
    )
    assert left == []
    assert list(tmp_path.iterdir()) == []


# Local sandbox


def test_user_namespaces_that_are_not_allowed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A bwrap that fails as one does where the kernel forbids user namespaces."""
    program = tmp_path / "bwrap"
    program.write_text("#!/bin/sh\necho 'bwrap: setting up uid map: Permission denied' >&2\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    bubblewrap, interpreters = look_at_local([">=3.11", ">=3.99"])
    assert bubblewrap.level is Level.WARNING
    assert "user namespaces are not allowed" in bubblewrap.found
    assert bubblewrap.advice.startswith("Allow user namespaces (sysctl")
    assert interpreters.level is Level.WARNING
    assert interpreters.found.startswith("no Python >=3.99; found: 3.")
    assert look_at_local([">=3.99"])[1].level is Level.MISSING


# Model


def endpoint(url: str, model: str = "small", *, deep: bool = True) -> Finding:
    with mock.patch.dict(os.environ, {"CRBENCH_API_KEY": "sk-hush-hush-hush"}):
        return look_at_model(Settings(model=model, base_url=url), deep=deep)[-1]


def test_an_endpoint_is_asked_for_its_models_only_where_that_is_allowed() -> None:
    with OpenAIServer([], models=("small-1", "large")) as server:
        assert endpoint(server.base_url, deep=False).name == "model key"
        assert server.asked_for_models == 0
        assert endpoint(server.base_url, "small-1").level is Level.OK
        typo = endpoint(server.base_url, "smal-1")
        assert server.requests == []
    assert typo.level is Level.WARNING
    assert typo.advice == "Did you mean small-1?"


def test_endpoints_that_give_no_models() -> None:
    with OpenAIServer([]) as server:
        assert endpoint(server.base_url).level is Level.WARNING
    refused = b"HTTP/1.1 401 No\r\nContent-Type: application/json\r\nContent-Length: 39\r\n\r\n"
    with answering(refused + b'{"error": "bad key sk-hush-hush-hush"} ') as port:
        found = endpoint(f"http://127.0.0.1:{port}/v1")
    assert found.level is Level.MISSING
    assert found.advice == "Put a valid key into CRBENCH_API_KEY"
    assert "sk-hush" not in str(found)
    with answering(b"HTTP/1.1 200 OK\r\nContent-Length: 15\r\n\r\n<html>sign in..") as port:
        assert endpoint(f"http://127.0.0.1:{port}/v1").level is Level.WARNING
    assert endpoint(f"http://127.0.0.1:{closed_port()}/v1").level is Level.MISSING
