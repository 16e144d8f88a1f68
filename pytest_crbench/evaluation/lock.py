"""The lock file of a run: the digests of everything that goes into it, and what may not differ on resuming.

``lock.json`` is written before any work starts, and completed as environments are built by any process of
the run. Resuming, replaying and comparing look at it; ``run.json`` only describes. It holds no credential.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..core.errors import InfraError, UsageError
from ..host.files import locked, write_json
from ..statistics.deviations import Deviation, deviations, listed
from ..text import plainjson
from ..text.printable import printable

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

NAME = "lock.json"
SCHEMA = "crbench-lock"
SCHEMA_VERSION = 1
#: Sections in which a difference would put measurements of two kinds into one rate.
DECIDES = ("package", "prompts", "instances", "reviewer", "agent", "sandbox", "limits", "options")
#: Sections that can change what is measured only through a fault: a difference is told, not refused.
TOLD = ("python", "platform", "engine", "libraries", "tools", "git")
#: What every process adds when it knows it.
ENVIRONMENTS, FIXTURES = "environments", "fixtures"
_OF_TABLES = ("instances", ENVIRONMENTS, FIXTURES)
_WIDTH = 60


@dataclass(frozen=True)
class LockFile:
    """``lock.json`` of the run in a folder."""

    run: Path

    @property
    def path(self) -> Path:
        """The file."""
        return self.run / NAME

    def read(self) -> dict[str, Any]:
        """Return the content.

        Raises:
            UsageError: if it is missing, unreadable, or of a later version.
        """
        try:
            content = plainjson.parse(self.path.read_bytes())
        except (OSError, ValueError) as error:
            raise UsageError(
                f"{self.path} is missing or unreadable ({error}), so nobody knows what the run was made of; "
                "start a new run"
            ) from error
        if not isinstance(content, dict) or content.get("schema") != SCHEMA:
            raise UsageError(f"{self.path}, key 'schema': expected {SCHEMA!r}; start a new run")
        if content.get("schema_version") != SCHEMA_VERSION:
            raise UsageError(
                f"{self.path}, key 'schema_version': expected {SCHEMA_VERSION}, found "
                f"{printable(repr(content.get('schema_version')), 40)}: another pytest-crbench wrote it. "
                "Start a new run"
            )
        self._check_shape(content)
        return content

    def _check_shape(self, content: Mapping[str, Any]) -> None:
        """A section but prompts holds values by name; the entries of some are such sections themselves."""
        for section in (*DECIDES, *TOLD, ENVIRONMENTS, FIXTURES):
            value = content.get(section)
            entries = value.values() if isinstance(value, dict) and section in _OF_TABLES else ()
            kind = str if section == "prompts" else dict
            if not isinstance(value, kind | None) or not all(isinstance(entry, dict) for entry in entries):
                raise UsageError(f"{self.path}, key {section!r}: it is damaged; start a new run")
        for name, built in (content.get(ENVIRONMENTS) or {}).items():
            if not isinstance(built.get("specifier", ""), str) or not isinstance(built.get("base", {}), dict):
                where = printable(f"{ENVIRONMENTS}.{name}", 80)
                raise UsageError(f"{self.path}, key {where!r}: it is damaged; start a new run")

    def write(self, content: Mapping[str, Any]) -> None:
        """Write the content, atomically.

        Raises:
            InfraError: if the folder cannot be written to.
        """
        write_json(self.path, {"schema": SCHEMA, "schema_version": SCHEMA_VERSION, **content})

    def note(self, section: str, name: str, value: Mapping[str, Any]) -> None:
        """Add an entry that is known only now, from any process; nothing where no run is recorded.

        Raises:
            InfraError: ``lock``, if the run has recorded another value: what follows would be another
                measurement than what came before.
        """
        if not self.path.exists() or self._known(section, name, value):
            return
        with locked(self.run / ".locks" / f"{NAME}.lock", log=lambda _line: None, what=NAME):
            if not self._known(section, name, value):
                content = self.read()
                content[section] = {**(content.get(section) or {}), name: dict(value)}
                self.write(content)

    def _known(self, section: str, name: str, value: Mapping[str, Any]) -> bool:
        try:
            before = (self.read().get(section) or {}).get(name)
        except UsageError as error:
            raise InfraError(str(error), reason="lock") from error
        if before is None:
            return False
        found = deviations({section: {name: before}}, {section: {name: dict(value)}}, (section,))
        if found:
            raise InfraError(
                f"the run began with other inputs ({NAME}): {listed(found, 2)}. Put back what changed, or "
                "start a new run: measurements of both would be mixed",
                reason="lock",
            )
        return True


def check_same(name: str, recorded: Mapping[str, Any], found: Mapping[str, Any]) -> list[Deviation]:
    """Refuse to finish a run whose inputs changed; return what changed that decides nothing.

    Raises:
        UsageError: naming each digest that differs, what was recorded, what was found, and what to do.
    """
    differing = deviations(recorded, found, DECIDES)
    if differing:
        sections = {difference.where.partition(".")[0] for difference in differing}
        raise UsageError(
            f"cannot resume {name}: it was started with other inputs ({NAME}): {listed(differing)}. "
            f"{_advice(sections, name)}"
        )
    return deviations(recorded, found, TOLD)


def check_replayable(name: str, recorded: Mapping[str, Any], found: Mapping[str, Any]) -> list[Deviation]:
    """Refuse to test revisions that were made of another pull request; return what else changed.

    Hidden tests, limits, sandbox and versions may differ: to run the tests anew under them is what replaying
    is for.

    Raises:
        UsageError: naming the instances, and what to do.
    """
    ours, theirs = _requests(recorded), _requests(found)
    common = {key: value for key, value in theirs.items() if key in ours}
    differing = deviations({"instances": {k: ours[k] for k in common}}, {"instances": common}, ("instances",))
    if differing:
        raise UsageError(
            f"cannot replay {name}: its reviews and revisions were made of other pull requests: "
            f"{listed(differing)}. Put the instances back, or start a new run"
        )
    sections = ("package", "instances", "sandbox", "limits", *TOLD)
    return deviations(_checks_of(recorded, set(common)), _checks_of(found, set(common)), sections)


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


def _requests(lock: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: {"pull_request": instance.get("pull_request")}
        for name, instance in (lock.get("instances") or {}).items()
    }


def _checks_of(lock: Mapping[str, Any], names: set[str]) -> dict[str, Any]:
    kept = {
        name: {"checks": instance.get("checks")}
        for name, instance in (lock.get("instances") or {}).items()
        if name in names
    }
    return {**lock, "instances": kept}
