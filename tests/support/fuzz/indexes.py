# ruff: noqa: E501, PTH
"""What package indexes answer, URLs, and what uv and interpreters print."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pytest_crbench.core.errors import InfraError, InvalidInstanceError, UsageError
from pytest_crbench.core.model import Artifact
from pytest_crbench.host.indexes import IndexSettings
from pytest_crbench.host.unreachable import seconds_asked
from pytest_crbench.sandbox.interpreters import Interpreter, minor_for, parse_probe, satisfies
from pytest_crbench.sandbox.pins import read_pins
from pytest_crbench.sources import pypi
from pytest_crbench.sources.http import Page
from pytest_crbench.text import urls
from pytest_crbench.text.secrets import in_text

from .shapes import altered, anything, json_text, mutated, sometimes, table
from .source import NASTY, Source, either, listed, one_of, text
from .target import Target, refused

_FILE = Artifact("a-1.tar.gz", "0" * 64)


def targets() -> list[Target]:
    """All that is read while packages are looked for."""
    return [
        Target("index-json", lambda s: ("application/vnd.pypi.simple.v1+json", _json(s)), _find, cost=2),
        Target("index-html", _html_page, _find, cost=2),
        Target("retry-after", _header, _seconds),
        Target("url", _url, _take_apart),
        Target("uv-output", _pins, _read_pins),
        Target("interpreter-probe", either(json_text(_probe), json_text(anything), text_bytes), _read_probe),
        Target("python-specifier", _specifier, _compare),
    ]


def text_bytes(source: Source) -> bytes:
    """A text as bytes."""
    return text(source).encode("utf-8", "surrogatepass")


_ADDRESS = one_of(
    *(
        "https://h/a-1.tar.gz",
        "a-1.tar.gz",
        "http://[",
        "https://h:99999/x",
        "ftp://h/x",
        "//h",
        "file:///etc/passwd",
    ),
    *(
        "http://a@b@c/",
        "",
        "https://\u2100.example/",
        "https://h/\0",
        "http://h:x/",
        "javascript:1",
        "http://h\n/",
        "http:///x",
    ),
)


def _json(source: Source) -> bytes:
    file = table(
        {
            "filename": one_of("a-1.tar.gz", "a-1-py3-none-any.whl", "x"), "url": _ADDRESS,
            "hashes": table({"sha256": one_of("0" * 64, "1" * 64, "X")}, 20), "requires-python": one_of(">=3", "x"),
            "yanked": one_of(False, True, "why"), "size": one_of(1, -1), "upload-time": one_of("2024-01-01T00:00:00Z", "x"),
        },
        20,
    )  # fmt: skip
    page = table(
        {
            "meta": table({"api-version": one_of("1.0", "1.9", "2.0", "x")}, 20), "name": one_of("a"),
            "files": listed(sometimes(file, 20), 3), "versions": listed(text, 2),
        },
        20,
    )  # fmt: skip
    return bytes(json_text(either(page, page, altered([page(Source(b""))]), anything))(source))


def _html_page(source: Source) -> Any:
    parts = (
        *(
            '<a href="',
            "a-1.tar.gz",
            '#sha256="',
            '#sha256=0">',
            "</a>",
            "<html>",
            "<body>",
            "<!DOCTYPE html>",
            "<![CDATA[",
        ),
        *(
            "<![",
            "<!",
            "<?",
            "&#x110000;",
            "&amp;",
            "<base href='http://['>",
            '<meta name="pypi:repository-version" content="9">',
        ),
        *(
            "<div>" * 3000,
            '<a data-yanked data-requires-python="&gt;3">',
            "-->",
            "<!--",
            "\0",
            "<script>",
            "]]>",
            "<a " * 300,
        ),
        *NASTY,
    )
    body = "".join(source.pick(parts) for _ in range(source.below(14))).encode("utf-8", "surrogatepass")
    if source.chance(4):
        body = bytes(mutated([_HTML])(source))
    charset = source.pick(
        [
            "",
            "; charset=utf-8",
            "; charset=utf-16",
            "; charset=rot13",
            "; charset=\xff",
            "; charset=idna",
            ";;;",
            "; charset*=x''y",
        ]
    )
    kind = source.pick(["text/html", "application/vnd.pypi.simple.v1+html", "text/plain", "", "x/y/z"])
    return kind + charset, body


_HTML = b'<!DOCTYPE html><html><head><meta charset="utf-8"></head><body><a href="a-1.tar.gz#sha256=00">a-1.tar.gz</a></body></html>'


class _Index:
    """A client whose server answers with one page."""

    def __init__(self, page: Page) -> None:
        self._page = page

    def page(self, _url: str, _accept: str) -> Page:
        return self._page


def _find(answer: tuple[str, bytes], _folder: Path) -> None:
    """A page is refused, or it names an address that can be asked, or none."""
    client: Any = _Index(Page(*answer, "https://h/simple/a/"))
    with refused(InfraError, InvalidInstanceError):
        url = pypi.find_archive("a", _FILE, client, IndexSettings("https://h/simple"))
        assert url.startswith(("http://", "https://"))
        assert urls.origin(url)[1]
        urls.split_credentials(url)
        urls.redact(url).encode()


def _header(source: Source) -> str:
    parts = (
        "1",
        "2.5",
        "-",
        "²",
        "Fri, ",
        "31 Dec ",
        "1999 ",
        "23:59:59 ",
        "GMT",
        "9" * 30,
        "9" * 400,
        "inf",
        "nan",
        "1e999",
        " ",
        "+9999",
        "Feb",
        "99:99:99",
        "0000",
    )
    return "".join(source.pick((*parts, *NASTY)) for _ in range(source.below(6)))


def _seconds(value: str, _folder: Path) -> None:
    found = seconds_asked(value)
    assert found is None or 0 <= found < float("inf")


def _url(source: Source) -> str:
    parts = (
        "http://",
        "https://",
        "user",
        ":",
        "pass",
        "@",
        "host",
        "/",
        "?",
        "#",
        "[",
        "]",
        "%40",
        "%",
        " ",
        "\n",
        "é",
        "\u2100",
        ":99999",
        "simple",
        "://",
        "'",
        "a" * 3000,
        "://" * 2000,
        "@" * 3000,
        "?" * 2000,
    )
    return "".join(source.pick(parts) for _ in range(source.below(12)))


def _take_apart(url: str, _folder: Path) -> None:
    """Whatever a URL is, it can be shown, and then it tells no secret."""
    shown = urls.redact(url)
    assert urls.redact(shown) == shown
    for secret in (*urls.secrets_in(url), *in_text(url)):
        assert secret
    if not urls.problem(url):
        urls.public(url), urls.split_credentials(url), urls.origin(url)
        for secret in urls.secrets_in(url):
            assert secret
        index = IndexSettings(url, (url,))
        index.public(), repr(index), index.redact(url)
        bare, login = urls.split_credentials(url)
        if login is not None:
            again = urls.with_credentials(bare, *login)
            assert urls.split_credentials(again)[1] == login or not any(login)
    with refused(UsageError):
        IndexSettings.from_environment(
            {"UV_INDEX": f"name={url} {url}", "UV_INDEX_NAME_PASSWORD": "x", "PIP_INDEX_URL": url}
        ).public()


def _pins(source: Source) -> bytes:
    parts = (
        "attrs==1",
        " # via x",
        "\n",
        " ; python_version < '3'",
        "-e .",
        "--hash=x",
        "\r\n",
        "\0",
        "\xff",
        "a @ file:///x",
        "==",
        "attrs==2\n",
        "-r x\n",
        "a b c\n",
    )
    return "".join(source.pick((*parts, *NASTY)) for _ in range(source.below(10))).encode(
        "utf-8", "surrogatepass"
    )


def _read_pins(raw: bytes, _folder: Path) -> None:
    with refused(InfraError):
        pins = read_pins(raw)
        assert list(pins) == sorted(pins)
        assert all(
            pin.isascii() and "==" in pin and not pin.startswith("-") and pin == pin.strip() for pin in pins
        )


def _probe(source: Source) -> Any:
    return table(
        {
            "version": one_of("3.11.2", "3.x", ""),
            "path": text,
            "prefix": text,
            "machine": text,
            "libc": text,
            "executable": text,
        },
        20,
    )(source)


def _read_probe(raw: bytes, _folder: Path) -> None:
    with refused(ValueError):
        found = parse_probe(raw.decode(errors="replace"))
        assert isinstance(found, Interpreter)
        assert isinstance(found.platform, str)
        json.dumps([found.version, found.path, found.prefix]).encode()
        satisfies(found.version, ">=3.9")


def _specifier(source: Source) -> Any:
    parts = (
        ">=3.11",
        "==3.*",
        "!=3.12.1",
        "~=3.9",
        ",",
        "<",
        "===",
        "3",
        ".",
        "x",
        "9" * 300,
        " ",
        "!",
        "+local",
        ">=3.14a1",
    )
    return "".join(source.pick(parts) for _ in range(source.below(6))), source.pick(
        ["3.11.2", "3.14.0a1", "x", "3.12"]
    )


def _compare(value: Any, _folder: Path) -> None:
    specifier, version = value
    with refused(InvalidInstanceError, InfraError):
        assert minor_for(specifier).startswith("3.")
    with refused(InvalidInstanceError, InfraError):
        satisfies(version, specifier)
