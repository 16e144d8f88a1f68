"""From the settings of a run to its matcher: where matching and the models meet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from ...core.errors import InfraError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from ...core.matching import Matcher
    from ...core.settings import Settings
    from ...models.client import Model
    from ...models.completion import Completion
    from ...models.usage import Price, Usage
    from .asking import Ask, Question, Reply
    from .classify import Classifier
    from .meaning import Meaning
    from .place import FileLevel

#: How the evaluator that AACR-Bench was published with samples.
_LEGACY_SAMPLING = {"temperature": 0.7, "top_p": 0.95}
_JUDGE = "matching by a judge (--crbench-meaning=judge)"
_EMBEDDING = "matching by embeddings (--crbench-meaning=embedding)"


def make_matcher(settings: Settings, run: Path | None, environ: Mapping[str, str] | None = None) -> Matcher:
    """Make the matcher that the settings name; asks no endpoint yet.

    Args:
        settings: the options of the run.
        run: the run's folder, which holds the budget of all its processes.
        environ: where the key of the endpoint is (default: the process's).

    Raises:
        UsageError: if scipy, a model or a key is missing, or an option has no meaning here.
    """
    from .place import Rules

    rules = Rules(settings.line_tolerance, cast("FileLevel", settings.file_level))
    if settings.aacr_legacy:
        return _legacy(settings, run, environ)
    from .assign import require_scipy
    from .match import CommentMatcher

    require_scipy()
    return CommentMatcher(_meaning(settings, run, environ), rules)


def make_classifier(
    settings: Settings, run: Path | None, environ: Mapping[str, str] | None = None
) -> Classifier | None:
    """Make what sorts unlabelled comments into categories; None if that was not asked for.

    Raises:
        UsageError: if a model or a key is missing.
    """
    if not settings.classify:
        return None
    from .classify import Classifier

    model = _judge_model(settings, run, environ, who="sorting comments (--crbench-classify)")
    return Classifier(asker(model), model.identity)


def asker(model: Model) -> Ask:
    """Return what puts the questions of matching to a model, through the one door."""
    from .asking import Reply

    def ask(question: Question) -> Reply:
        answer = _complete(model, question)
        return Reply(answer.text, _plain(answer.usage, model.ledger.price if model.ledger else None))

    return ask


def _meaning(settings: Settings, run: Path | None, environ: Mapping[str, str] | None) -> Meaning:
    if settings.meaning == "exact":
        from .exact import ExactMeaning

        return ExactMeaning()
    if settings.meaning == "embedding":
        from ...models.load import embeddings, price_of
        from .calibrations import threshold_of
        from .embedding import EmbeddingMeaning

        found = embeddings(settings, run, who=_EMBEDDING, environ=environ)
        price = price_of(settings)

        def embed(texts: Sequence[str]) -> tuple[Sequence[Sequence[float]], dict[str, float]]:
            vectors, usage = found.embed(texts)
            return vectors, _plain(usage, price)

        threshold, origin = threshold_of(settings)
        return EmbeddingMeaning(embed, threshold, found.identity, origin)
    from .judge import JudgeMeaning

    model = _judge_model(settings, run, environ, who=_JUDGE)
    return JudgeMeaning(asker(model), model.identity, settings.judge_votes)


def _legacy(settings: Settings, run: Path | None, environ: Mapping[str, str] | None) -> Matcher:
    from .legacy import LegacyJudge, LegacyMatcher, LegacyMeaning

    if settings.meaning == "judge":
        model = _judge_model(settings, run, environ, who=_JUDGE, **_LEGACY_SAMPLING)
        return LegacyMatcher(
            LegacyJudge(asker(model), model.identity), line_tolerance=settings.line_tolerance
        )
    asked = LegacyMeaning(_meaning(settings, run, environ))
    return LegacyMatcher(asked, line_tolerance=settings.line_tolerance)


def _judge_model(
    settings: Settings, run: Path | None, environ: Mapping[str, str] | None, *, who: str, **sampling: Any
) -> Model:
    from ...models.load import chat_model

    return chat_model(
        settings,
        run,
        name=settings.judge_model or settings.model,
        option="--crbench-judge-model",
        who=who,
        environ=environ,
        **{"temperature": settings.temperature, **sampling},
    )


def _complete(model: Model, question: Question) -> Completion:
    """Ask once.

    Raises:
        InfraError: as `Model.complete`.
    """
    messages = [{"role": "system", "content": question.system}] if question.system else []
    messages.append({"role": "user", "content": question.user})
    form = None
    if question.schema is not None:
        form = {
            "type": "json_schema",
            "json_schema": {"name": question.name, "strict": True, "schema": dict(question.schema)},
        }
    try:
        return model.complete(
            messages,
            response_format=form,
            cache_key_extra={"sample": question.sample},
            # One that cannot be read is no answer: the next run asks again.
            usable=lambda answer: question.readable(answer.text),
        )
    except InfraError as error:
        if error.reason != "rejected" or form is None:
            raise
        raise InfraError(
            f"{error} Matching asks for structured outputs (response_format json_schema); an endpoint that "
            "has none can be used with --crbench-meaning=embedding or exact.",
            reason=error.reason,
        ) from error


def _plain(usage: Usage, price: Price | None) -> dict[str, float]:
    counts: dict[str, float] = {name: number for name, number in usage.as_dict().items() if number}
    if price is not None:
        counts["cost"] = round(price.cost(usage), 9)
    return counts
