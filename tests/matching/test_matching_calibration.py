"""Thresholds of embeddings: measured, kept, recorded, and asked for where there is none."""

from __future__ import annotations

import json
import math
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.matching import comment, task
from support.openai_server import OpenAIServer, vectors
from support.records import run_record

from pytest_crbench.cli import main as crbench
from pytest_crbench.core.errors import UsageError
from pytest_crbench.core.settings import Settings
from pytest_crbench.models.usage import Usage
from pytest_crbench.reports.lines import notes
from pytest_crbench.run.settings import read
from pytest_crbench.scoring.matching.calibration import calibrate, paraphrase
from pytest_crbench.scoring.matching.calibrations import threshold_of
from pytest_crbench.scoring.matching.matchers import make_matcher
from pytest_crbench.statistics.results import Results

PLACES = ("cache", "parser", "socket", "queue", "report", "session", "filter", "index", "budget", "router")
WRONG = ("leaks a handle", "drops the last row", "never expires", "rounds down", "blocks the event loop")


def words(text: str, *, offset: float = 0.0) -> list[float]:
    """A bag of words; ``offset`` moves all cosines towards 1, as some models do."""
    vector = [offset] * 512
    for word in re.findall(r"\w+", text.lower()):
        vector[zlib.crc32(word.encode()) % 512] += 1.0
    return vector


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Ten pull requests with five comments each, two of them at one line."""
    entries = [
        {
            "change_line_count": 10, "project_main_language": "Python", "source_commit": "a" * 40,
            "target_commit": "b" * 40, "githubPrUrl": f"https://github.com/acme/shop/pull/{n}",
            "comments": [
                {
                    "is_ai_comment": False, "source_model": "", "path": "shop.py", "side": "right",
                    "note": f"The {place} {wrong}, because `{place}_{n}` is not checked. "
                    f"Consider a guard in {wrong[:6]} {k}.",
                    "from_line": 100 * max(k, 1), "to_line": 100 * max(k, 1),
                    "category": "Code Defect", "context": "Diff Level",
                }
                for k, wrong in enumerate(WRONG)
            ],
        }
        for n, place in enumerate(PLACES)
    ]  # fmt: skip
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "positive_samples.json").write_text(json.dumps(entries))
    return folder


@pytest.fixture(params=[0.0, 0.3], ids=["spread", "narrow"])
def server(request: pytest.FixtureRequest) -> Iterator[OpenAIServer]:
    with OpenAIServer([], embeddings=vectors(lambda text: words(text, offset=request.param))) as one:
        yield one


def options(server: OpenAIServer, tmp_path: Path) -> list[str]:
    return [
        "--embedding-model=bag", f"--embedding-base-url={server.base_url}", f"--cache={tmp_path / 'cache'}"
    ]  # fmt: skip


def settings(server: OpenAIServer, tmp_path: Path, data: Path, **more: Any) -> Settings:
    given = {
        "matcher": "embedding", "embedding_model": "bag", "embedding_base_url": server.base_url,
        "cache": str(tmp_path / "cache"), "dataset": [f"aacr:{data}"], **more,
    }  # fmt: skip
    return read(given.get, tmp_path)


def test_without_a_threshold_a_run_is_refused_with_the_command_that_finds_one(
    server: OpenAIServer, tmp_path: Path, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(UsageError) as caught:
        make_matcher(settings(server, tmp_path, data), None, {})
    told = re.search(r"`crbench (calibrate embedding .*?)`", str(caught.value))
    assert told is not None, caught.value
    assert crbench([*told[1].split(), f"--cache={tmp_path / 'cache'}"]) == 0
    assert "a reference and its paraphrase" in capsys.readouterr().out

    matcher = make_matcher(settings(server, tmp_path, data), None, {})
    origin = matcher.origin  # type: ignore[attr-defined]
    meaning: Any = matcher.fingerprint["meaning"]
    assert meaning["threshold"] == origin["threshold"] == threshold_of(settings(server, tmp_path, data))[0]
    assert origin["datasets"][0]["name"] == "aacr"
    kinds = origin["kinds"]
    assert (kinds["paraphrases"]["pairs"], kinds["same_place"]["pairs"]) == (50, 10)
    assert origin["against"] == "same_pull_request", "ten pairs at one place say too little"
    assert kinds["paraphrases"]["wrong"] <= 0.1
    assert kinds["same_pull_request"]["wrong"] <= 0.1
    asked = len(server.embedded)
    assert crbench(["calibrate", "embedding", f"aacr:{data}", *options(server, tmp_path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["threshold"] == origin["threshold"]
    assert len(server.embedded) == asked, "the vectors are kept"


def test_the_threshold_fits_the_model_and_the_record_says_where_it_is_from(
    server: OpenAIServer, tmp_path: Path, data: Path
) -> None:
    from pytest_crbench.run.record import matcher_info

    file = tmp_path / "mine.json"
    assert (
        crbench(["calibrate", "embedding", f"aacr:{data}", *options(server, tmp_path), f"--output={file}"])
        == 0
    )
    matcher = make_matcher(settings(server, tmp_path, data, embedding_threshold=str(file)), None, {})
    bodies = [c["note"] for c in json.loads((data / "positive_samples.json").read_text())[0]["comments"]]
    reference = comment("r", body=bodies[0])
    for body, same in ((paraphrase(bodies[0]), True), (bodies[1], False)):
        found = matcher.match(task([reference], [comment("c", body=body)]))
        assert bool(found.matches) is same
    record = matcher_info(matcher)
    assert (record.threshold or {})["kinds"]["unrelated"]["pairs"] > 1000
    (line,) = notes(Results(run_record(matcher=record), ()))
    assert "threshold measured on aacr, wrong for" in line
    assert "% of 50 paraphrases" in line
    given = make_matcher(settings(server, tmp_path, data, embedding_threshold="0.9"), None, {})
    (line,) = notes(Results(run_record(matcher=matcher_info(given)), ()))
    assert "the threshold was given, its errors are not known" in line

    with pytest.raises(UsageError, match="measured with bag, not with other"):
        other = settings(server, tmp_path, data, embedding_threshold=str(file), embedding_model="other")
        make_matcher(other, None, {})
    content = json.loads(file.read_text())
    for broken in (
        "{}",
        "[",
        json.dumps({**content, "version": 0}),
        json.dumps({**content, "threshold": "1"}),
    ):
        file.write_text(broken)
        with pytest.raises(UsageError, match=r"mine\.json"):
            make_matcher(settings(server, tmp_path, data, embedding_threshold=str(file)), None, {})
    with pytest.raises(UsageError, match="cannot read the calibration"):
        make_matcher(settings(server, tmp_path, data, embedding_threshold="absent.json"), None, {})


def test_a_calibration_is_of_its_model_and_its_datasets(
    tmp_path: Path, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with OpenAIServer([], embeddings=vectors(words)) as server:
        assert crbench(["calibrate", "embedding", f"aacr:{data}", *options(server, tmp_path)]) == 0
        threshold_of(settings(server, tmp_path, data))
        with pytest.raises(UsageError, match="crbench calibrate"):
            threshold_of(settings(server, tmp_path, data, embedding_model="another"))
        file = data / "positive_samples.json"
        file.write_text(file.read_text().replace("leaks", "loses"))
        with pytest.raises(UsageError, match="crbench calibrate"):
            threshold_of(settings(server, tmp_path, data))


def test_too_few_references_are_refused() -> None:
    with pytest.raises(UsageError, match="too few reference comments"):
        calibrate(lambda texts: ([words(text) for text in texts], Usage()), [[comment("r")], [comment("s")]])


def test_the_threshold_lies_in_the_gap() -> None:
    """Paraphrases at 1 and other comments at 0: any threshold parts them, the middle is taken."""
    bodies = [f"Consider {n}. It {n} fails." for n in range(40)]
    known = {body: n for n, body in enumerate(bodies)}
    known |= {paraphrase(body): n for body, n in list(known.items())}

    def embed(texts: Any) -> Any:
        return [[math.cos(known[t] * math.pi / 2), math.sin(known[t] * math.pi / 2)] for t in texts], Usage()

    pulls = [[comment("a", body=bodies[n]), comment("b", body=bodies[n + 1])] for n in range(0, 40, 2)]
    found = calibrate(embed, pulls * 2)
    assert found.threshold == pytest.approx(0.5, abs=1e-6)
    assert (found.paraphrases.wrong, found.same_place.wrong) == (0, 0)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "Consider using `dict.get`. It does not raise.",
            "it doesn't raise; think about using 'dict.get'",
        ),
        ("`if x` must hold because **callers** rely on it.", "as callers rely on it - 'if x' has to hold"),
        ("You should check this:\n```python\nif this: pass\n```\n", None),
        ("", ""),
    ],
)
def test_paraphrases(text: str, expected: str | None) -> None:
    found = paraphrase(text)
    if expected is None:
        assert "```python\nif this: pass\n```" in found
        assert "ought to check that" in found
    else:
        assert found == expected
