"""``crbench calibrate embedding``: from which cosine on two comments say the same, measured on a dataset."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..text.printable import printable
from .common import add_options, settings_of

if TYPE_CHECKING:
    import argparse

_TITLES = {
    "paraphrases": "a reference and its paraphrase",
    "same_place": "two references at one place",
    "same_pull_request": "two of one pull request",
    "unrelated": "two of different pull requests",
}
_OPTIONS = ("embedding-model", "base-url", "llm", "cache")


def add_parser(subparsers: Any) -> argparse.ArgumentParser:
    """Add the subcommand; ``run`` is its default ``run``."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "calibrate",
        help="measure what a model of embeddings calls the same",
        description="Measure thresholds on a dataset.",
    )
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    embedding: argparse.ArgumentParser = commands.add_parser(
        "embedding",
        help="from which cosine on two comments say the same",
        description="Compare the references of a dataset with one another and with mechanical paraphrases of "
        "themselves, choose the cosine that parts them best, and keep it with its error rates for runs with "
        "--crbench-matcher=embedding. Exit status: 0 written, 2 wrong usage, or the endpoint failed.",
    )
    embedding.add_argument(
        "dataset", nargs="+", metavar="DATASET", help="the datasets of the runs that it is for"
    )
    embedding.add_argument(
        "--output", type=Path, metavar="FILE", help="write there instead of into the cache"
    )
    embedding.add_argument("--json", action="store_true", help="print JSON")
    add_options(embedding, "options of a run", _OPTIONS)
    embedding.set_defaults(run=run)
    return parser


def run(args: argparse.Namespace) -> int:
    """Measure, write and print; the exit status."""
    from ..scoring.matching.calibrations import calibrate

    settings = settings_of(args, dataset=args.dataset)
    content, file = calibrate(settings, args.output)
    if args.json:
        print(json.dumps(content, indent=1, ensure_ascii=False))
        return 0
    print(f"{'':<32}  {'pairs':>6}  {'wrong':>6}  {'5 %':>6}  {'median':>6}  {'95 %':>6}")
    for name, title in _TITLES.items():
        kind = content["kinds"][name]
        wrong = "-" if kind["wrong"] is None else f"{100 * kind['wrong']:.1f} %"
        cosines = ["-" if kind[at] is None else f"{kind[at]:.3f}" for at in ("low", "median", "high")]
        print(f"{title:<32}  {kind['pairs']:>6}  {wrong:>6}  " + "  ".join(f"{one:>6}" for one in cosines))
    print(f"threshold {content['threshold']:g} for {printable(str(content['model']))}, written to {file}")
    return 0
