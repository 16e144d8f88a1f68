"""Runs of the `llm` agent against a scripted endpoint, as a vendor would start them, and what they left."""

from __future__ import annotations

import json
import os
import secrets
from typing import TYPE_CHECKING, Any

from support.benchmarks import Run, run

if TYPE_CHECKING:
    from pathlib import Path

    from support.openai_server import OpenAIServer

BASE_IMAGE = os.environ.get("CRBENCH_TEST_BASE_IMAGE", "crbench-base:bookworm")
DOCKER = ("--crbench-sandbox=docker", f"--crbench-base-image={BASE_IMAGE}")
LOCAL = ("--crbench-sandbox=local",)
KEY = "sk-e2e-very-secret-0123456789"


def endpoint(server: OpenAIServer) -> tuple[str, ...]:
    """The options of an endpoint; a model name of its own, since ports and so questions come again."""
    return (f"--crbench-base-url={server.base_url}", f"--crbench-model=scripted-{secrets.token_hex(6)}")


def run_llm(
    folder: Path,
    dataset: Path | None,
    cache: Path,
    server: OpenAIServer,
    *arguments: str,
    reviewer: str = "human",
) -> Run:
    """Run the benchmark with the `llm` agent in Docker (or the sandbox that ``arguments`` name)."""
    sandbox = () if any("crbench-sandbox" in a for a in arguments) else DOCKER
    return run(
        folder,
        dataset,
        cache,
        f"--crbench-reviewer={reviewer}",
        "--crbench-agent=llm",
        *endpoint(server),
        *sandbox,
        *arguments,
        env={"CRBENCH_API_KEY": KEY},
    )


def row(done: Run, check: str, repeat: int = 1) -> dict[str, Any]:
    """The one result row of a check."""
    try:
        rows = done.rows()
    except (OSError, IndexError) as error:
        raise AssertionError(done.output) from error
    (found,) = [r for r in rows if r["check"] == check and r["repeat"] == repeat]
    return found


def told(server: OpenAIServer) -> str:
    """All that the model was ever sent, as one text."""
    return json.dumps(server.requests, ensure_ascii=False)


def observations(server: OpenAIServer) -> list[str]:
    """What the model was told of its commands, in order."""
    last = server.requests[-1]["messages"]
    return [m["content"] for m in last if m["role"] == "tool"]


def files_with(folder: Path, text: str) -> list[str]:
    """The files below ``folder`` that hold ``text``, as bytes, whatever they are."""
    wanted = text.encode()
    return sorted(
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if path.is_file() and not path.is_symlink() and wanted in path.read_bytes()
    )
