"""A hook of MkDocs: links out of docs/ lead to the files of the repository, which the site does not hold."""

from __future__ import annotations

import re
from typing import Any

_OUTSIDE = re.compile(r"\]\(\.\./")


def on_page_markdown(markdown: str, *, config: Any, **_rest: Any) -> str:
    """Return the page with links that leave the folder made absolute."""
    return _OUTSIDE.sub(f"]({config['repo_url'].rstrip('/')}/blob/main/", markdown)
