"""Answers of a scripted model that reviews, and where a request's question is."""

from __future__ import annotations

import re
from typing import Any

from support.openai_server import Step, answer

from pytest_crbench.core.settings import Settings
from pytest_crbench.reviewers.load import load


def given(**options: Any) -> Settings:
    """Settings from the options of a reviewer, without their prefix."""
    named = {"format": "review_format", "environment": "reviewer_env"}
    return Settings(**{named.get(name, f"reviewer_{name}"): value for name, value in options.items()})


def loaded(spec: str, enclosure: Any = None, **options: Any) -> Any:
    """The reviewer of a program."""
    return load(spec, given(**{"format": "native", **options}), enclosure)


def block(quoted: str, note: str, side: str = "right") -> str:
    """One finding in the tags of the protocol."""
    return f"<diff>\n{quoted}\n</diff>\n<side>{side}</side>\n<note>\n{note}\n</note>\n"


def question(request: dict[str, Any]) -> str:
    """What the model was asked about."""
    return str(request["messages"][-1]["content"])


def asked_about(request: dict[str, Any]) -> str:
    """The file of the hunk in a question."""
    found = re.search(r'^<hunk path="(.*?)"(?: before=".*")?>$', question(request), re.MULTILINE)
    assert found, question(request)
    return found[1]


def snippets(request: dict[str, Any]) -> list[tuple[str, str]]:
    """Path and lines of the snippets in a question, in their order."""
    return re.findall(r'^<snippet path="(.*)" lines="(\d+-\d+)">$', question(request), re.MULTILINE)


def by_file(answers: dict[str, str], default: str = "<end/>") -> Any:
    """A script that answers about each file what is given for it, whatever the order of the questions."""

    def choose(request: dict[str, Any]) -> Step:
        return answer(answers.get(asked_about(request), default))

    return choose
