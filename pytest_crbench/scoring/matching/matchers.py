"""From the settings of a run to its matcher: where matching and the models meet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from ...core.matching import Matcher
    from ...core.settings import Settings
    from ...models.client import Model
    from .classify import Classifier
    from .meaning import Meaning
    from .place import FileLevel

#: How the evaluator that AACR-Bench was published with samples.
_LEGACY_SAMPLING = {"temperature": 0.7, "top_p": 0.95}
_MODEL = "matching by a model (--crbench-matcher=model)"
_EMBEDDING = "matching by embeddings (--crbench-matcher=embedding)"


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

    model = _matcher_model(settings, run, environ, who="sorting comments (--crbench-matching classify)")
    return Classifier(model)


def _meaning(settings: Settings, run: Path | None, environ: Mapping[str, str] | None) -> Meaning:
    if settings.matcher == "exact":
        from .meaning import ExactMeaning

        return ExactMeaning()
    if settings.matcher == "embedding":
        from ...models.load import embeddings
        from .calibrations import threshold_of
        from .meaning import EmbeddingMeaning

        found = embeddings(settings, run, who=_EMBEDDING, environ=environ)
        return EmbeddingMeaning(found, *threshold_of(settings))
    from .by_model import ModelMeaning

    model = _matcher_model(settings, run, environ, who=_MODEL)
    return ModelMeaning(model, settings.matcher_votes)


def _legacy(settings: Settings, run: Path | None, environ: Mapping[str, str] | None) -> Matcher:
    from .legacy import LegacyMatcher, LegacyMeaning, LegacyQuestion

    if settings.matcher == "model":
        model = _matcher_model(settings, run, environ, who=_MODEL, **_LEGACY_SAMPLING)
        return LegacyMatcher(LegacyQuestion(model), line_tolerance=settings.line_tolerance)
    asked = LegacyMeaning(_meaning(settings, run, environ))
    return LegacyMatcher(asked, line_tolerance=settings.line_tolerance)


def _matcher_model(
    settings: Settings, run: Path | None, environ: Mapping[str, str] | None, *, who: str, **sampling: Any
) -> Model:
    from ...models.load import chat_model

    return chat_model(
        settings,
        run,
        name=settings.matcher_model or settings.model,
        option="--crbench-matcher-model",
        who=who,
        environ=environ,
        **{"temperature": settings.temperature, **sampling},
    )
