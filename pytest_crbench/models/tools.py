"""The one tool of a model at work: a shell command in the sandbox, and what the model is told of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..core.model import File
from ..text import plainjson
from ..text.fences import clip, visible
from ..text.printable import clean, decode

if TYPE_CHECKING:
    from ..core.sandbox import ExecResult, Sandbox
    from .completion import ToolCall

BASH: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "bash",
        "description": "Run one shell command in the root of the repository and return its output.",
        "parameters": {
            "type": "object",
            "properties": {"command": {"type": "string", "description": "The command."}},
            "required": ["command"],
        },
    },
}
#: Linux takes at most 128 KiB in one argument; a longer command goes through a file.
_ARGUMENT_LIMIT = 100_000


class FormatError(Exception):
    """A tool call that cannot be carried out; its message is for the model."""


def read_command(call: ToolCall) -> str:
    """Return the command of a call of the tool.

    Raises:
        FormatError: another tool, arguments that are not JSON, or no command in them.
    """
    if call.name != "bash":
        raise FormatError(f"there is no tool {call.name[:80]!r}; the only one is `bash`")
    try:
        arguments = plainjson.parse(call.arguments)
    except ValueError as error:
        raise FormatError(f"the arguments are not JSON ({error})") from None
    command = arguments.get("command") if isinstance(arguments, dict) else None
    if not isinstance(command, str) or not command.strip():
        raise FormatError('the arguments must be a JSON object with "command", a text that is not empty')
    if "\0" in command:
        raise FormatError("the command holds a NUL character, which no command can")
    return clean(command)


def find_shell(sandbox: Sandbox, timeout: float) -> str:
    """Return the shell that commands run in: bash where the sandbox has it, else sh.

    Raises:
        InfraError: if the sandbox is gone.
    """
    found = sandbox.exec(["/bin/sh", "-c", "command -v bash"], timeout=timeout)
    path = decode(found.stdout).strip()
    return path if found.returncode == 0 and path.startswith("/") else "/bin/sh"


def run(sandbox: Sandbox, shell: str, command: str, timeout: float) -> ExecResult:
    """Run a command in a new shell in the tree; a command too long for an argument goes through a file.

    Raises:
        InfraError: if the sandbox is gone or its disk is full.
    """
    data = command.encode()
    if len(data) <= _ARGUMENT_LIMIT:
        return sandbox.exec([shell, "-c", command], timeout=timeout)
    sandbox.put([File("command.sh", data)], sandbox.scratch)
    return sandbox.exec([shell, f"{sandbox.scratch}/command.sh"], timeout=timeout)


def observation(result: ExecResult, timeout: float, limit: int) -> str:
    """Say what a command did, within about ``limit`` characters.

    Holds no duration and nothing else that differs between two runs of the same command, so that the same
    conversation is the same question.
    """
    if result.timed_out:
        status = f"killed: it did not end within {timeout:g} s; it and all that it started is gone"
    elif result.oom_killed:
        status = "killed: it used too much memory"
    elif result.returncode is None:
        status = "killed by a limit of the sandbox"
    else:
        status = f"exit status {result.returncode}"
    out, err = (visible(decode(stream)) for stream in (result.stdout, result.stderr))
    parts = [out.rstrip("\n")] if out.strip() else []
    if err.strip():
        parts.append(f"[standard error]\n{err.rstrip()}")
    return f"{status}\n{clip(chr(10).join(parts) or '(no output)', limit)}"
