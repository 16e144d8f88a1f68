"""The repository that is seen: two commits, ``base`` and ``head``, and not one object more."""

from __future__ import annotations

import json
import shutil
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..core.errors import InfraError
from ..host import digest
from ..host.eviction import Uses
from ..host.files import locked
from ..host.trees import scan, stamp
from ..text import plainjson
from ..text.printable import clean
from . import git, revision
from .git import Commit, commit

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ..core.model import Tree, Trees
    from ..host.trees import Entry

#: Part of the cache key: goes up when the same trees would give another repository.
_FORMAT = 2
_CONFIG = b"""\
[core]
\trepositoryformatversion = 0
\tfilemode = true
\tbare = false
\tlogallrefupdates = false
\tautocrlf = false
\tfsmonitor = false
[gc]
\tauto = 0
"""
#: Said in full, although most are git's defaults: the diff is part of what is measured.
_DIFF = ("diff", "--no-color", "--no-ext-diff", "--no-textconv", "--unified=3", "--find-renames")
_DIFF_NAMES = ("--src-prefix=a/", "--dst-prefix=b/", "--ignore-submodules=none")


@dataclass(frozen=True)
class Workspace:
    """A prepared two-commit repository. ``path`` stays in the cache and is never given out.

    ``base`` and ``head`` are full commit ids; ``diff`` is ``git diff base head`` with three lines of context
    and renames found, bytes as git wrote them.
    """

    path: Path
    base: str
    head: str
    diff: bytes

    @property
    def git_dir(self) -> Path:
        """The ``.git`` folder, to be copied into a sandbox that holds the head tree."""
        return self.path / ".git"

    def copy_to(self, destination: Path) -> None:
        """Write a private, writable copy with head checked out to ``destination`` (made if absent).

        Raises:
            InfraError: if the disk is full or the folder cannot be written to.
        """
        try:
            shutil.copytree(self.path, destination, symlinks=True, dirs_exist_ok=True)
        except (OSError, shutil.Error) as error:
            raise _disk(f"cannot copy the workspace to {destination}", error) from error
        # The copies have other inodes: without this, plumbing such as diff-index calls every file changed.
        _refresh(destination)


def build(
    trees: Trees,
    *,
    title: str,
    body: str,
    cache: Path,
    log: Callable[[str], None] = lambda _line: None,
) -> Workspace:
    """Return the workspace of a pull request, built once per content and kept in ``cache``.

    Base and head are commits on branches of these names, the first the parent of the second, with a fixed
    author and date, so that their ids depend on nothing but content. ``title`` and ``body`` are head's
    message. Generated packaging metadata is in neither.

    Raises:
        InfraError: if git or the disk fails.
    """
    key = digest.of([_FORMAT, trees.base.digest, trees.head.digest, clean(title), clean(body)])
    place = cache / "workspaces" / key
    with locked(cache / "workspaces" / ".locks" / f"{key}.lock", log=log, what="workspace"):
        Uses(cache).touch("workspaces", key)
        found = load_workspace(place)
        if found is not None:
            return found
        if place.exists():
            log("workspace: the cached one was changed; it is made again")
        temporary = place.with_name(f".{key}.{uuid.uuid4().hex[:8]}.tmp")
        try:
            _make(temporary, trees, _message(title, body), log)
            shutil.rmtree(place, ignore_errors=True)
            temporary.rename(place)
        except OSError as error:
            raise _disk(f"cannot build the workspace {place}", error) from error
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
        made = load_workspace(place)
    assert made is not None
    return made


def load_workspace(place: Path) -> Workspace | None:
    """Return the workspace that ``place`` holds; None if it is not whole."""
    try:
        ids = plainjson.parse((place / "ids.json").read_bytes())
        made = Workspace(place / "tree", ids["base"], ids["head"], (place / "diff").read_bytes())
        whole = digest.of_bytes(made.diff) == ids["diff"] and stamp(made.path) == ids["stamp"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return made if whole else None


def _make(place: Path, trees: Trees, message: bytes, log: Callable[[str], None]) -> None:
    root = place / "tree"
    git_dir = root / ".git"
    base, head = _entries(trees.base, "base", log), _entries(trees.head, "head", log)
    git.init(git_dir)
    (git_dir / "config").write_bytes(_CONFIG)
    (git_dir / "info" / "exclude").write_bytes(revision.GENERATED_PATTERNS)
    commit(git_dir, [Commit("base", b"Base\n", base), Commit("head", message, head)])
    git.run(["repack", "-a", "-d", "-q", "--no-write-bitmap-index"], git_dir=git_dir)
    for path, entry in head.items():
        revision.write(root, path, entry.read(), entry.mode)
    git.run(["read-tree", "refs/heads/head"], git_dir=git_dir, work_tree=root)
    _refresh(root)
    ids = {name: _id(git_dir, name) for name in ("base", "head")}
    diff = git.run([*_DIFF, *_DIFF_NAMES, ids["base"], ids["head"], "--"], git_dir=git_dir, work_tree=root)
    (place / "diff").write_bytes(diff)
    seen = {"diff": digest.of_bytes(diff), "stamp": stamp(root)}
    (place / "ids.json").write_text(json.dumps({**ids, **seen}) + "\n")


def _entries(tree: Tree, side: str, log: Callable[[str], None]) -> dict[str, Entry]:
    kept = {}
    for path, entry in scan(tree.path).items():
        if revision.is_gits(path, entry.mode):
            log(f"workspace: {side}: {path!a} left out, git does not take it")
        elif not revision.is_generated(path):
            kept[path] = entry
    return kept


def _refresh(root: Path) -> None:
    git.run(["update-index", "-q", "--refresh"], git_dir=root / ".git", work_tree=root)


def _id(git_dir: Path, branch: str) -> str:
    return git.run(["rev-parse", "--verify", f"refs/heads/{branch}"], git_dir=git_dir).decode().strip()


def _message(title: str, body: str) -> bytes:
    subject = " ".join(clean(title).replace("\0", " ").split()) or "Head"
    rest = clean(body).replace("\0", " ").replace("\r\n", "\n").strip()
    return (f"{subject}\n\n{rest}\n" if rest else f"{subject}\n").encode()


def _disk(what: str, error: Exception) -> InfraError:
    return InfraError(
        f"{what}: {error}. Free some space or choose another cache folder (--crbench-cache).", reason="disk"
    )
