"""How many files of ours one evaluation runs through: a measure of how far a reader must jump.

    python bench/traced_files.py [--list] [--cache FOLDER] [--instance ID]

Takes one check of the bundled dataset from its instance to its verdict (reviewer ``human``, agent
``suggestions``, local sandbox), warm: the first run fetches and builds, the second is traced once it has
started. A file counts if one of its functions ran meanwhile, in this process. The last line is JSON.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest_crbench
from pytest_crbench import Run, Settings

if TYPE_CHECKING:
    from collections.abc import Callable

PACKAGE = Path(pytest_crbench.__file__).parent


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--list", action="store_true", help="print the files, in the order in which they began"
    )
    parser.add_argument("--cache", type=Path, help="the cache of environments and trees (default: a new one)")
    parser.add_argument("--instance", default="decorator-5.1.0")
    asked = parser.parse_args()
    seen: dict[str, int] = {}

    def note(frame: Any, event: str, _argument: Any) -> None:
        if event == "call":
            seen.setdefault(frame.f_code.co_filename, len(seen))

    with tempfile.TemporaryDirectory() as folder:
        cache = asked.cache or Path(folder, "cache")
        evaluate(cache, Path(folder, "first"), asked.instance, None)
        status = evaluate(cache, Path(folder, "second"), asked.instance, note)
    files = [Path(name).relative_to(PACKAGE) for name in seen if Path(name).is_relative_to(PACKAGE)]
    for file in files if asked.list else ():
        print(file)
    folders: dict[str, int] = {}
    for file in files:
        folders[file.parts[0]] = folders.get(file.parts[0], 0) + 1
    print(json.dumps({"files": len(files), "status": status, "folders": dict(sorted(folders.items()))}))
    return 0


def evaluate(cache: Path, runs: Path, name: str, note: Callable[[Any, str, Any], None] | None) -> str:
    """Take the first check of an instance to its verdict in a run of its own; its status."""
    settings = Settings(
        reviewer="human", agent="suggestions", sandbox="local", scoring=("tests",), cache=cache, run_dir=runs
    )
    with Run(settings) as run:
        one = next(planned for planned in run.planned() if planned.instance.id == name)
        threading.setprofile(note)
        sys.setprofile(note)
        try:
            return run.verdict(one).status.value
        finally:
            sys.setprofile(None)
            threading.setprofile(None)


if __name__ == "__main__":
    sys.exit(main())
