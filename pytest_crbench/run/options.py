"""Settings that share an option (``--crbench-limit memory=4g``), and names that options had before."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Container

#: The keys of folded options: (key, metavar, help). A key is the name of its setting; "" takes no value.
FOLDED: dict[str, tuple[tuple[str, str, str], ...]] = {
    "llm": (
        ("temperature", "NUMBER", "sampling temperature of the agent's model (default: the endpoint's)"),
        ("max-steps", "N", "model calls of one revision (default 50)"),
        ("max-tokens", "N", "tokens of one revision"),
        ("max-cost", "AMOUNT", "cost of one revision; needs price"),
        ("max-total-tokens", "N", "tokens of the whole run, over all workers"),
        ("max-total-cost", "AMOUNT", "cost of the whole run, over all workers; needs price"),
        ("price", "IN:OUT", "price of a million prompt and completion tokens"),
        ("agent-command-timeout", "SECONDS", "time limit of one command of the llm agent (default 60)"),
        ("reviewer-temperature", "NUMBER", "sampling temperature of an llm: reviewer (default 0.7)"),
        ("reviewer-top-p", "NUMBER", "top_p of an llm: reviewer (default 0.95)"),
        ("reviewer-top-k", "N", "top_k of an llm: reviewer (default 20; 0: never sent)"),
        ("reviewer-snippets", "N", "snippets that llm:bm25 and llm:embedding show (default 3)"),
        ("embedding-base-url", "URL", "endpoint of embeddings (default: --crbench-base-url)"),
    ),
    "limit": (
        ("memory", "SIZE", "memory of one sandbox, e.g. 2g (default)"),
        ("cpus", "NUMBER", "CPUs of one sandbox (default 2)"),
        ("pids", "N", "processes and threads of one sandbox (default 512)"),
        ("test-timeout", "SECONDS", "time limit of one hidden test (default 120)"),
        ("min-free", "SIZE", "space that cache and run folder must have at the start (default 128m; 0: any)"),
        (
            "disk-budget",
            "SIZE",
            "most that cache and images take; what was used least recently goes (default: no limit)",
        ),
    ),
    "matching": (
        ("line-tolerance", "N", "lines between two places that are still one (default 1)"),
        ("file-level", "POLICY", "what comments without lines match: nothing (default) or file (all in it)"),
        ("aacr-legacy", "", "the arithmetic that AACR-Bench was published with, faults included"),
        ("classify", "", "have a model sort unlabelled comments into the four categories"),
    ),
}
#: The folded option of a setting, by the setting's name.
FOLDED_IN = {key: option for option, keys in FOLDED.items() for key, *_ in keys}
#: Options that had another name, and the new one.
RENAMED = {"meaning": "matcher", "judge-model": "matcher-model", "judge-votes": "matcher-votes"}


def ini_name(name: str) -> str:
    """Name of an option's ini twin, which is also its attribute on pytest's namespace."""
    return "crbench_" + name.replace("-", "_")


def now_called(name: str) -> str:
    """Return how an option is written today, without ``--crbench-``: ``limit memory`` for ``memory``."""
    name = RENAMED.get(name, name)
    return f"{FOLDED_IN[name]} {name}" if name in FOLDED_IN else name


class FormerName(argparse.Action):
    """Takes an option under a name that it had before, and notes it in ``crbench_former``."""

    def __call__(
        self, parser: Any, namespace: argparse.Namespace, values: Any, option_string: str | None = None
    ) -> None:
        """Store the value for the setting of that name."""
        name = str(option_string).removeprefix("--").removeprefix("crbench-")
        setattr(namespace, ini_name(RENAMED.get(name, name)), True if self.nargs == 0 else values)
        namespace.crbench_former = (*(getattr(namespace, "crbench_former", None) or ()), name)


def add_former_names(add: Any, prefix: str, options: Container[str]) -> None:
    """Let ``add`` (pytest's ``addoption``, or argparse's) take the names that ``options`` had before.

    Two hidden options for all: each of 26 would cost every pytest run on the machine 10 microseconds.
    """
    former = [name for name, now in {**FOLDED_IN, **RENAMED}.items() if now in options]
    flags = {key for keys in FOLDED.values() for key, metavar, _ in keys if not metavar}
    for takes_none in (False, True):
        names = [f"--{prefix}{name}" for name in former if (name in flags) is takes_none]
        more = {"nargs": 0} if takes_none else {}
        if names:
            add(*names, action=FormerName, dest="crbench_former", help=argparse.SUPPRESS, **more)
