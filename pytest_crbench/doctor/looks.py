"""What ``crbench doctor`` looks at: everything that a run with these settings would need."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from ..core.errors import CrbenchError, UsageError
from ..core.finding import Finding, Level, Probe, examine, missing, ok
from ..core.scoring import SCORINGS
from ..host.indexes import IndexSettings
from ..run import assemble, programs
from ..text.printable import many, printable
from . import machine as machine

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from ..core.model import Dataset, Environment
    from ..core.sandbox import SandboxSettings
    from ..core.settings import Settings

_MB = 1024**2
#: About what a run takes, in bytes; measured on the bundled dataset.
_PER_INSTANCE, _PER_VENV, _PER_RUN = 8 * _MB, 20 * _MB, 1 * _MB
_PER_IMAGE, _BASE_IMAGE = 30 * _MB, 350 * _MB
_ENGINE, _LOCAL = "docker engine", "local sandbox"
#: Seconds after which an engine has done what a look that was given up asked of it.
_SETTLE = 0.5


@dataclass(frozen=True)
class Examination:
    """One examination: what a run would be, and whether containers and the model's endpoint may be asked."""

    settings: Settings
    session: str
    deep: bool = False

    def findings(self) -> Generator[Finding]:
        """Give what is found, in a fixed order, as it comes; takes as long as the slowest look."""
        datasets, said = self._datasets()
        scorings = assemble.scorings_of(self.settings, datasets) or ("tests",)
        # A model that runs commands does so in a sandbox; nothing else but a hidden test needs one.
        executes = any(SCORINGS.get(n).needs_agent for n in scorings) or self.settings.reviewer == "llm:agent"
        needs = _Needs.of(datasets, executes=executes)
        probes = self._probes(needs, scorings)
        yield from (*machine.look_at_packages(), machine.look_at_git(), *said)
        yield from self._places(needs)
        yield from self._probed(probes)

    def _probed(self, probes: Sequence[Probe]) -> Generator[Finding]:
        auto = self.settings.sandbox == "auto"
        docker_works, under_way = False, len(probes)
        try:
            for look in examine(probes):
                found = look.found
                under_way -= not look.given_up
                if look.probe.name == _ENGINE:
                    docker_works = found[0].level is not Level.MISSING
                    if auto and not docker_works:
                        found = tuple(f.at_most(Level.WARNING) for f in found)
                if look.probe.name != _LOCAL or not (auto and docker_works):
                    yield from found
        finally:
            if under_way and (self.settings.sandbox != "local" or self.settings.reviewer_image):
                self._remove_containers()

    def _datasets(self) -> tuple[list[Dataset], list[Finding]]:
        try:
            datasets = assemble.open_datasets(self.settings)
        except UsageError as error:
            advice = "Correct it, or name another one by --dataset; crbench instances check says more"
            return [], [missing("dataset", printable(str(error), 600), advice)]
        found = []
        for dataset in datasets:
            checks = sum(len(instance.checks) for instance in dataset.instances)
            said = f"{dataset.name}: {many(len(dataset.instances), 'instance')}, {many(checks, 'check')}"
            found.append(ok("dataset", said))
        return datasets, found

    def _places(self, needs: _Needs) -> list[Finding]:
        settings = self.settings
        cache = needs.instances * _PER_INSTANCE
        if settings.sandbox != "docker":
            cache += len(needs.environments) * _PER_VENV
        run, least = needs.instances * _PER_RUN, settings.min_free
        return [
            machine.look_at_folder("cache", settings.cache, cache, least, "--cache"),
            machine.look_at_folder("run folder", settings.run_dir, run, least, "--run-dir"),
        ]

    def _reviewer(self) -> list[Finding]:
        """Make the reviewer; in an image only if that is here, for nothing is pulled."""
        from ..sandbox.doctor import look_at_image

        found, image = [], self.settings.reviewer_image
        if image is not None:
            said, is_here = look_at_image(image, "reviewer's image", "--reviewer-image")
            if not is_here:
                return [said]
            found.append(said)
        try:
            made = programs.make_reviewer(self.settings, session=self.session)
            return [*found, ok("reviewer", printable(made.name))]
        except UsageError as error:
            return [*found, missing("reviewer", printable(str(error), 600), "Correct --reviewer")]

    def _agent(self) -> list[Finding]:
        """Make the coding agent, which looks its program up; `llm` is looked at more closely elsewhere."""
        try:
            return [ok("coding agent", printable(programs.make_agent(self.settings, None).name))]
        except UsageError as error:
            return [missing("coding agent", printable(str(error), 600), "Correct --agent")]

    def _scoring(self, name: str) -> list[Finding]:
        """Make what decides checks, which looks for its packages, model and key."""
        try:
            said = SCORINGS.get(name).look(self.settings)
        except UsageError as error:
            said = printable(str(error), 600).rstrip(".")
            return [missing(name, said, SCORINGS.get(name).advice)]
        return [ok(name, said)] if said else []

    def _probes(self, needs: _Needs, scorings: Sequence[str]) -> list[Probe]:
        from ..agents import doctor as agents
        from ..sandbox import doctor

        settings = self.settings
        revised = any(SCORINGS.get(name).needs_agent for name in scorings)
        probes = []
        if settings.reviewer and settings.replay is None:
            late = "Look at what makes the reviewer slow to load, or at the engine if it runs in an image"
            probes.append(Probe("reviewer", self._reviewer, doctor.LIMIT, late))
        if revised and settings.agent != "llm" and settings.replay is None:
            probes.append(Probe("coding agent", self._agent, agents.LIMIT, "Correct --agent"))
        for name in scorings:
            late = f"Look at which of the packages that {name} needs is slow to load"
            probes.append(Probe(name, partial(self._scoring, name), agents.LIMIT, late))
        if needs.executes:
            probes += self._sandbox_probes(needs)
        if revised and settings.agent == "llm" and settings.replay is None:
            probes.append(
                Probe(
                    "model",
                    lambda: agents.look_at_model(settings, deep=self.deep),
                    agents.LIMIT,
                    "Check the network and --base-url",
                )
            )
        return probes

    def _sandbox_probes(self, needs: _Needs) -> list[Probe]:
        from ..sandbox import doctor
        from ..sources import doctor as sources

        settings, sandbox = self.settings, self._sandbox()
        probes = [
            Probe("uv", doctor.look_at_uv, doctor.LIMIT, "Install it again: pip install uv"),
            Probe(
                "package index",
                lambda: sources.look_at_indexes(IndexSettings.of(sandbox)),
                sources.LIMIT,
                "Check the network, DNS and HTTPS_PROXY, or name another index (--index-url)",
            ),
        ]
        if settings.sandbox in ("auto", "docker"):
            wanted = doctor.Wanted(needs.pythons, needs.engine_room)
            probes.append(
                Probe(
                    _ENGINE,
                    lambda: doctor.look_at_docker(sandbox, wanted, deep=self.deep),
                    doctor.DEEP_LIMIT if self.deep else doctor.LIMIT,
                    "Restart the engine, or look at its log: it is there but too slow to work with",
                )
            )
        if settings.sandbox in ("auto", "local"):
            probes.append(
                Probe(
                    _LOCAL,
                    lambda: doctor.look_at_local(needs.pythons),
                    doctor.LIMIT,
                    "Look at which of the machine's Python interpreters hangs",
                )
            )
        if settings.sandbox not in ("auto", "docker", "local"):
            late = "Look at what makes it slow to answer"
            probes.append(Probe("sandbox", self._registered_sandbox, doctor.LIMIT, late))
        return probes

    def _registered_sandbox(self) -> list[Finding]:
        """Make the sandbox of another package."""
        name = self.settings.sandbox
        try:
            about = assemble.make_backend(self.settings, name, self.session, lambda _line: None).describe()
        except CrbenchError as error:
            return [missing("sandbox", printable(str(error), 600), "Correct --sandbox, or mend that package")]
        return [ok("sandbox", printable(f"{name}, isolation {about.get('isolation')}"))]

    def _sandbox(self) -> SandboxSettings:
        return assemble.sandbox_settings(self.settings, self.session, lambda _line: None)

    def _remove_containers(self) -> None:
        """Remove what a look that was interrupted or given up left in the engine."""
        from ..sandbox.docker import DockerBackend
        from ..sandbox.engine import connect

        try:
            backend = DockerBackend(connect(_SETTLE * 10), self._sandbox())
            backend.reap(self.session)
            time.sleep(_SETTLE)
            backend.reap(self.session)
        except CrbenchError:
            return  # no engine answers: what is in it ends itself, and the next run removes it


@dataclass(frozen=True)
class _Needs:
    """What the datasets ask for."""

    instances: int
    environments: frozenset[Environment]
    #: Whether anything is run in a sandbox.
    executes: bool

    @classmethod
    def of(cls, datasets: Sequence[Dataset], *, executes: bool) -> _Needs:
        instances = [i for d in datasets for i in d.instances]
        environments = frozenset(i.environment for i in instances) if executes else frozenset()
        return cls(len(instances), environments, executes)

    @property
    def pythons(self) -> tuple[str, ...]:
        return tuple(sorted({e.python for e in self.environments}))

    @property
    def engine_room(self) -> int:
        return _BASE_IMAGE + len(self.environments) * _PER_IMAGE + self.instances * _PER_INSTANCE
