"""Option values: sizes, prices, thresholds, command templates, names of reviewers and agents."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

from support.loaded_agents import load as load_agent

from pytest_crbench.core.errors import UsageError
from pytest_crbench.host import programs as commands
from pytest_crbench.host.processes import is_elsewhere, is_gone, own_token
from pytest_crbench.models.usage import Price
from pytest_crbench.reviewers.load import load as load_reviewer
from pytest_crbench.run import settings
from pytest_crbench.statistics.gate import make_gate
from pytest_crbench.statistics.thresholds import METRICS, parse_threshold
from pytest_crbench.text import secrets

from .shapes import wild
from .source import NASTY, Source, either, text
from .target import Target, refused

_FIELDS = tuple(settings.Settings.__dataclass_fields__)
_VALUES = (
    *(
        "1",
        "0",
        "-1",
        "2g",
        "512m",
        "1e9",
        "1e999",
        "nan",
        "0x10",
        "1_0",
        "٣",
        "²",
        "9" * 400,
        "9" * 5000,
        "true",
        "no",
        "0,1",
        "a b",
    ),
    *(
        "http://h",
        "http://[",
        "https://u:p@h/x?y",
        "file:///x",
        "~",
        "~nobody-here/x",
        "\0",
        "x" * 300,
        "docker",
        "tests",
        "latest",
    ),
)


def targets() -> list[Target]:
    """All that a user, or a recorded run, can say."""
    return [
        Target("settings", _given, _read),
        Target("threshold", _threshold, _parse_threshold),
        Target("price", _price, _parse_price),
        Target("command-template", _template, _fill),
        Target("reviewer-name", _program, _reviewer),
        Target("agent-name", _program, _agent),
        Target("owner-token", _token, _owner),
    ]


def _given(source: Source) -> dict[str, Any]:
    value = either(
        lambda s: s.pick(_VALUES), text, lambda s: [s.pick(_VALUES) for _ in range(s.below(3))], wild
    )
    return {source.pick(_FIELDS): value(source) for _ in range(source.below(6))}


def _read(given: dict[str, Any], folder: Path) -> None:
    """Options are refused, or what they say can be recorded and is the same when it is read again."""
    secrets.REGISTERED.clear()  # what one input gave away is no secret of the next one
    with refused(UsageError):
        found = settings.read(given.get, folder)
        recorded = found.recorded()
        again = settings.read({k: v for k, v in recorded.items() if v not in (None, [])}.get, folder)
        assert again.recorded() == recorded
        assert 0 < found.reviewer_timeout < 1e9
        assert found.memory < 2**80
        make_gate(fail_under=found.fail_under, fail_over=found.fail_over, min_coverage=found.min_coverage)


def _threshold(source: Source) -> str:
    parts = (
        *METRICS,
        "@",
        "=",
        ":",
        "0.3",
        "30%",
        "category",
        "Security",
        " ",
        ".",
        "1",
        "100 %",
        "-1",
        "٣",
        "9" * 5000,
        "1e3",
        "inf",
    )
    return "".join(source.pick((*parts, *NASTY)) for _ in range(source.below(8)))


def _parse_threshold(written: str, _folder: Path) -> None:
    """A threshold, written out again, is the same threshold."""
    for direction in ("under", "over"):
        with refused(UsageError):
            found = parse_threshold(written, direction)  # type: ignore[arg-type]
            place = f"@{found.facet}={found.value}" if found.facet else ""
            again = parse_threshold(f"{found.metric}{place}:{found.text}", found.direction)
            assert again == found
            assert found.holds(found.bound)
            assert isinstance(found.bound, Fraction)
            assert isinstance(found.label, str)


def _price(source: Source) -> str:
    parts = ("0.25", ":", "2", "-1", "nan", "inf", "1e300", " ", "0", "9" * 400, "1_0", "$3")
    return "".join(source.pick(parts) for _ in range(source.below(6)))


def _parse_price(written: str, _folder: Path) -> None:
    with refused(UsageError):
        price = Price.parse(written)
        assert Price.parse(f"{price.prompt!r}:{price.completion!r}") == price


def _template(source: Source) -> str:
    parts = (
        "python3",
        " ",
        "{base}",
        "{head}",
        "{",
        "}",
        "{{",
        "}}",
        "{base!r}",
        "{base:>9}",
        "{0}",
        "{}",
        "{base.x}",
        "'",
        '"',
        "\\",
        "{cwd}/x",
        "{python}",
        "\0",
        "a",
        "{base[0]}",
        "\n",
        "é",
        "\udcff",
    )
    return "".join(source.pick((*parts, *NASTY)) for _ in range(source.between(1, 9)))


def _fill(written: str, folder: Path) -> None:
    """A value is never looked at for placeholders, quotes or blanks, wherever it stands."""
    value = "{head} 'x\" $(y) \\"
    with refused(UsageError):
        template = commands.template(written, ("base", "head"), what="--crbench-reviewer", cwd=folder)
        argv = template.fill({"base": value, "head": "H"})
        assert len(argv) == len(template.words)
        assert not any("\0" in word for word in argv)
        if "{base}" in template.words:
            assert value in argv
    with refused(UsageError):
        known = commands.check(written, ("base", "head"), "--x")
        commands.fill(written, dict.fromkeys(known, value))


def _program(source: Source) -> str:
    parts = (
        "cmd:",
        "file:",
        "human",
        "none",
        ":",
        "bare",
        "python3",
        "{instance}",
        "{x}",
        "/",
        "x.y",
        " ",
        "llm",
        "suggestions",
        "C:\\x",
        "\0",
        "..",
        "'",
        "{",
        "x" * 300,
    )
    return "".join(source.pick((*parts, *NASTY)) for _ in range(source.between(1, 4)))


def _reviewer(spec: str, _folder: Path) -> None:
    if ":" in spec and spec.split(":")[0].strip() not in ("cmd", "file", "human", "none"):
        return  # a module to be imported, in a process of its own
    with refused(UsageError):
        found = load_reviewer(spec)
        assert found.name
        assert dict(found.fingerprint)


def _agent(spec: str, folder: Path) -> None:
    with refused(UsageError):
        assert load_agent(spec, cache=folder).name
    with refused(UsageError):
        load_agent("llm", model="m", base_url=spec, price=spec, cache=folder)


def _token(source: Source) -> str:
    own = own_token()
    parts = (
        own,
        own.rpartition(":")[0],
        ":",
        "1",
        "²",
        "-1",
        "9" * 30,
        "9" * 5000,
        "0",
        own.split(":")[0],
        "",
    )
    return "".join(source.pick((*parts, *NASTY)) for _ in range(source.below(6)))


def _owner(token: str, _folder: Path) -> None:
    assert is_gone(token) in (True, False)
    assert is_elsewhere(token) in (True, False)
    assert not is_gone(own_token())
