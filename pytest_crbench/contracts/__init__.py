"""Suites that every part must pass, ours and those of other packages (docs/extending.md).

    pytest --pyargs pytest_crbench.contracts --crbench-contract=KIND:NAME[:ARGUMENT]

``NAME`` is a registered name, or ``module:attribute``. Each suite is a file of tests, ``test_KIND.py``.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pytest

from ..core.agent import AGENTS
from ..core.datasets import DATASETS
from ..core.errors import UsageError
from ..core.report import REPORTS
from ..core.reviewer import REVIEWERS
from ..core.runner import RUNNERS
from ..core.sandbox import SANDBOXES
from ..core.scoring import SCORINGS
from ..core.settings import Settings
from ..text.printable import printable

if TYPE_CHECKING:
    from pathlib import Path

    from ..core.registry import Registry

KINDS: dict[str, Registry[Any]] = {
    "agent": AGENTS,
    "dataset": DATASETS,
    "report": REPORTS,
    "reviewer": REVIEWERS,
    "runner": RUNNERS,
    "sandbox": SANDBOXES,
    "scoring": SCORINGS,
}
#: The options of a run, which the suites start runs and sandboxes with.
SETTINGS = pytest.StashKey[Settings]()


@dataclass(frozen=True)
class Subject:
    """One part to look at: ``name`` is a registered name, or ``module:attribute``."""

    kind: str
    name: str
    argument: str = ""

    @classmethod
    def parse(cls, text: str) -> Subject:
        """Read ``KIND:NAME[:ARGUMENT]``.

        Raises:
            UsageError: saying what is missing.
        """
        kind, _, spec = text.partition(":")
        if kind not in KINDS or not spec:
            raise UsageError(
                f"--crbench-contract={printable(text, 100)}: expected KIND:NAME or KIND:module:attribute; "
                f"kinds are {', '.join(KINDS)}"
            )
        name, _, argument = spec.partition(":")
        if name in KINDS[kind]:
            return cls(kind, name, argument)
        attribute, _, argument = argument.partition(":")
        if not attribute:
            known = ", ".join(KINDS[kind].names())
            raise UsageError(
                f"--crbench-contract={printable(text, 100)}: no {KINDS[kind].what} is registered as "
                f"{printable(name, 80)!r}; known: {known}. Or name it as module:attribute"
            )
        return cls(kind, f"{name}:{attribute}", argument)

    @property
    def registered(self) -> bool:
        """Whether it is known by a name."""
        return ":" not in self.name

    @property
    def spec(self) -> str:
        """As an option of a run names it."""
        return f"{self.name}:{self.argument}" if self.argument else self.name

    def load(self, folder: Path) -> Any:
        """Return the part; modules are looked for in ``folder`` first.

        Raises:
            UsageError: it cannot be loaded, or a registered one is of another type.
        """
        if self.registered:
            return KINDS[self.kind].get(self.name)
        module, _, attribute = self.name.partition(":")
        if str(folder) not in sys.path:
            sys.path.insert(0, str(folder))
        try:
            found: Any = import_module(module)
            for part in attribute.split("."):
                found = getattr(found, part)
        except Exception as error:
            said = printable(f"{type(error).__name__}: {error}", 300)
            raise UsageError(f"cannot load {printable(self.name, 100)}: {said}") from error
        return found
