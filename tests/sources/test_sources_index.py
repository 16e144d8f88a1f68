"""Archives from an index, over real HTTP: pages of both kinds, failures, credentials, digests."""

from __future__ import annotations

import email.utils
import hashlib
import time

import pytest
from support.archives import sdist
from support.index_server import Index, serve

from pytest_crbench.core.errors import InfraError, InvalidInstanceError
from pytest_crbench.core.model import Artifact, Source
from pytest_crbench.host.indexes import IndexSettings
from pytest_crbench.sources import fetch
from pytest_crbench.sources.http import Client, Patience

BASE = sdist(("demo-1/demo.py", b"a = 1\n"))
HEAD = sdist(("demo-2/demo.py", b"a = 2\n"))
PAGE = "/simple/demo-pkg/"
FILE = "/files/demo-pkg/demo-2.tar.gz"


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    """Only the pauses are shorter than a user's; proxies of the machine are not for a local server."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr("pytest_crbench.sources.http.Patience.pause", 0.01)
    monkeypatch.setattr(Patience.__init__, "__defaults__", (6, 300.0, 15.0, 60.0, 0.01))


@pytest.fixture
def index():
    with serve(Index()) as served:
        served.add("demo-pkg", "demo-1.tar.gz", BASE)
        served.add("demo-pkg", "demo-2.tar.gz", HEAD)
        yield served


def source(**changes):
    artifacts = {
        "base": Artifact("demo-1.tar.gz", hashlib.sha256(BASE).hexdigest()),
        "head": Artifact("demo-2.tar.gz", hashlib.sha256(HEAD).hexdigest()),
    }
    return Source("pypi", **{**artifacts, "package": "Demo_Pkg", **changes})


def get(index, tmp_path, url=None, log=None, **options):
    return fetch(
        options.pop("source", source()),
        cache=tmp_path / "cache",
        index=IndexSettings(url or index.url, options.pop("extra", ())),
        log=(log if log is not None else []).append,
        **options,
    )


@pytest.mark.parametrize("style", ["json", "html"])
@pytest.mark.parametrize("list_digests", [True, False])
def test_both_kinds_of_pages(index, tmp_path, style, list_digests):
    index.style, index.list_digests = style, list_digests
    trees = get(index, tmp_path)
    assert (trees.base.path / "demo.py").read_bytes() == b"a = 1\n"
    assert (trees.head.path / "demo.py").read_bytes() == b"a = 2\n"
    assert trees.fixed is None


def test_a_server_that_labels_archives_as_encoded(index, tmp_path):
    """The archive is the file as it is, not what its "encoding" would decode to."""
    index.labels_gzip = True
    assert (get(index, tmp_path).head.path / "demo.py").read_bytes() == b"a = 2\n"


def test_nothing_is_downloaded_twice_and_offline_works(index, tmp_path):
    log: list[str] = []
    first = get(index, tmp_path, log=log)
    assert log == ["downloading demo-1.tar.gz", "downloading demo-2.tar.gz"]
    asked = dict(index.requests)
    assert asked == {PAGE: 2, FILE: 1, "/files/demo-pkg/demo-1.tar.gz": 1}
    assert get(index, tmp_path) == first
    assert get(index, tmp_path, offline=True, verify=True) == first
    assert dict(index.requests) == asked


def test_offline_and_not_in_the_cache(index, tmp_path):
    with pytest.raises(
        InfraError, match=r"demo-1.tar.gz is not in the cache .* Run once with the network"
    ) as caught:
        get(index, tmp_path, offline=True)
    assert caught.value.reason == "offline"
    assert not index.requests


def test_busy_servers_are_asked_again(index, tmp_path):
    index.failures[PAGE] = [(429, {"Retry_After": "1"}), (503, {})]
    index.failures[FILE] = [(500, {}), (502, {}), (429, {})]
    log: list[str] = []
    began = time.monotonic()
    trees = get(index, tmp_path, log=log)
    assert time.monotonic() - began >= 1.0, "Retry-After is honoured"
    assert (trees.head.path / "demo.py").read_bytes() == b"a = 2\n"
    assert [line.split(": ")[1].split(";")[0] for line in log if "trying again" in line] == [
        "HTTP 429",
        "HTTP 503",
        "HTTP 500",
        "HTTP 502",
        "HTTP 429",
    ]


def test_retry_after_may_be_a_date(index, tmp_path):
    index.failures[PAGE] = [(503, {"Retry_After": email.utils.formatdate(time.time() + 2, usegmt=True)})]
    began = time.monotonic()
    get(index, tmp_path)
    assert 0.9 <= time.monotonic() - began < 10


def test_a_server_that_stays_busy(index, tmp_path):
    index.failures[PAGE] = [(503, {})] * 50
    with pytest.raises(InfraError, match=r"HTTP 503\. Gave up after 6 attempt.*PIP_INDEX_URL") as caught:
        get(index, tmp_path)
    assert caught.value.reason == "unreachable"
    assert index.requests[PAGE] == 6


def test_a_wait_that_is_longer_than_our_patience_is_not_begun(index, tmp_path):
    index.failures[PAGE] = [(429, {"Retry_After": "4000"})]
    began = time.monotonic()
    with pytest.raises(InfraError, match="asks to wait 4000 s"):
        get(index, tmp_path)
    assert time.monotonic() - began < 5


def test_a_server_that_is_not_there(tmp_path):
    with pytest.raises(
        InfraError, match=r"http://127.0.0.1:9/simple/demo-pkg/: ConnectionError .* then run again"
    ):
        get(None, tmp_path, url="http://127.0.0.1:9/simple")


def test_a_download_that_breaks_off_is_made_again(index, tmp_path):
    index.truncated["demo-2.tar.gz"] = 40
    log: list[str] = []
    trees = get(index, tmp_path, log=log)
    assert (trees.head.path / "demo.py").read_bytes() == b"a = 2\n"
    assert index.requests[FILE] == 2
    assert any("trying again" in line for line in log)


def test_a_slow_server_does_not_take_for_ever(index):
    index.failures[FILE] = [(503, {})] * 99
    with (
        Client(None, lambda _line: None, Patience(attempts=99, total=1.0, pause=0.2)) as client,
        pytest.raises(InfraError, match="Gave up"),
    ):
        began = time.monotonic()
        client.page(index.url.replace("/simple", FILE), "text/html")
    assert time.monotonic() - began < 3


def test_more_bytes_than_allowed(index):
    with Client(None, lambda _line: None) as client, pytest.raises(InfraError, match="more than 10 bytes"):
        client.page(f"{index.url}/demo-pkg/", "text/html", limit=10)


def test_another_digest_on_the_index(index, tmp_path):
    wrong = source(head=Artifact("demo-2.tar.gz", "0" * 64))
    with pytest.raises(InvalidInstanceError) as caught:
        get(index, tmp_path, source=wrong)
    assert hashlib.sha256(HEAD).hexdigest() in str(caught.value)
    assert "0" * 64 in str(caught.value)
    assert caught.value.reason == "digest"
    assert FILE not in index.requests


def test_another_content_than_promised(index, tmp_path):
    """An index that lists no digests sends something else: nothing of it is kept."""
    index.list_digests = False
    wanted = source()
    index.files["demo-pkg"]["demo-2.tar.gz"] = BASE
    with pytest.raises(InvalidInstanceError) as caught:
        get(index, tmp_path, source=wanted)
    assert hashlib.sha256(BASE).hexdigest() in str(caught.value)
    assert hashlib.sha256(HEAD).hexdigest() in str(caught.value)
    kept = [p for p in (tmp_path / "cache" / "archives").rglob("*") if p.is_file()]
    assert [p.name for p in kept] == ["demo-1.tar.gz"]


def test_a_file_that_no_index_has(index, tmp_path):
    with pytest.raises(
        InfraError, match=r"demo-3.tar.gz of the package Demo_Pkg is not on http://127"
    ) as caught:
        get(index, tmp_path, source=source(base=Artifact("demo-3.tar.gz", "0" * 64)))
    assert caught.value.reason == "not-on-index"
    with pytest.raises(InfraError, match="is not on"):
        get(index, tmp_path, source=source(package="unknown"))


def test_an_extra_index_has_it(index, tmp_path):
    with serve(Index()) as first:
        first.add("demo-pkg", "demo-1.tar.gz", b"somebody else's archive of the same name")
        trees = get(index, tmp_path, url=first.url, extra=(index.url,))
        assert first.requests[PAGE] == 2
    assert (trees.base.path / "demo.py").read_bytes() == b"a = 1\n"


def test_an_index_that_is_down_does_not_hide_another(index, tmp_path):
    trees = get(index, tmp_path, url="http://127.0.0.1:9/simple", extra=(index.url,))
    assert (trees.base.path / "demo.py").read_bytes() == b"a = 1\n"


def test_a_page_that_is_none(index, tmp_path):
    index.style = "application/pdf"
    with pytest.raises(
        InfraError, match=r"found a page of the type application/pdf, expected a project page"
    ):
        get(index, tmp_path)
    index.style = "application/vnd.pypi.simple.v1+json; x=1"
    with pytest.raises(InfraError, match=r"found a page that cannot be read"):
        get(index, tmp_path)


SECRET = "s3cret/with@odd:signs"
QUOTED = "s3cret%2Fwith%40odd%3Asigns"


@pytest.mark.parametrize("style", ["json", "html"])
def test_credentials_of_the_index_are_used_for_pages_and_files(index, tmp_path, style):
    index.style, index.credentials = style, f"vendorbot:{SECRET}"
    log: list[str] = []
    get(index, tmp_path, url=index.url.replace("//", f"//vendorbot:{QUOTED}@"), log=log)
    assert all(sent is not None for _, sent in index.authorizations)
    assert not any("s3cret" in line or "vendorbot" in line for line in log)


def test_credentials_do_not_go_to_another_host(index, tmp_path, monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")
    port = index.url.split(":")[2].split("/")[0]
    index.file_host = f"http://localhost:{port}"
    get(index, tmp_path, url=index.url.replace("//", "//user:pass@"))
    sent = {path.split("/")[1]: header is not None for path, header in index.authorizations}
    assert sent == {"simple": True, "files": False}


def test_credentials_of_netrc(index, tmp_path, monkeypatch):
    index.credentials = "netuser:netpass"
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login netuser password netpass\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    assert get(index, tmp_path).base.path.is_dir()


@pytest.mark.parametrize("trouble", ["refused", "busy", "down", "digest", "absent"])
def test_no_error_or_log_line_shows_credentials(index, tmp_path, trouble):
    url = index.url.replace("//", f"//vendorbot:{QUOTED}@")
    wanted = source()
    if trouble == "refused":
        index.credentials = "vendorbot:another"
    elif trouble == "busy":
        index.failures[PAGE] = [(503, {})] * 50
    elif trouble == "down":
        url = f"http://vendorbot:{QUOTED}@127.0.0.1:9/simple"
    elif trouble == "digest":
        wanted = source(base=Artifact("demo-1.tar.gz", "1" * 64))
    else:
        wanted = source(base=Artifact("demo-9.tar.gz", "1" * 64))
    log: list[str] = []
    with pytest.raises((InfraError, InvalidInstanceError)) as caught:
        get(index, tmp_path, url=url, log=log, source=wanted)
    chain = [caught.value, caught.value.__cause__]
    for text in [*log, *(repr(e) for e in chain), *(str(e) for e in chain)]:
        assert "s3cret" not in text
        assert "vendorbot" not in text
    if trouble == "refused":
        assert "HTTP 401, access refused" in str(caught.value)
        assert "netrc" in str(caught.value)
    settings = IndexSettings(url, (url,))
    assert "s3cret" not in repr(settings)


def test_a_ca_bundle_that_does_not_exist(index, tmp_path):
    with pytest.raises(InfraError, match=r"the CA bundle .*absent.pem does not exist; correct PIP_CERT"):
        fetch(
            source(), cache=tmp_path / "c", index=IndexSettings(index.url, ca_bundle=tmp_path / "absent.pem")
        )


def test_no_fixed_side(index, tmp_path):
    with pytest.raises(InvalidInstanceError, match="has no `fixed`"):
        get(index, tmp_path, fixed=True)
    both = source(fixed=source().head)
    trees = get(index, tmp_path, source=both, fixed=True)
    assert trees.fixed == trees.head
