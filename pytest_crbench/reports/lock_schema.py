"""The published shape of ``lock.json``: what went into a run, by digest and version.

``python -m pytest_crbench.reports.lock_schema`` prints the JSON Schema that docs/lock.schema.json holds.
Digests are lower-case hex SHA-256.
"""

from __future__ import annotations

import json
import sys
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field


class _Model(BaseModel):
    model_config = ConfigDict(extra="allow", allow_inf_nan=False)


class PackageInfo(_Model):
    """This package as it was installed; ``source`` covers all of it but instances and prompts."""

    version: str
    source: str


class InstanceInfo(_Model):
    """One instance."""

    digest: str = Field(description="of the whole instance: its file, hidden tests and local trees")
    pull_request: str = Field(description="of what reviewer and agent see of it")
    checks: dict[str, str] = Field(description="digest of each check, which covers its hidden test")
    environment: str = Field(description="key of its entry in environments")


class ProgramInfo(_Model):
    """A reviewer or coding agent; ``digest`` is that of ``fingerprint``."""

    name: str
    digest: str
    fingerprint: dict[str, Any]


class SandboxInfo(_Model):
    """The kind of sandbox and what separates it from the host."""

    name: str
    isolation: str | None = None


class LimitInfo(_Model):
    """Limits of one sandbox (bytes, CPUs, processes) and of one hidden test (seconds)."""

    memory: int
    cpus: float
    pids: int
    test_timeout: float


class BaseInfo(_Model):
    """What an environment was built on: an image and its id, or an interpreter, version and platform."""

    name: str
    id: str


class EnvironmentInfo(_Model):
    """An environment, from when it was first built or found in the run."""

    digest: str
    python: str
    specifier: str
    pins: list[str]
    base: BaseInfo


class LockFileContent(_Model):
    """The inputs of one run of pytest-crbench."""

    schema_: Literal["crbench-lock"] = Field(alias="schema")
    schema_version: Literal[1]
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


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of ``lock.json``."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:crbench-lock:1",
        **LockFileContent.model_json_schema(by_alias=True),
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(json_schema(), indent=1, sort_keys=False) + "\n")
