"""Reviewers that a model drives, from end to end: a vendor's pytest run, real HTTP, a script for a model."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.benchmarks import Pull, Run, run, write_dataset
from support.endpoint import KEY, endpoint, files_with, row
from support.openai_server import OpenAIServer
from support.reviewing import asked_about, block, by_file

pytestmark = [pytest.mark.network, pytest.mark.slow]

#: What the model says of each pull request's one file, and what becomes of its check.
FORMS = {
    "whole": ("{whole}", "passed", ""),
    "fenced": ("Sure! Here you go:\n\n```xml\n{whole}\n```\nAnything else?", "passed", ""),
    "half": ("{whole}<notesplit/><diff>+    re", "passed", "1 block of the answer"),
    "onlyhalf": ("{half}", "reviewer_error", "only half a block"),
    "prose": ("It returns the wrong text, I am afraid.", "reviewer_error", "no block of tags"),
    "nothing": ("", "reviewer_error", "answered nothing"),
    "clean": ("Nothing to say. <end/>", "missed", ""),
}


def finding(name: str) -> str:
    """The finding that resolves the check ``name``."""
    return block('+    return "wrong"', f'Say so.\n\n```suggestion\n    return "{name}"\n```')


def answers() -> dict[str, str]:
    """The answer about each file."""
    made = {}
    for name, (said, _, _) in FORMS.items():
        whole = finding(name)
        made[f"shop/{name}_.py"] = said.format(whole=whole, half=whole[: whole.index("</note>")])
    return made


def review(folder: Path, dataset: Path | None, cache: Path, reviewer: str, *arguments: str) -> Run:
    """Run a reviewer with the agent that does what suggestions say, in the local sandbox."""
    return run(
        folder,
        dataset,
        cache,
        f"--crbench-reviewer={reviewer}",
        "--crbench-agent=suggestions",
        *arguments,
        env={"CRBENCH_API_KEY": KEY},
    )


def test_each_hunk_is_asked_about_and_answers_of_every_form_are_read(
    folder: Path, tmp_path: Path, cache: Path
) -> None:
    dataset = write_dataset(tmp_path / "forms", [Pull(f"pull-{n}", hard=(n,)) for n in FORMS], name="forms")
    with OpenAIServer(by_file(answers())) as server:
        options = endpoint(server)
        done = review(folder, dataset, cache, "llm:none", *options)
        assert sorted(map(asked_about, server.requests)) == sorted(answers()), done.output
        again = review(folder, dataset, cache, "llm:none", *options)
        assert len(server.requests) == len(FORMS), "a second run asked again"
    for one in (done, again):
        for name, (_, status, hint) in FORMS.items():
            found = row(one, name)
            assert found["status"] == status, one.output
            assert hint in found["reason"] + "\n".join(found["warnings"])
    assert row(done, "whole")["usage"]["review"]["calls"] == 1
    assert row(again, "whole")["usage"]["review"]["calls_from_cache"] == 1
    assert files_with(folder / ".crbench", KEY) == []
    assert {h["authorization"] for h in server.headers} == {f"Bearer {KEY}"}


def test_what_is_missing_is_said_before_the_run(folder: Path, dataset: Path, cache: Path) -> None:
    done = review(
        folder, dataset, cache, "llm:maybe", "--crbench-model=m", "--crbench-base-url=http://127.0.0.1:9/v1"
    )
    assert done.status == pytest.ExitCode.USAGE_ERROR, done.output
    assert "llm:none, llm:bm25, llm:embedding, llm:agent" in done.output
    assert not (folder / ".crbench").exists()
