"""How many files of ours one evaluation runs through: a measure of how far a reader must jump.

    python bench/traced_files.py [--list] [--cache FOLDER] [--instance ID]

Takes one check of the bundled dataset from its instance to its verdict (reviewer ``human``, agent
``suggestions``, local sandbox), warm: the first time fetches and builds, the second is traced. A file counts
if one of its functions ran meanwhile, in this process. The last line is JSON.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

import pytest_crbench
from pytest_crbench.core.settings import Settings
from pytest_crbench.run import assemble, programs

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
    with tempfile.TemporaryDirectory() as folder:
        cache = asked.cache or Path(folder, "cache")
        evaluate(cache, Path(folder, "first"), asked.instance)
        seen: dict[str, int] = {}

        def note(frame: Any, event: str, _argument: Any) -> None:
            if event == "call":
                seen.setdefault(frame.f_code.co_filename, len(seen))

        threading.setprofile(note)
        sys.setprofile(note)
        try:
            status = evaluate(cache, Path(folder, "second"), asked.instance)
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
    files = [Path(name).relative_to(PACKAGE) for name in seen if Path(name).is_relative_to(PACKAGE)]
    for file in files if asked.list else ():
        print(file)
    folders: dict[str, int] = {}
    for file in files:
        folders[file.parts[0]] = folders.get(file.parts[0], 0) + 1
    print(json.dumps({"files": len(files), "status": status, "folders": dict(sorted(folders.items()))}))
    return 0


def evaluate(cache: Path, run: Path, name: str) -> str:
    """Take the first check of an instance to its verdict in a run folder of its own; its status."""
    settings = Settings(reviewer="human", agent="suggestions", sandbox="local", cache=cache, run_dir=run)
    run.mkdir()
    instance = next(i for d in assemble.open_datasets(settings) for i in d.instances if i.id == name)
    invocation = assemble.Invocation(run, "traced", "local")
    reviewer, agent = programs.make_reviewer(settings), programs.make_agent(settings, run)
    backend = assemble.make_backend(settings, "local", "traced", lambda _line: None)
    evaluator = assemble.make_evaluator(settings, invocation, reviewer, agent, backend)
    return evaluator.verdict(instance, instance.checks[0]).status.value


if __name__ == "__main__":
    sys.exit(main())
