"""A model that breaks in another way on each pull request, and the same one healed."""

from __future__ import annotations

import json
import re
import threading
import time
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from support.openai_server import answer, run

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from support.openai_server import Step


class BrokenModel:
    """Answers requests as ``faults`` has it (by the checks' first letter); all others are answered well.

    The last step of a fault comes for ever, but for the letters in ``passing``, which are then answered well.
    Once ``healed``, everybody is.
    """

    def __init__(self, faults: Mapping[str, Sequence[Step]], passing: str = "") -> None:
        self.faults = faults
        self.passing = passing
        self.healed = False
        #: When the model was asked (`time.monotonic`), by letter.
        self.asked: dict[str, list[float]] = defaultdict(list)
        self._lock = threading.Lock()

    def __call__(self, body: dict[str, Any]) -> Step:
        """Choose what a request is answered with."""
        letter = _letter(body)
        with self._lock:
            number = len(self.asked[letter])
            self.asked[letter].append(time.monotonic())
        steps = () if self.healed else self.faults.get(letter, ())
        if number < len(steps):
            return steps[number]
        return _sound(letter, body) if not steps or letter in self.passing else steps[-1]


def _letter(body: dict[str, Any]) -> str:
    found = re.search(r"shop/([a-z])1_\.py", json.dumps(body["messages"]))
    assert found is not None
    return found.group(1)


def _sound(letter: str, body: dict[str, Any]) -> Step:
    """What a model that does its work says next."""
    if any(message["role"] == "tool" for message in body["messages"]):
        return answer("Done.")
    return run(f"sed -i s/wrong/{letter}1/ shop/{letter}1_.py")
