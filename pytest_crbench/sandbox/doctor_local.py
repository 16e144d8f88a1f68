"""What ``crbench doctor`` looks at for the local sandbox, and for what both sandboxes take from the host."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from ..core.errors import CrbenchError
from ..core.finding import Finding, missing, ok, warning
from ..text.printable import printable
from . import bubblewrap
from .interpreters import find_local
from .uv import find_uv

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Seconds that the whole look may take; interpreters are started one by one.
LIMIT = 15.0


def look_at_uv() -> list[Finding]:
    """Look for uv, which resolves environments for both sandboxes."""
    found = find_uv()
    if found is None:
        return [
            missing(
                "uv", "the uv program was not found", "Install it where pytest-crbench is: pip install uv"
            )
        ]
    return [ok("uv", found)]


def look_at_local(pythons: Sequence[str]) -> list[Finding]:
    """Look for bubblewrap, and for interpreters that satisfy the instances' specifiers."""
    return [_bubblewrap(), *_interpreters(pythons)]


def _bubblewrap() -> Finding:
    works = bubblewrap.find()
    if works:
        return ok("bubblewrap", f"{bubblewrap.version(works)} at {works}, user namespaces work")
    program = shutil.which("bwrap")
    if program is None:
        advice = "Install bubblewrap, or use Docker: without it the code under review runs as you, unisolated"
        return warning("bubblewrap", "not found on PATH", advice)
    advice = (
        "Allow user namespaces (sysctl user.max_user_namespaces, kernel.unprivileged_userns_clone, "
        "kernel.apparmor_restrict_unprivileged_userns), or use Docker: without them the code under review "
        "runs as you, unisolated"
    )
    return warning("bubblewrap", f"{program} does not work here: user namespaces are not allowed", advice)


def _interpreters(pythons: Sequence[str]) -> list[Finding]:
    found, lacking = {}, []
    uv = find_uv()
    for specifier in pythons:
        try:
            found[specifier] = find_local(specifier, uv)
        except CrbenchError:
            lacking.append(specifier)
    versions = ", ".join(sorted({f"{i.version} ({i.path})" for i in found.values()})) or "none"
    if not lacking:
        return [ok("interpreters", printable(versions))]
    advice = "Install such a Python and put it on PATH, or use Docker"
    said = printable(f"no Python {' and no '.join(lacking)}; found: {versions}")
    return [(warning if found else missing)("interpreters", said, advice)]
