"""Puts an evaluation together from settings: the one place where capabilities meet.

Everything heavy is imported here, when a run starts, not when the plugin is loaded.
"""

from __future__ import annotations

import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING

from ..core.errors import UsageError
from ..core.scoring import SCORINGS, in_order
from ..core.status import RERUN, Status
from ..evaluation.evaluator import Evaluator
from ..evaluation.plan import plan_of
from ..evaluation.store import Store
from ..host.eviction import cache_items, with_room
from ..host.files import append_line
from ..host.signals import must_be_there
from ..text.printable import printable
from ..text.secrets import register, scrubbed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from ..core.agent import Agent
    from ..core.model import Dataset, Instance, Trees
    from ..core.reviewer import Reviewer
    from ..core.sandbox import Backend, SandboxSettings
    from ..core.scoring import Decider
    from ..core.settings import Settings

#: Characters of a line in a log.
_LOG_LINE = 4000


@dataclass(frozen=True)
class Invocation:
    """What all processes of one invocation share: the run's folder, and random tokens."""

    run: Path
    session: str
    sandbox: str
    worker: str = "main"
    replay: Path | None = None
    #: Id of the reviewer's image ("": it runs on the host).
    reviewer_image: str = ""
    #: How the run's checks are scored.
    scorings: tuple[str, ...] = ("tests",)
    #: Seals the records of the run's store; no program that is started learns it.
    secret: str = field(default="", repr=False)
    #: In a worker on its machine: the controller's token (`host.processes`).
    controller: str = ""

    def log(self, name: str, line: str) -> None:
        """Append a line to ``logs/<name>.log``; every process of the run may."""
        path = self.run / "logs" / f"{name}.log"
        stamp = time.strftime("%H:%M:%S", time.gmtime())
        # Before it is made printable: that may put a blank into a credential.
        text = printable(scrubbed(line), _LOG_LINE)
        # A log that cannot be written (the disk is full) takes no result with it; the store reports that.
        with suppress(OSError):
            append_line(path, f"{stamp} {self.worker} {text}")


def open_datasets(settings: Settings) -> list[Dataset]:
    """Load the datasets of a run, offline.

    Raises:
        UsageError: naming file and key of what is wrong.
    """
    from ..datasets import open_dataset

    datasets = [open_dataset(spec) for spec in settings.datasets]
    for first, second in combinations(datasets, 2):
        if first.name == second.name:
            raise UsageError(
                f"two datasets are named {first.name!r} ({first.path}, {second.path}); the name is part of "
                "every check's identity: give one of them another in its dataset.toml, or run them one by one"
            )
    for dataset in datasets:
        _check_scorings(settings, dataset)
    return datasets


def _check_scorings(settings: Settings, dataset: Dataset) -> None:
    """A scoring that fits no check would measure nothing, and look like a run that passed."""
    plan = plan_of(settings)
    for scoring in plan.scorings_of(dataset):
        if any(plan.applies(check, scoring) for i in dataset.instances for check in i.checks):
            continue
        lacks = SCORINGS.get(scoring).lacks
        raise UsageError(
            f"dataset {dataset.name} has {lacks}: --crbench-scoring={scoring} measures nothing in it. It was "
            f"made for {dataset.scoring}: leave the option out, or name another dataset"
        )


def scorings_of(settings: Settings, datasets: Iterable[Dataset]) -> tuple[str, ...]:
    """Return how the checks of some datasets are scored, in the order of tables."""
    used = {scoring for dataset in datasets for scoring in plan_of(settings).scorings_of(dataset)}
    return in_order(used)


def make_deciders(settings: Settings, run: Path | None, scorings: Iterable[str]) -> dict[str, Decider]:
    """Make what decides checks, by the name of the scoring; ``run`` holds the budget of the whole run.

    Raises:
        UsageError: if a package, a model's name or a key is missing.
    """
    return {name: SCORINGS.use(name, lambda scoring: scoring.decider(settings, run)) for name in scorings}


def make_backend(settings: Settings, name: str, session: str, log: Callable[[str], None]) -> Backend:
    """Choose the sandbox backend; asks the engine unless the name is ``local`` or `needed_sandbox`'s "none".

    Raises:
        UsageError: for an unknown name, or a cache that cannot be used.
        InfraError: if the named engine does not answer.
    """
    from ..host.indexes import registry_secrets
    from ..sandbox.choose import ABSENT, AbsentBackend, choose

    _check_cache(settings.cache)
    if name == ABSENT:
        return AbsentBackend()
    register(registry_secrets())
    return choose(name, sandbox_settings(settings, session, log))


def needed_sandbox(settings: Settings, reviewer: Reviewer, scorings: Iterable[str]) -> str:
    """Return the name of the sandbox of a run: "none" where nothing is executed.

    Raises:
        UsageError: if a run without a repository needs one.
    """
    needs_repository = getattr(reviewer, "needs_repository", True)
    revised = [SCORINGS.get(name) for name in scorings if SCORINGS.get(name).needs_agent]
    if settings.offline and (revised or needs_repository):
        checks = f"checks {revised[0].decided} need the code" if revised else ""
        what = checks or f"{reviewer.name} reviews the code"
        raise UsageError(
            f"--crbench-offline has no repository, and {what}. It is for --crbench-scoring=matching and "
            "reviews that were made elsewhere: --crbench-reviewer=file:reviews/{instance}.json, human or none"
        )
    if revised or getattr(reviewer, "needs_sandbox", False):
        return settings.sandbox
    return "none"


def sandbox_settings(settings: Settings, session: str, log: Callable[[str], None]) -> SandboxSettings:
    """Say what the settings, and the variables of package indexes, say about sandboxes."""
    from ..core.sandbox import SandboxSettings
    from ..datasets import folder_of
    from ..host.indexes import settings_from_environment

    wanted = SandboxSettings(
        cache=settings.cache,
        session=session,
        base_image=settings.base_image,
        ca_bundle=settings.ca_bundle,
        index_url=settings.index_url,
        disk_budget=settings.disk_budget,
        # Hidden tests, fixed trees, and what other checks showed.
        hidden=(*(folder_of(spec) for spec in settings.datasets), settings.run_dir),
        log=log,
    )
    return settings_from_environment(wanted)


def _check_cache(folder: Path) -> None:
    """Told once before the run, instead of once for each pull request in the midst of it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        next(folder.iterdir(), None)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise UsageError(
            f"cannot use the cache folder {folder}: {error.strerror}. Choose another one: --crbench-cache, "
            "--cache of the crbench command, or XDG_CACHE_HOME"
        ) from error


def make_evaluator(
    settings: Settings, invocation: Invocation, reviewer: Reviewer, agent: Agent, backend: Backend
) -> Evaluator:
    """Wire the capabilities into an `Evaluator`.

    Raises:
        InfraError: if the run was begun with another reviewer or agent.
    """
    from ..core.sandbox import Limits
    from ..workspace.repository import build
    from ..workspace.revision import capture, changes
    from .record import note_programs

    note_programs(invocation.run, reviewer, agent)
    permit = partial(must_be_there, invocation.controller)
    rerun = RERUN[settings.rerun_errors] if settings.rerun_errors else frozenset()
    # Time that a failing endpoint takes moves the deadline of a review or revision, by its limit at the most.
    longest = max(settings.agent_timeout, settings.reviewer_timeout)
    return Evaluator(
        reviewer=reviewer,
        agent=agent,
        backend=backend,
        trees=trees_of(settings),
        workspace=lambda instance, trees, log: with_room(
            partial(build, trees, title=instance.title, body=instance.body, cache=settings.cache, log=log),
            partial(cache_items, settings.cache),
            log,
        ),
        capture=capture,
        changes=changes,
        deciders=make_deciders(settings, invocation.run, invocation.scorings),
        run=invocation.run,
        store=Store(
            invocation.run,
            rerun=rerun,
            invocation=invocation.session,
            secret=invocation.secret,
            resumed=bool(settings.resume),
            permit=permit,
        ),
        # What failed in another run says nothing about this one.
        shared=Store(
            settings.cache / "shared",
            rerun=frozenset(Status),
            invocation=invocation.session,
            permit=permit,
        ),
        log=invocation.log,
        replay=invocation.replay,
        limits=Limits(
            memory=settings.memory,
            cpus=settings.cpus,
            pids=settings.pids,
            lifetime=max(2 * longest, settings.test_timeout) + 600.0,
        ),
        test_timeout=settings.test_timeout,
        repository=not settings.offline,
        only_diff=settings.comments == "diff",
        max_errors=settings.max_errors,
    )


def trees_of(settings: Settings) -> Callable[[Instance, bool, Callable[[str], None]], Trees]:
    """Return what fetches the trees of an instance (the fixed one if asked), through the cache."""
    return partial(_trees, settings, {})


def _trees(
    settings: Settings, silent: dict[str, str], instance: Instance, fixed: bool, log: Callable[[str], None]
) -> Trees:
    from ..host.indexes import IndexSettings
    from ..sources import fetch

    index = IndexSettings.from_environment(index_url=settings.index_url, ca_bundle=settings.ca_bundle)
    get = partial(
        fetch, instance.source, cache=settings.cache, fixed=fixed, index=index, log=log, silent=silent
    )
    return with_room(get, partial(cache_items, settings.cache), log)
