"""pytest-crbench: code-review benchmarks as pytest suites.

``__all__`` has the public names. Each is imported when it is first asked for: pytest loads this module in
every run on the machine, also in those that never ask for a benchmark.
"""

from typing import Any

__version__ = "0.1.0"

_PUBLIC = {
    "Agent": "core.agent",
    "AgentKind": "core.agent",
    "AgentTask": "core.agent",
    "Backend": "core.sandbox",
    "Changes": "core.model",
    "Check": "core.model",
    "Dataset": "core.model",
    "DatasetKind": "core.datasets",
    "Decider": "core.scoring",
    "Environment": "core.model",
    "EnvironmentRef": "core.sandbox",
    "ExecResult": "core.sandbox",
    "InfraError": "core.errors",
    "Instance": "core.model",
    "Limits": "core.sandbox",
    "Note": "core.datasets",
    "Numbers": "core.scoring",
    "Observation": "core.runner",
    "PullRequest": "core.model",
    "Report": "core.report",
    "Results": "statistics.results",
    "Review": "core.model",
    "ReviewComment": "core.model",
    "ReviewTask": "core.reviewer",
    "Reviewer": "core.reviewer",
    "ReviewerKind": "core.reviewer",
    "Revision": "core.model",
    "Run": "run.run",
    "Runner": "core.runner",
    "Sandbox": "core.sandbox",
    "SandboxKind": "core.sandbox",
    "SandboxSettings": "core.sandbox",
    "Scoring": "core.scoring",
    "Settings": "core.settings",
    "Source": "core.model",
    "StageError": "core.errors",
    "Status": "core.status",
    "UsageError": "core.errors",
    "Verdict": "core.model",
    "load_results": "reports.results",
}
__all__ = ["OutsideFailure", "__version__", *_PUBLIC]


class OutsideFailure(Exception):
    """Raised by a reviewer or coding agent that got no answer from what it depends on (401, 429, 5xx).

    It becomes ``infra_error`` and counts as missed where the gate decides (docs/gating.md).
    """


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_PUBLIC[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_PUBLIC})
