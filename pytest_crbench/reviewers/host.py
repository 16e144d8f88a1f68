"""Running a reviewer's program on the host: everything that it says is kept, without secrets."""

from __future__ import annotations

import json
import signal
import stat
from typing import TYPE_CHECKING, Any

from ..core.enclosure import NOT_A_FILE, Ended, Written
from ..core.errors import InfraError, ReviewerError, UsageError, outside_failure
from ..core.status import OUTSIDE_EXIT
from ..host import processes
from ..host.files import write_atomic
from ..host.programs import advice_on_length, variables_fingerprint
from ..text.printable import decode, printable
from ..text.secrets import passed_through, scrub
from . import formats

#: Bytes read of a review.
OUTPUT_LIMIT = 16 * 1024 * 1024

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from ..core.enclosure import Completed
    from ..core.settings import Settings

STDOUT, STDERR, OUT, RECORD = "review.stdout", "review.stderr", "review.out", "review.run.json"


def execute(
    argv: Sequence[str],
    *,
    shown: Sequence[str],
    cwd: Path,
    env: Mapping[str, str],
    settings: Settings,
    directory: Path,
    out: Path | None,
    log: Callable[[str], None],
) -> tuple[Completed, bytes]:
    """Run a program, keep all that it wrote, and return what it did and its review's bytes, without secrets.

    ``shown`` is the argv as the user wrote it; ``out`` the file that holds the review, or None for stdout.
    What is kept in ``directory`` is said by `keep`.

    Raises:
        ReviewerError: ``crashed`` (an exit status that is not fine), ``timeout``, or ``unreadable`` (more
            output than the limit, or an output file that is none).
        InfraError: if the files cannot be kept, or ``reviewer-outside`` (exit status `OUTSIDE_EXIT`).
    """
    begin(shown, directory, log)
    try:
        done = processes.run(
            argv, cwd=cwd, env=env, timeout=settings.reviewer_timeout, output_limit=OUTPUT_LIMIT
        )
    except OSError as error:
        if error.errno in processes.EXHAUSTED:
            raise InfraError(
                f"no process can be started: {error.strerror}. Use fewer workers, or raise the limits "
                "(`ulimit -n`, `ulimit -u`).",
                reason="processes",
            ) from error
        raise ReviewerError(
            f"the reviewer cannot be started: {printable(shown[0])}: {error.strerror}."
            + (advice_on_length(error.strerror or "") or " Is it an executable for this machine?"),
            reason="crashed",
        ) from error
    written = None if out is None else _output(out, OUTPUT_LIMIT)
    return keep(Ended(done, written), shown=shown, settings=settings, directory=directory, log=log)


def begin(shown: Sequence[str], directory: Path, log: Callable[[str], None]) -> None:
    """Say what is run, and remove what an earlier run of it kept in ``directory``."""
    for name in (STDOUT, STDERR, OUT, RECORD):
        (directory / name).unlink(missing_ok=True)
    log(f"reviewer: {printable(' '.join(shown))}")


def keep(
    ended: Ended,
    *,
    shown: Sequence[str],
    settings: Settings,
    directory: Path,
    log: Callable[[str], None],
) -> tuple[Completed, bytes]:
    """Keep all that a program wrote, judge how it ended, and return that and its review's bytes.

    ``review.stdout``, ``review.stderr``, ``review.out`` and ``review.run.json`` are kept in ``directory``,
    without the values of the variables that it was given.

    Raises:
        ReviewerError: see `execute`.
        InfraError: if the files cannot be kept.
    """
    done = ended.done
    values = passed_through(settings.reviewer_env)
    stdout = scrub(done.stdout, values)
    review = stdout if ended.written is None else scrub(ended.written.data, values)
    write_atomic(directory / STDOUT, stdout)
    write_atomic(directory / STDERR, scrub(done.stderr, values))
    if ended.written is not None:
        write_atomic(directory / OUT, review)
    record = {
        "argv": list(shown),
        "returncode": done.returncode,
        "timed_out": done.timed_out,
        "truncated": done.truncated,
        "seconds": round(done.duration, 3),
    }
    write_atomic(directory / RECORD, scrub(json.dumps(record, indent=1).encode() + b"\n", values))
    log(f"reviewer: exit status {done.returncode} after {done.duration:.1f} s")
    if done.left and not done.timed_out:
        log(f"reviewer: ended {done.left} processes that it had left running")
    if ended.trouble is not None:
        trouble = scrub(ended.trouble, values)
        raise ReviewerError(f"the reviewer {printable(shown[0], 80)} {trouble}", reason="crashed")
    _judge(done, review, shown=shown, settings=settings, directory=directory, values=values)
    problem = ended.written.problem if ended.written is not None else None
    if ended.written is None and len(done.stdout) > OUTPUT_LIMIT:
        problem = f"wrote more than {OUTPUT_LIMIT} bytes to stdout, of which the middle was not kept"
    if problem is not None:
        raise ReviewerError(f"the reviewer {printable(shown[0])} {problem}", reason="unreadable")
    return done, review


def _judge(
    done: Completed,
    review: bytes,
    *,
    shown: Sequence[str],
    settings: Settings,
    directory: Path,
    values: Sequence[str],
) -> None:
    program = printable(shown[0], 80)
    if done.timed_out:
        raise ReviewerError(
            f"the reviewer {program} was stopped after {settings.reviewer_timeout:g} s. Raise "
            f"--crbench-reviewer-timeout, or look at {directory / STDERR}.",
            reason="timeout",
        )
    if done.returncode in settings.reviewer_exit_ok:
        return
    said, where = _said(done, values)
    if done.returncode == OUTSIDE_EXIT:
        raise outside_failure("reviewer", program, said)
    fine = ", ".join(map(str, settings.reviewer_exit_ok))
    advice = f"Fine is {fine} (--crbench-reviewer-exit-ok)."
    if done.returncode == 1 and (format := formats.linter_format(review)):
        advice = (
            f"Its output can be read as {format}: if it exits with 1 when it finds something, add "
            "--crbench-reviewer-exit-ok=0,1."
        )
    raise ReviewerError(
        f"the reviewer {program} {_ending(done.returncode)}: {said}. {advice}{advice_on_length(said)} "
        f"All that it said: {directory / where}",
        reason="crashed",
    )


def _said(done: Completed, values: Sequence[str]) -> tuple[str, str]:
    """The last words of a program, and the file that holds them: on stdout, if stderr is empty."""
    for name, stream, output in (("", STDERR, done.stderr), ("stdout: ", STDOUT, done.stdout)):
        if last := _last_words(decode(scrub(output, values)[-2000:])):
            return name + printable(last, 160), stream
    return "nothing on stderr or stdout", STDERR


def _ending(code: int | None) -> str:
    """Name how a program ended; a signal by its name, since its number says little."""
    if code is None or code >= 0:
        return f"ended with exit status {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    hint = " (the system does that where memory runs out)" if name == "SIGKILL" else ""
    return f"was ended by {name}{hint}, exit status {code}"


def _last_words(text: str) -> str:
    """Whole lines from the end, as many as are short together: what went wrong is mostly the last one."""
    kept: list[str] = []
    for line in reversed(text.splitlines()):
        words = line.strip(" \t^~")
        if kept and len(words) + sum(map(len, kept)) > 100:
            break
        if words:
            kept.insert(0, words)
    return " ".join(kept)


def _output(path: Path, limit: int) -> Written:
    """Read the file that the program wrote; a folder, pipe or link out is no review."""
    try:
        mode = path.lstat().st_mode
        if not stat.S_ISREG(mode):
            return Written(b"", NOT_A_FILE)
        with path.open("rb") as stream:
            data = stream.read(limit + 1)
    except FileNotFoundError:
        return Written(b"")
    except OSError as error:
        return Written(b"", f"wrote a review that cannot be read: {error.strerror}")
    return Written.within(data, limit)


def check(settings: Settings) -> None:
    """Check the options that have a fixed set of values.

    Raises:
        UsageError: naming the option and what it may be.
    """
    if settings.review_format not in formats.PARSERS:
        from difflib import get_close_matches

        near = get_close_matches(settings.review_format, formats.PARSERS, 1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        known = ", ".join(formats.PARSERS)
        raise UsageError(f"--crbench-review-format: {settings.review_format!r} is none of {known}.{hint}")
    for name in settings.reviewer_env:
        if not name.partition("=")[0]:
            raise UsageError(f"--crbench-reviewer-env: {name!r} names no variable")


def fingerprint_of(settings: Settings) -> dict[str, Any]:
    """Return what decides a program's review, as plain JSON."""
    return {
        "format": settings.review_format,
        "timeout": settings.reviewer_timeout,
        "exit_ok": sorted(settings.reviewer_exit_ok),
        **variables_fingerprint(settings.reviewer_env),
        "version": settings.reviewer_version,
    }
