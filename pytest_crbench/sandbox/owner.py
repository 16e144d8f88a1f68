"""Whose a sandbox is; see `core.owner`."""

from __future__ import annotations

from ..core.owner import is_elsewhere as is_elsewhere
from ..core.owner import is_gone as is_gone
from ..core.owner import own_token as own_token
