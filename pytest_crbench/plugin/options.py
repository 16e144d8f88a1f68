"""The table of options, for command line, ini file, ``--help``, docs/options.md and the commands."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ..run.options import FOLDED, add_former_names

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pytest

#: By title, in the order of ``--help``: (name without "--crbench-", kind, metavar, help). The ini twin of
#: ``--crbench-a-b`` is ``crbench_a_b``. Kinds: value; list (repeatable; one per line in ini); flag; optional
#: (its value may be left out); folded (a list of KEY=VALUE with the keys of `FOLDED`).
GROUPS: dict[str, tuple[tuple[str, str, str, str], ...]] = {
    "code-review benchmark": (
        (
            "reviewer",
            "value",
            "SPEC",
            "reviewer under test: human, none, module:attribute, cmd:TEMPLATE, file:TEMPLATE, llm:none, "
            "llm:bm25, llm:embedding, llm:agent or a registered name; turns the benchmark on",
        ),
        (
            "dataset",
            "list",
            "PATH",
            "dataset or instance folder, the name of a bundled one, or aacr:PATH (repeatable; default: "
            "releases)",
        ),
        (
            "scoring",
            "value",
            "NAMES",
            "how reviews are scored: tests (hidden tests), matching (to reference comments), or both with a "
            "comma (default: what each dataset was made for)",
        ),
        (
            "agent",
            "value",
            "SPEC",
            "coding agent: llm (default), suggestions, reference, none, cmd:TEMPLATE or a registered name",
        ),
        ("sandbox", "value", "KIND", "auto (default), docker, local or a registered name"),
        ("repeats", "value", "N", "evaluate each pull request N times (default 1)"),
        ("report", "list", "NAME", "write another report at the end, which a package registers (repeatable)"),
        (
            "contract",
            "list",
            "KIND:NAME",
            "look whether a part keeps its contract, with --pyargs pytest_crbench.contracts (repeatable)",
        ),
        ("offline", "flag", "", "score without any repository: matching of reviews that were made elsewhere"),
    ),
    "code-review benchmark, gate": (
        (
            "fail-under",
            "list",
            "[METRIC][@FACET=VALUE]:RATE",
            "least rate, e.g. 0.30 or @category=Security:0.5 (repeatable)",
        ),
        ("fail-over", "list", "METRIC:NUMBER", "most of something, e.g. comments_per_pr:20 (repeatable)"),
        ("min-coverage", "value", "RATE", "least share of the checks that must be measured (default 0.95)"),
        ("baseline", "value", "RESULTS", "results.json to compare with"),
        (
            "fail-if-regressed",
            "optional",
            "DROP",
            "fail if worse than the baseline on the checks both have: by a paired test with 5 % false alarms "
            "(p:0.01 for another rate), or by more than DROP, a share",
        ),
        ("fail-on-miss", "flag", "", "make every missed check an ordinary test failure"),
    ),
    "code-review benchmark, reviewer": (
        (
            "review-format",
            "value",
            "FORMAT",
            "format of a command's review: auto (default), native, github, sarif, rdjson, rdjsonl, "
            "checkstyle, tagged",
        ),
        (
            "comments",
            "value",
            "WHICH",
            "comments that count: all (default) or diff (without those on lines that the pull request does "
            "not show)",
        ),
        ("reviewer-timeout", "value", "SECONDS", "time limit of one review (default 600)"),
        (
            "reviewer-exit-ok",
            "value",
            "CODES",
            "exit statuses of the reviewer that are fine, e.g. 0,1 (default 0)",
        ),
        (
            "max-errors",
            "value",
            "N",
            "ask the reviewer no more after N equal crashes or outside failures in a row (default 5; 0: "
            "always ask)",
        ),
        ("reviewer-name", "value", "NAME", "name of the reviewer in reports"),
        (
            "reviewer-version",
            "value",
            "VERSION",
            "version of the reviewer; with it, reviews are taken over from earlier runs on this machine",
        ),
        (
            "reviewer-env",
            "list",
            "NAME[=VALUE]",
            "variable of the reviewer: NAME passes a secret on, NAME=VALUE is a setting that results record "
            "(repeatable)",
        ),
        (
            "reviewer-image",
            "value",
            "IMAGE",
            "run a cmd: reviewer in a container of this image, which holds nothing but the pull request",
        ),
        ("reviewer-network", "flag", "", "let the reviewer's container use the network"),
    ),
    "code-review benchmark, agent and models": (
        ("model", "value", "NAME", "model of the llm agent"),
        ("base-url", "value", "URL", "OpenAI-compatible endpoint of the model"),
        ("reviewer-model", "value", "NAME", "model of an llm: reviewer (default: --crbench-model)"),
        ("embedding-model", "value", "NAME", "model of embeddings, for matching and for llm:embedding"),
        (
            "llm",
            "folded",
            "KEY=VALUE",
            "sampling, steps and budgets, e.g. temperature=0 max-total-cost=5 (repeatable)",
        ),
        ("agent-timeout", "value", "SECONDS", "time limit of one revision (default 600)"),
        ("agent-env", "list", "NAME[=VALUE]", "as --crbench-reviewer-env, for a cmd: agent (repeatable)"),
        ("agent-name", "value", "NAME", "name of a cmd: agent in reports"),
        ("agent-version", "value", "VERSION", "version of a cmd: agent; part of what revisions are made by"),
    ),
    "code-review benchmark, matching": (
        ("matcher", "value", "HOW", "how meanings are compared: model (default), embedding or exact"),
        ("matcher-model", "value", "NAME", "model that compares meanings (default: --crbench-model)"),
        ("matcher-votes", "value", "N", "votes of that model on each pair, an odd number (default 1)"),
        (
            "embedding-threshold",
            "value",
            "COSINE|FILE",
            "least cosine of two comments that say the same, or a file of `crbench calibrate` (default: what "
            "that command measured for the model and the datasets)",
        ),
        (
            "matching",
            "folded",
            "KEY=VALUE",
            "places and rules, e.g. line-tolerance=2 file-level=file",
        ),
    ),
    "code-review benchmark, sandbox": (
        (
            "base-image",
            "value",
            "IMAGE",
            "image that environments are built on (default python:3.11-slim; may contain {python})",
        ),
        (
            "ca-bundle",
            "value",
            "PATH",
            "CA bundle for package indexes, on the host and in builds (default: PIP_CERT, SSL_CERT_FILE or "
            "REQUESTS_CA_BUNDLE)",
        ),
        (
            "index-url",
            "value",
            "URL",
            "package index (default: UV_DEFAULT_INDEX, UV_INDEX_URL, PIP_INDEX_URL or the public one)",
        ),
        (
            "limit",
            "folded",
            "KEY=VALUE",
            "of a sandbox and the disk, e.g. memory=4g cpus=4 (repeatable)",
        ),
    ),
    "code-review benchmark, runs": (
        ("run-dir", "value", "DIR", "folder that runs are written to (default .crbench/runs)"),
        (
            "cache",
            "value",
            "DIR",
            "folder for archives, trees and environments (default: the user's cache)",
        ),
        ("resume", "optional", "RUN", "finish an interrupted run (default: the latest)"),
        (
            "rerun-errors",
            "optional",
            "WHICH",
            "when resuming, repeat what failed: outside (infra_error, agent_error; default) or all (also "
            "reviewer_error)",
        ),
        (
            "replay",
            "value",
            "RUN",
            "take reviews and revisions from a recorded run; only hidden tests are run",
        ),
    ),
}
#: What an option whose value may be left out means without one.
IMPLIED = {"resume": "latest", "rerun-errors": "outside", "fail-if-regressed": "p:0.05"}
ACTIONS: dict[str, dict[str, object]] = {
    "value": {"action": "store"},
    "list": {"action": "append"},
    "folded": {"action": "append"},
    "flag": {"action": "store_true"},
    "optional": {"action": "store", "nargs": "?"},
}


def options() -> Iterator[tuple[str, str, str, str]]:
    """Yield every option, in the order of ``--help``."""
    for group in GROUPS.values():
        yield from group


def ini_name(name: str) -> str:
    """Name of an option's ini twin, which is also its attribute on pytest's namespace."""
    return "crbench_" + name.replace("-", "_")


def add_options(parser: pytest.Parser) -> None:
    """Add every option with its ini twin, and the names that options had before."""
    for title, rows in GROUPS.items():
        group = parser.getgroup(title)
        for name, kind, metavar, text in rows:
            attributes = {**ACTIONS[kind], "dest": ini_name(name), "default": None}
            if metavar:
                attributes["metavar"] = metavar
            if name in IMPLIED:
                attributes["const"] = IMPLIED[name]
            if kind == "folded":
                text += f"; keys: {', '.join(key for key, *_ in FOLDED[name])}"
            group.addoption(f"--crbench-{name}", help=text.replace("%", "%%"), **attributes)
            ini_type = "linelist" if kind in ("list", "folded") else "string"
            parser.addini(ini_name(name), text, type=ini_type, default=None)  # type: ignore[arg-type]
    add_former_names(parser.addoption, "crbench-", {name for name, *_ in options()})


_HEAD = """\
# Options

Every option can be given on the command line or, by the name in the second column, in the ini file
(`pytest.ini`, or `[tool.pytest.ini_options]` of `pyproject.toml`). The command line wins. *Lists* may be
repeated on the command line, and hold one value a line (in TOML: an array of strings) in the ini file;
*flags* take no value on the command line, and `true` or `false` in the ini file. Paths are relative to the
folder that pytest is started in.

`--crbench-reviewer`, `--crbench-replay` and `--crbench-resume` turn the benchmark on. Any other option on the
command line without one of them is a usage error, and so is a gate in the ini file;
[gating.md](gating.md) has the whole table. In TOML with native types (`pytest.toml`, `[tool.pytest]`) numeric
options take numbers, and a list of one value may be that value.

A *folded* option holds several settings as `KEY=VALUE`, several times or in one text:
`--crbench-limit "memory=4g cpus=4"`; the command line wins key by key. Options that had a name of their own
before (`--crbench-memory`, `--crbench-meaning`) are still taken under it, here and in the ini file.
"""
_KINDS = {
    "value": "",
    "list": "*List.* ",
    "flag": "*Flag.* ",
    "optional": "*Value may be left out.* ",
    "folded": "*Folded.* ",
}


def options_page() -> str:
    """Return docs/options.md."""
    page = _HEAD
    for title, options in GROUPS.items():
        short = title.partition(", ")[2] or "run"
        page += f"\n## {short.capitalize()}\n\n| option | ini | what |\n|---|---|---|\n"
        page += "".join(_row(*option) for option in options)
        for name, kind, *_ in options:
            if kind == "folded":
                page += f"\n`--crbench-{name}` takes:\n\n| key | what |\n|---|---|\n"
                page += "".join(
                    f"| `{key}{f'={value}' if value else ''}` | {text} |\n"
                    for key, value, text in FOLDED[name]
                )
    return page


def _row(name: str, kind: str, metavar: str, text: str) -> str:
    value = {"flag": "", "optional": f"[={metavar}]"}.get(kind, f"={metavar}")
    return f"| `--crbench-{name}{value}` | `{ini_name(name)}` | {_KINDS[kind]}{text} |\n"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(options_page(), encoding="utf-8")
