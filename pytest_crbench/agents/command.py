"""Any program that edits a working tree, as a coding agent: ``cmd:TEMPLATE``.

It is a program that its user trusts: it runs on the host, in a private copy of the two-commit repository in a
temporary folder whose name tells nothing, in its own process group, with a time limit.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.errors import AgentError, StageError, UsageError, outside_failure
from ..core.model import Revision
from ..core.status import OUTSIDE_EXIT
from ..host import processes
from ..host import programs as commands
from ..host.files import write_atomic
from ..text.printable import clean, decode, printable
from ..text.secrets import passed_through, scrub, scrubbed
from . import prompt
from .usage import Budget, changes_nothing, endpoint_failure, read_usage

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..core.agent import AgentTask
    from ..core.enclosure import Completed
    from ..core.model import ReviewComment
    from ..models.usage import Ledger

PLACEHOLDERS = ("workspace", "review", "review_md", "diff", "prompt", "usage")
_OPTION = "--crbench-agent=cmd:"
UNCHANGED = "the agent ended with exit status 0 and changed no file"
_OUTPUT_LIMIT = 8 * 1024**2


def command_agent(text: str, *, cwd: Path, bounded: bool = False, **options: Any) -> CommandAgent:
    """Make the agent of a command template; a relative path of its program is relative to ``cwd``.

    Raises:
        UsageError: for a bad template, a program that there is not, or, where the run's budget is
            ``bounded``, one that does not tell what it uses.
    """
    template = commands.template(text, PLACEHOLDERS, what=_OPTION, cwd=cwd)
    if bounded and not template.uses("usage"):
        raise UsageError(
            "--crbench-llm max-total-tokens and max-total-cost hold for a cmd: agent only if it tells what "
            "it used: let it write a JSON object of numbers (prompt_tokens, completion_tokens, cost) to "
            "the file {usage}"
        )
    return CommandAgent(template, **options)


class CommandAgent:
    """Runs a program in a checkout of head and takes what it leaves there as the revision."""

    runs_on_clean_review = False

    def __init__(
        self,
        template: commands.Template,
        *,
        timeout: float,
        environment: Sequence[str] = (),
        name: str | None = None,
        version: str | None = None,
        ledger: Ledger | None = None,
    ) -> None:
        program = f"cmd:{Path(template.words[0]).name}"
        self.template = template
        self.timeout = timeout
        self.environment = tuple(environment)
        self.budget = Budget(ledger)
        self.name = name or program
        self.fingerprint: Mapping[str, Any] = {
            "name": program,
            "version": 1,
            "program_version": version,
            # A key in the command line itself is no business of the results.
            "template": scrubbed(scrub(template.text, self._secrets())),
            "timeout": timeout,
            **commands.variables_fingerprint(self.environment),
            "prompts": prompt.digest(),
        }

    def revise(self, task: AgentTask) -> Revision:
        """Run the program; at the time limit what it has done so far is the revision.

        Raises:
            AgentError: ``crashed`` if it ends with another status than 0 or cannot be started,
                ``agent-endpoint`` if it changed nothing and says that its endpoint failed; or if the patch
                is too large.
            InfraError: if the disk fails, ``budget``, or ``agent-outside`` (exit status `OUTSIDE_EXIT`).
        """
        self.budget.check()
        began = time.monotonic()
        with commands.private_folder() as place:
            checkout, usage_file = place / "repository", place / "usage.json"
            task.checkout(checkout)
            inputs = _inputs(task, place / "input")
            values = {"workspace": str(checkout), "usage": str(usage_file), **inputs}
            done = self._run(task, self.template.fill(values), checkout, place)
            used, warnings = read_usage(usage_file)
            given = Path(inputs["prompt"]).stat().st_size
            self.budget.charge(used, given=given, written=len(done.stdout))
            try:
                self._judge(task, done)
                patch = task.capture(checkout)
                unchanged = not done.timed_out and changes_nothing(patch)
                if unchanged:
                    self._look_for_failure(task, done)
            except StageError as error:
                error.usage = used
                raise
        stop_reason = "time-limit" if done.timed_out else "unchanged" if unchanged else "finished"
        warnings = (*warnings, UNCHANGED) if unchanged else warnings
        return Revision(patch, self.name, stop_reason, warnings, time.monotonic() - began, used)

    def _look_for_failure(self, task: AgentTask, done: Completed) -> None:
        """Raise if the output says that the endpoint failed, in words that the agent was not given."""
        request, comments = task.pull_request, task.review.comments
        given = [request.title, request.body, decode(task.diff), json.dumps(native(comments))]
        given += [text or "" for c in comments for text in (c.body, c.suggestion, c.path, c.rule, c.severity)]
        output = scrub(decode(done.stdout) + "\n" + decode(done.stderr), self._secrets())
        if said := endpoint_failure(output, "\n".join(given)):
            raise AgentError(
                f"{self.name} changed no file, and its output says that its endpoint failed: "
                f"{printable(said, 200)}. See agent.stdout.txt in {task.directory}. Repeat it later with "
                "--crbench-resume --crbench-rerun-errors; until then the gate counts it as missed.",
                reason="agent-endpoint",
            )

    def _run(self, task: AgentTask, argv: Sequence[str], checkout: Path, place: Path) -> Completed:
        variables = commands.environment(self.environment, place / "tmp")
        task.log(f"agent: {printable(scrub(self.template.text, self._secrets()), 200)}")
        try:
            done = processes.run(
                argv, cwd=checkout, env=variables, timeout=self.timeout, output_limit=_OUTPUT_LIMIT
            )
        except OSError as error:
            raise AgentError(
                f"cannot start {argv[0]}: {error.strerror}; check --crbench-agent", reason="crashed"
            ) from error
        secrets = self._secrets()
        for stream, output in (("stdout", done.stdout), ("stderr", done.stderr)):
            write_atomic(task.directory / f"agent.{stream}.txt", scrub(output, secrets))
        if done.timed_out:
            task.log(f"agent: killed after {self.timeout:g} s")
        return done

    def _judge(self, task: AgentTask, done: Completed) -> None:
        if done.timed_out or done.returncode == 0:
            return
        said = scrub(decode(done.stderr or done.stdout), self._secrets()).strip().rpartition("\n")[2]
        if done.returncode == OUTSIDE_EXIT:
            raise outside_failure("agent", self.name, said or "(no output)")
        raise AgentError(
            f"{self.name} ended with {_ending(done.returncode)}: {printable(said) or '(no output)'}."
            f"{commands.advice_on_length(said)} See agent.stderr.txt and agent.stdout.txt in "
            f"{task.directory}.",
            reason="crashed",
        )

    def _secrets(self) -> tuple[str, ...]:
        return passed_through(self.environment)


def native(comments: Sequence[ReviewComment]) -> dict[str, Any]:
    """Return a review in the native format, as plain JSON; what a comment does not have is left out."""
    return {"comments": [_native(comment) for comment in comments]}


def _native(comment: ReviewComment) -> dict[str, Any]:
    value = {
        "id": comment.id,
        "level": comment.level,
        "path": comment.path,
        "lines": list(comment.lines) if comment.lines else None,
        "side": comment.side,
        "body": comment.body,
        "suggestion": comment.suggestion,
        "severity": comment.severity,
        "rule": comment.rule,
    }
    return {key: item for key, item in value.items() if item is not None}


def _inputs(task: AgentTask, folder: Path) -> dict[str, str]:
    """Write what the program may read, outside its checkout; returns the paths by placeholder."""
    comments = task.review.comments
    contents = {
        "review": (
            "review.json",
            json.dumps(native(comments), indent=1, ensure_ascii=False).encode("utf-8", "replace"),
        ),
        "review_md": ("review.md", clean(prompt.findings(comments)).encode()),
        "diff": ("pull-request.diff", task.diff),
        "prompt": ("prompt.md", clean(prompt.instance(task.pull_request, comments)).encode()),
    }
    for file, content in contents.values():
        write_atomic(folder / file, content)
    return {name: str(folder / file) for name, (file, _content) in contents.items()}


def _ending(returncode: int | None) -> str:
    if returncode is not None and returncode < 0:
        return f"signal {-returncode}"
    return f"exit status {returncode}"
