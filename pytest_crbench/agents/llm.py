"""The default coding agent: a plain loop around a model with one tool, a shell in the sandbox."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from ..core.errors import InfraError, UnusableRevisionError
from ..core.model import Revision
from ..host import digest, trees
from ..models import tools
from ..models.conversation import Bounds, Conversation, Trajectory, Words
from . import prompt

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from ..core.agent import AgentTask
    from ..core.model import ReviewComment
    from ..core.sandbox import Sandbox
    from ..models.client import Model

_WORDS = Words(
    empty="Your answer was empty. Call `bash`, or end your work with a sentence on what you changed.",
    idle="You have not run any command, so nothing has been changed. Use the `bash` tool to do the work. "
    "If nothing is to be changed, say so again.",
)
#: Raised when the loop changes in a way that changes revisions.
_VERSION = 1


class LlmAgent:
    """Edits the code by shell commands that a model asks for (see `loop.Conversation`)."""

    name = "llm"
    runs_on_clean_review = False

    def __init__(self, model: Model, bounds: Bounds) -> None:
        self.model = model
        self.bounds = bounds
        self.fingerprint: Mapping[str, Any] = {
            "name": self.name,
            "version": _VERSION,
            **model.identity,
            "prompts": prompt.digest(),
            "tool": digest.of(tools.BASH),
            "limits": bounds.as_dict(),
        }

    def revise(self, task: AgentTask) -> Revision:
        """Make one revision; a limit reached is a stop reason, and the work so far is the revision.

        Raises:
            UnusableRevisionError: if the patch is too large.
            InfraError: if the model endpoint, the engine, the disk or the run's budget failed.
        """
        if not task.review.comments:
            return Revision(b"", self.name, "clean-review")
        self.model.prepare()
        began = time.monotonic()
        trajectory = Trajectory(
            task.directory,
            self.fingerprint,
            self.model.secrets,
            messages=self._opening(task, task.review.comments),
        )
        with trees.temporary_folder() as folder:
            edited = folder / "tree"
            edited.mkdir()
            with task.sandbox() as sandbox:
                conversation = Conversation(
                    self.model,
                    sandbox,
                    self.bounds,
                    trajectory,
                    _WORDS,
                    repeat=task.repeat,
                    log=task.log,
                    control=self._opening(task, ()),
                )
                with conversation.accounted():
                    stop_reason = conversation.run()
                    _export(sandbox, edited)
            with conversation.accounted():
                patch = task.capture(edited)
        return Revision(
            patch=patch,
            agent=self.name,
            stop_reason=stop_reason,
            duration=time.monotonic() - began,
            usage=conversation.totals(),
        )

    def _opening(self, task: AgentTask, comments: Sequence[ReviewComment]) -> list[dict[str, Any]]:
        bounds = self.bounds
        rules = prompt.system(command_timeout=bounds.command_timeout, output_limit=bounds.output_limit)
        return [
            {"role": "system", "content": rules},
            {"role": "user", "content": prompt.instance(task.pull_request, comments)},
        ]


def _export(sandbox: Sandbox, edited: Path) -> None:
    """Copy the edited tree out; one that is too much to be copied is not the machine's doing.

    Raises:
        UnusableRevisionError: ``too-large``.
        InfraError: if the engine or the disk failed.
    """
    try:
        sandbox.export(edited)
    except InfraError as error:
        if error.reason != "too-large":
            raise
        raise UnusableRevisionError(str(error), reason=error.reason) from error
