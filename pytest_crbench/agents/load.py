"""From ``--crbench-agent`` and its options to an agent; and the agents that ask neither model nor review."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.agent import AGENTS, AgentKind
from ..core.errors import UsageError
from ..core.model import Revision
from ..text.printable import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ..core.agent import Agent, AgentTask
    from ..core.settings import Settings
    from ..models.usage import Price

_AGENTS = "llm (the default), suggestions, reference, none, cmd:TEMPLATE"


def load(spec: str, settings: Settings, run: Path | None) -> Agent:
    """Return the agent that ``spec`` names, of ours or of another package; ``run`` holds the run's budget.

    Raises:
        UsageError: an unknown agent, whatever it lacks, or options that contradict one another.
    """
    word, _, argument = spec.partition(":")
    if word not in AGENTS or (argument and word in AGENTS.own and word != "cmd"):
        known = ", ".join((_AGENTS, *AGENTS.foreign()))
        raise UsageError(f"--crbench-agent={printable(spec, 80)}: no such agent; choose one of {known}")
    if (settings.agent_name or settings.agent_version) and word in AGENTS.own and word != "cmd":
        raise UsageError(
            "--crbench-agent-name and --crbench-agent-version go with --crbench-agent=cmd:TEMPLATE"
        )
    limited = (settings.price, settings.max_cost, settings.max_total_cost) != (None, None, None)
    if limited and word in AGENTS.own:
        _price(settings, word)
    return AGENTS.use(word, lambda kind: kind.make(argument, settings, run))


def _price(settings: Settings, word: str) -> Price | None:
    """Return the price of tokens; a program may tell its own cost, so that the run's limit needs none.

    Raises:
        UsageError: if it is none, or a limit of cost has none.
    """
    from ..models.load import price_of

    return price_of(replace(settings, max_total_cost=None) if word == "cmd" else settings)


class Llm(AgentKind):
    """The loop around a model."""

    def make(self, argument: str, settings: Settings, run: Path | None) -> Agent:
        """Return the agent with its model and bounds."""
        from ..models.conversation import Bounds
        from ..models.load import access
        from .llm import LlmAgent

        reached = access(settings, run)
        if missing := reached.missing(settings.model):
            raise UsageError(
                f"the coding agent `llm` needs {missing}. Set --crbench-model=NAME, and a key in "
                f"{reached.key_names} "
                "(for a local OpenAI-compatible endpoint: --crbench-base-url=URL; no key is needed). "
                "Or choose an agent that needs neither: "
                "--crbench-agent=suggestions applies the suggestion blocks of the comments, "
                "--crbench-agent='cmd:TEMPLATE' runs a program of yours."
            )
        bounds = Bounds(
            timeout=settings.agent_timeout,
            max_steps=settings.max_steps,
            max_tokens=settings.max_tokens,
            max_cost=settings.max_cost,
            price=reached.price,
            command_timeout=settings.agent_command_timeout,
        )
        return LlmAgent(reached.model(str(settings.model), temperature=settings.temperature), bounds)


class Command(AgentKind):
    """A program of the user's."""

    def make(self, argument: str, settings: Settings, run: Path | None) -> Agent:
        """Return the agent that runs the template."""
        from ..models.usage import Ledger
        from .command import command_agent

        price = _price(settings, "cmd")
        total = settings.max_total_tokens, settings.max_total_cost
        return command_agent(
            argument,
            cwd=Path.cwd(),
            timeout=settings.agent_timeout,
            environment=settings.agent_env,
            name=settings.agent_name,
            version=settings.agent_version,
            bounded=total != (None, None),
            ledger=Ledger(run / "ledger.json", *total, price) if run is not None else None,
        )


WARNING = "reference agent: checks the harness only"


class ReferenceAgent:
    """The agent that knows the answer; every check must pass after it, whatever the review said."""

    name = "reference"
    runs_on_clean_review = True

    def __init__(self) -> None:
        self.fingerprint: Mapping[str, Any] = {"name": self.name, "version": 1}

    def revise(self, task: AgentTask) -> Revision:
        """Return the change from head to the fixed tree.

        Raises:
            AgentError: if the patch is too large.
            InfraError: if the fixed tree cannot be fetched or the disk fails.
        """
        began = time.monotonic()
        patch = task.capture(task.fixed().path)
        return Revision(patch, self.name, "finished", (WARNING,), time.monotonic() - began)


class NoAgent:
    """The agent that makes the empty revision."""

    name = "none"
    runs_on_clean_review = False

    def __init__(self) -> None:
        self.fingerprint: Mapping[str, Any] = {"name": self.name, "version": 1}

    def revise(self, task: AgentTask) -> Revision:
        """Return the empty revision."""
        return Revision(b"", self.name, "finished")


class Plain(AgentKind):
    """An agent without options."""

    def __init__(self, agent: Callable[[], Agent]) -> None:
        self.agent = agent

    def make(self, argument: str, settings: Settings, run: Path | None) -> Agent:
        """Return it."""
        return self.agent()


def _suggestions() -> Agent:
    from .suggestions import SuggestionsAgent

    return SuggestionsAgent()


LLM, COMMAND = Llm(), Command()
SUGGESTIONS, REFERENCE, NONE = Plain(_suggestions), Plain(ReferenceAgent), Plain(NoAgent)
