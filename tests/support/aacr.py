"""Files of the shape of AACR-Bench's, with content of our own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

BASE, HEAD = "1" * 40, "2" * 40


def comment(note: str = "Say why.", **changes: Any) -> dict[str, Any]:
    """One comment; ``changes`` replace its fields, and take those away that are None."""
    return _changed(
        {
            "is_ai_comment": False,
            "note": note,
            "path": "src/a.c",
            "side": "right",
            "source_model": "",
            "from_line": 3,
            "to_line": 5,
            "category": "Code Defect",
            "context": "Diff Level",
        },
        changes,
    )


def pull(number: int = 1, *comments: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """One pull request; with one comment if none is given."""
    return _changed(
        {
            "change_line_count": 60,
            "project_main_language": "C",
            "source_commit": BASE,
            "target_commit": HEAD,
            "githubPrUrl": f"https://github.com/team/project/pull/{number}",
            "comments": list(comments or [comment()]),
            "category": "Bug Fix",
        },
        changes,
    )


def write(folder: Path, positives: Any, negatives: Any = None) -> Path:
    """Write the files of a dataset; no second one if ``negatives`` is None."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "positive_samples.json").write_text(json.dumps(positives), encoding="utf-8")
    if negatives is not None:
        (folder / "negative_samples.json").write_text(json.dumps(negatives), encoding="utf-8")
    return folder


def _changed(value: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    return {key: item for key, item in {**value, **changes}.items() if item is not None}
