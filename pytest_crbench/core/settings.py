"""All options of a run as one value; ``run.settings`` reads it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..text.secrets import scrubbed_value


@dataclass(frozen=True)
class Settings:
    """The options of one run; see `run.options` for what each means. Times are seconds."""

    reviewer: str = ""
    review_format: str = "auto"
    reviewer_timeout: float = 600.0
    reviewer_exit_ok: tuple[int, ...] = (0,)
    reviewer_name: str | None = None
    reviewer_version: str | None = None
    reviewer_env: tuple[str, ...] = ()
    reviewer_image: str | None = None
    reviewer_network: bool = False
    comments: str = "all"
    max_errors: int = 5
    reviewer_model: str | None = None
    reviewer_snippets: int = 3
    reviewer_temperature: float = 0.7
    reviewer_top_p: float = 0.95
    reviewer_top_k: int = 20
    agent: str = "llm"
    agent_timeout: float = 600.0
    agent_env: tuple[str, ...] = ()
    agent_name: str | None = None
    agent_version: str | None = None
    agent_command_timeout: float = 60.0
    model: str | None = None
    base_url: str | None = None
    temperature: float | None = None
    max_steps: int = 50
    max_tokens: int | None = None
    max_cost: float | None = None
    max_total_tokens: int | None = None
    max_total_cost: float | None = None
    price: str | None = None
    dataset: tuple[str, ...] = ()
    sandbox: str = "auto"
    base_image: str = "python:3.11-slim"
    ca_bundle: Path | None = None
    index_url: str | None = None
    memory: int = 2 * 1024**3
    cpus: float = 2.0
    pids: int = 512
    test_timeout: float = 120.0
    cache: Path = Path(".crbench/cache")
    run_dir: Path = Path(".crbench/runs")
    min_free: int = 128 * 1024**2
    disk_budget: int | None = None
    resume: str | None = None
    rerun_errors: str | None = None
    replay: str | None = None
    repeats: int = 1
    #: Empty: what each dataset was made for.
    scoring: tuple[str, ...] = ()
    offline: bool = False
    line_tolerance: int = 1
    matcher: str = "model"
    file_level: str = "nothing"
    matcher_model: str | None = None
    matcher_votes: int = 1
    embedding_model: str | None = None
    embedding_base_url: str | None = None
    #: A number, or a file of `crbench calibrate`; None: the one in the cache for model and datasets.
    embedding_threshold: float | Path | None = None
    aacr_legacy: bool = False
    classify: bool = False
    fail_under: tuple[str, ...] = ()
    fail_over: tuple[str, ...] = ()
    min_coverage: str | None = None
    baseline: Path | None = None
    fail_if_regressed: str | None = None
    fail_on_miss: bool = False
    report: tuple[str, ...] = ()

    @property
    def datasets(self) -> tuple[str, ...]:
        """The datasets of the run; the bundled one if none is named."""
        return self.dataset or ("releases",)

    def recorded(self) -> dict[str, Any]:
        """The options that say how a run was made, as plain JSON: for results and for resuming."""
        places = {"cache", "run_dir", "min_free", "disk_budget", "ca_bundle", "index_url"}
        left_out = places | {"resume", "replay", "rerun_errors", "max_errors"}
        plain: dict[str, Any] = {}
        for name, value in vars(self).items():
            if name not in left_out:
                plain[name] = list(value) if isinstance(value, tuple) else value
        plain["baseline"] = str(self.baseline) if self.baseline else None
        if isinstance(self.embedding_threshold, Path):
            plain["embedding_threshold"] = str(self.embedding_threshold)
        recorded: dict[str, Any] = scrubbed_value(plain)
        return recorded
