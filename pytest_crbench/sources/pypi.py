"""The ``pypi`` source: archives of a package index, by file name and SHA-256, unpacked and never run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core.errors import InfraError, InvalidInstanceError
from ..core.model import Artifact, Trees
from ..host import digest
from ..text import plainjson
from ..text.printable import printable
from ..text.urls import origin, redact
from .archives import unpack

if TYPE_CHECKING:
    from pathlib import Path

    from pypi_simple import DistributionPackage, ProjectPage

    from ..core.model import Source, Tree
    from ..host.indexes import IndexSettings
    from .http import Client
    from .writer import Cache, TreeWriter

#: Part of the key of every tree: raise it when unpacking changes what a tree holds.
_FORMAT = 1


def trees(source: Source, cache: Cache, index: IndexSettings, *, fixed: bool) -> Trees:
    """Return the unpacked archives of a ``pypi`` source.

    Raises:
        InfraError: index unreachable, archive not on it, disk full, or not in the cache while offline.
        InvalidInstanceError: another digest, or an archive that is damaged or unsafe.
    """
    assert source.package is not None
    sides = [source.base, source.head, *([source.fixed] if fixed else [])]
    made = [_tree(source.package, side, cache, index) for side in sides if isinstance(side, Artifact)]
    return Trees(made[0], made[1], made[2] if fixed else None)


def _tree(package: str, artifact: Artifact, cache: Cache, index: IndexSettings) -> Tree:
    kind = "wheel" if artifact.file.endswith(".whl") else "sdist"

    def make(writer: TreeWriter) -> None:
        unpack(archive(package, artifact, cache, index), writer)

    return cache.tree(digest.of(["pypi", _FORMAT, kind, artifact.sha256]), artifact.file, make)


def archive(package: str, artifact: Artifact, cache: Cache, index: IndexSettings) -> Path:
    """Return the path of a verified archive in the cache, downloading it if it is not there.

    Raises:
        InfraError: as `trees`.
        InvalidInstanceError: if index or content say another digest than the instance.
    """
    path = cache.root / "archives" / artifact.sha256 / artifact.file
    with cache.lock(f"archive-{artifact.sha256[:32]}", artifact.file):
        cache.use("archives", artifact.sha256)
        if path.is_file():
            if digest.of_file(path) == artifact.sha256:
                return path
            cache.log(f"{artifact.file}: the cached archive was changed; it is fetched again")
            path.unlink()
        if cache.offline:
            raise InfraError(
                f"{artifact.file} is not in the cache {cache.root}, and the network is not to be used. Run "
                "once with the network.",
                reason="offline",
            )
        _download(package, artifact, path, cache, index)
    return path


def _download(package: str, artifact: Artifact, path: Path, cache: Cache, index: IndexSettings) -> None:
    from .http import Client

    with Client(index.ca_bundle, cache.log) as client:
        url = find_archive(package, artifact, client, index)
        cache.log(f"downloading {artifact.file}")
        temporary = path.with_name(f".{artifact.file}.part")  # ours alone: the lock is held
        try:
            temporary.parent.mkdir(parents=True, exist_ok=True)
            with temporary.open("wb") as stream:
                there = client.download(url, stream)
            if not there:
                raise InfraError(
                    f"{redact(url)}: the index lists {artifact.file}, but its server has no such file. "
                    "Run again later, or choose another index (PIP_INDEX_URL).",
                    reason="not-on-index",
                )
            found = digest.of_file(temporary)
            if found != artifact.sha256:
                raise _differs(artifact, found, f"what {redact(url)} sent")
            temporary.replace(path)
        except OSError as error:
            raise InfraError(
                f"cannot write {path}: {error.strerror or error}. Free some space or choose another folder "
                "with --crbench-cache.",
                reason="disk",
            ) from error
        finally:
            temporary.unlink(missing_ok=True)


def find_archive(package: str, artifact: Artifact, client: Client, index: IndexSettings) -> str:
    """Return the URL of the archive on the first index that lists it with the right digest (or none)."""
    problems: list[InfraError | InvalidInstanceError] = []
    for url in index.urls():
        try:
            listed = _listed(package, artifact.file, client, url)
        except InfraError as error:  # another index may have it
            problems.append(error)
            continue
        if listed is None:
            continue
        claimed = (listed.digests or {}).get("sha256", artifact.sha256).lower()
        if claimed == artifact.sha256:
            return _address(listed.url, url)
        problems.append(_differs(artifact, claimed, f"what {redact(url)} lists"))
    if problems:
        raise problems[0]
    asked = ", ".join(redact(url) for url in index.urls())
    raise InfraError(
        f"{artifact.file} of the package {package} is not on {asked}. Name an index that has it "
        "(PIP_INDEX_URL, PIP_EXTRA_INDEX_URL); if it was removed everywhere, the instance cannot be run.",
        reason="not-on-index",
    )


def _address(listed: str, index: str) -> str:
    """Return the address of a file, if it can be asked at all."""
    try:
        host = listed.startswith(("https://", "http://")) and origin(listed)[1]
    except ValueError:
        host = ""
    if host and listed.isprintable() and " " not in listed:
        return listed
    raise InfraError(
        f"{redact(index)}: it lists a file at {printable(redact(listed), 100)!r}, which is no address of the "
        "web. Check PIP_INDEX_URL.",
        reason="unreadable-index",
    )


def _listed(package: str, file: str, client: Client, url: str) -> DistributionPackage | None:
    from packaging.utils import canonicalize_name
    from pypi_simple import ACCEPT_JSON_PREFERRED

    address = f"{url.rstrip('/')}/{canonicalize_name(package)}/"
    page = client.page(address, ACCEPT_JSON_PREFERRED)
    if page is None:
        return None
    listing = _parse(package, page.content_type, page.body, page.url)
    return next((found for found in listing.packages if found.filename == file), None)


def _parse(package: str, content_type: str, body: bytes, url: str) -> ProjectPage:
    from email.message import Message

    from bs4.exceptions import ParserRejectedMarkup
    from pypi_simple import ProjectPage, UnsupportedRepoVersionError

    about = Message()
    about["content-type"] = content_type
    kind, charset = about.get_content_type(), about.get_content_charset()
    try:
        if kind == "application/vnd.pypi.simple.v1+json":
            return ProjectPage.from_json_data(plainjson.parse(body), url)
        if kind in ("application/vnd.pypi.simple.v1+html", "text/html"):
            return ProjectPage.from_html(package, body, url, charset)
    except (
        ValueError,
        LookupError,
        RecursionError,
        ParserRejectedMarkup,
        UnsupportedRepoVersionError,
    ) as error:
        found = f"a page that cannot be read ({type(error).__name__})"
    else:
        found = f"a page of the type {printable(kind, 60)}"
    raise InfraError(
        f"{redact(url)}: found {found}, expected a project page (PEP 503 or PEP 691). Check PIP_INDEX_URL.",
        reason="unreadable-index",
    )


def _differs(artifact: Artifact, found: str, where: str) -> InvalidInstanceError:
    return InvalidInstanceError(
        f"{artifact.file}: sha256 {found} is {where}, but the instance names {artifact.sha256}. Nothing was "
        "unpacked; correct the [source] of the instance, or distrust the index.",
        reason="digest",
    )
