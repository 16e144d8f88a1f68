"""The attacks of this folder as a table: ``python tests/attacks/listing.py [--write]``, for docs/attacks.md.

The convention, for whoever adds an attack:

- It lies in ``tests/attacks/test_attacks_<topic>_<thing>.py``. Every test function of such a file is one
  attack, however often it is parametrised; tests of something else go to ``test_frame_*.py``. The first line
  of the file's docstring is the heading of its part of the table.
- Its name says the attack. Its docstring tells it (who does what, and what that would gain) in one paragraph,
  then names what stops it, and where that holds::

      Defence: canaries (scoring/tests/pytest_runner.py, scoring/tests/decide.py)
      Defence: reports bound early (scoring/tests/inside/recorder.py)
      Holds: docker, local

  ``Defence: NAME (MODULES)`` may be there more than once; the modules are files below ``pytest_crbench``.
  ``Holds`` is ``docker``, ``local`` or both, if the sandbox holds it; without that line it holds everywhere.
- It first succeeds against a naive program in the same file, so that it is known to be real; then not against
  ours.
- Every NAME has a mutation in ``tests/attacks/mutations/*.toml`` that takes the defence out, and the attacks
  that it lets through (see ``bench/defences.py``).

If a rebase meets a conflict in the table of docs/attacks.md: take either side, and write it anew.
"""

from __future__ import annotations

import ast
import re
import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PAGE = ROOT / "docs" / "attacks.md"
_BEGIN, _END = "<!-- attacks: begin -->\n", "<!-- attacks: end -->\n"
_DEFENCE = re.compile(r"Defence: (?P<name>[^()]+?) \((?P<modules>[^()]+)\)")
_HOLDS = {"docker", "local"}


@dataclass(frozen=True)
class Defence:
    """A mechanism by its name, and the files below ``pytest_crbench`` that hold it."""

    name: str
    modules: tuple[str, ...]


@dataclass(frozen=True)
class Attack:
    """One test function."""

    id: str
    topic: str
    name: str
    story: str
    defences: tuple[Defence, ...]
    holds: str


def attacks(folder: Path = HERE) -> list[Attack]:
    """Read every attack of the folder without importing it.

    Raises:
        ValueError: naming the test whose docstring does not follow the convention, and what is missing.
    """
    found: list[Attack] = []
    for file in sorted(folder.glob("test_attacks_*.py")):
        module = ast.parse(file.read_text("utf-8"))
        topic = (ast.get_docstring(module) or file.stem).splitlines()[0].rstrip(".")
        for node in module.body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                found.append(_attack(f"tests/attacks/{file.name}::{node.name}", topic, node))
    return found


def _attack(name: str, topic: str, node: ast.FunctionDef) -> Attack:
    story, _, rest = (ast.get_docstring(node) or "").partition("\n\n")
    if not story:
        raise ValueError(f"{name}: no docstring that tells the attack")
    defences: list[Defence] = []
    holds = "everywhere"
    for line in _joined(rest):
        if line.startswith("Holds: "):
            holds = line.removeprefix("Holds: ").rstrip(".")
            if not set(holds.split(", ")) <= _HOLDS:
                raise ValueError(f"{name}: {line!r}: expected docker, local, or both")
        elif match := _DEFENCE.fullmatch(line.rstrip(".")):
            defences.append(Defence(match["name"], tuple(match["modules"].split(", "))))
        elif line.startswith("Defence:"):
            raise ValueError(f"{name}: {line!r}: expected 'Defence: NAME (MODULE, MODULE)'")
    if not defences:
        raise ValueError(f"{name}: no line 'Defence: NAME (MODULE, MODULE)'")
    title = node.name.removeprefix("test_").replace("_", " ")
    return Attack(name, topic, title, " ".join(story.split()), tuple(defences), holds)


def _joined(text: str) -> list[str]:
    """The statements of the docstring's end; one goes on over lines until the next keyword."""
    lines: list[str] = []
    for line in map(str.strip, text.splitlines()):
        if line.startswith(("Defence:", "Holds:")) or not lines:
            lines.append(line)
        elif line:
            lines[-1] += f" {line}"
    return lines


def table(found: list[Attack]) -> str:
    """The part of docs/attacks.md that this program writes."""
    topics = list(dict.fromkeys(attack.topic for attack in found))
    text = f"{len(found)} attacks.\n"
    for topic in topics:
        text += f"\n### {topic}\n\n| attack | what it tries | defence | holds in |\n|---|---|---|---|\n"
        for attack in found:
            if attack.topic == topic:
                cells = (attack.name, attack.story, _defences(attack), attack.holds)
                text += f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |\n"
    return text


def _defences(attack: Attack) -> str:
    return "; ".join(f"{d.name} (`{'`, `'.join(d.modules)}`)" for d in attack.defences)


def page(text: str, found: list[Attack]) -> str:
    """Return docs/attacks.md with a table that is current."""
    before, begin, rest = text.partition(_BEGIN)
    _old, end, after = rest.partition(_END)
    if not (begin and end):
        raise ValueError(f"{PAGE.name} lacks the lines {_BEGIN.strip()} and {_END.strip()}")
    return f"{before}{begin}\n{table(found)}\n{end}{after}"


if __name__ == "__main__":
    if "--write" in sys.argv[1:]:
        PAGE.write_text(page(PAGE.read_text("utf-8"), attacks()), "utf-8")
    else:
        print(table(attacks()), end="")
