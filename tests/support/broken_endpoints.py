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

    The last step of a fault comes for ever. Letters in ``passing`` are then answered well,
    those in ``shorter`` where the review is left out. Once ``healed``, everybody is.
    """

    def __init__(self, faults: Mapping[str, Sequence[Step]], passing: str = "", shorter: str = "") -> None:
        self.faults = faults
        self.passing = passing
        self.shorter = shorter
        self.healed = False
        #: When the model was asked (`time.monotonic`), by letter.
        self.asked: dict[str, list[float]] = defaultdict(list)
        self._lock = threading.Lock()

    def __call__(self, body: dict[str, Any]) -> Step:
        """Choose what a request is answered with."""
        text = json.dumps(body["messages"])
        letter = _letter(text)
        with self._lock:
            number = len(self.asked[letter])
            self.asked[letter].append(time.monotonic())
        if letter in self.shorter and "<review_finding number" not in text:
            return answer("Ready.")
        steps = () if self.healed else self.faults.get(letter, ())
        if number < len(steps):
            return steps[number]
        return _sound(letter, body) if not steps or letter in self.passing else steps[-1]


def _letter(text: str) -> str:
    found = re.search(r"shop/([a-z])1_\.py", text)
    assert found is not None
    return found.group(1)


def _sound(letter: str, body: dict[str, Any]) -> Step:
    """What a model that does its work says next."""
    if any(message["role"] == "tool" for message in body["messages"]):
        return answer("Done.")
    return run(f"sed -i s/wrong/{letter}1/ shop/{letter}1_.py")
