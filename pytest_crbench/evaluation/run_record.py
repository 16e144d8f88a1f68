"""``run.json``: how a run is made and of what, and what of it may not differ on resuming and replaying.

It is written before any work starts, and completed as environments are built by any process of the run. It
holds no credential. A run of version 1 has its inputs in a file of their own, ``lock.json``.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from ..core.errors import InfraError, UsageError
from ..core.records import from_row, to_row
from ..core.run_record import RunRecord
from ..host.files import locked, write_json
from ..statistics.deviations import Deviation, deviations, listed
from ..text import plainjson
from ..text.plainjson import plain
from ..text.printable import printable

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from pathlib import Path

    from ..core.run_record import EnvironmentInfo, Inputs, ProgramInfo

NAME = "run.json"
SCHEMA = "crbench-run"
VERSION = 2
#: Sections in which a difference would put measurements of two kinds into one rate.
DECIDES = ("package", "prompts", "instances", "reviewer", "agent", "sandbox", "limits", "options")
#: Sections that can change what is measured only through a fault: a difference is told, not refused.
TOLD = ("python", "platform", "engine", "libraries", "tools", "git")
#: What every process adds when it knows it.
ENVIRONMENTS, FIXTURES = "environments", "fixtures"
_AGAIN = "Start a new run"


def read_run(run: Path) -> RunRecord:
    """Return the record of the run in a folder.

    Raises:
        UsageError: if it is missing, unreadable, or of a later version; says to start a new run.
    """
    path = run / NAME
    content = _parsed(path)
    schema, version = content.pop("schema", None), content.pop("schema_version", None)
    if schema is None:
        lock = run / "lock.json"
        content["inputs"] = of_lock_file(_parsed(lock)) if lock.exists() else None
        content.setdefault("name", run.name)
    elif schema != SCHEMA:
        found = printable(repr(schema), 40)
        raise UsageError(f"{path}, key 'schema': expected {SCHEMA!r}, found {found}. {_AGAIN}")
    elif version != VERSION:
        found = printable(repr(version), 40)
        raise UsageError(
            f"{path}, key 'schema_version': expected {VERSION}, found {found}: another pytest-crbench wrote "
            f"it. {_AGAIN}"
        )
    return from_row(RunRecord, content, str(path), _AGAIN)


def of_lock_file(content: dict[str, Any]) -> dict[str, Any]:
    """Return what the lock file of a run of version 1 says of its inputs."""
    return {name: value for name, value in content.items() if name not in ("schema", "schema_version")}


def read_inputs(run: Path) -> Inputs:
    """Return what the run in a folder is made of.

    Raises:
        UsageError: if nobody knows; says to start a new run.
    """
    inputs = read_run(run).inputs
    if inputs is None:
        raise UsageError(f"{run / NAME}, key 'inputs': found nothing, and no lock.json beside it. {_AGAIN}")
    return inputs


def write_run(run: Path, record: RunRecord) -> None:
    """Write the record, atomically; what other processes have noted in it since is taken into ``record``.

    Raises:
        InfraError: if the folder cannot be written to.
    """
    if not (run / NAME).exists():  # no other process knows of it yet
        _write(run, record)
        return
    with _locked(run):
        # One that is damaged is written anew.
        with suppress(UsageError):
            known = read_run(run).inputs
            if known is not None and record.inputs is not None:
                record.inputs.environments = {**record.inputs.environments, **known.environments}
                record.inputs.fixtures = {**record.inputs.fixtures, **known.fixtures}
        _write(run, record)


def note(run: Path, section: str, name: str, value: EnvironmentInfo | ProgramInfo) -> None:
    """Add an entry that is known only now, from any process; nothing where no run is recorded.

    Raises:
        InfraError: ``lock``, if the run has recorded another value: what follows would be another
            measurement than what came before.
    """
    if not (run / NAME).exists() or _is_known(run, section, name, value):
        return
    with _locked(run):
        if not _is_known(run, section, name, value):
            record = read_run(run)
            getattr(record.inputs, section)[name] = value
            _write(run, record)


def _is_known(run: Path, section: str, name: str, value: EnvironmentInfo | ProgramInfo) -> bool:
    try:
        before = getattr(read_inputs(run), section).get(name)
    except UsageError as error:
        raise InfraError(str(error), reason="lock") from error
    if before is None:
        return False
    found = deviations({section: {name: to_row(before)}}, {section: {name: to_row(value)}}, (section,))
    if found:
        raise InfraError(
            f"the run began with other inputs ({NAME}): {listed(found, 2)}. Put back what changed, or start "
            "a new run: measurements of both would be mixed",
            reason="lock",
        )
    return True


def _locked(run: Path) -> AbstractContextManager[None]:
    return locked(run / ".locks" / f"{NAME}.lock", log=lambda _line: None, what=NAME)


def _parsed(path: Path) -> dict[str, Any]:
    try:
        content = plain(plainjson.parse(path.read_bytes()))
    except (OSError, ValueError) as error:
        raise UsageError(
            f"{path} is missing or unreadable ({error}), so nobody knows what the run was made of; start "
            "a new run"
        ) from error
    if not isinstance(content, dict):
        raise UsageError(f"{path}: expected an object, found {type(content).__name__}. {_AGAIN}")
    return content


def _write(run: Path, record: RunRecord) -> None:
    write_json(run / NAME, {"schema": SCHEMA, "schema_version": VERSION, **to_row(record)})


def check_same(name: str, recorded: Inputs, found: Inputs) -> list[Deviation]:
    """Refuse to finish a run whose inputs changed; return what changed that decides nothing.

    Raises:
        UsageError: naming each digest that differs, what was recorded, what was found, and what to do.
    """
    ours, theirs = to_row(recorded), to_row(found)
    differing = deviations(ours, theirs, DECIDES)
    if differing:
        sections = {difference.where.partition(".")[0] for difference in differing}
        raise UsageError(
            f"cannot resume {name}: it was started with other inputs ({NAME}): {listed(differing)}. "
            f"{_advice(sections, name)}"
        )
    return deviations(ours, theirs, TOLD)


def check_replayable(name: str, recorded: Inputs, found: Inputs) -> list[Deviation]:
    """Refuse to test revisions that were made of another pull request; return what else changed.

    Hidden tests, limits, sandbox and versions may differ: to run the tests anew under them is what replaying
    is for.

    Raises:
        UsageError: naming the instances, and what to do.
    """
    common = recorded.instances.keys() & found.instances.keys()

    def only(inputs: Inputs, key: str) -> dict[str, Any]:
        kept = {one: {key: getattr(inputs.instances[one], key)} for one in inputs.instances if one in common}
        return {**to_row(inputs), "instances": kept}

    differing = deviations(only(recorded, "pull_request"), only(found, "pull_request"), ("instances",))
    if differing:
        raise UsageError(
            f"cannot replay {name}: its reviews and revisions were made of other pull requests: "
            f"{listed(differing)}. Put the instances back, or start a new run"
        )
    sections = ("package", "instances", "sandbox", "limits", *TOLD)
    return deviations(only(recorded, "checks"), only(found, "checks"), sections)


def _advice(sections: set[str], name: str) -> str:
    if sections <= {"limits", "sandbox"}:
        return (
            "Use the same options, or start a new run; to keep its reviews and revisions and run only the "
            f"hidden tests anew, use --crbench-replay={name}"
        )
    if sections <= {"reviewer", "agent", "options"}:
        return "Use the same options, or start a new run"
    if sections == {"package"}:
        return "Install the version of pytest-crbench that started it, or start a new run"
    return "Put back what changed, or start a new run"
