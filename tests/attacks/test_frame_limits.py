"""What docs/trust.md says cannot be defended does make a pass: it is to be right about that, too."""

from __future__ import annotations

import pytest
from support.arena import Arena, assert_passed

EXAMPLES = {
    "an object equal to everything": (
        "class Anything(str):\n"
        "    def __eq__(self, other):\n        return True\n\n\n"
        "def tax():\n    return Anything('wrong')\n"
    ),
    "a fix that recognises the test": (
        "import sys\n\n\n"
        "def tax():\n"
        "    caller = sys._getframe(1).f_code\n"
        "    return 'right' if caller.co_name.startswith('test_') else 'wrong'\n"
    ),
    "the recorder is switched off": (
        "import sys\n"
        "import _pytest.python, pytest\n\n"
        "frame = sys._getframe(0)\n"
        "while not isinstance(frame.f_locals.get('self'), pytest.Module):\n"
        "    frame = frame.f_back\n"
        "plugins = frame.f_locals['self'].config.pluginmanager.get_plugins()\n"
        "recorder = next(plugin for plugin in plugins if hasattr(plugin, '_snapshot'))\n"
        "recorder._snapshot.changed = lambda item: []\n"
        "old = _pytest.python.Function.runtest\n"
        "new = lambda self: None if hasattr(self.module, 'tax') else old(self)\n"
        "_pytest.python.Function.runtest = new\n\n\n"
        "def tax():\n    return 'wrong'\n"
    ),
}


@pytest.mark.parametrize("example", EXAMPLES)
@pytest.mark.parametrize("arena", [pytest.param("docker", marks=pytest.mark.docker)], indirect=True)
def test_semantics_faked_in_the_tested_process(arena: Arena, example: str) -> None:
    assert_passed(arena.rule({"shop/tax.py": EXAMPLES[example]}))
