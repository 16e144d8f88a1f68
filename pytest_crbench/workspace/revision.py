"""A revision as bytes: from an edited folder to a patch against head, and back.

Left out of a revision, by rule: byte code and tool caches, generated packaging metadata, what
coding agents write for themselves (unless head has it), and what git itself refuses (``.git`` anywhere). All
else counts, untracked and ignored files included.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ..core.errors import AgentError, InfraError, UnusableRevisionError
from ..core.model import Changes, File
from ..host import trees
from ..host.trees import Bounds, Entry, TooMuchError, git_mode, scan
from ..text.printable import printable
from . import git
from .git import Commit, commit

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from ..core.model import Tree

_MIB = 1024 * 1024
_CHUNK = _MIB
#: New content of changed files may be this many times the limit of the patch, which is compressed.
_CONTENT_FACTOR = 8
_DIFF = ("diff", "--binary", "--full-index", "--no-renames", "--no-color", "--no-ext-diff", "--no-textconv")
_DIFF_NAMES = ("--src-prefix=a/", "--dst-prefix=b/")
_ABSENT = "0" * 40
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS})


def capture(head: Tree, edited: Path, *, limit: int = 10 * _MIB, bounds: Bounds | None = None) -> bytes:
    """Return ``git diff --binary`` from the recorded head to an edited folder, which may be hostile.

    Args:
        head: the tree that was edited.
        edited: the folder as it is now; nothing in it is run or configures anything.
        limit: most bytes of the patch.
        bounds: most files, and folders within one another, of the edited folder.

    Returns:
        The patch; ``b""`` if nothing changed.

    Raises:
        UnusableRevisionError: ``too-large`` beyond the limit or the bounds, ``unreadable`` if the folder
            cannot be read or is none any more.
        InfraError: if git or the disk fails.
    """
    before = _relevant(scan(head.path))
    try:
        # A link in its place would lead to other files of this machine.
        if not stat.S_ISDIR(edited.lstat().st_mode):
            raise NotADirectoryError(errno.ENOTDIR, "is no folder any more", str(edited))
        after = _relevant(scan(edited, bounds or Bounds()))
        ours = {path.partition("/")[0] for path in before}
        for path in [path for path in after if is_agents(path) and path.partition("/")[0] not in ours]:
            del after[path]
        changed = {path for path in {*before, *after} if not _same(before.get(path), after.get(path))}
        new = {path: after[path] for path in after if path in changed}
        size = sum(entry.size for entry in new.values())
        if size > limit * _CONTENT_FACTOR:
            raise _too_large(f"{len(new)} changed files of {size} bytes together", limit)
        patch = _diff({path: before[path] for path in before if path in changed}, new) if changed else b""
    except TooMuchError as error:
        raise _too_large(str(error), limit) from error
    except OSError as error:
        raise UnusableRevisionError(
            f"cannot read the edited tree {edited}: {error}. The agent must leave its files readable.",
            reason="unreadable",
        ) from error
    if len(patch) > limit:
        raise _too_large(f"a patch of {len(patch)} bytes for {len(changed)} files", limit)
    return patch


def changes(head: Tree, patch: bytes) -> Changes:
    """Return what a patch makes of head, applied as bytes, without reading more of head than it touches.

    Raises:
        AgentError: ``unappliable`` if it is no patch or does not fit head, ``unsafe-path`` if it reaches
            out of the tree or into ``.git``.
        InfraError: if git or the disk fails.
    """
    if not patch.strip():
        return Changes()
    with _repository() as git_dir:
        touched = _touched(git_dir, patch)
        before = _read_head(head, touched, patch)
        if before:
            commit(git_dir, [Commit("head", b"Head\n", before)])
            git.run(["read-tree", "refs/heads/head"], git_dir=git_dir)
        git.run(
            ["apply", "--cached", "--binary", "--whitespace=nowarn", "-"],
            git_dir=git_dir,
            feed=patch,
            failure=_unappliable,
        )
        listed = git.run(
            ["diff-index", "--cached", "--raw", "--no-renames", "-z", "--no-abbrev", _tree(git_dir, before)],
            git_dir=git_dir,
        )
        return _complete(head, *_contents(git_dir, listed))


def _relevant(entries: Mapping[str, Entry]) -> dict[str, Entry]:
    return {
        path: entry
        for path, entry in entries.items()
        if not (is_gits(path, entry.mode) or is_noise(path) or is_generated(path))
    }


def _same(one: Entry | None, other: Entry | None) -> bool:
    if one is None or other is None or (one.mode, one.size) != (other.mode, other.size):
        return False
    if one.mode == "120000" or one.size <= _CHUNK:
        return one.read() == other.read()
    with one.place.open("rb") as left, other.place.open("rb") as right:
        while chunk := left.read(_CHUNK):
            if chunk != right.read(_CHUNK):
                return False
        return not right.read(1)


def _diff(before: Mapping[str, Entry], after: Mapping[str, Entry]) -> bytes:
    with _repository() as git_dir:
        commit(git_dir, [Commit("base", b"Base\n", before), Commit("head", b"Head\n", after)])
        return git.run([*_DIFF, *_DIFF_NAMES, "refs/heads/base", "refs/heads/head", "--"], git_dir=git_dir)


@contextmanager
def _repository() -> Iterator[Path]:
    with trees.temporary_folder() as folder:
        git_dir = folder / "git"
        try:
            git.init(git_dir)
            yield git_dir
        except OSError as error:
            if error.errno in _FULL:
                raise _no_room(error) from error
            raise  # something in the tree could not be read


def _touched(git_dir: Path, patch: bytes) -> list[str]:
    """Name the files of a patch, as git reads them; both names of a renamed file come from its own lines."""
    listed = git.run(["apply", "--numstat", "-z", "-"], git_dir=git_dir, feed=patch, failure=_unappliable)
    paths = [os.fsdecode(row.split(b"\t", 2)[2]) for row in listed.split(b"\0") if row]
    for path in paths:
        if is_unsafe(path):
            raise AgentError(
                f"the revision touches {printable(ascii(path))}, which is outside the tree, git's own, or "
                "no name that a disk can hold. Nothing of it was applied.",
                reason="unsafe-path",
            )
    return paths


def _read_head(head: Tree, touched: list[str], patch: bytes) -> dict[str, Entry]:
    """Read what a patch needs of head: the files it touches, and what stands where it needs a folder."""
    if any(mark in patch for mark in (b"\nrename from ", b"\ncopy from ")):  # a patch made elsewhere
        return {p: e for p, e in scan(head.path).items() if not is_gits(p, e.mode)}
    wanted = set(touched)
    for path in touched:
        parts = path.split("/")
        wanted.update("/".join(parts[:end]) for end in range(1, len(parts)))
    found = {path: look(head.path, path) for path in sorted(wanted)}
    return {path: entry for path, entry in found.items() if entry is not None}


def _tree(git_dir: Path, before: Mapping[str, Entry]) -> str:
    if before:
        return "refs/heads/head"
    return git.run(["hash-object", "-t", "tree", "-w", "--stdin"], git_dir=git_dir).decode().strip()


def _contents(git_dir: Path, listed: bytes) -> tuple[dict[str, File], set[str]]:
    fields = listed.split(b"\0")
    rows = [
        (head.decode().split(), os.fsdecode(path))
        for head, path in zip(fields[::2], fields[1::2], strict=False)
    ]
    deleted = {path for row, path in rows if row[3] == _ABSENT}
    kept = [(row[1], row[3], path) for row, path in rows if row[3] != _ABSENT]
    for mode, _blob, path in kept:
        if mode not in ("100644", "100755", "120000") or is_gits(path, mode):
            raise _unappliable(f"{path!a} would get mode {mode}")
    blobs = git.run(
        ["cat-file", "--batch"], git_dir=git_dir, feed=b"".join(b"%s\n" % b.encode() for _, b, _ in kept)
    )
    made, at = {}, 0
    for mode, _blob, path in kept:
        line_end = blobs.index(b"\n", at)
        size = int(blobs[at:line_end].split()[2])
        made[path] = File(path, blobs[line_end + 1 : line_end + 1 + size], mode)
        at = line_end + size + 2
    return made, deleted


def _complete(head: Tree, made: dict[str, File], deleted: set[str]) -> Changes:
    """Add to ``deleted`` what a revision leaves out but cannot stay, because its folder became a file."""
    for path in made:
        place = head.path / path
        if place.is_dir() and not place.is_symlink():
            deleted.update(f"{path}/{below}" for below in scan(place))
    return Changes(tuple(made[path] for path in sorted(made)), tuple(sorted(deleted)))


def _too_large(what: str, limit: int) -> UnusableRevisionError:
    return UnusableRevisionError(
        f"the revision is too large: {what}; at most {limit} bytes of patch are taken. "
        "Did the agent leave build output or data in the tree?",
        reason="too-large",
    )


def _no_room(error: OSError) -> InfraError:
    return InfraError(
        f"cannot work in the temporary folder: {error}. Free some space or set TMPDIR, then run again.",
        reason="disk",
    )


def _unappliable(said: str) -> AgentError:
    return AgentError(
        f"the revision does not apply to head: {said}. It was made against another tree or is damaged.",
        reason="unappliable",
    )


#: What test runs, type checkers and linters leave behind: never part of a revision.
_NOISE_FOLDERS = frozenset({"__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache"})

#: What coding agents write into the tree that they work on, by its first name: histories, caches, settings.
_AGENT_FILES = re.compile(r"\.aider.*|\.(?:claude|codex|crush|cursor|gemini|goose|opencode|qwen)")

_NAME_MAX = 255

#: Patterns of `is_generated` for ``.git/info/exclude``.
GENERATED_PATTERNS = b"/PKG-INFO\n*.egg-info\n"


def look(root: Path, path: str) -> Entry | None:
    """Return the entry at ``path`` below ``root``; None if there is none, or only through a link."""
    place = root
    parts = path.split("/")
    try:
        for part in parts[:-1]:
            place = place / part
            if not stat.S_ISDIR(place.lstat().st_mode):
                return None
        place = place / parts[-1]
        status = place.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    mode = git_mode(status.st_mode)
    return Entry(mode, place, status.st_size) if mode else None


def is_generated(path: str) -> bool:
    """Whether packaging wrote it: top-level PKG-INFO, anything in or named ``*.egg-info``."""
    parts = path.split("/")
    return parts[0] == "PKG-INFO" or any(part.endswith(".egg-info") for part in parts)


def is_noise(path: str) -> bool:
    """Whether running things wrote it: byte code and the caches of pytest, mypy and ruff."""
    parts = path.split("/")
    return any(part.endswith(".pyc") for part in parts) or not _NOISE_FOLDERS.isdisjoint(parts[:-1])


def is_agents(path: str) -> bool:
    """Whether coding agents write such a file for themselves."""
    return _AGENT_FILES.fullmatch(path.partition("/")[0]) is not None


def is_gits(path: str, mode: str = "100644") -> bool:
    """Whether git itself refuses it: a ``.git`` anywhere in the path, or a link named ``.gitmodules``."""
    parts = path.lower().split("/")
    return ".git" in parts or (mode == "120000" and parts[-1] == ".gitmodules")


def is_unsafe(path: str) -> bool:
    """Whether a path may not be written below a tree.

    So it is if it is absolute, holds ``.`` or ``..``, is git's own, too deep, or has too long a name.
    """
    parts = path.split("/")
    odd = any(part in ("", ".", "..") or len(os.fsencode(part)) > _NAME_MAX for part in parts)
    return odd or len(parts) > Bounds.depth or "\0" in path or is_gits(path)


def write(root: Path, path: str, content: bytes, mode: str) -> None:
    """Write one file or link below ``root``, which must hold nothing at ``path``.

    Raises:
        OSError: if something is in the way, a parent is a link, or the disk is full.
    """
    place = root
    for part in path.split("/")[:-1]:
        place = place / part
        if place.is_symlink():
            raise NotADirectoryError(f"{place} is a link")
        place.mkdir(exist_ok=True)
    place = root / path
    if mode == "120000":
        os.symlink(content, os.fsencode(place))  # noqa: PTH211  (bytes)
        return
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    with os.fdopen(os.open(place, flags, 0o644), "wb") as stream:
        stream.write(content)
    place.chmod(0o755 if mode == "100755" else 0o644)
