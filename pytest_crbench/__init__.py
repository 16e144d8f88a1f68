"""pytest-crbench: code-review benchmarks as pytest suites.

This module stays empty of imports: pytest loads it in every run on the machine, also in those that
never ask for a benchmark.
"""

__version__ = "0.1.0"
