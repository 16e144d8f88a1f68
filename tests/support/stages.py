"""A run that is in every stage at once, so that a signal finds all of them."""

from __future__ import annotations

import os
import random
import signal
import subprocess
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from support.benchmarks import Pull, Run, command, environment, write_dataset
from support.programs import Programs, write_programs
from support.stories import own_cache
from support.strays import processes, until

from pytest_crbench.host.processes import SESSION_VARIABLE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from support.stories import Story

#: In the command line of every worker of pytest-xdist.
_WORKER = "exec(eval(sys.stdin.readline()))"
STAGES = ("review", "revision", "test")


@dataclass
class Stages:
    """Pull request "a" is measured, "b" hangs in its review, "c" in its revision, "d" in its hidden test.

    What hangs sleeps for a number of seconds that occurs nowhere else on this machine.
    """

    story: Story
    dataset: Path
    cache: Path
    programs: Programs
    naps: dict[str, str]

    @property
    def temporary(self) -> Path:
        """The folder for temporary files of the runs."""
        return self.story.folder / "tmp"

    def heal(self) -> None:
        """Let reviewer and agent hang no more; the hidden test stays as it is."""
        write_programs(self.programs.log)

    @contextmanager
    def started(self, *arguments: str, closed_stdin: bool = False) -> Iterator[subprocess.Popen[str]]:
        """Start a run in a process group of its own; at the end nothing of it goes on."""
        named = () if "--crbench-resume" in arguments else self.programs.options
        whole = command(self.dataset, self.cache, *named, *arguments)
        if closed_stdin:
            whole = ["sh", "-c", 'exec "$@" <&-', "sh", *whole]
        process = subprocess.Popen(
            whole,
            cwd=self.story.vendor,
            env={**environment(), "TMPDIR": str(self.temporary)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()
                process.communicate()
            for pid in self.strays():
                with suppress(ProcessLookupError):  # it may end by itself
                    os.kill(pid, signal.SIGKILL)

    def finish(self, process: subprocess.Popen[str]) -> Run:
        """Wait for the end of a run."""
        output, _ = process.communicate(timeout=240)
        return Run(process.returncode, output, self.story.vendor)

    def measured(self, check: str = "a1") -> bool:
        """Whether the controller has the verdict on a check."""
        found = self.story.vendor.glob(".crbench/runs/*/results.jsonl")
        return any(f'"{check}"' in path.read_text() for path in found)

    def hangs(self, process: subprocess.Popen[str], *stages: str) -> bool:
        """Whether "a" is measured, and a worker (or the only process) is in each of the stages."""
        assert process.poll() is None, process.communicate()[0]
        return self.measured() and all(self.worker(stage, process.pid) for stage in stages)

    def worker(self, stage: str, controller: int) -> int | None:
        """The process of ours that is in a stage now: a child of the controller, or itself."""
        for pid in processes(f"sleep {self.naps[stage]}"):
            line = _ancestors(pid)
            if controller in line:
                place = line.index(controller)
                # The controller's child is the program itself where there are no workers.
                child = line[place - 1]
                ours = _WORKER.encode() in Path(f"/proc/{child}/cmdline").read_bytes()
                return child if ours else controller
        return None

    def strays(self) -> list[int]:
        """Processes of the runs that go on."""
        naps = [pid for nap in self.naps.values() for pid in processes(f"sleep {nap}")]
        return [*naps, *(processes(f"{SESSION_VARIABLE}={self.programs.session()}") if self._began else [])]

    @property
    def _began(self) -> bool:
        return bool(self.programs.reviews())

    def left(self) -> dict[str, list[str]]:
        """What is left of the runs: processes, sandboxes, temporary folders."""
        kept = [path.name for path in self.temporary.iterdir()]
        return {
            "processes": [str(pid) for pid in self.strays()],
            "sandboxes": [path.name for path in self.cache.glob("sandboxes/*")],
            "temporary": [name for name in kept if not name.startswith("pytest-of-")],
        }


NOTHING: dict[str, list[str]] = {"processes": [], "sandboxes": [], "temporary": []}


def in_every_stage(story: Story, cache: Path, *, nap: int, reviewed: tuple[str, ...] = ("b1",)) -> Stages:
    """Write the dataset and the programs; the hidden test of "d" naps for ``nap`` seconds, then passes.

    ``reviewed`` are the checks of the pull request that hangs in its review.
    """
    unique = f"{random.randrange(10**9):09d}"
    naps = {"review": f"6{unique}", "revision": f"5{unique}", "test": f"{nap}.{unique}"}
    test = (
        "import subprocess\nfrom shop.d1_ import d1\n\n\ndef test_d1():\n    assert d1() == 'd1'\n"
        f"    subprocess.Popen(['sleep', '{naps['test']}'], start_new_session=True)\n"
        f"    subprocess.run(['sleep', '{naps['test']}'])\n"
    )
    pulls = [Pull("a", ("a1",)), Pull("b", reviewed), Pull("c", ("c1",))]
    dataset = write_dataset(story.folder / "small", [*pulls, Pull("d", ("d1",), tests={"d1": test})])
    hangs = {"review": ("b", naps["review"]), "revision": ("c", naps["revision"])}
    programs = write_programs(story.folder / "programs", hangs=hangs)
    (story.folder / "tmp").mkdir()
    return Stages(story, dataset, own_cache(story.folder / "cache", cache), programs, naps)


def gone(pids: list[int]) -> bool:
    """Whether all of these processes have ended."""
    return not any(Path(f"/proc/{pid}").exists() for pid in pids)


def workers(controller: int) -> list[int]:
    """The children of a controller that are workers."""
    return [pid for pid in processes(_WORKER) if controller in _ancestors(pid)[1:2]]


def wait_for(condition: Callable[[], object]) -> None:
    """`strays.until` for a busy machine: looking through all processes takes time of its own."""
    until(condition, 180, every=0.2)


def _ancestors(pid: int) -> list[int]:
    line = [pid]
    while line[-1] > 1:
        try:
            stat = Path(f"/proc/{line[-1]}/stat").read_bytes()
        except OSError:
            break
        line.append(int(stat.rpartition(b")")[2].split()[1]))
    return line
