"""A reviewer that lets a model look at the repository itself, by shell commands in a sandbox."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...core.errors import InfraError, ReviewerError
from ...core.model import File
from ...host import digest
from ...host.files import write_atomic
from ...models import prompts, tools
from ...models.adapting import Adapting
from ...models.conversation import Bounds, Conversation, Trajectory, Words
from ...models.load import price_of
from ...text.printable import decode
from ...text.secrets import scrubbed
from .. import host
from ..formats.base import INPUT_LIMIT
from ..reading import read_review
from . import prompt

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...core.model import Review
    from ...core.reviewer import ReviewTask
    from ...core.sandbox import Sandbox
    from ...core.settings import Settings
    from ...models.client import Model

#: Raised when the same conversation would become another review.
_VERSION = 2
TRAJECTORY = "review.trajectory.json"
_REVIEW, _DIFF = "review.txt", "pull-request.diff"
_WORDS = Words(
    empty="Your answer was empty. Call `bash`, or end your work with a sentence once the review is written.",
    idle="You have not run any command, so there is no review. Use the `bash` tool to look at the "
    "change and to write the file; <end/> alone says that there is nothing to say.",
    who="review",
)


class AgentReviewer:
    """Opens a sandbox with head, lets the model work in it, and reads the file that it leaves."""

    shareable = False  # its answers are shared already, one by one
    needs_sandbox = True

    def __init__(self, settings: Settings, model: Model) -> None:
        self.name = settings.reviewer_name or "llm:agent"
        self.model = Adapting(model)
        self.bounds = Bounds(
            timeout=settings.reviewer_timeout,
            max_steps=settings.max_steps,
            max_tokens=settings.max_tokens,
            max_cost=settings.max_cost,
            price=price_of(settings),
            command_timeout=settings.agent_command_timeout,
        )
        self.fingerprint: Mapping[str, Any] = {
            "kind": "llm",
            "mode": "agent",
            **model.identity,
            "version": _VERSION,
            "prompts": prompts.digest_of(*prompt.AGENT_TEMPLATES),
            "tool": digest.of(tools.BASH),
            "limits": self.bounds.as_dict(),
        }

    def review(self, task: ReviewTask) -> Review:
        """Review one pull request; what the model changes in the repository is gone with the sandbox.

        Raises:
            ReviewerError: ``missing`` if the model wrote no file, ``unreadable`` or ``empty``.
            InfraError: if the endpoint, the engine, the run's budget or the disk failed.
        """
        if task.sandbox is None:
            raise InfraError(
                f"{self.name} looks at the code, and there is none without a repository; leave "
                "--crbench-offline out",
                reason="no-repository",
            )
        began = time.monotonic()
        with task.sandbox() as sandbox:
            root = sandbox.workdir
            home = self._home(sandbox)
            sandbox.put([File(_DIFF, task.diff)], home)
            conversation = self._conversation(task, sandbox)
            with conversation.accounted():
                stop_reason = conversation.run()
                raw = self._file(sandbox, f"{home}/{_REVIEW}", stop_reason, task)
        with conversation.accounted():
            write_atomic(task.directory / host.OUT, raw)
            review = read_review(
                scrubbed(raw),
                format="tagged",
                task=task,
                workspace=Path(root),
                reviewer=self.name,
                raw_name=host.OUT,
                duration=time.monotonic() - began,
            )
        said, noted = [*self.model.warnings], dict(review.noted)
        if stop_reason != "finished":
            said.append(f"the model was stopped ({stop_reason}); what it had written is the review")
            noted["reviewer-stopped"] = 1
        return replace(review, warnings=(*said, *review.warnings), usage=conversation.totals(), noted=noted)

    def _conversation(self, task: ReviewTask, sandbox: Sandbox) -> Conversation:
        messages = prompt.agent_messages(
            task.pull_request,
            command_timeout=self.bounds.command_timeout,
            output_limit=self.bounds.output_limit,
            # Not the path: where a sandbox lies differs from one to the next, and so would the question.
            file=f"~/{_REVIEW}",
            diff_file=f"~/{_DIFF}",
        )
        self.model.prepare()
        trajectory = Trajectory(
            task.directory, self.fingerprint, self.model.secrets, messages, name=TRAJECTORY
        )
        return Conversation(
            self.model, sandbox, self.bounds, trajectory, _WORDS, repeat=task.repeat, log=task.log
        )

    def _home(self, sandbox: Sandbox) -> str:
        """Return what ``~`` is for the model's commands."""
        said = sandbox.exec(["/bin/sh", "-c", 'printf %s "$HOME"'], timeout=self.bounds.command_timeout)
        home = decode(said.stdout).strip()
        if not home.startswith("/"):
            raise InfraError("the sandbox has no home folder", reason="sandbox")
        return home

    def _file(self, sandbox: Sandbox, path: str, stop_reason: str, task: ReviewTask) -> bytes:
        try:
            return sandbox.get(path, INPUT_LIMIT)
        except FileNotFoundError:
            raise ReviewerError(
                f"the model wrote no review: there is no file ~/{_REVIEW} ({stop_reason}). See "
                f"{TRAJECTORY} in {task.directory}.",
                reason="missing",
            ) from None
        except InfraError as error:
            if error.reason != "too-large":
                raise
            raise ReviewerError(
                f"the model's review has more than {INPUT_LIMIT} bytes", reason="unreadable"
            ) from error
