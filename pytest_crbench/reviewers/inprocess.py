"""A callable handed over by a vendor's own fixture: called in this process, trusted with it."""

from __future__ import annotations

import json
import time
import traceback
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .. import OutsideFailure
from ..core.errors import ReviewerError, outside_failure
from ..host.files import write_atomic
from ..host.programs import filling, private_folder, variables_fingerprint
from ..text.printable import clean, printable
from ..text.secrets import passed_through, scrub, within_reach
from . import child, host
from .options import ReviewerOptions
from .reading import read_review

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ..core.model import Review
    from ..core.reviewer import ReviewTask


@dataclass(frozen=True)
class InProcessReviewer:
    """Calls ``function(pull_request, workspace)``. No time limit holds: use ``module:attribute`` for one."""

    function: Callable[..., Any]
    options: ReviewerOptions = field(default_factory=ReviewerOptions)

    @property
    def name(self) -> str:
        """The name given, or the callable's own."""
        return self.options.name or str(getattr(self.function, "__name__", type(self.function).__name__))

    @property
    def fingerprint(self) -> Mapping[str, Any]:
        """Name, version and variables: the code of a callable cannot be looked into."""
        named = {"kind": "in-process", "name": self.name, "version": self.options.version}
        return {**named, **variables_fingerprint(self.options.environment)}

    @property
    def shareable(self) -> bool:
        """Whether the user vouches, by a version, that the code is the same."""
        return self.options.version is not None

    def review(self, task: ReviewTask) -> Review:
        """Call the callable once.

        Raises:
            ReviewerError: ``crashed`` if it raises, ``unreadable`` if what it returns is no review.
            InfraError: if the private copy cannot be made, or ``reviewer-outside`` if it raises
                `OutsideFailure`.
        """
        began = time.monotonic()
        # Taken before: a callable may change the variables of this process.
        secrets = (*passed_through(self.options.environment), *within_reach())
        with private_folder() as folder:
            workspace = folder / "repository"
            with filling(folder):
                task.checkout(workspace)
            try:
                said = child.native(self.function(task.pull_request, workspace))
                raw = scrub(json.dumps(said).encode(), secrets)
            except OutsideFailure as error:
                raise outside_failure("reviewer", self.name, scrub(str(error), secrets)) from None
            except Exception as error:
                trace = scrub(clean(traceback.format_exc()), secrets)
                write_atomic(task.directory / host.STDERR, trace.encode())
                words = printable(scrub(str(error), secrets))
                # Without the cause: its own words may hold what was taken out here.
                raise ReviewerError(
                    f"the reviewer {self.name} raised {type(error).__name__}: {words}. All of it: "
                    f"{task.directory / host.STDERR}",
                    reason="crashed",
                ) from None
            write_atomic(task.directory / host.OUT, raw)
            return read_review(
                raw,
                format="native",
                task=task,
                workspace=workspace,
                reviewer=self.name,
                raw_name=host.OUT,
                duration=time.monotonic() - began,
            )
