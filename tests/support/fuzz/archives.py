# ruff: noqa: PTH118, PTH114
"""Archives of package indexes, tar streams out of containers, and trees of git repositories."""

from __future__ import annotations

import gzip
import io
import os
import shutil
import tarfile
import zipfile
from pathlib import Path

from pytest_crbench.core.errors import InfraError, InvalidInstanceError
from pytest_crbench.host.trees import discard
from pytest_crbench.sandbox.archive import only_file, read_stream, unpack
from pytest_crbench.sources.archives import unpack as unpack_archive
from pytest_crbench.sources.writer import Bounds, TreeWriter

from .source import Source
from .target import Target, refused

_BOUNDS = Bounds(entries=200, size=200_000)
_NAMES = (
    "a",
    "b",
    "p/a",
    "p/b",
    "p/c/d",
    "p",
    "../x",
    "/etc/x",
    "p/../../x",
    "p/./a",
    "p//a",
    "",
    ".",
    "p/.git/config",
    "p/.GIT/x",
)
_ODD = (
    "p/" + "x" * 300,
    "p/" + "d/" * 2100,
    "p/\udcff",
    "p/\n",
    "p/é",
    "p/a/b",
    "q/a",
    "p/link/x",
    "p/" + "x" * 120,
    "p/ ",
    "p\\a",
)
_LINKS = (
    "a",
    "b",
    "..",
    "../..",
    "/etc/passwd",
    "../../x",
    ".",
    "link",
    "p/a",
    "x" * 5000,
    "",
    "c/../../../x",
    "\udcff",
)


def targets() -> list[Target]:
    """Unpacking what nobody of ours has packed."""
    return [
        Target("sdist", _sdist, _unpack_sdist, cost=3),
        Target("zip", _zip, _unpack_zip, cost=3),
        Target("sandbox-tar", _tar, _unpack_tar, cost=3),
        Target("sandbox-file", _tar, _read_file),
    ]


def _name(source: Source) -> str:
    return source.pick(_ODD if source.chance(4) else _NAMES)


def _members(source: Source) -> bytes:
    """A tar archive, made as an archive may be made: any type, any name, any size that it says."""
    out = io.BytesIO()
    kinds = (
        tarfile.REGTYPE,
        tarfile.DIRTYPE,
        tarfile.SYMTYPE,
        tarfile.LNKTYPE,
        tarfile.FIFOTYPE,
        tarfile.CHRTYPE,
        b"S",
        b"x",
        b"L",
        b"Z",
    )
    form = source.pick([tarfile.PAX_FORMAT, tarfile.GNU_FORMAT, tarfile.USTAR_FORMAT])
    for _ in range(source.below(7)):
        info = tarfile.TarInfo(_name(source))
        info.type = source.pick(kinds[: 10 if source.chance(4) else 4])
        info.linkname = source.pick(_LINKS)
        info.mode = source.pick([0o644, 0o755, 0, 0o7777])
        content = source.octets(source.below(40))
        info.size = len(content)
        if source.chance(12):
            info.size = source.pick([-1, -512, -(2**40), 2**33, 10**9, 700])
        if source.chance(8):
            keys = (
                "size",
                "path",
                "linkpath",
                "GNU.sparse.size",
                "GNU.sparse.major",
                "GNU.sparse.map",
                "mtime",
            )
            values = ("-512", "1", "999999999999", "x", "0,1", "../x", "1e999", "9" * 5000, "")
            info.pax_headers = {source.pick(keys): source.pick(values) for _ in range(source.between(1, 3))}
        try:
            out.write(info.tobuf(form, "utf-8", "surrogateescape"))
        except (ValueError, UnicodeError, OverflowError):
            continue
        out.write(content + bytes(-len(content) % 512))
    return out.getvalue() + bytes(source.pick([1024, 0, 512, 3]))


def _broken(source: Source, raw: bytes) -> bytes:
    """Change up to three bytes, or cut the end off."""
    if not source.chance(3) or not raw:
        return raw
    data = bytearray(raw)
    for _ in range(source.between(1, 3)):
        data[source.below(len(data))] = source.below(256)
    return bytes(data[: source.below(len(data) + 1)] if source.chance(4) else data)


def _sdist(source: Source) -> bytes:
    raw = _broken(source, _members(source))
    packed = gzip.compress(raw, 1, mtime=0)
    return _broken(source, packed) if source.chance(3) else packed


def _tar(source: Source) -> bytes:
    return _broken(source, _members(source))


def _zip(source: Source) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as packed:
        for _ in range(source.below(6)):
            info = zipfile.ZipInfo(source.pick(["p/a", *_NAMES, *_ODD]).encode("utf-8", "replace").decode())
            info.external_attr = source.pick([0o100644, 0o100755, 0o120777, 0o40755, 0o10644, 0]) << 16
            info.compress_type = source.pick(
                [zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA]
            )
            content = bytes(300_000) if source.chance(20) else source.octets(source.below(30))
            if info.external_attr >> 28 == 0o12:
                content = source.pick(_LINKS).encode("utf-8", "surrogateescape")
            packed.writestr(info, content)
    return _broken(source, out.getvalue())


def _unpack_sdist(raw: bytes, folder: Path) -> None:
    _into_tree(raw, folder, "p-1.tar.gz")


def _unpack_zip(raw: bytes, folder: Path) -> None:
    for name in ("p-1.zip", "p-1-py3-none-any.whl"):
        _into_tree(raw, folder, name)


def _into_tree(raw: bytes, folder: Path, name: str) -> None:
    """An archive is refused as a whole, or every file of it lies in the tree."""
    archive, tree = folder / name, folder / "tree"
    archive.write_bytes(raw)
    discard(tree)
    tree.mkdir()
    writer = TreeWriter(tree, name, lambda _line: None, _BOUNDS)
    try:
        with refused(InvalidInstanceError):
            unpack_archive(archive, writer)
            writer.finish()
            _inside(tree, links=True)
    finally:
        archive.unlink()
        _untouched(folder, {"tree"})
        discard(tree)


def _unpack_tar(raw: bytes, folder: Path) -> None:
    tree = folder / "tree"
    shutil.rmtree(tree, ignore_errors=True)
    try:
        with refused(InfraError):
            unpack(read_stream(iter([raw[:700], raw[700:]]), 10**6), tree, _BOUNDS.size)
            _inside(tree, links=False)
    finally:
        _untouched(folder, {"tree"})
        shutil.rmtree(tree, ignore_errors=True)


def _read_file(raw: bytes, _folder: Path) -> None:
    with refused(InfraError):
        found = only_file(read_stream(iter([raw]), 10**6))
        assert found is None or len(found) <= len(raw)


def _inside(tree: Path, *, links: bool) -> None:
    size = 0
    root = os.path.realpath(tree)
    for here, names, files in os.walk(tree):
        for name in (*names, *files):
            place = os.path.join(here, name)
            assert not (name.lower() == ".git" if links else name == ".git" and here == str(tree)), place
            if links:
                assert (os.path.realpath(place) + os.sep).startswith(root + os.sep)
            if not os.path.islink(place) and name in files:
                size += os.lstat(place).st_size
    assert size <= _BOUNDS.size


def _untouched(folder: Path, known: set[str]) -> None:
    assert {entry.name for entry in folder.iterdir()} <= known, "something was written beside the tree"
