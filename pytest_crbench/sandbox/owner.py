"""Whose a sandbox is; see `host.owner`."""

from __future__ import annotations

from ..host.owner import is_elsewhere as is_elsewhere
from ..host.owner import is_gone as is_gone
from ..host.owner import own_token as own_token
