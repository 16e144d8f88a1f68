"""Reviewers that a model drives, from end to end: a vendor's pytest run, real HTTP, a script for a model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.benchmarks import Pull, Run, run, write_dataset
from support.endpoint import KEY, endpoint, files_with, row
from support.openai_server import OpenAIServer, Step, answer, vectors
from support.openai_server import run as run_command
from support.reviewing import asked_about, block, by_file, snippets

pytestmark = [pytest.mark.network, pytest.mark.slow]

BUNDLED = "releases::decorator-5.1.0"
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


MODES = ("none", "bm25", "embedding", "agent")
REVIEW = "<path>{path}</path><side>right</side><from>{line}</from><to>{line}</to><note>{note}</note><end/>"


def letters(text: str) -> list[float]:
    """A model of embeddings of a sort."""
    return [float(text.lower().count(letter)) for letter in "abcdefghijklmnopqrstuvwxyz"]


def model(hunks: dict[str, str], placed: str) -> Any:
    """A model that answers about hunks, and as an agent looks around and writes ``placed`` to its file."""

    def choose(request: dict[str, Any]) -> Step:
        if "tools" not in request:
            return answer(hunks.get(asked_about(request), "<end/>"))
        done = sum(message["role"] == "tool" for message in request["messages"])
        write = f"cat > ~/review.txt <<'EOF'\n{placed}\nEOF\nls ~"
        return [run_command("ls; wc -l ~/pull-request.diff"), run_command(write), answer("Done.")][
            min(done, 2)
        ]

    return choose


@pytest.mark.parametrize("mode", MODES[1:])
def test_a_small_pull_request_in_every_mode(folder: Path, dataset: Path, cache: Path, mode: str) -> None:
    note = 'Say so.\n\n```suggestion\n    return "price"\n```'
    placed = REVIEW.format(path="shop/price_.py", line=2, note=note)
    script = model({"shop/price_.py": finding("price") + "<end/>"}, placed)
    with OpenAIServer(script, embeddings=vectors(letters)) as server:
        options = (*endpoint(server), "--crbench-embedding-model=letters", "-k", "price")
        done = review(folder, dataset, cache, f"llm:{mode}", *options)
        asked = (len(server.requests), len(server.embedded))
        again = review(folder, dataset, cache, f"llm:{mode}", *options)
        assert (len(server.requests), len(server.embedded)) == asked, "a second run asked again"
    for one in (done, again):
        assert one.statuses() == {"quagga-4711::price": "passed"}, one.output
    assert asked[0] == {"bm25": 2, "embedding": 2, "agent": 3}[mode]
    assert bool(asked[1]) == (mode == "embedding")
    if mode != "agent":
        assert all(snippets(request) for request in server.requests)
    told = str([m for r in server.requests for m in r["messages"] if m["role"] != "assistant"])
    for hidden in ("quagga", "savanna", "hidden_sentinel", "The price is wrong", KEY):
        assert hidden not in told
    assert files_with(folder / ".crbench", KEY) == []


@pytest.mark.parametrize("mode", MODES)
def test_a_bundled_pull_request_in_every_mode(folder: Path, cache: Path, mode: str) -> None:
    """An archive of the index, a released package; nobody finds anything."""
    with OpenAIServer(model({}, "<end/>"), embeddings=vectors(letters)) as server:
        options = (*endpoint(server), "--crbench-embedding-model=letters", BUNDLED)
        done = review(folder, None, cache, f"llm:{mode}", *options)
        statuses = done.statuses()
        assert set(statuses.values()) == {"missed"}, done.output
        check = next(iter(statuses)).partition("::")[2]
        usage = row(done, check)["usage"]["review"]
        asked = (len(server.requests), len(server.embedded))
        again = review(folder, None, cache, f"llm:{mode}", *options)
        assert (len(server.requests), len(server.embedded)) == asked, "a second run asked again"
    assert again.statuses() == statuses
    assert usage["calls"] == len(server.requests) >= 3
    assert usage.get("embedding_calls", 0) == len(server.embedded)
    assert bool(server.embedded) == (mode == "embedding")
    assert any(map(snippets, server.requests)) == (mode in ("bm25", "embedding"))
    told = str([m for r in server.requests for m in r["messages"] if m["role"] != "assistant"])
    assert BUNDLED.partition("::")[2] not in told
    assert check not in told


def test_what_is_missing_is_said_before_the_run(folder: Path, dataset: Path, cache: Path) -> None:
    done = review(
        folder, dataset, cache, "llm:maybe", "--crbench-model=m", "--crbench-base-url=http://127.0.0.1:9/v1"
    )
    assert done.status == pytest.ExitCode.USAGE_ERROR, done.output
    assert "llm:none, llm:bm25, llm:embedding, llm:agent" in done.output
    assert not (folder / ".crbench").exists()
