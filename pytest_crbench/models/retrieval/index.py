"""The index of a tree: made once per content of the tree and settings, and kept in the cache."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from ...core.errors import InfraError
from ...host import digest
from ...host.eviction import Uses
from ...host.files import locked, write_json
from ...host.trees import discard, stamp
from ...text import plainjson
from . import chunks as chunking
from . import syntax
from .chunks import Chunk

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from ...core.model import Tree

KIND = "indexes"
#: Raised when the files of an index change their form.
_FORMAT = 1


class Scorer(Protocol):
    """Gives every chunk a score for a query."""

    def scores(self, query: str) -> Any:
        """Return an array of one number per chunk, in order; larger is better.

        Raises:
            InfraError: if an endpoint fails.
        """


class Method(Protocol):
    """A way to rank chunks; ``identity`` (plain JSON) decides what is built; scores must exceed ``least``."""

    @property
    def identity(self) -> Mapping[str, Any]:
        """What decides the index, beside the tree."""

    @property
    def least(self) -> float:
        """The score of what is not found."""

    def build(self, texts: Sequence[str], folder: Path) -> None:
        """Write what is needed to score ``texts`` into ``folder``.

        Raises:
            InfraError: if an endpoint fails.
            OSError: if it cannot be written.
        """

    def load(self, folder: Path, count: int) -> Scorer:
        """Open what `build` wrote of ``count`` texts.

        Raises:
            OSError, ValueError: if it is not there, or damaged.
        """


@dataclass(frozen=True)
class Found:
    """A piece of a file: 1-based inclusive lines, their text, and the method's score (larger is better)."""

    path: str
    lines: tuple[int, int]
    text: str
    score: float


@dataclass(frozen=True)
class Index:
    """An index that is open. Threads may share it."""

    chunks: Sequence[Chunk]
    scorer: Scorer
    least: float
    files: int
    skipped: Sequence[tuple[str, str]]

    @property
    def notes(self) -> tuple[str, ...]:
        """What was not indexed, and why, in words."""
        # An empty file has nothing to be found, and a link's target is a file of its own.
        held = [(path, why) for path, why in self.skipped if why not in ("empty", "link")]
        left_out = chunking.told(held)
        return (f"not indexed: {left_out} of {self.files + len(self.skipped)} files",) if left_out else ()

    def find(self, query: str, count: int, without: tuple[str, tuple[int, int]] | None = None) -> list[Found]:
        """Return the ``count`` best chunks, best first; equal scores are in the order of paths and lines.

        ``without`` is a path and lines: a chunk that lies wholly within them is not returned.

        Raises:
            InfraError: if an endpoint fails.
        """
        if not self.chunks or count < 1:
            return []
        import numpy

        scores = self.scorer.scores(query)
        found: list[Found] = []
        # Stable: chunks are in the order of paths and lines.
        for at in numpy.argsort(-scores, kind="stable"):
            score = float(scores[at])
            if len(found) == count or not score > self.least:
                break
            chunk = self.chunks[int(at)]
            if without is None or not _within(chunk, *without):
                found.append(Found(chunk.path, chunk.lines, chunk.text, score))
        return found


def settings_of(method: Method) -> dict[str, Any]:
    """All that decides an index beside the tree, as plain JSON."""
    chunker = {"version": chunking.VERSION, "grammars": syntax.versions()}
    return {"format": _FORMAT, "chunks": chunker, "method": dict(method.identity)}


def open_index(tree: Tree, method: Method, *, cache: Path, log: Callable[[str], None]) -> Index:
    """Return the index of a tree, built if the cache does not have it, or has a damaged one.

    Raises:
        InfraError: if an endpoint or the disk fails.
        TamperedError: if the tree is not the recorded one.
    """
    key = digest.of([tree.digest, settings_of(method)])
    folder = cache / KIND / key
    Uses(cache).touch(KIND, key)
    found = _load(folder, method)
    if found is not None:
        return found
    with locked(cache / "locks" / f"index-{key[:32]}.lock", log=log, what="index"):
        found = _load(folder, method)
        if found is not None:
            return found
        try:
            build_index(folder, tree, method, log)
        except OSError as error:
            raise InfraError(
                f"cannot write the index {folder}: {error.strerror or error}. Free some space or choose "
                "another folder with --crbench-cache.",
                reason="disk",
            ) from error
        found = _load(folder, method)
    if found is None:
        raise InfraError(
            f"the index {folder} cannot be read right after it was written: look at the disk, or choose "
            "another folder with --crbench-cache",
            reason="disk",
        )
    return found


def _load(folder: Path, method: Method) -> Index | None:
    try:
        record = plainjson.parse((folder / "record.json").read_bytes())
        if stamp(folder / "data") != record["stamp"]:
            return None
        stored = plainjson.parse((folder / "data" / "chunks.json").read_bytes())
        chunks = [Chunk(path, (first, last), text) for path, first, last, text in stored["chunks"]]
        skipped = [(path, why) for path, why in stored["skipped"]]
        return Index(
            chunks, method.load(folder / "data", len(chunks)), method.least, stored["files"], skipped
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


def build_index(folder: Path, tree: Tree, method: Method, log: Callable[[str], None]) -> None:
    """Make an index of ``tree`` aside, and put it where ``folder`` is."""
    fresh, aside = folder.with_name(f".{folder.name}.new"), folder.with_name(f".{folder.name}.old")
    discard(fresh)  # what a killed process left
    data = fresh / "data"
    data.mkdir(parents=True)
    try:
        cut = chunking.chunked(tree)
        left_out = chunking.told(cut.skipped) or "none"
        log(f"index: {len(cut.chunks)} chunks of {cut.files} files; left out: {left_out}")
        if cut.hard:
            log(f"index: too much for their grammar, cut by lines: {cut.hard} files")
        stored = {
            "files": cut.files,
            "skipped": cut.skipped,
            "chunks": [(c.path, *c.lines, c.text) for c in cut.chunks],
        }
        write_json(data / "chunks.json", stored)
        method.build([f"{c.path}\n{c.text}" for c in cut.chunks], data)
        discard(aside)
        if folder.exists():
            folder.rename(aside)
        # The stamp holds times that a renaming of the folder above does not change.
        write_json(fresh / "record.json", {"tree": tree.digest, "stamp": stamp(data)})
        fresh.rename(folder)
        discard(aside)
    finally:
        if fresh.exists():
            discard(fresh)


def _within(chunk: Chunk, path: str, lines: tuple[int, int]) -> bool:
    return chunk.path == path and lines[0] <= chunk.lines[0] and chunk.lines[1] <= lines[1]
