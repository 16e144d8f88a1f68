"""Reading a JSON file that a crash, a full disk or somebody's hand may have damaged in any way."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path


def read(path: Path) -> Any:
    """Return the value in a file.

    Raises:
        OSError: if it cannot be read.
        ValueError: if it is no JSON, no UTF-8, or nested so deeply that reading it would exhaust the stack.
    """
    try:
        return json.loads(path.read_bytes())
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
