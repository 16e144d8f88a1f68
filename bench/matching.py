"""Matching 1,505 references and 20,000 comments, beside comparing every pair and one dense assignment.

    python bench/matching.py [--data FOLDER] [--comments 20000] [--seed 1] [--rounds 3]

``--data`` names the folder of AACR-Bench's files; without it, references of the same shape are made. All pull
requests are one pool (paths begin with the pull request), so that there is no small problem to hide in. The
comments are generated: half lie near a reference, the rest anywhere in the same files. *Ours* is the index of
`scoring.matching.place` and the assignment by components of `scoring.matching.assign`; *naive* compares all
pairs by the same rule, and gives scipy's dense solver one matrix with a large number for what is not allowed.
Each runs in a process of its own; memory is the peak above what the process had before it began. Both must
find as many pairs at the same total distance. The ratio is that of processor time, which other programs alter
little. The last line is JSON.
"""

from __future__ import annotations

import argparse
import json
import platform
import random
import resource
import statistics
import subprocess
import sys
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pytest_crbench.core.model import ReviewComment
from pytest_crbench.datasets import open_dataset
from pytest_crbench.scoring.matching.assign import assign
from pytest_crbench.scoring.matching.place import Candidate, Rules, candidates, distance, lines_of

if TYPE_CHECKING:
    from collections.abc import Callable

#: Shape of AACR-Bench: pull requests, references, and the share of the spans 1, 2, up to 10, up to 73 lines.
PULLS, REFERENCES = 196, 1505
SPANS = ((1, 1, 45), (2, 2, 12), (3, 10, 33), (11, 73, 10))
FORBIDDEN = 1e6


def references(data: str | None, seed: int) -> list[ReviewComment]:
    """All references in one pool."""
    if data:
        return [
            replace(check.comment, id=f"{one.id}/{check.id}", path=f"{one.id}/{check.comment.path}")
            for one in open_dataset(f"aacr:{data}").instances
            for check in one.checks
        ]
    chance = random.Random(seed)
    made = []
    for number in range(REFERENCES):
        pull = number % PULLS
        low, high, _ = chance.choices(SPANS, [share for _, _, share in SPANS])[0]
        first = chance.randint(1, 900)
        last = first + chance.randint(low, high) - 1
        side: Any = "left" if chance.random() < 8 / REFERENCES else "right"
        path = f"pull-{pull}/src/file_{chance.randint(0, 4)}.py"
        made.append(ReviewComment(f"r{number:05}", "", path, (first, last), side))
    return made


def generated(known: list[ReviewComment], count: int, seed: int) -> list[ReviewComment]:
    """Comments in the files of the references: every second one near a reference."""
    chance = random.Random(seed + 1)
    made = []
    for number in range(count):
        near = chance.choice(known)
        first = (near.lines or (1, 1))[0] + chance.randint(-3, 3) if number % 2 else chance.randint(1, 1000)
        first = max(1, first)
        lines = (first, first + chance.choice([0, 0, 1, 2, 8]))
        made.append(ReviewComment(f"c{number:06}", "", near.path, lines, near.side))
    return made


def naive_place(known: list[ReviewComment], comments: list[ReviewComment]) -> list[Candidate]:
    """Compare every pair."""
    found = []
    placed = [(r.id, r.path, r.side, lines_of(r)) for r in known]
    for comment in comments:
        lines = lines_of(comment)
        path, side = comment.path, comment.side
        for name, other, other_side, span in placed:
            if path == other and side == other_side and lines and span and distance(span, lines) <= 1:
                found.append(Candidate(name, comment.id, distance(span, lines)))
    return found


def naive_assign(pairs: list[Candidate], known: list[ReviewComment], count: int) -> list[Candidate]:
    """Give the dense solver one matrix of all references and all comments."""
    import numpy as np
    from scipy.optimize import linear_sum_assignment

    row = {reference.id: number for number, reference in enumerate(known)}
    cost = np.full((len(known), count), FORBIDDEN)
    for pair in pairs:
        cost[row[pair.reference], int(pair.comment[1:])] = pair.distance
    chosen = zip(*linear_sum_assignment(cost), strict=True)
    return [Candidate(known[r].id, f"c{c:06}", int(cost[r, c])) for r, c in chosen if cost[r, c] < FORBIDDEN]


def measured(what: Callable[[], list[Candidate]]) -> tuple[list[Candidate], dict[str, float]]:
    """Run a stage; its seconds, those of the processor, and the MiB by which it raised the process's peak."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began, busy = time.perf_counter(), time.process_time()
    found = what()
    seconds, busy = time.perf_counter() - began, time.process_time() - busy
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    return found, {"seconds": seconds, "cpu": busy, "mib": peak / 1024}


def part(options: argparse.Namespace) -> dict[str, Any]:
    """One process: place stage and assignment of one way."""
    import scipy.optimize
    import scipy.sparse.csgraph  # noqa: F401  (importing is no part of the work)

    known = references(options.data, options.seed)
    comments = generated(known, options.comments, options.seed)
    if options.part == "ours":
        near, place = measured(lambda: candidates(known, comments, {}, Rules()))
        chosen, assigned = measured(lambda: assign(near))
    else:
        near, place = measured(lambda: naive_place(known, comments))
        chosen, assigned = measured(lambda: naive_assign(near, known, len(comments)))
    return {
        "place": place,
        "assign": assigned,
        "references": len(known),
        "pairs": len(near),
        "matches": len(chosen),
        "distance": sum(pair.distance for pair in chosen),
    }


def child(options: argparse.Namespace, way: str) -> dict[str, Any]:
    """Run one way in a process of its own."""
    data = ["--data", options.data] if options.data else []
    numbers = ["--comments", str(options.comments), "--seed", str(options.seed)]
    command = [sys.executable, __file__, "--part", way, *data, *numbers]
    return dict(json.loads(subprocess.run(command, capture_output=True, check=True, text=True).stdout))


def main() -> int:
    """Measure both ways, and compare what they found."""
    parser = argparse.ArgumentParser(description="Seconds and memory of matching.")
    parser.add_argument("--data", help="folder of AACR-Bench's files")
    parser.add_argument("--comments", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3, help="runs of ours; naive runs once")
    parser.add_argument("--part", choices=["ours", "naive"], help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.part:
        print(json.dumps(part(options)))
        return 0
    ours = [child(options, "ours") for _ in range(options.rounds)]
    naive = child(options, "naive")
    same = all(one[key] == naive[key] for one in ours for key in ("pairs", "matches", "distance"))
    result: dict[str, Any] = {
        "python": platform.python_version(),
        "data": "AACR-Bench" if options.data else "synthetic",
        **{key: naive[key] for key in ("references", "pairs", "matches", "distance")},
        "comments": options.comments,
    }
    for stage in ("place", "assign"):
        seconds = statistics.median(one[stage]["seconds"] for one in ours)
        mib = statistics.median(one[stage]["mib"] for one in ours)
        cpu = statistics.median(one[stage]["cpu"] for one in ours)
        of_naive = naive[stage]
        ratio = of_naive["cpu"] / cpu
        print(
            f"{stage:<8}ours {seconds:7.3f} s (cpu {cpu:7.3f} s) {mib:7.1f} MiB   naive "
            f"{of_naive['seconds']:7.3f} s (cpu {of_naive['cpu']:7.3f} s) {of_naive['mib']:7.1f} MiB   "
            f"ratio of cpu {ratio:6.1f}"
        )
        result[stage] = {
            "seconds": round(seconds, 4),
            "cpu": round(cpu, 4),
            "mib": round(mib, 1),
            "naive_seconds": round(of_naive["seconds"], 4),
            "naive_cpu": round(of_naive["cpu"], 4),
            "naive_mib": round(of_naive["mib"], 1),
            "ratio": round(ratio, 1),
        }
    if not same:
        print("ours and naive differ in what they found", file=sys.stderr)
    print(json.dumps(result))
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
