"""A reviewer that breaks in another way on each pull request, and the same one healed."""

from __future__ import annotations

import random
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

from support.benchmarks import Pull, run, write_dataset
from support.programs import Programs, write_programs
from support.stories import RESUME, Story, crbench_clean, own_cache
from support.strays import processes

if TYPE_CHECKING:
    from support.faults import Told

#: The folder of the tests, from which a run takes what it measures itself with.
TESTS = Path(__file__).parent.parent
_REVIEWER = """\
instance=$(sed -n 's:^+++ b/shop/\\([a-z]\\)[0-9]*_.py$:\\1:p' "$1" | head -1)
out=$2
echo "$instance $$ $PPID $TASK_SESSION" >> {log}/reviews
say() {{
  printf '{{"comments": [{{"path": "shop/%s1_.py", "lines": [2, 2], "body": "This is wrong."}}]}}' "$instance"
}}
answer() {{ if [ -n "$out" ]; then say > "$out"; else say; fi; }}
case $instance in
{cases}
*) answer ;;
esac
"""


def write_reviewer(log: Path, faults: dict[str, str]) -> Programs:
    """Write the reviewer and a working agent; ``faults`` are shell commands by an instance's first letter.

    ``say`` prints a good review, ``answer`` puts it where it is wanted. An empty ``faults`` heals it.
    """
    programs = write_programs(log)
    cases = "\n".join(f"{letter})\n{commands}\n;;" for letter, commands in faults.items())
    (log / "reviewer.sh").write_text(_REVIEWER.format(log=shlex.quote(str(log)), cases=cases))
    return programs


_MEMORY = """\
import os, pathlib
from support.memory import peak

def pytest_runtest_logfinish():
    pathlib.Path({folder!r}, str(os.getpid())).write_text(str(peak()))
"""


def tell(story: Story, cache: Path, faults: dict[str, str], *arguments: str, out: bool) -> None:
    """Run a pull request for each fault and a sound one, "a"; then resume with the reviewer healed.

    ``{nap}`` in a fault is a number of seconds that occurs nowhere else on this machine. With ``out`` the
    review is wanted in a file. Every process of the first run notes its peak memory after each check.
    """
    pulls = [Pull(letter, fixable=(f"{letter}1",)) for letter in ("a", *faults)]
    dataset = write_dataset(story.folder / "small", pulls)
    nap = f"7{random.randrange(10**9):09d}"
    broken = {letter: text.replace("{nap}", nap) for letter, text in faults.items()}
    programs = write_reviewer(story.folder / "programs", broken)
    memory, temporary = story.folder / "memory", story.folder / "tmp"
    memory.mkdir()
    temporary.mkdir()
    (story.folder / "peaks.py").write_text(_MEMORY.format(folder=str(memory)))
    own = own_cache(story.folder / "cache", cache)
    options = [programs.reviewer + (" {out}" if out else ""), programs.agent, *arguments]
    env = {"TMPDIR": str(temporary), "PYTHONPATH": f"{story.folder}:{TESTS}"}
    done = run(story.vendor, dataset, own, "-p", "peaks", *options, env=env)
    peaks = [int(path.read_text()) for path in memory.iterdir()]
    story.keep("first", done, left=len(processes(f"sleep {nap}")), peaks=peaks)
    write_reviewer(programs.log, {})
    done = run(story.vendor, dataset, own, *RESUME, env=env)
    crbench_clean(own)
    story.keep(
        "again",
        done,
        reviews=programs.reviews(),
        temporary=[path.name for path in temporary.iterdir() if not path.name.startswith("pytest-of-")],
        sandboxes=[path.name for path in own.glob("sandboxes/*")],
    )


def look(story: Story, letter: str, fault: Told) -> dict[str, Any]:
    """Assert what is the same for every fault of a reviewer; its row of the first run."""
    first, again = story.statuses("first"), story.statuses("again")
    assert first["a"] == again["a"] == "passed", "a sound review beside a broken one is measured"
    assert first[letter] == fault.status, story.rows("first")[letter]["reason"]
    # A reviewer's failure is a result of its own: it is not made again, and counts as not passed.
    assert again[letter] == (first[letter] if first[letter] == "reviewer_error" else "passed")
    told = story.told("again")
    assert told["reviews"].count(letter) == (2 if first[letter] == "infra_error" else 1)
    assert story.told("first")["left"] == 0, "what a reviewer had started went on"
    assert told["temporary"] == [], "a copy of the workspace is left"
    assert told["sandboxes"] == []
    return story.rows("first")[letter]
