"""An evaluation in Docker beside the bare `docker run` of the same test, in turns.

    python bench/overhead.py [--base-image IMAGE] [--rounds 15] [--profile]

*Evaluation*: one pull request, a reviewer and an agent without latency, one hidden test, everything built:
review, revision, verdict in a fresh container, each recorded. *First*: the same where the check was never run
at the unmodified head in this cache, which happens once per check and environment: two fresh containers.
*Bare*: what anybody would type, `docker run --rm IMAGE python -m pytest TEST`, with the same image, the tree
in place, the same limits and no network. The ratio is evaluation to bare.
"""

from __future__ import annotations

import argparse
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from support.benchmarks import Pull, write_dataset

from pytest_crbench.core.model import Review, ReviewComment, Revision
from pytest_crbench.run import assemble, settings
from pytest_crbench.sandbox.docker import DockerBackend

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pytest_crbench.evaluation.evaluator import Evaluator

BARE_IMAGE = "crbench-bench-bare"


class InstantReviewer:
    """Says the same at once."""

    name, shareable, fingerprint = "instant", False, {"name": "instant"}

    def review(self, task: Any) -> Review:
        comment = ReviewComment(id="1", path="shop/price_.py", lines=(2, 2), body="This is wrong.")
        return Review((comment,), self.name)


class InstantAgent:
    """Has its patch ready."""

    name, runs_on_clean_review, fingerprint = "instant", False, {"name": "instant"}

    def __init__(self, patch: bytes) -> None:
        self.patch = patch

    def revise(self, task: Any) -> Revision:
        return Revision(self.patch, self.name, "finished")


class Bench:
    """One dataset, one cache, images built."""

    def __init__(self, place: Path, base_image: str) -> None:
        self.place = place
        self.dataset = write_dataset(place / "dataset", [Pull("first", fixable=("price",))])
        given = {
            "reviewer": "none",
            "agent": "none",
            "dataset": [str(self.dataset)],
            "cache": str(place / "cache"),
            "sandbox": "docker",
            "base_image": base_image,
        }
        self.settings = settings.read(given.get, place)
        self.instance = assemble.open_datasets(self.settings)[0].instances[0]
        self.backend = assemble.make_backend(self.settings, "docker", "bench", lambda _line: None)
        assert isinstance(self.backend, DockerBackend)
        self.agent = InstantAgent(b"")
        self.count = 0

    def evaluator(self) -> Evaluator:
        """A run of its own, as a new invocation has: nothing recorded, only images' names known."""
        self.count += 1
        run = assemble.Invocation(self.place / "runs" / str(self.count), "bench", "docker")
        return assemble.make_evaluator(self.settings, run, InstantReviewer(), self.agent, self.backend)

    def prepare(self) -> str:
        """Build all images, make the agent's patch; returns the image that holds environment and tree."""
        evaluator = self.evaluator()
        evaluation = evaluator.at(self.instance)
        edited = self.place / "edited"
        evaluation.workspace.copy_to(edited)
        (edited / "shop" / "price_.py").write_text('def price():\n    return "price"\n')
        self.agent.patch = evaluator.capture(evaluation.trees.head, edited)
        self.evaluate()
        (tag,) = self.backend.trees.values()
        return tag

    def evaluate(self) -> None:
        """One evaluation; the control at head is in the cache."""
        verdict = self.evaluator().verdict(self.instance, self.instance.checks[0])
        assert verdict.status.value == "passed", verdict

    def evaluate_first(self) -> None:
        """One evaluation that also runs the control at head."""
        shutil.rmtree(self.place / "cache" / "shared")
        self.evaluate()


def bare_image(tag: str, bench: Bench) -> None:
    """Put the hidden test and the fix into an image on top of the evaluation's own."""
    context = bench.place / "bare"
    context.mkdir()
    (context / "test_price.py").write_text(bench.instance.checks[0].test)
    (context / "price_.py").write_text('def price():\n    return "price"\n')
    (context / "Dockerfile").write_text(
        f"FROM {tag}\nCOPY price_.py /workspace/shop/price_.py\nCOPY test_price.py /scratch/test_price.py\n"
        "ENV PYTHONPATH=/workspace PYTHONDONTWRITEBYTECODE=1\n"
    )
    subprocess.run(["docker", "build", "-q", "-t", BARE_IMAGE, str(context)], check=True, capture_output=True)


def bare() -> None:
    """The bare command, with the limits that an evaluation has."""
    command = ["docker", "run", "--rm", "--init", "--network=none", "--cap-drop=ALL", "--memory=2g"]
    command += ["--cpus=2"]
    command += ["--pids-limit=512", "--security-opt=no-new-privileges", "--workdir=/workspace", BARE_IMAGE]
    command += ["/venv/bin/python", "-m", "pytest", "-q", "-p", "no:cacheprovider", "/scratch/test_price.py"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def timed(what: Callable[[], None]) -> float:
    """Seconds of one call."""
    began = time.perf_counter()
    what()
    return time.perf_counter() - began


@contextmanager
def api_calls(bench: Bench) -> Iterator[dict[str, list[float]]]:
    """Time every call of the engine's API."""
    times: dict[str, list[float]] = defaultdict(list)
    client = bench.backend.client  # type: ignore[attr-defined]
    names = ("inspect_image", "create_container", "start", "put_archive", "exec_create", "exec_start")
    names += ("exec_inspect", "get_archive", "inspect_container", "remove_container")

    def wrap(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def measured(*arguments: Any, **keywords: Any) -> Any:
            began = time.perf_counter()
            result = call(*arguments, **keywords)
            if name == "exec_start":
                return _drain(result, times[name], began)
            times[name].append(time.perf_counter() - began)
            return result

        return measured

    for name in names:
        setattr(client, name, wrap(name, getattr(client, name)))
    try:
        yield times
    finally:
        for name in names:
            delattr(client, name)


def _drain(stream: Any, times: list[float], began: float) -> Iterator[Any]:
    yield from stream
    times.append(time.perf_counter() - began)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--base-image", default="python:3.11-slim")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--profile", action="store_true", help="break an evaluation down by API call")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        bench = Bench(Path(place), options.base_image)
        try:
            bare_image(bench.prepare(), bench)
            report(bench, options.rounds, options.profile)
        finally:
            subprocess.run(["docker", "rmi", "-f", BARE_IMAGE], capture_output=True, check=False)


def report(bench: Bench, rounds: int, profile: bool) -> None:
    kinds = {"bare": bare, "evaluation": bench.evaluate, "first": bench.evaluate_first}
    times: dict[str, list[float]] = defaultdict(list)
    for _ in range(rounds):
        for name, what in kinds.items():
            times[name].append(timed(what))
    said = bench.backend.describe()
    print(f"Python {platform.python_version()}, engine {said['engine']} (API {said['api']}), {rounds} rounds")
    base = statistics.median(times["bare"])
    for name, values in times.items():
        middle = statistics.median(values)
        print(
            f"  {name:<12}median {middle * 1000:8.0f} ms   least {min(values) * 1000:8.0f} ms"
            f"   ratio {middle / base:5.2f}   least/least {min(values) / min(times['bare']):5.2f}"
        )
    if profile:
        for name in ("evaluation", "first"):
            _break_down(bench, name, kinds[name], rounds)


def _break_down(bench: Bench, name: str, what: Callable[[], None], rounds: int) -> None:
    with api_calls(bench) as calls:
        whole = [timed(what) for _ in range(rounds)]
    print(f"{name}, by call of the engine's API (means of {rounds}):")
    spent = {call: sum(values) for call, values in calls.items()}
    for call, seconds in sorted(spent.items(), key=lambda item: -item[1]):
        print(f"  {call:<20}{len(calls[call]) / rounds:5.1f} calls {seconds / rounds * 1000:8.1f} ms")
    rest = sum(whole) - sum(spent.values())
    middle = statistics.mean(whole) * 1000
    print(f"  {'all the rest':<20}{'':11} {rest / rounds * 1000:8.1f} ms   (whole {middle:.0f} ms)")


if __name__ == "__main__":
    main()
