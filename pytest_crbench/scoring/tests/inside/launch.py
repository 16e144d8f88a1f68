"""Runs in the sandbox: starts pytest on the hidden test and its canaries, with our configuration alone.

Started as ``python -s -B launch.py RECORDS KEY``, two descriptors, in an environment that holds nothing but
what we set. That equals ``-I`` but for one thing: ``-I`` would also ignore PYTHONHASHSEED, and results would
change with the seed. The folder of this file is taken off ``sys.path``; the tree gets on it by the
``pythonpath`` of our own configuration file, after pytest, its dependencies and the recorder are loaded.

The tree has no bytecode (the supervisor removed it, ``-B`` writes none), so its source is what runs. A fresh
``pycache_prefix`` would do the same for the tree, and compile pytest and the standard library anew each time.
"""

from __future__ import annotations

import os
import sys
import types
from typing import Any

here = os.path.dirname(os.path.abspath(__file__))
sys.path[:] = [p for p in sys.path if p and os.path.abspath(p) != here]

import pytest  # noqa: E402


def recorder() -> Any:
    """Load the recorder, and give it its way and its key."""
    descriptor, key = map(int, sys.argv[1:])
    # Neither the product nor what it starts is told of them.
    sys.argv[1:] = []
    os.set_inheritable(descriptor, False)
    with open(key, "rb") as stream:
        secret = stream.read()
    return load("recorder").Recorder(
        descriptor, secret, os.path.join(here, "tops"), load("intact"), load("executed").Executed()
    )


def load(name: str) -> Any:
    """Load a module that lies here, under no name that an import could find."""
    path = os.path.join(here, name + ".py")
    module = types.ModuleType(name)
    with open(path, encoding="utf-8") as source:
        exec(compile(source.read(), path, "exec"), module.__dict__)
    return module


with open(os.path.join(here, "order"), encoding="ascii") as names:
    files = names.read().split()
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
sys.exit(pytest.main([*options, *(os.path.join(here, name) for name in files)], plugins=[recorder()]))
