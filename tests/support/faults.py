"""The fault suite's form: what each test's docstring says, and the page that is made of it.

``python -m support.faults docs/faults.md`` (in ``tests/``) writes the page anew. A docstring is

    The engine is stopped in the middle of a run.

    Anything that a reader should know besides. A long message is wrapped and goes on to the end; where it
    depends on the moment, ``//`` stands between messages of which one is told.

    Status: infra_error
    Message: the Docker engine does not answer

``Status`` names what the checks that the fault hits become: statuses of ours, or ``none`` where the run
ends before there is a check. ``Message`` is a part of what the user is told; the fixture ``fault`` holds
both, and a test that does not look for its message fails.
"""

from __future__ import annotations

import ast
import inspect
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_crbench.core.status import Status

if TYPE_CHECKING:
    from collections.abc import Iterator

FOLDER = Path(__file__).parent.parent / "faults"
#: What a run that ends before its first check has.
NONE = "none"
_STATUSES = {NONE, *(status.value for status in Status)}
_HEAD = """\
# Faults

What becomes of a run when something around it breaks. Each line is a test in `tests/faults` that injects
the fault for real (a signal, a limit of the kernel, a full file system, a stopped engine, a server that
misbehaves) and asserts the status, a part of the message that the user is told, that nothing measured is
lost (after the fault is gone, `--crbench-resume --crbench-rerun-errors` gives the verdicts of an undisturbed
run and repeats only what was not measured), and that nothing is left behind.

`infra_error` and `agent_error` are in no rate; `none` means that the run ends before there is a check. This
page is generated: `cd tests && python -m support.faults ../docs/faults.md`.

`python bench/killed_runs.py` kills one of two runs on one cache ten times at random; a share of it is below.
"""


@dataclass(frozen=True)
class Fault:
    """One test of the suite: what is broken, the statuses that follow, a part of the message."""

    module: str
    test: str
    what: str
    statuses: tuple[str, ...]
    message: str


class Told:
    """What the fixture ``fault`` gives: the fault, and whether its message was looked for."""

    def __init__(self, fault: Fault) -> None:
        self.statuses = fault.statuses
        self.message = fault.message
        self.looked = False

    @property
    def status(self) -> str:
        """The only status."""
        (status,) = self.statuses
        return status

    def assert_told(self, text: str) -> None:
        """The message (or one of several) is a part of ``text``, whatever its lines."""
        self.looked = True
        plain = " ".join(text.split())
        assert any(message in plain for message in self.message.split(" // ")), text


def parse(module: str, test: str, docstring: str | None) -> Fault:
    """Read the docstring of one test.

    Raises:
        ValueError: if it has not the form above.
    """
    lines = inspect.cleandoc(docstring or "").splitlines()
    for index, line in enumerate(lines):
        if line.startswith("Message: "):
            lines[index:] = [" ".join(" ".join(lines[index:]).split())]
    fields = dict(line.split(": ", 1) for line in lines if line.startswith(("Status: ", "Message: ")))
    if not lines or not lines[0].endswith(".") or set(fields) != {"Status", "Message"}:
        raise ValueError(f"{module}::{test}: wants what is broken, and lines 'Status: …' and 'Message: …'")
    statuses = tuple(word.strip() for word in fields["Status"].split(","))
    if unknown := set(statuses) - _STATUSES:
        raise ValueError(f"{module}::{test}: no such status: {', '.join(unknown)}")
    return Fault(module, test, lines[0].rstrip("."), statuses, fields["Message"].strip())


def faults(folder: Path = FOLDER) -> Iterator[Fault]:
    """Yield the faults of all modules, in the order of the files."""
    for path in sorted(folder.glob("test_faults_*.py")):
        if path.stem == "test_faults_listing":
            continue
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                if "fault" not in {argument.arg for argument in node.args.args}:
                    raise ValueError(f"{path.stem}::{node.name}: wants the fixture 'fault'")
                yield parse(path.stem, node.name, ast.get_docstring(node))


def page() -> str:
    """Return docs/faults.md."""
    text, module = _HEAD, ""
    for fault in faults():
        if fault.module != module:
            module = fault.module
            text += f"\n## `{module}.py`\n\n| broken | status | told |\n|---|---|---|\n"
        cells = (fault.what, ", ".join(f"`{s}`" for s in fault.statuses), fault.message)
        text += "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"
    return text


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(page(), encoding="utf-8")
