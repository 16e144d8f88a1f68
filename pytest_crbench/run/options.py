"""The options of the plugin: one table, from which command line, ini twins and `Settings` are made.

Imported in every run that mentions the benchmark, so it imports nothing.
"""

from __future__ import annotations

#: (name without "--crbench-", kind, metavar, help). The ini twin of ``--crbench-a-b`` is ``crbench_a_b``.
#: Kinds: value; list (repeatable; one per line in ini); flag; optional (value may be left out).
#: What turns the benchmark on; the entry module has its own copy, to stay short.
SWITCHES = ("reviewer", "replay", "resume")
OPTIONS: tuple[tuple[str, str, str, str], ...] = (
    (
        "reviewer",
        "value",
        "SPEC",
        "reviewer under test: human, none, module:attribute, cmd:TEMPLATE, "
        "file:TEMPLATE, llm:none, llm:bm25, llm:embedding, llm:agent or a registered name; turns the "
        "benchmark on",
    ),
    (
        "review-format",
        "value",
        "FORMAT",
        "format of a command's review: auto (default), native, github, sarif, rdjson, rdjsonl, "
        "checkstyle, tagged",
    ),
    ("reviewer-timeout", "value", "SECONDS", "time limit of one review (default 600)"),
    (
        "reviewer-exit-ok",
        "value",
        "CODES",
        "exit statuses of the reviewer that are fine, e.g. 0,1 (default 0)",
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
    (
        "comments",
        "value",
        "WHICH",
        "comments that count: all (default) or diff (without those on lines that the pull request does not "
        "show)",
    ),
    (
        "max-errors",
        "value",
        "N",
        "ask the reviewer no more after N equal crashes or outside failures in a row (default 5; 0: always "
        "ask)",
    ),
    ("reviewer-model", "value", "NAME", "model of an llm: reviewer (default: --crbench-model)"),
    (
        "reviewer-snippets",
        "value",
        "N",
        "snippets of the head that llm:bm25 and llm:embedding show (default 3)",
    ),
    ("reviewer-temperature", "value", "NUMBER", "sampling temperature of an llm: reviewer (default 0.7)"),
    ("reviewer-top-p", "value", "NUMBER", "top_p of an llm: reviewer (default 0.95)"),
    (
        "reviewer-top-k",
        "value",
        "N",
        "top_k of an llm: reviewer, where the endpoint takes it (default 20; 0: never sent)",
    ),
    ("agent", "value", "SPEC", "coding agent: llm (default), suggestions, reference, none, cmd:TEMPLATE"),
    ("agent-timeout", "value", "SECONDS", "time limit of one revision (default 600)"),
    ("agent-env", "list", "NAME[=VALUE]", "the same for a cmd: agent (repeatable)"),
    ("agent-name", "value", "NAME", "name of a cmd: agent in reports"),
    ("agent-version", "value", "VERSION", "version of a cmd: agent; part of what revisions are made by"),
    ("agent-command-timeout", "value", "SECONDS", "time limit of one command of the llm agent (default 60)"),
    ("model", "value", "NAME", "model of the llm agent"),
    ("base-url", "value", "URL", "OpenAI-compatible endpoint of the model"),
    ("temperature", "value", "NUMBER", "sampling temperature of the model (default: the endpoint's)"),
    ("max-steps", "value", "N", "model calls of one revision (default 50)"),
    ("max-tokens", "value", "N", "tokens of one revision"),
    ("max-cost", "value", "AMOUNT", "cost of one revision; needs --crbench-price"),
    ("max-total-tokens", "value", "N", "tokens of the whole run, over all workers"),
    ("max-total-cost", "value", "AMOUNT", "cost of the whole run, over all workers; needs --crbench-price"),
    ("price", "value", "IN:OUT", "price of a million prompt and completion tokens"),
    (
        "dataset",
        "list",
        "PATH",
        "dataset or instance folder, the name of a bundled one, or aacr:PATH (repeatable; default: releases)",
    ),
    ("sandbox", "value", "KIND", "auto (default), docker or local"),
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
        "CA bundle for package indexes, on the host and in builds (default: "
        "PIP_CERT, SSL_CERT_FILE or REQUESTS_CA_BUNDLE)",
    ),
    (
        "index-url",
        "value",
        "URL",
        "package index (default: UV_DEFAULT_INDEX, UV_INDEX_URL, PIP_INDEX_URL or the public one)",
    ),
    ("memory", "value", "SIZE", "memory of one sandbox, e.g. 2g (default)"),
    ("cpus", "value", "NUMBER", "CPUs of one sandbox (default 2)"),
    ("pids", "value", "N", "processes and threads of one sandbox (default 512)"),
    ("test-timeout", "value", "SECONDS", "time limit of one hidden test (default 120)"),
    ("cache", "value", "DIR", "folder for archives, trees and environments (default: the user's cache)"),
    ("run-dir", "value", "DIR", "folder that runs are written to (default .crbench/runs)"),
    (
        "min-free",
        "value",
        "SIZE",
        "space that cache and run folder must have for a run to start (default 128m; 0 asks for none)",
    ),
    (
        "disk-budget",
        "value",
        "SIZE",
        "most that cache and images may take: what was used least recently goes first (default: no limit)",
    ),
    ("resume", "optional", "RUN", "finish an interrupted run (default: the latest)"),
    (
        "rerun-errors",
        "optional",
        "WHICH",
        "when resuming, repeat what failed: outside (infra_error, agent_error; default) or all (also "
        "reviewer_error)",
    ),
    ("replay", "value", "RUN", "take reviews and revisions from a recorded run; only hidden tests are run"),
    ("repeats", "value", "N", "evaluate each pull request N times (default 1)"),
    (
        "scoring",
        "value",
        "NAMES",
        "how reviews are scored: tests (hidden tests), matching (to reference comments), or both with a "
        "comma (default: what each dataset was made for)",
    ),
    ("offline", "flag", "", "score without any repository: matching of reviews that were made elsewhere"),
    ("line-tolerance", "value", "N", "matching: lines between two places that are still one (default 1)"),
    (
        "meaning",
        "value",
        "HOW",
        "matching: how meanings are compared: judge (a model; default), embedding or exact",
    ),
    (
        "file-level",
        "value",
        "POLICY",
        "matching: what comments without lines match: nothing (default) or file (whatever is in that file)",
    ),
    ("judge-model", "value", "NAME", "matching: model of the judge (default: --crbench-model)"),
    ("judge-votes", "value", "N", "matching: votes of the judge on each pair, an odd number (default 1)"),
    ("embedding-model", "value", "NAME", "model of embeddings, for matching and for llm:embedding"),
    (
        "embedding-base-url",
        "value",
        "URL",
        "OpenAI-compatible endpoint of embeddings (default: --crbench-base-url)",
    ),
    (
        "embedding-threshold",
        "value",
        "COSINE|FILE",
        "matching: least cosine of two comments that say the same, or a file of `crbench calibrate` "
        "(default: what that command measured for the model and the datasets)",
    ),
    (
        "aacr-legacy",
        "flag",
        "",
        "matching: the arithmetic of the evaluator that AACR-Bench was published with, faults included",
    ),
    ("classify", "flag", "", "matching: have a model sort unlabelled comments into the four categories"),
    (
        "fail-under",
        "list",
        "[METRIC][@FACET=VALUE]:RATE",
        "gate: least rate, e.g. 0.30 or @category=Security:0.5 (repeatable)",
    ),
    ("fail-over", "list", "METRIC:NUMBER", "gate: most of something, e.g. comments_per_pr:20 (repeatable)"),
    ("min-coverage", "value", "RATE", "gate: least share of the checks that must be measured (default 0.95)"),
    ("baseline", "value", "RESULTS", "results.json to compare with"),
    (
        "fail-if-regressed",
        "optional",
        "DROP",
        "gate: fail if worse than the baseline on the checks both have: by a paired test with 5 % false "
        "alarms (p:0.01 for another rate), or by more than DROP, a share",
    ),
    ("fail-on-miss", "flag", "", "make every missed check an ordinary test failure"),
)


#: What an option whose value may be left out means without one.
IMPLIED = {"resume": "latest", "rerun-errors": "outside", "fail-if-regressed": "p:0.05"}


def ini_name(name: str) -> str:
    """Name of an option's ini twin, which is also its attribute on pytest's namespace."""
    return "crbench_" + name.replace("-", "_")
