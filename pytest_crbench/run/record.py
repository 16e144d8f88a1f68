"""How a run is made and of what: the record that is written before any work starts, and its words."""

from __future__ import annotations

import os
import platform
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import __version__
from ..core.run_record import (
    DatasetInfo,
    Inputs,
    InstanceInfo,
    LimitInfo,
    MatcherPart,
    PackageInfo,
    Part,
    ProgramInfo,
    ReviewerPart,
    RunRecord,
    SandboxInfo,
    SandboxPart,
)
from ..core.scoring import SCORINGS
from ..evaluation.plan import environment_name
from ..evaluation.run_record import FIXTURES, note, read_inputs
from ..host import digest
from ..text.secrets import scrubbed_value

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ..core.agent import Agent
    from ..core.matching import Matcher
    from ..core.model import Dataset, Instance
    from ..core.reviewer import Reviewer
    from ..core.scoring import Decider
    from ..core.settings import Settings

#: Installed packages whose behaviour reaches results, or the reports of pytest.
LIBRARIES = (
    *("pytest", "pytest-xdist", "pluggy", "docker", "GitPython", "unidiff", "jinja2", "openai", "pydantic"),
    *("filelock", "packaging", "pypi-simple", "uv", "numpy", "scipy", "bm25s", "tree-sitter"),
)
_SOURCE = (".py", ".j2", ".json", ".toml")


def run_record(
    name: str,
    settings: Settings,
    datasets: Iterable[Dataset],
    reviewer: Reviewer,
    agent: Agent,
    sandbox: Mapping[str, Any],
    deciders: Mapping[str, Decider],
) -> RunRecord:
    """Return all of a run that is known before any work starts.

    Args:
        name: what the run is called.
        settings: its options.
        datasets: the part of its datasets that is measured.
        reviewer: the reviewer that the options name.
        agent: the coding agent that they name.
        sandbox: what the sandbox says of itself.
        deciders: what decides checks, by the name of the scoring.
    """
    known = list(datasets)
    matcher = next((made.matcher for made in deciders.values() if hasattr(made, "matcher")), None)
    record = RunRecord(
        name=name,
        started=now(),
        crbench=__version__,
        reviewer=ReviewerPart(
            name=reviewer.name,
            spec=settings.reviewer,
            version=settings.reviewer_version,
            fingerprint=dict(reviewer.fingerprint),
        ),
        agent=Part(name=agent.name, fingerprint=dict(agent.fingerprint)),
        sandbox=SandboxPart(**sandbox),
        datasets=[_dataset(dataset) for dataset in known],
        repeats=settings.repeats,
        options=settings.recorded(),
        inputs=run_inputs(settings, known, reviewer, agent, sandbox, deciders),
    )
    if matcher is not None:
        record.matcher = matcher_info(matcher)
    return record


def run_inputs(
    settings: Settings,
    datasets: Iterable[Dataset],
    reviewer: Reviewer,
    agent: Agent,
    sandbox: Mapping[str, Any],
    deciders: Mapping[str, Decider],
) -> Inputs:
    """Return what resuming, replaying and comparing look at; see `run_record`."""
    from ..models import prompts

    options: dict[str, Any] = {
        "repeats": settings.repeats,
        "scoring": list(deciders),
        "comments": settings.comments,
    }
    for name, decider in deciders.items():
        if inputs := SCORINGS.get(name).inputs(decider):
            options |= {**inputs, "offline": settings.offline}
    engine = {k: v for k, v in sandbox.items() if k not in ("name", "isolation", "base_image", "no_docker")}
    return Inputs(
        package=PackageInfo(version=__version__, source=package_digest()),
        prompts=prompts.digest_of_all(),
        instances={f"{d.name}::{i.id}": _instance(i) for d in datasets for i in d.instances},
        reviewer=program(reviewer),
        agent=program(agent),
        fixtures={},
        sandbox=SandboxInfo(name=sandbox["name"], isolation=sandbox.get("isolation")),
        limits=LimitInfo(
            memory=settings.memory,
            cpus=settings.cpus,
            pids=settings.pids,
            test_timeout=settings.test_timeout,
        ),
        options=options,
        environments={},
        python={
            "version": platform.python_version(),
            "implementation": platform.python_implementation(),
        },
        platform={"system": platform.system(), "machine": platform.machine(), "cpus": os.cpu_count()},
        engine=scrubbed_value(engine),
        libraries=_libraries(),
        tools={"git": _git_version()},
        git=git_state(),
    )


def matcher_info(matcher: Matcher) -> MatcherPart:
    """Return what the record says of a matcher."""
    fingerprint = dict(matcher.fingerprint)
    origin = getattr(matcher, "origin", None)
    threshold = {"threshold": dict(origin)} if origin else {}
    return MatcherPart(name=matcher_label(fingerprint), fingerprint=fingerprint, **threshold)


def matcher_label(fingerprint: Mapping[str, Any]) -> str:
    """Return how meanings are compared, in few words."""
    how = fingerprint.get("meaning")
    found: Mapping[str, Any] = how if isinstance(how, dict) else {}
    model = found.get("model") or found.get("embeddings")
    named = f"{found.get('meaning', '?')}"
    if isinstance(model, dict):
        details = [str(model.get("model", "?"))]
        details += [f"{found['votes']} votes"] if found.get("votes", 1) != 1 else []
        details += [f"from {found['threshold']:g}"] if "threshold" in found else []
        named += f" ({', '.join(details)})"
    return f"published AACR rules, {named}" if fingerprint.get("matcher") == "aacr-legacy" else named


def _dataset(dataset: Dataset) -> DatasetInfo:
    return DatasetInfo(
        name=dataset.name,
        title=dataset.title,
        notice=dataset.notice,
        digest=dataset.digest,
        instances=len(dataset.instances),
        checks=sum(len(instance.checks) for instance in dataset.instances),
    )


def _instance(instance: Instance) -> InstanceInfo:
    return InstanceInfo(
        digest=instance.digest,
        pull_request=instance.request_digest,
        checks={check.id: check.digest for check in instance.checks},
        environment=environment_name(instance.environment),
    )


def program(made: Reviewer | Agent) -> ProgramInfo:
    """Return what a reviewer or a coding agent is: its name, and all that decides what it does."""
    fingerprint = scrubbed_value(dict(made.fingerprint))
    return ProgramInfo(name=made.name, digest=digest.of(fingerprint), fingerprint=fingerprint)


def note_programs(run: Path, reviewer: Reviewer, agent: Agent) -> None:
    """Record a reviewer or agent that a vendor's fixture put in the place of the named one.

    Raises:
        InfraError: ``lock``, if an earlier invocation of the run had another one there.
    """
    if not (run / "run.json").exists():
        return
    recorded = read_inputs(run)
    for part, named, made in (("reviewer", recorded.reviewer, reviewer), ("agent", recorded.agent, agent)):
        found = program(made)
        if part in recorded.fixtures or found.digest != named.digest:
            note(run, FIXTURES, part, found)


def made_by(record: RunRecord) -> dict[str, Part]:
    """Return the ``reviewer`` and ``agent`` that really worked: a vendor's fixture may have replaced them."""
    found: dict[str, Part] = {"reviewer": record.reviewer}
    if record.agent is not None:
        found["agent"] = record.agent
    for part, fixture in (record.inputs.fixtures if record.inputs else {}).items():
        fingerprint = {**fixture.fingerprint, "fixture": True}
        found[part] = found[part].model_copy(update={"name": fixture.name, "fingerprint": fingerprint})
    return found


def package_digest() -> str:
    """Digest of the source of this package as it is installed, without the prompts, which have their own."""
    root = Path(__file__).parents[1]
    found = {
        path.relative_to(root).as_posix(): digest.of_file(path)
        for path in sorted(root.rglob("*"))
        if path.suffix in _SOURCE and "_instances" not in path.parts and not path.match("prompts/*.j2")
    }
    return digest.of(found)


def git_state(folder: Path | None = None) -> dict[str, Any] | None:
    """Revision of the repository that the run is started in, and whether it is changed; None if none."""
    try:
        return {
            "revision": _ask("rev-parse", "HEAD", cwd=folder),
            "dirty": bool(_ask("status", "--porcelain", cwd=folder)),
        }
    except (OSError, subprocess.SubprocessError):
        return None


def _libraries() -> dict[str, str]:
    from importlib.metadata import PackageNotFoundError, version

    found = {}
    for name in LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def _git_version() -> str | None:
    try:
        return _ask("--version").removeprefix("git version ")
    except (OSError, subprocess.SubprocessError):
        return None


def _ask(*arguments: str, cwd: Path | None = None) -> str:
    done = subprocess.run(
        ["git", *arguments],
        capture_output=True,
        text=True,
        timeout=10,
        check=True,
        errors="replace",
        cwd=cwd,
    )
    return done.stdout.strip()


def image_of(reviewer: Part) -> dict[str, Any]:
    """Return ``name``, ``id`` and ``network`` of the image that a reviewer runs in; empty: on the host."""
    image = (reviewer.fingerprint or {}).get("image")
    return dict(image) if isinstance(image, dict) else {}


def reviewer_label(reviewer: Part) -> str:
    """Return a reviewer's name for a line of text, with its image or the model that it asks."""
    image = image_of(reviewer)
    if not image:
        return agent_label(reviewer)
    return f"{reviewer.name} (in {image['name']}, network {'on' if image['network'] else 'off'})"


def agent_label(agent: Part) -> str:
    """Return an agent's name for a line of text, with model and prompts where it has them."""
    fingerprint = agent.fingerprint or {}
    details = [str(fingerprint["model"])] if fingerprint.get("model") else []
    if fingerprint.get("program_version"):
        details.append(str(fingerprint["program_version"]))
    if fingerprint.get("prompts"):
        details.append(f"prompts {str(fingerprint['prompts'])[:6]}")
    return f"{agent.name} ({', '.join(details)})" if details else agent.name


def now() -> str:
    """The time in UTC, ISO 8601."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
