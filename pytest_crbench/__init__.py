"""pytest-crbench: code-review benchmarks as pytest suites.

This module stays empty of imports: pytest loads it in every run on the machine, also in those that
never ask for a benchmark.
"""

__version__ = "0.1.0"


class OutsideFailure(Exception):
    """Raised by a reviewer or coding agent that got no answer from what it depends on (401, 429, 5xx).

    It becomes ``infra_error`` and counts as missed where the gate decides (docs/gating.md).
    """
