"""Runs in the sandbox: starts pytest on the hidden test and its canaries, with our configuration alone.

Started as ``python -s -B launch.py FD`` in an environment that holds nothing but what we set. That equals
``-I`` but for one thing: ``-I`` would also ignore PYTHONHASHSEED, and results would change with the seed. The
folder of this file is taken off ``sys.path``; the tree gets on it by the ``pythonpath`` of our own
configuration file, after pytest and its dependencies are loaded.

The tree has no bytecode (the supervisor removed it, ``-B`` writes none), so its source is what runs. A fresh
``pycache_prefix`` would do the same for the tree, and compile pytest and the standard library anew each time.
"""

import os
import sys

here = os.path.dirname(os.path.abspath(__file__))
sys.path[:] = [p for p in sys.path if p and os.path.abspath(p) != here]
os.environ["CRBENCH_RECORDS"] = sys.argv[1]

import pytest  # noqa: E402

with open(os.path.join(here, "order"), encoding="ascii") as stream:
    files = stream.read().split()
options = [
    "-c",
    os.path.join(here, "pytest.ini"),
    "--rootdir",
    here,
    "--confcutdir",
    here,
    "--import-mode=importlib",
    "--continue-on-collection-errors",
    "-p",
    "no:cacheprovider",
]
sys.exit(pytest.main([*options, *(os.path.join(here, name) for name in files)]))
