"""Two runs side by side on one cache, one of them killed again and again, beside an undisturbed one.

    python bench/killed_runs.py [--dataset releases] [--kills 10] [--jobs 2] [--sandbox local] [--seed N]

First an undisturbed run. Then two more at once, each with a run folder of its own: one is left alone, the
other is killed (SIGKILL of its controller, or of it and all its workers) at random moments and resumed, until
it was killed ``--kills`` times and has ended. The reviewer is a program that says what the human reviewers
said and writes down every call; the agent applies suggestions: some checks pass, others are missed.

Asserted: the three runs have the same verdicts; no review that was recorded before a kill is called for
again; none is called for twice between two kills; nothing is left on the machine. The last line is a JSON
object; the exit status is 1 if anything of this does not hold.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from support.benchmarks import environment
from support.strays import processes

from pytest_crbench.datasets import open_dataset
from pytest_crbench.evaluation.records import comment_to

#: Says what is in ANSWERS for a pull request's title, after a while, and writes down when it begins and ends.
_REVIEWER = """\
import json, os, random, sys, time

log, answers, seconds, title = sys.argv[1:]

def note(what):
    with open(log, "ab", buffering=0) as stream:
        stream.write(f"{what} {title}\\n".encode())

note("begins")
time.sleep(random.uniform(0, 2 * float(seconds)))
print(json.dumps({"comments": json.load(open(answers, encoding="utf-8"))[title]}))
sys.stdout.flush()
note("ends")
"""


@dataclass
class Leg:
    """What a run did between two kills: the pull requests (titles) whose review it called for."""

    recorded_before: set[str]
    calls: list[str] = field(default_factory=list)

    def problems(self) -> list[str]:
        """What was called for although it should not have been."""
        again = sorted(set(self.calls) & self.recorded_before)
        twice = sorted(title for title, count in Counter(self.calls).items() if count > 1)
        return [f"recorded, and called for again: {t}" for t in again] + [
            f"called for twice: {t}" for t in twice
        ]


class Runner:
    """One run, in a folder of its own."""

    def __init__(self, name: str, place: Path, args: argparse.Namespace, titles: dict[str, str]) -> None:
        self.name = name
        self.folder = place / name
        self.log = self.folder / "calls"
        self.titles = titles
        self.legs: list[Leg] = []
        self.args = args
        self.folder.mkdir()
        (self.folder / "pytest.ini").write_text("[pytest]\n")
        words = [sys.executable, str(place / "reviewer.py"), str(self.log), str(place / "answers.json")]
        reviewer = f"{shlex.join([*words, str(args.review_seconds)])} {{title}}"
        self.options = [
            f"--crbench-reviewer=cmd:{reviewer}",
            "--crbench-agent=suggestions",
            f"--crbench-dataset={args.dataset}",
            f"--crbench-sandbox={args.sandbox}",
            f"--crbench-cache={args.cache}",
        ]
        if args.base_image:
            self.options.append(f"--crbench-base-image={args.base_image}")

    def start(self, *, resume: bool = False) -> subprocess.Popen[bytes]:
        """Start it, or go on with it; its own process group, its output in a file."""
        self.legs.append(Leg(self.recorded()))
        given = ["--crbench-resume", "--crbench-rerun-errors"] if resume else self.options
        argv = [
            sys.executable,
            "-m",
            "pytest",
            "-p",
            "no:cacheprovider",
            "-p",
            "no:hypothesispytest",
            *given,
            "-n",
            str(self.args.jobs),
        ]
        with (self.folder / "output").open("ab") as output:
            return subprocess.Popen(
                argv,
                cwd=self.folder,
                env=environment(),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    def settle(self) -> None:
        """Note what the leg that has ended called for."""
        known = sum(len(leg.calls) for leg in self.legs)
        self.legs[-1].calls = self.begun()[known:]

    def begun(self) -> list[str]:
        """Titles in the order of the calls."""
        lines = self.log.read_text("utf-8").splitlines() if self.log.exists() else []
        return [line.partition(" ")[2] for line in lines if line.startswith("begins ")]

    def recorded(self) -> set[str]:
        """Titles of the pull requests whose review is on disk."""
        found = self.folder.glob(".crbench/runs/*/evaluations/*/*/review-1/review.json")
        return {self.titles[path.parent.parent.name] for path in found}

    def progress(self) -> int:
        """How many stages are on disk."""
        return sum(1 for _ in self.folder.glob(".crbench/runs/*/evaluations/*/*/review-1/**/*.json"))

    def verdicts(self) -> dict[str, str]:
        """Statuses by ``instance::check``."""
        results = next(self.folder.glob(".crbench/runs/*/results.json"), None)
        if results is None:
            raise SystemExit(f"{self.name} has no results: " + (self.folder / "output").read_text()[-3000:])
        rows = json.loads(results.read_text("utf-8"))["verdicts"]
        return {f"{row['instance']}::{row['check']}": row["status"] for row in rows}


def kill_at_random(run: Runner, rng: random.Random, kills: int, spread: float) -> list[str]:
    """Kill and resume a run until it was killed ``kills`` times; then let it end. How it was killed."""
    done: list[str] = []
    process = run.start()
    while len(done) < kills:
        before = run.progress()
        moment = rng.uniform(0, spread)
        while process.poll() is None and run.progress() == before:
            time.sleep(0.02)
        end = time.monotonic() + moment
        while process.poll() is None and time.monotonic() < end:
            time.sleep(0.02)
        if process.poll() is not None:
            break
        how = rng.choice(("controller", "all"))
        if how == "all":
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
        process.wait()
        # Workers that lost their controller end by themselves; until then they may still record.
        while _group(process.pid):
            time.sleep(0.05)
        run.settle()
        done.append(f"{how} after {run.progress()} stages")
        process = run.start(resume=True)
    process.wait()
    run.settle()
    return done


def _group(leader: int) -> bool:
    try:
        os.killpg(leader, 0)
    except ProcessLookupError:
        return False
    # A zombie that nobody collects has ended.
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_bytes().rpartition(b")")[2].split()
            except OSError:
                continue
            if int(fields[2]) == leader and fields[0] != b"Z":
                return True
    return False


def measure(args: argparse.Namespace, place: Path) -> dict[str, Any]:
    """Make the three runs; what was found, and what should not be."""
    dataset = open_dataset(args.dataset)
    titles = {instance.id: instance.title for instance in dataset.instances}
    answers = {
        instance.title: [comment_to(comment) for comment in dict.fromkeys(c.comment for c in instance.checks)]
        for instance in dataset.instances
    }
    assert len(answers) == len(dataset.instances), "titles must differ: the reviewer tells by them"
    (place / "reviewer.py").write_text(_REVIEWER)
    (place / "answers.json").write_text(json.dumps(answers))
    rng = random.Random(args.seed)

    undisturbed = Runner("undisturbed", place, args, titles)
    began = time.monotonic()
    status = undisturbed.start().wait()
    whole = time.monotonic() - began
    undisturbed.settle()
    if status != 0:
        raise SystemExit((undisturbed.folder / "output").read_text(errors="replace"))
    print(f"undisturbed: {whole:.0f} s", flush=True)

    beside, killed = Runner("beside", place, args, titles), Runner("killed", place, args, titles)
    began = time.monotonic()
    neighbour = beside.start()
    spread = args.spread or whole / (args.kills + 1)
    kills = kill_at_random(killed, rng, args.kills, spread)
    neighbour.wait()
    beside.settle()
    both = time.monotonic() - began

    verdicts = undisturbed.verdicts()
    problems = [
        f"{run.name}: {p}"
        for run in (undisturbed, beside, killed)
        for leg in run.legs
        for p in leg.problems()
    ]
    for run in (beside, killed):
        found = run.verdicts()
        differing = sorted(k for k in verdicts.keys() | found.keys() if verdicts.get(k) != found.get(k))
        problems += [f"{run.name}: {k}: {verdicts.get(k)} became {found.get(k)}" for k in differing]
    if len(kills) < args.kills:
        problems.append(f"killed only {len(kills)} times: the run had ended")
    problems += [f"left: process {pid}" for pid in processes(str(place / "reviewer.py"))]
    problems += [f"left: {path}" for path in sorted(Path(args.cache).glob("sandboxes/*")) if args.own_cache]
    calls = killed.begun()
    return {
        "seed": args.seed,
        "instances": len(titles),
        "checks": len(verdicts),
        "statuses": dict(Counter(verdicts.values())),
        "seconds": {"undisturbed": round(whole, 1), "side by side": round(both, 1)},
        "kills": kills,
        "reviews": {
            "undisturbed": len(undisturbed.begun()),
            "beside": len(beside.begun()),
            "killed": len(calls),
            "killed in flight": len(calls) - len(set(calls)),
        },
        "problems": problems,
    }


def main() -> int:
    """Measure, print, and return the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--dataset", default="releases")
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=2, help="workers of each run")
    parser.add_argument("--sandbox", default="local")
    parser.add_argument("--base-image")
    parser.add_argument("--cache", help="the cache that the runs share (default: a new one)")
    parser.add_argument("--review-seconds", type=float, default=0.5, help="what a review takes, on average")
    parser.add_argument(
        "--spread", type=float, help="a kill comes within so many seconds after some progress"
    )
    parser.add_argument("--seed", type=int, default=None)
    args = parser.parse_args()
    args.seed = random.randrange(10**6) if args.seed is None else args.seed
    print(f"seed {args.seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="crbench-killed-", ignore_cleanup_errors=True) as folder:
        args.own_cache = args.cache is None
        args.cache = args.cache or str(Path(folder) / "cache")
        found = measure(args, Path(folder))
        subprocess.run(["chmod", "-R", "u+w", folder], check=False)
    for problem in found["problems"]:
        print(problem)
    print(json.dumps(found))
    return 1 if found["problems"] else 0


if __name__ == "__main__":
    raise SystemExit(main())
