"""How a run is made and of what: the value of ``run.json``, and of ``run`` in ``results.json``.

Readers leave aside keys that they do not know. Digests are lower-case hex SHA-256.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

Count = Annotated[int, Field(ge=0)]


class Record(BaseModel):
    """What keeps the keys of later versions."""

    model_config = ConfigDict(extra="allow", allow_inf_nan=False)


class Part(Record):
    """A reviewer, coding agent, sandbox or matcher; ``fingerprint`` is all that decides what it does."""

    name: str
    fingerprint: dict[str, Any] | None = None


class ReviewerPart(Part):
    """The reviewer under test: as the options name it."""

    spec: str | None = None
    version: str | None = None


class SandboxPart(Part):
    """The sandbox, with what it says of itself."""

    isolation: str | None = None
    no_docker: str | None = Field(default=None, description="why Docker was not taken")


class MatcherPart(Part):
    """What compares meanings; ``threshold`` says where its threshold is from and how often it errs."""

    threshold: dict[str, Any] | None = None


class DatasetInfo(Record):
    """A dataset as it was selected from."""

    name: str
    title: str = ""
    notice: str = ""
    digest: str = ""
    instances: Count = 0
    checks: Count = 0


class SelectionInfo(Record):
    """How many of the measurements of the run's datasets were selected; a part where the two differ."""

    selected: Count
    of: Count


class PackageInfo(Record):
    """This package as it was installed; ``source`` covers all of it but instances and prompts."""

    version: str
    source: str


class InstanceInfo(Record):
    """One instance."""

    digest: str = Field(description="of the whole instance: its file, hidden tests and local trees")
    pull_request: str = Field(description="of what reviewer and agent see of it")
    checks: dict[str, str] = Field(description="digest of each check, which covers its hidden test")
    environment: str = Field(description="key of its entry in environments")


class ProgramInfo(Record):
    """A reviewer or coding agent; ``digest`` is that of ``fingerprint``."""

    name: str
    digest: str
    fingerprint: dict[str, Any]


class SandboxInfo(Record):
    """The kind of sandbox and what separates it from the host."""

    name: str
    isolation: str | None = None


class LimitInfo(Record):
    """Limits of one sandbox (bytes, CPUs, processes) and of one hidden test (seconds)."""

    memory: int
    cpus: float
    pids: int
    test_timeout: float


class BaseInfo(Record):
    """What an environment was built on: an image and its id, or an interpreter, version and platform."""

    name: str
    id: str


class EnvironmentInfo(Record):
    """An environment, from when it was first built or found in the run."""

    digest: str
    python: str
    specifier: str
    pins: list[str]
    base: BaseInfo


class Inputs(Record):
    """What goes into a run, by digest and version: resuming, replaying and comparing look at these."""

    package: PackageInfo
    prompts: str = Field(description="digest of all prompt templates")
    instances: dict[str, InstanceInfo] = Field(description="by dataset::instance")
    reviewer: ProgramInfo = Field(description="that the options name")
    agent: ProgramInfo = Field(description="that the options name")
    fixtures: dict[str, ProgramInfo] = Field(description="reviewer, agent: what a fixture put in their place")
    sandbox: SandboxInfo
    limits: LimitInfo
    options: dict[str, Any]
    environments: dict[str, EnvironmentInfo]
    python: dict[str, str]
    platform: dict[str, Any]
    engine: dict[str, Any] = Field(description="what the sandbox says of itself")
    libraries: dict[str, str] = Field(description="versions of installed packages")
    tools: dict[str, str | None] = Field(description="versions of programs")
    git: dict[str, Any] | None = Field(description="revision and dirty, of the working folder")


class RunRecord(Record):
    """How the verdicts of a run are made. Times are ISO 8601."""

    name: str
    started: str
    crbench: str = Field(default="", description="version of pytest-crbench that began it")
    finished: str | None = None
    interrupted: bool = False
    reviewer: ReviewerPart
    agent: Part | None = None
    sandbox: SandboxPart | None = None
    matcher: MatcherPart | None = Field(default=None, description="how comments were matched")
    datasets: list[DatasetInfo] = Field(default_factory=list)
    repeats: Annotated[int, Field(ge=1)] = 1
    options: dict[str, Any] = Field(default_factory=dict)
    selection: SelectionInfo | None = Field(default=None, description="what of its datasets the run is of")
    selected_nodes: list[str] | None = Field(
        default=None, description="node ids of its first invocation, where they are a part; in run.json only"
    )
    replay_of: str | None = Field(default=None, description="the run whose reviews and revisions were read")
    resumed: bool = Field(default=False, description="whether an earlier invocation began it")
    notes: list[str] = Field(default_factory=list)
    fixtures: dict[str, str] = Field(
        default_factory=dict, description="fixtures that replaced ours, each with the file that defines it"
    )
    inputs: Inputs | None = Field(default=None, description="null in a run of version 1 without a lock file")
