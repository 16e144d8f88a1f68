"""Every parser of foreign input under as many inputs as one likes: none may raise, hang or grow.

    python bench/fuzz.py --inputs 200000 [--seconds 3600] [--target NAME …] [--seed 1] [--jobs 1]
    python bench/fuzz.py --inputs 100000 --target 'damaged-*'    (damaged reviews in every format)
    python bench/fuzz.py --engine atheris --target NAME --seconds 600

``--inputs`` are shared out among the targets by what an input costs (tests/support/fuzz). Each batch runs in
a process of its own, with 2 GiB of address space and two seconds of CPU time for an input; one
that ends or hangs the process is told too. A failing input is shrunk. The exit status is 1 if there is any.

``--engine atheris`` guides the inputs of one target by coverage (pip install atheris; needs a Linux wheel).
"""

from __future__ import annotations

import argparse
import json
import logging
import mmap
import os
import platform
import resource
import signal
import sys
import tempfile
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from support.fuzz.registry import targets
from support.fuzz.source import Source
from support.fuzz.target import Tally, Target, feed, shown

_MEMORY = 2 * 1024**3
_BATCH = 1000
#: Seconds of wall time without a new input after which a process is ended.
_STILL = 120.0
_SHOWN = 64 * 1024


def batch(target: Target, count: int, seed: int) -> Tally:
    """Feed one batch in a child, and tell how it ended, whatever ended it."""
    window = mmap.mmap(-1, _SHOWN + 8)
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read_end)
        _work(target, count, seed, window, write_end)
    os.close(write_end)
    said = _listen(child, read_end, window)
    if said:
        return Tally(**json.loads(said))
    lost = Tally(target.name, inputs=int.from_bytes(window[:8], "big"))
    lost.failure = "the process ended, or stood still, while it read this"
    lost.failing_input = bytes(window[8:]).rstrip(b"\0").decode()
    return lost


def _work(target: Target, count: int, seed: int, window: mmap.mmap, write_end: int) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    logging.disable()
    warnings.simplefilter("ignore")
    seen = 0

    def watch(value: Any) -> None:
        nonlocal seen
        seen += 1
        text = shown(value, _SHOWN - 64).encode()
        window[:8] = seen.to_bytes(8, "big")
        window[8 : 8 + len(text) + 1] = text + b"\0"

    with tempfile.TemporaryDirectory(prefix="crbench-fuzz-") as folder:
        tally = feed(target, count, seed, Path(folder), watch=watch)
        os.write(write_end, json.dumps(asdict(tally)).encode())
        os.close(write_end)
    os._exit(0)


def _listen(child: int, read_end: int, window: mmap.mmap) -> bytes:
    """Return what the child said at its end; end it if it gets no further."""
    os.set_blocking(read_end, False)
    said, last, changed = b"", b"", time.monotonic()
    while True:
        time.sleep(0.02)
        try:
            piece = os.read(read_end, 1 << 20)
        except BlockingIOError:
            if window[:8] != last:
                last, changed = window[:8], time.monotonic()
            if time.monotonic() - changed > _STILL:
                os.kill(child, signal.SIGKILL)
                changed = time.monotonic()
            continue
        if not piece:
            break
        said += piece
    os.close(read_end)
    os.waitpid(child, 0)
    return said


def merge(whole: Tally, part: Tally) -> None:
    """Add a batch to what a target has seen."""
    whole.inputs += part.inputs
    whole.seconds += part.seconds
    if part.slowest > whole.slowest:
        whole.slowest, whole.slowest_input = part.slowest, part.slowest_input
    if part.failure and not whole.failure:
        whole.failure, whole.failing_input = part.failure, part.failing_input


def shares(wanted: list[Target], inputs: int) -> dict[str, int]:
    """How many inputs each target gets: the dearer one is, the fewer."""
    unit = inputs / sum(1 / target.cost for target in wanted)
    return {target.name: max(int(unit / target.cost) + 1, 1) for target in wanted}


def fuzz(target: Target, inputs: int, seed: int, end: float) -> Tally:
    """Feed one target, batch by batch, to its last input, its first failure, or the end of the time."""
    whole = Tally(target.name)
    number = 0
    while whole.inputs < inputs and not whole.failure and time.monotonic() < end:
        merge(whole, batch(target, min(_BATCH, inputs - whole.inputs), seed * 1_000_003 + number))
        number += 1
    print(line(whole), flush=True)
    if whole.failure:
        print(f"    input: {whole.failing_input}\n    {whole.failure}", flush=True)
    return whole


def line(tally: Tally) -> str:
    """One row of the table."""
    end = "FAILED" if tally.failure else ""
    return f"{tally.target:<22}{tally.inputs:>9}{tally.slowest * 1000:>12.0f} ms  {end}".rstrip()


def guided(target: Target, seconds: float, seed: int) -> None:
    """Let atheris make the inputs of one target; libFuzzer tells what it found, and ends the process."""
    import atheris

    atheris.instrument_all()
    folder = Path(tempfile.mkdtemp(prefix="crbench-fuzz-"))

    def one(data: bytes) -> None:
        target.check(target.make(Source(data)), folder)

    options = [
        f"-max_total_time={int(seconds)}",
        f"-seed={seed}",
        "-max_len=2000",
        "-timeout=20",
        "-rss_limit_mb=2048",
    ]
    atheris.Setup([sys.argv[0], *options], one)
    atheris.Fuzz()


def main() -> int:
    known = targets()
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--inputs", type=int, default=200_000, help="over all targets (default 200000)")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after this long")
    parser.add_argument(
        "--target", action="append", default=[], help="a name or a pattern; repeatable; all if none is given"
    )
    parser.add_argument(
        "--seed",
        type=int,
        default=int(time.time()),
        help="the same inputs each time (with one version of hypothesis)",
    )
    parser.add_argument("--jobs", type=int, default=1, help="targets at a time")
    parser.add_argument("--engine", choices=["hypothesis", "atheris"], default="hypothesis")
    options = parser.parse_args()
    wanted = [known[name] for name in known if any(fnmatchcase(name, t) for t in options.target or ["*"])]
    if not wanted:
        parser.error(f"no such target; there are {', '.join(known)}")
    if options.engine == "atheris":
        if len(wanted) != 1:
            parser.error("--engine=atheris takes one --target")
        guided(wanted[0], min(options.seconds, 1e6), options.seed)
        return 0
    print(
        f"Python {platform.python_version()}, seed {options.seed}\n{'target':<22}{'inputs':>9}{'slowest':>15}"
    )
    began = time.monotonic()
    counts = shares(wanted, options.inputs)
    with ThreadPoolExecutor(options.jobs) as pool:
        done = list(
            pool.map(lambda t: fuzz(t, counts[t.name], options.seed, began + options.seconds), wanted)
        )
    failed = [tally.target for tally in done if tally.failure]
    slowest = max(done, key=lambda tally: tally.slowest)
    print(
        f"{sum(tally.inputs for tally in done)} inputs, {len(done)} targets, {len(failed)} failed, "
        f"{time.monotonic() - began:.0f} s; slowest: {slowest.target}, {slowest.slowest:.2f} s of CPU time"
    )
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
