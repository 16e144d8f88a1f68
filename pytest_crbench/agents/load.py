"""From ``--crbench-agent`` and its options to an agent; and the agents that ask neither model nor review."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.agent import AGENTS, AgentKind
from ..core.errors import UsageError
from ..core.model import Revision
from ..text.printable import printable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..core.agent import Agent, AgentTask
    from ..core.settings import Settings
    from ..models.access import Access
    from ..models.client import Model
    from ..models.conversation import Bounds
    from ..models.usage import Price

_POSITIVE = (
    *("timeout", "max_steps", "max_tokens", "max_cost", "command_timeout"),
    *("format_error_limit", "output_limit", "patience", "total_tokens", "total_cost"),
)
_AGENTS = "llm (the default), suggestions, reference, none, cmd:TEMPLATE"


@dataclass(frozen=True)
class AgentOptions:
    """What a user can say about the coding agent.

    Args:
        timeout: seconds for one whole revision.
        model, base_url: the model of the `llm` agent and its endpoint.
        api_key_variable: the environment variable with the key, if not one of `KEY_VARIABLES`.
        max_steps, max_tokens, max_cost: limits of one revision: model calls, tokens, money.
        price: ``IN:OUT``, per million tokens; needed to speak of money.
        temperature, extra_body: sent to the endpoint only where set.
        command_timeout: seconds for one command of the `llm` agent.
        format_error_limit: malformed answers in a row that end the `llm` agent.
        output_limit: characters of a command's output that the model is shown.
        patience: seconds that one model call may lose to a failing endpoint.
        cache: the cache folder, for completions shared between runs; None turns sharing off.
        ledger, total_tokens, total_cost: the file of the run's budget, and its totals for all workers, which
            hold only where there is a file.
        environment: the variables that a `cmd:` agent is given (`host.programs.variables`).
        name, version: what results call a `cmd:` agent, and its version.
        cwd: the folder of the invocation, for relative paths of a `cmd:` agent (default: the current one).
    """

    timeout: float = 600.0
    model: str | None = None
    base_url: str | None = None
    api_key_variable: str | None = None
    max_steps: int = 50
    max_tokens: int | None = None
    max_cost: float | None = None
    price: str | None = None
    temperature: float | None = None
    extra_body: Mapping[str, Any] = field(default_factory=dict)
    command_timeout: float = 60.0
    format_error_limit: int = 3
    output_limit: int = 10_000
    patience: float = 300.0
    cache: Path | None = None
    ledger: Path | None = None
    total_tokens: int | None = None
    total_cost: float | None = None
    environment: tuple[str, ...] = ()
    name: str | None = None
    version: str | None = None
    cwd: Path | None = None

    @classmethod
    def of(cls, settings: Settings, run: Path | None) -> AgentOptions:
        """Return what the settings say about the coding agent; ``run`` holds the budget of the whole run."""
        return cls(
            timeout=settings.agent_timeout,
            model=settings.model,
            base_url=settings.base_url,
            max_steps=settings.max_steps,
            max_tokens=settings.max_tokens,
            max_cost=settings.max_cost,
            price=settings.price,
            temperature=settings.temperature,
            command_timeout=settings.agent_command_timeout,
            cache=settings.cache,
            ledger=run / "ledger.json" if run else None,
            total_cost=settings.max_total_cost,
            total_tokens=settings.max_total_tokens,
            environment=settings.agent_env,
            name=settings.agent_name,
            version=settings.agent_version,
        )


class _Own(AgentKind):
    """An agent of this package; ``word`` is what it is registered under."""

    def __init__(self, word: str) -> None:
        self.word = word

    def make(self, argument: str, settings: Settings, run: Path | None) -> Agent:
        return load(f"{self.word}:{argument}" if argument else self.word, AgentOptions.of(settings, run))


LLM, SUGGESTIONS, REFERENCE, NONE, COMMAND = map(_Own, ("llm", "suggestions", "reference", "none", "cmd"))


def find(spec: str, settings: Settings, run: Path | None) -> Agent:
    """Return the agent that ``spec`` names, of ours or of another package.

    Raises:
        UsageError: an unknown agent, or whatever it lacks.
    """
    word, _, argument = spec.partition(":")
    if word not in AGENTS:
        raise _unknown(spec)
    return AGENTS.use(word, lambda kind: kind.make(argument, settings, run))


def load(spec: str, options: AgentOptions, environ: Mapping[str, str] | None = None) -> Agent:
    """Return the agent of ours that ``spec`` names; ``environ`` (default: the process's) holds the key.

    Raises:
        UsageError: an unknown agent, missing model or key, or options that contradict one another.
    """
    for name in _POSITIVE:
        value = getattr(options, name)
        if value is not None and not value > 0:
            raise UsageError(f"the coding agent's {name} is {value}; it must be more than 0")
    is_command = spec.startswith("cmd:")
    if (options.name or options.version) and not is_command:
        raise UsageError(
            "--crbench-agent-name and --crbench-agent-version go with --crbench-agent=cmd:TEMPLATE"
        )
    # A program may tell its own cost.
    price = _price(replace(options, total_cost=None) if is_command else options)
    if spec == "llm":
        from .llm import LlmAgent

        return LlmAgent(
            _model(options, price, os.environ if environ is None else environ), _bounds(options, price)
        )
    if spec == "suggestions":
        from .suggestions import SuggestionsAgent

        return SuggestionsAgent()
    if spec == "reference":
        return ReferenceAgent()
    if spec == "none":
        return NoAgent()
    if not is_command:
        raise _unknown(spec)
    from ..models.usage import Ledger
    from .command import command_agent

    return command_agent(
        spec.removeprefix("cmd:"),
        cwd=options.cwd or Path.cwd(),
        timeout=options.timeout,
        environment=options.environment,
        name=options.name,
        version=options.version,
        bounded=options.total_tokens is not None or options.total_cost is not None,
        ledger=Ledger(options.ledger, options.total_tokens, options.total_cost, price)
        if options.ledger is not None
        else None,
    )


def _unknown(spec: str) -> UsageError:
    known = ", ".join((_AGENTS, *AGENTS.foreign()))
    return UsageError(f"--crbench-agent={printable(spec, 80)}: no such agent; choose one of {known}")


def _price(options: AgentOptions) -> Price | None:
    from ..models.usage import Price

    if options.price is not None:
        return Price.parse(options.price)
    if options.max_cost is not None or options.total_cost is not None:
        raise UsageError(
            "a cost limit needs a price: set --crbench-llm price=IN:OUT, the prices of a million prompt "
            "and of a million completion tokens"
        )
    return None


def _bounds(options: AgentOptions, price: Price | None) -> Bounds:
    from ..models.conversation import Bounds

    return Bounds(
        timeout=options.timeout,
        max_steps=options.max_steps,
        max_tokens=options.max_tokens,
        max_cost=options.max_cost,
        price=price,
        command_timeout=options.command_timeout,
        format_error_limit=options.format_error_limit,
        output_limit=options.output_limit,
    )


def _access(options: AgentOptions, price: Price | None, environ: Mapping[str, str]) -> Access:
    from ..models.access import Access

    return Access(
        environ,
        base_url=options.base_url,
        key_variable=options.api_key_variable,
        patience=options.patience,
        cache=options.cache,
        ledger=options.ledger,
        total_tokens=options.total_tokens,
        total_cost=options.total_cost,
        price=price,
    )


def _model(options: AgentOptions, price: Price | None, environ: Mapping[str, str]) -> Model:
    access = _access(options, price, environ)
    if missing := access.missing(options.model):
        raise UsageError(
            f"the coding agent `llm` needs {missing}. Set --crbench-model=NAME, and a key in "
            f"{access.key_names} "
            "(for a local OpenAI-compatible endpoint: --crbench-base-url=URL; no key is needed). "
            "Or choose an agent that needs neither: "
            "--crbench-agent=suggestions applies the suggestion blocks of the comments, "
            "--crbench-agent='cmd:TEMPLATE' runs a program of yours."
        )
    assert options.model is not None
    return access.model(options.model, temperature=options.temperature, extra_body=options.extra_body)


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
