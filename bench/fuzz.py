"""Feed made-up and broken input to every parser of foreign input: ``python bench/fuzz.py --inputs=200000``.

Inputs are shared out by what one costs: a parser that runs git gets fewer. The targets, and what must hold
for each, are in ``tests/support/fuzz``; a session of the tests takes a hundred inputs each. Needs the extra
``test``.
"""

from __future__ import annotations

import argparse
import os
import secrets
import sys
import tempfile
import time
import warnings
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support.fuzz.registry import targets
from support.fuzz.target import Tally, feed


def shares(inputs: int, names: list[str]) -> dict[str, int]:
    """How many inputs each target gets, so that all together get at least ``inputs``."""
    known = targets()
    whole = sum(1 / known[name].cost for name in names)
    return {name: int(inputs / known[name].cost / whole) + 1 for name in names}


def feed_one(name: str, count: int, seed: int) -> Tally:
    """Feed one target, in a process of its own."""
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        return feed(targets()[name], count, seed, Path(folder))


def main() -> int:
    """Print a line per target, then the sum; 1 if an input broke something."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--inputs", type=int, default=200_000, help="over all targets (default 200000)")
    parser.add_argument(
        "--target", action="append", choices=list(targets()), help="only this one; repeatable"
    )
    parser.add_argument("--seed", type=int, help="of the inputs; printed if not given")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    args = parser.parse_args()
    seed = args.seed if args.seed is not None else secrets.randbelow(10**6)
    plan = shares(args.inputs, args.target or list(targets()))
    began, done = time.monotonic(), []
    print(f"seed {seed}, {len(plan)} targets", flush=True)
    with ProcessPoolExecutor(args.jobs) as pool:
        # The dearest first, so that none is left over at the end.
        order = sorted(plan, key=lambda name: -targets()[name].cost)
        for future in as_completed(pool.submit(feed_one, name, plan[name], seed) for name in order):
            tally = future.result()
            done.append(tally)
            word = "BROKEN" if tally.failure else "ok"
            print(
                f"{word:<7}{tally.target:<28}{tally.inputs:>8} inputs, slowest {tally.slowest:.2f} s",
                flush=True,
            )
            if tally.failure:
                print(f"input: {tally.failing_input}\n{tally.failure}", flush=True)
    broken = sum(bool(tally.failure) for tally in done)
    total = sum(tally.inputs for tally in done)
    print(f"{total} inputs, {broken} targets broken, {time.monotonic() - began:.0f} s")
    return 1 if broken else 0


if __name__ == "__main__":
    raise SystemExit(main())
