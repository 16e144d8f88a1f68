"""What kinds of questions an OpenAI-compatible endpoint takes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Route:
    """One kind of question.

    ``resource`` is where the ``openai`` package has the method ``create`` for it; ``key`` tells an answer
    from any other JSON; ``noun`` is what messages call an answer.
    """

    resource: tuple[str, ...]
    key: str
    noun: str


CHAT = Route(("chat", "completions"), "choices", "chat completion")
EMBEDDINGS = Route(("embeddings",), "data", "list of embeddings")
