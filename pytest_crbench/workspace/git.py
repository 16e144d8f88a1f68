"""The one way git runs here: bytes in, bytes out, and nothing of the caller's or machine's git between.

`git.cmd.Git.execute` starts from the caller's environment and can only add to it, so a ``GIT_DIR`` or
``GIT_INDEX_FILE`` set by a hook that runs pytest would reach git. Hence ``env -i`` in front of the command.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..core.errors import InfraError
from ..host.processes import SESSION_VARIABLE
from ..text.printable import printable
from . import git

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path
    from typing import BinaryIO

    from ..host.trees import Entry

#: Author and committer of everything that is committed here: fixed, so that commit ids are stable, and no
#: hint at where the commits are seen.
IDENTITY = "Author <author@example.org>"
DATE = 946684800

#: Takes every attribute away that would change bytes between a tree and its commit, or hide a diff.
#: ``!`` (unspecified) where ``-`` has a meaning of its own: ``-diff`` is "binary", and
#: ``-working-tree-encoding`` ends git.
ATTRIBUTES = (
    b"* -text !eol !crlf -filter -ident !working-tree-encoding !diff !merge !whitespace "
    b"!export-ignore !export-subst !delta !conflict-marker-size\n"
)

_SETTINGS = {
    "advice.detachedHead": "false",
    "core.attributesFile": os.devnull,
    "core.autocrlf": "false",
    "core.excludesFile": os.devnull,
    "core.fsmonitor": "false",
    "core.hooksPath": os.devnull,
    "core.precomposeUnicode": "false",
    # Names that are odd on Windows or macOS ("git~1") are plain names here; `files` refuses ".git" itself.
    "core.protectHFS": "false",
    "core.protectNTFS": "false",
    "core.quotePath": "false",
    "core.untrackedCache": "false",
    "fastimport.unpackLimit": "0",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "safe.directory": "*",
}
_TIMEOUT = 300.0


def environment() -> dict[str, str]:
    """Return the whole environment that git runs in; only PATH and TMPDIR are the caller's."""
    name, _, email = IDENTITY.partition(" ")
    email = email.strip("<>")
    kept = {k: v for k in ("PATH", "TMPDIR", SESSION_VARIABLE) if (v := os.environ.get(k))}
    return {
        **kept,
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_AUTHOR_DATE": f"{DATE} +0000",
        "GIT_AUTHOR_EMAIL": email,
        "GIT_AUTHOR_NAME": name,
        "GIT_COMMITTER_DATE": f"{DATE} +0000",
        "GIT_COMMITTER_EMAIL": email,
        "GIT_COMMITTER_NAME": name,
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        # Later gits may choose others: ids would differ, and older gits could not read the repository.
        "GIT_DEFAULT_HASH": "sha1",
        "GIT_DEFAULT_REF_FORMAT": "files",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
        "HOME": "/nonexistent",
        "LC_ALL": "C",
        "TZ": "UTC",
        "XDG_CONFIG_HOME": "/nonexistent",
    }


def run(
    args: Sequence[str],
    *,
    git_dir: Path,
    work_tree: Path | None = None,
    feed: bytes | Callable[[BinaryIO], None] | None = None,
    failure: Callable[[str], Exception] | None = None,
    ok: Sequence[int] = (0,),
) -> bytes:
    """Run one git command on ``git_dir`` and return its standard output.

    Args:
        args: subcommand and its arguments.
        git_dir: the repository; never looked for anywhere else.
        work_tree: the checked-out tree, also the working folder; without one the repository counts as bare.
        feed: bytes for standard input, or a function that writes them to a stream (for large input).
        failure: makes the exception for an exit status not in ``ok`` from git's own words.
        ok: exit statuses that are no failure.

    Raises:
        InfraError: if git is missing, fails (and ``failure`` is not given) or takes over five minutes.
    """
    try:
        from git.cmd import Git
        from git.exc import GitCommandNotFound
    except ImportError as error:  # GitPython looks for git when it is imported
        raise _missing(error) from error
    where = [f"--git-dir={git_dir}"]
    if work_tree is not None:
        where.append(f"--work-tree={work_tree}")
    settings = {**_SETTINGS, "core.bare": "false" if work_tree is not None else "true"}
    options = [part for key, value in settings.items() for part in ("-c", f"{key}={value}")]
    variables = [f"{key}={value}" for key, value in environment().items()]
    command = ["env", "-i", *variables, "git", *options, *where, *args]
    with tempfile.TemporaryFile() as stdin:
        if callable(feed):
            feed(stdin)
        elif feed:
            stdin.write(feed)
        stdin.seek(0)
        try:
            status, out, err = Git(str(work_tree or git_dir)).execute(
                command,
                istream=stdin,
                with_extended_output=True,
                with_exceptions=False,
                stdout_as_string=False,
                strip_newline_in_stdout=False,
                kill_after_timeout=_TIMEOUT,
                shell=False,
            )
        except GitCommandNotFound as error:
            raise _missing(error) from error
    assert isinstance(out, bytes)
    if status in ok:
        return out
    said = printable(err.decode(errors="replace") if isinstance(err, bytes) else str(err))
    if status == 127:  # what `env` says when there is no git
        raise _missing()
    if failure is not None:
        raise failure(said)
    raise InfraError(
        f"git {args[0]} failed in {git_dir} with exit status {status}: {said}. "
        "Check the free space of the cache and temporary folders (--crbench-cache), then run again.",
        reason="git",
    )


def init(git_dir: Path) -> None:
    """Make an empty repository without templates, hooks or description; HEAD names the branch ``head``.

    Raises:
        InfraError: if git or the disk fails.
    """
    git_dir.mkdir(parents=True, exist_ok=True)
    run(["init", "--quiet", "--template=", "--initial-branch=head"], git_dir=git_dir)
    (git_dir / "info").mkdir(exist_ok=True)
    (git_dir / "info" / "attributes").write_bytes(ATTRIBUTES)


def _missing(error: Exception | None = None) -> InfraError:
    if error is not None and shutil.which("git"):
        # The package takes whatever keeps a program from being started for a missing one.
        why = printable(str(error.__cause__ or error))
        return InfraError(
            f"cannot start git: {why}. Use fewer workers, or raise the limits (`ulimit -n`, `ulimit -u`).",
            reason="git",
        )
    return InfraError(
        "cannot run git: no program of that name on PATH. Install git 2.28 or newer, then run again.",
        reason="git",
    )


@dataclass(frozen=True)
class Commit:
    """A commit to make on ``branch``: its message and all of its tree."""

    branch: str
    message: bytes
    entries: Mapping[str, Entry]


def commit(git_dir: Path, commits: Sequence[Commit]) -> None:
    """Make ``commits``, each the child of the one before, with fixed author and date.

    Raises:
        InfraError: if git or the disk fails.
        OSError: if a file cannot be read.
    """

    def feed(stream: BinaryIO) -> None:
        stream.write(b"feature done\n")
        for number, one in enumerate(commits, 1):
            _write(stream, one, number)
        stream.write(b"done\n")

    git.run(["fast-import", "--quiet"], git_dir=git_dir, feed=feed)


def _write(stream: BinaryIO, one: Commit, number: int) -> None:
    # A minute apart: commits of one second are listed in any order, a child before its parent or after.
    who = f"{git.IDENTITY} {git.DATE + 60 * (number - 1)} +0000"
    stream.write(f"commit refs/heads/{one.branch}\nmark :{number}\nauthor {who}\ncommitter {who}\n".encode())
    stream.write(b"data %d\n%s\n" % (len(one.message), one.message))
    if number > 1:
        stream.write(b"from :%d\n" % (number - 1))
    stream.write(b"deleteall\n")
    for path, entry in one.entries.items():
        content = entry.read()
        stream.write(b"M %s inline %s\n" % (entry.mode.encode(), quote(path)))
        stream.write(b"data %d\n" % len(content))
        stream.write(content)
        stream.write(b"\n")


def quote(path: str) -> bytes:
    """Quote a path for fast-import, in C style; bytes above ASCII stay as they are."""
    raw = os.fsencode(path).replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n")
    return b'"' + raw + b'"'
