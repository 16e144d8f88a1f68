"""Run directories: their names, finding one again, and what going on with one takes from its record."""

from __future__ import annotations

import secrets
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.errors import UsageError
from ..evaluation.run_record import read_run
from ..text.secrets import REDACTED
from .options import RENAMED, now_called

if TYPE_CHECKING:
    from ..core.settings import Settings


def new_name() -> str:
    """Return a name for a run: the time in UTC, and a random part so that two at once differ."""
    return f"{time.strftime('%Y-%m-%dT%H%M%S', time.gmtime())}-{secrets.token_hex(3)}"


def hide_from_git(folder: Path) -> None:
    """Have git ignore ``.crbench``, where that is what holds the runs; a file that is there is left alone."""
    place = folder.parent
    if place.name == ".crbench" and not (place / ".gitignore").exists():
        with suppress(OSError):  # whoever writes the run next says what is wrong
            place.mkdir(parents=True, exist_ok=True)
            (place / ".gitignore").write_text("*\n", encoding="utf-8")


def shown_path(path: Path) -> str:
    """Return a path as the user can open it from where the run was started."""
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def find_run(folder: Path, name: str) -> Path:
    """Return the directory of a recorded run: by name below ``folder``, by path, or the latest.

    Raises:
        UsageError: if there is none, listing those there are.
    """
    runs = sorted(p.parent for p in folder.glob("*/run.json"))
    if name == "latest":
        if not runs:
            raise UsageError(f"no run to resume in {folder}; start one without --crbench-resume")
        return max(runs, key=lambda run: ((run / "run.json").stat().st_mtime, run.name))
    for candidate in (folder / name, Path(name)):
        if (candidate / "run.json").is_file():
            return candidate.resolve()
    known = ", ".join(run.name for run in runs[-5:]) or "none"
    raise UsageError(f"no run {name!r} in {folder}; the latest there: {known}")


def recorded_options(run: Path) -> dict[str, Any]:
    """Return the options that a run was started with, for resuming it without naming them again.

    Of one that held a credential only the rest is recorded: see `check_given`.

    Raises:
        UsageError: if the record is missing or unreadable.
    """
    options = {n: value for n, value in read_run(run).options.items() if value not in (None, [])}
    return {RENAMED.get(n.replace("_", "-"), n).replace("-", "_"): value for n, value in options.items()}


def chosen_sandbox(run: Path) -> str:
    """Return the sandbox that a run chose when it started: resuming keeps to it, whatever is there now.

    Raises:
        UsageError: if the record is missing or unreadable.
    """
    sandbox = read_run(run).sandbox
    return sandbox.name if sandbox else "auto"


def check_given(run: Path, settings: Settings) -> None:
    """Refuse to go on with an option of which only the part that is no credential was recorded.

    Raises:
        UsageError: naming the option.
    """
    for name, value in vars(settings).items():
        if REDACTED in str(value):
            raise UsageError(
                f"--crbench-{now_called(name.replace('_', '-'))} of {run.name} held a credential, which is "
                "not recorded: give the option again"
            )
