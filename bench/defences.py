"""Takes each defence out of a copy of the package, and shows that an attack then succeeds.

    python bench/defences.py [WORD ...]

tries the mutations of ``tests/attacks/mutations/*.toml`` whose defence, file or tests contain a WORD (all
without one), prints a table, and exits with 1 if a defence can go unnoticed. A mutation is

    [[mutation]]
    defence = "canaries"                      # the NAME in an attack's docstring
    file = "pytest_crbench/scoring/tests/decide.py"
    old = '''if revised.canaries == "bent":'''  # occurs exactly once
    new = "if False:"
    tests = ["tests/attacks/test_attacks_x.py::test_y"]   # one of these must fail, by an assertion
    says = "the attack made a pass"           # optional: and its message must contain this
    also = [{ file = "…", old = "…", new = "…" }]   # optional: what else the defence consists of

Tests run as always: they need what the attack suite needs. CRBENCH_TEST_CACHE saves building environments.
The last column is what the failing test said: it should tell that the attack succeeded, not that all broke.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
import xml.etree.ElementTree as ET
from dataclasses import dataclass, replace
from pathlib import Path

ROOT = Path(__file__).parents[1]
MUTATIONS = ROOT / "tests" / "attacks" / "mutations"
_LEFT_OUT = shutil.ignore_patterns(".git", ".venv", "__pycache__", ".*_cache", ".crbench", "node_modules")
_TIMEOUT = 600
#: How a test says that an attack succeeded; anything else (an import error, a crash) shows nothing.
_ASSERTIONS = ("AssertionError", "assert ", "Failed: DID NOT RAISE", "Failed: attack")


@dataclass(frozen=True)
class Mutation:
    """One defence taken out: ``old`` becomes ``new`` in ``file``, and one of ``tests`` must notice."""

    defence: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]
    says: str = ""
    also: tuple[dict[str, str], ...] = ()

    @property
    def edits(self) -> list[Mutation]:
        """Each edit as a mutation of one file."""
        more = (replace(self, also=(), file=e["file"], old=e["old"], new=e["new"]) for e in self.also)
        return [self, *more]

    def matches(self, words: list[str]) -> bool:
        """Whether a word occurs in the defence's name, its file or its tests."""
        return any(word in " ".join([self.defence, self.file, *self.tests]) for word in words)

    def applied(self, source: str) -> str:
        """Return the source without the defence.

        Raises:
            ValueError: if ``old`` does not occur exactly once, or ``new`` changes nothing.
        """
        if source.count(self.old) != 1 or self.old == self.new:
            raise ValueError(
                f"{self.defence}: {self.old!r} occurs {source.count(self.old)} times in {self.file}; "
                "make the mutation fit the code again"
            )
        return source.replace(self.old, self.new)


@dataclass(frozen=True)
class Trial:
    """What became of a mutation: the test that failed as it must ("" if none), and what was said."""

    noticed: str
    remark: str
    seconds: float


def read(folder: Path = MUTATIONS) -> list[Mutation]:
    """Read every mutation, in order of files.

    Raises:
        ValueError: naming the file of an entry that lacks a key.
    """
    found = []
    for file in sorted(folder.glob("*.toml")):
        for entry in tomllib.loads(file.read_text("utf-8")).get("mutation", []):
            try:
                found.append(Mutation(**{**entry, **{k: tuple(entry.get(k, ())) for k in ("tests", "also")}}))
            except (KeyError, TypeError) as error:
                raise ValueError(f"{file.name}: {entry.get('defence', entry)}: {error}") from error
    return found


def attempt(mutation: Mutation, copy: Path) -> Trial:
    """Apply a mutation to a copy of the repository, run its tests there, and put the copy back."""
    originals: dict[Path, str] = {}
    for edit in mutation.edits:
        target = copy / edit.file
        originals.setdefault(target, target.read_text("utf-8"))
        target.write_text(edit.applied(target.read_text("utf-8")), "utf-8")
    report = copy / "report.xml"
    report.unlink(missing_ok=True)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-x", f"--junitxml={report}"]
    began = time.monotonic()
    try:
        done = subprocess.run(
            [*command, *mutation.tests],
            cwd=copy,
            env={**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=_TIMEOUT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Trial("", f"no end within {_TIMEOUT} s", time.monotonic() - began)
    finally:
        for target, original in originals.items():
            target.write_text(original, "utf-8")
    seconds = time.monotonic() - began
    if not report.exists():
        return Trial("", f"pytest wrote no report: {done.stdout.strip()[-200:]}", seconds)
    return _judged(report, mutation.says, seconds)


def _judged(report: Path, says: str, seconds: float) -> Trial:
    remarks, ran = [], 0
    for case in ET.parse(report).iter("testcase"):
        ran += case.find("skipped") is None
        for found in [*case.findall("failure"), *case.findall("error")]:
            message = found.get("message", "")
            said = message.partition("\n")[0][:160].replace("|", "\\|")
            if found.tag == "failure" and message.startswith(_ASSERTIONS) and says in message:
                return Trial(str(case.get("name")), said, seconds)
            remarks.append(said)
    return Trial("", remarks[0] if remarks else "all passed" if ran else "no test ran", seconds)


def main(words: list[str]) -> int:
    """Try the mutations that a word names; whether one went unnoticed decides the exit status."""
    chosen = [m for m in read() if not words or m.matches(words)]
    noticed = 0
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "copy"
        shutil.copytree(ROOT, copy, ignore=_LEFT_OUT, symlinks=True)
        print("| defence | taken out of | noticed by | s | how |\n|---|---|---|---|---|")
        for mutation in chosen:
            trial = attempt(mutation, copy)
            noticed += bool(trial.noticed)
            cells = (mutation.defence, mutation.file, trial.noticed or "**nothing**", f"{trial.seconds:.0f}")
            print(f"| {' | '.join(cells)} | {trial.remark} |", flush=True)
    print(f"\n{noticed} of {len(chosen)} mutations noticed")
    return 0 if chosen and noticed == len(chosen) else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Take each defence out and see which attack test fails.")
    parser.add_argument(
        "words", nargs="*", help="only mutations whose defence, file or test holds such a word"
    )
    sys.exit(main(parser.parse_args().words))
