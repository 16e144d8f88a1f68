"""Running a reviewer's program on the host: private folder, small environment, everything kept."""

from __future__ import annotations

import errno
import json
import os
import shutil
import stat
import sys
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from ..core import processes
from ..core.errors import InfraError, ReviewerError
from ..core.store import write_atomic
from ..core.text import decode, printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from ..core.processes import Completed
    from .options import ReviewerOptions

#: Passed through always: where programs, the home folder, language, proxies and certificates are.
ORDINARY = (
    "PATH HOME USER LOGNAME SHELL LANG LANGUAGE LC_ALL LC_CTYPE TZ VIRTUAL_ENV XDG_CONFIG_HOME "
    "XDG_CACHE_HOME XDG_DATA_HOME XDG_STATE_HOME SYSTEMROOT SSL_CERT_FILE SSL_CERT_DIR REQUESTS_CA_BUNDLE "
    "CURL_CA_BUNDLE NODE_EXTRA_CA_CERTS GIT_SSL_CAINFO HTTP_PROXY HTTPS_PROXY ALL_PROXY NO_PROXY "
    "http_proxy https_proxy all_proxy no_proxy"
)
STDOUT, STDERR, OUT, RECORD = "review.stdout", "review.stderr", "review.out", "review.run.json"
#: Why a program did not start that says nothing of the program.
_MACHINE = frozenset({errno.ENOMEM, errno.EAGAIN, errno.EMFILE, errno.ENFILE})
#: A shorter value of a variable is no secret worth the damage that replacing it does.
_SECRET_LENGTH = 8


def environment(options: ReviewerOptions, temporary: Path) -> dict[str, str]:
    """Return a program's whole environment: `ORDINARY`, the variables that the user named, a private TMPDIR.

    The folder of our own interpreter comes last in PATH, so that tools installed beside the plugin are found.
    """
    names = (*ORDINARY.split(), *options.environment)
    env = {name: os.environ[name] for name in names if name in os.environ}
    return {**env, "PATH": search_path(), "TMPDIR": str(temporary)}


def search_path() -> str:
    """Return PATH with the folder of our own interpreter at its end."""
    beside = str(Path(sys.executable).parent)
    parts = [part for part in os.environ.get("PATH", os.defpath).split(os.pathsep) if part]
    return os.pathsep.join([*parts, *([] if beside in parts else [beside])])


def secrets(options: ReviewerOptions) -> tuple[bytes, ...]:
    """Return the values that no kept file may hold: those of the variables that are passed through."""
    values = {os.environ.get(name, "") for name in options.environment}
    return tuple(sorted((os.fsencode(v) for v in values if len(v) >= _SECRET_LENGTH), key=len, reverse=True))


def scrub(data: bytes, values: Sequence[bytes]) -> bytes:
    """Replace each secret value, also in the way that JSON writes it."""
    for value in values:
        for form in {value, json.dumps(decode(value))[1:-1].encode()}:
            data = data.replace(form, b"***")
    return data


@contextmanager
def private_folder() -> Iterator[Path]:
    """Give a new folder under a name that means nothing, and remove it with all that a program left in it.

    Raises:
        InfraError: if it cannot be made.
    """
    try:
        folder = Path(tempfile.mkdtemp()).resolve()
        (folder / "tmp").mkdir()
    except OSError as error:
        raise InfraError(
            f"cannot make a folder in {tempfile.gettempdir()}: {error.strerror}. Free some space, or set "
            "TMPDIR to a folder that has some.",
            reason="disk",
        ) from error
    try:
        yield folder
    finally:
        shutil.rmtree(folder, onerror=_unlock)


def execute(
    argv: Sequence[str],
    *,
    shown: Sequence[str],
    cwd: Path,
    env: Mapping[str, str],
    options: ReviewerOptions,
    directory: Path,
    out: Path | None,
    log: Callable[[str], None],
) -> tuple[Completed, bytes]:
    """Run a program, keep all that it wrote, and return what it did and its review's bytes, without secrets.

    ``shown`` is the argv as the user wrote it; ``out`` the file that holds the review, or None for stdout.
    ``review.stdout``, ``review.stderr``, ``review.out`` and ``review.run.json`` are kept in ``directory``.

    Raises:
        ReviewerError: ``crashed`` (an exit status that is not fine), ``timeout``, or ``unreadable`` (more
            output than the limit, or an output file that is none).
        InfraError: if the files cannot be kept.
    """
    for name in (STDOUT, STDERR, OUT, RECORD):
        (directory / name).unlink(missing_ok=True)
    log(f"reviewer: {printable(' '.join(shown))}")
    try:
        done = processes.run(
            argv, cwd=cwd, env=env, timeout=options.timeout, output_limit=options.output_limit
        )
    except OSError as error:
        if error.errno in _MACHINE:
            raise InfraError(f"no process can be started: {error.strerror}", reason="processes") from error
        raise ReviewerError(
            f"the reviewer cannot be started: {printable(shown[0])}: {error.strerror}. Is it an executable "
            "for this machine?",
            reason="crashed",
        ) from error
    values = secrets(options)
    stdout = scrub(done.stdout, values)
    written, problem = (stdout, None) if out is None else _output(out, options.output_limit)
    written = scrub(written, values)
    write_atomic(directory / STDOUT, stdout)
    write_atomic(directory / STDERR, scrub(done.stderr, values))
    if out is not None:
        write_atomic(directory / OUT, written)
    record = {
        "argv": list(shown),
        "returncode": done.returncode,
        "timed_out": done.timed_out,
        "truncated": done.truncated,
        "seconds": round(done.duration, 3),
    }
    write_atomic(directory / RECORD, scrub(json.dumps(record, indent=1).encode() + b"\n", values))
    log(f"reviewer: exit status {done.returncode} after {done.duration:.1f} s")
    _judge(done, shown, options, directory, values)
    if problem is None and out is None and len(done.stdout) > options.output_limit:
        problem = f"wrote more than {options.output_limit} bytes to stdout, of which the middle was not kept"
    if problem is not None:
        raise ReviewerError(f"the reviewer {printable(shown[0])} {problem}", reason="unreadable")
    return done, written


def _judge(
    done: Completed, shown: Sequence[str], options: ReviewerOptions, directory: Path, values: Sequence[bytes]
) -> None:
    program = printable(shown[0], 80)
    if done.timed_out:
        raise ReviewerError(
            f"the reviewer {program} was stopped after {options.timeout:g} s. Raise "
            f"--crbench-reviewer-timeout, or look at {directory / STDERR}.",
            reason="timeout",
        )
    if done.returncode in options.exit_ok:
        return
    last = printable(decode(scrub(done.stderr, values)[-300:])) or "nothing on stderr"
    fine = ", ".join(map(str, options.exit_ok))
    raise ReviewerError(
        f"the reviewer {program} ended with exit status {done.returncode}; fine is {fine} "
        f"(--crbench-reviewer-exit-ok). Its last words: {last}. All of them: {directory / STDERR}",
        reason="crashed",
    )


def _output(path: Path, limit: int) -> tuple[bytes, str | None]:
    """Read the file that the program wrote; a folder, pipe or link out is no review."""
    try:
        mode = path.lstat().st_mode
        if not stat.S_ISREG(mode):
            return b"", "wrote its review to something that is no regular file"
        with path.open("rb") as stream:
            data = stream.read(limit + 1)
    except FileNotFoundError:
        return b"", None
    except OSError as error:
        return b"", f"wrote a review that cannot be read: {error.strerror}"
    if len(data) > limit:
        return data[:limit], f"wrote a review of more than {limit} bytes"
    return data, None


def _unlock(function: Callable[..., object], path: str, _error: object) -> None:
    """Remove what a program made read-only; what belongs to another user stays, outside of any result."""
    with suppress(OSError):
        Path(path).parent.chmod(0o700)
        if not Path(path).is_symlink():
            Path(path).chmod(0o700)
        function(path)
