"""The threshold of embeddings of a run: given, or measured by ``crbench calibrate embedding``."""

from __future__ import annotations

import shlex
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...core.errors import UsageError
from ...host import digest
from ...host.files import write_json
from ...text import plainjson
from ...text.printable import printable

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ...core.model import Dataset
    from ...core.settings import Settings

SCHEMA = "crbench-calibration"


def calibrate(settings: Settings, output: Path | None = None) -> tuple[dict[str, Any], Path]:
    """Measure the threshold of the settings' model on their datasets, write it, and return it with its file.

    Args:
        settings: model, endpoint, cache and datasets.
        output: where to write it; by default where a run with this cache looks for it.

    Raises:
        UsageError: no model, or too few references.
        InfraError: the endpoint failed.
    """
    from ...models.load import embeddings
    from .calibration import VERSION
    from .calibration import calibrate as measure

    datasets = _datasets(settings)
    asked = embeddings(settings, None, who="crbench calibrate embedding")
    references = [[check.comment for check in i.checks] for d in datasets for i in d.instances]
    found = asdict(measure(asked.embed, references))
    content = {
        "schema": SCHEMA,
        "version": VERSION,
        "model": settings.embedding_model,
        "text_limit": asked.text_limit,
        "datasets": [{"name": d.name, "digest": d.digest} for d in datasets],
        "threshold": found.pop("threshold"),
        "against": found.pop("against"),
        "kinds": found,
    }
    file = output or _file(settings, datasets)
    write_json(file, content)
    return content, file


def threshold_of(settings: Settings) -> tuple[float, dict[str, Any]]:
    """Return the threshold of a run, and for readers where it is from.

    Raises:
        UsageError: it is neither given nor measured for model and datasets, or its file is of another model.
    """
    given = settings.embedding_threshold
    if isinstance(given, float):
        return given, {"origin": "given"}
    file = given if isinstance(given, Path) else _file(settings, _datasets(settings))
    if given is None and not file.is_file():
        raise UsageError(
            "--crbench-matcher=embedding needs the cosine from which comments say the same, and each model "
            f"has its own. Measure it once: `{_command(settings)}`; or give --crbench-embedding-threshold"
        )
    content = _read(file)
    if content["model"] != settings.embedding_model:
        raise UsageError(
            f"{file}, key 'model': measured with {printable(str(content['model']), 60)}, not with "
            f"{settings.embedding_model}. Measure it again: `{_command(settings)}`"
        )
    return float(content["threshold"]), {"origin": "measured", "file": file.name, **content}


def _read(file: Path) -> dict[str, Any]:
    from .calibration import VERSION

    try:
        content = plainjson.parse(file.read_bytes())
    except OSError as error:
        raise UsageError(f"cannot read the calibration {file}: {error.strerror}") from error
    except ValueError as error:
        raise UsageError(f"{file}: not JSON ({error})") from error
    shape = content if isinstance(content, dict) else {}
    threshold = shape.get("threshold")
    known = (shape.get("schema"), shape.get("version")) == (SCHEMA, VERSION)
    if not known or isinstance(threshold, bool) or not isinstance(threshold, int | float):
        raise UsageError(
            f"{file}: not a calibration of this version of pytest-crbench; write one with "
            "`crbench calibrate embedding DATASET --output FILE`"
        )
    return shape


def _datasets(settings: Settings) -> list[Dataset]:
    from ...datasets import open_dataset

    return [open_dataset(spec) for spec in settings.datasets]


def _file(settings: Settings, datasets: Iterable[Dataset]) -> Path:
    """Where the calibration of a model on some datasets is kept, whatever the endpoint's address is."""
    from ...models.embeddings import TEXT_LIMIT

    key = digest.of([settings.embedding_model, TEXT_LIMIT, sorted(d.digest for d in datasets)])
    return settings.cache / "calibrations" / f"{key[:20]}.json"


def _command(settings: Settings) -> str:
    words = ["crbench", "calibrate", "embedding", *settings.datasets]
    words += [f"--embedding-model={settings.embedding_model}"]
    for option, value in (
        ("--llm=embedding-base-url", settings.embedding_base_url),
        ("--base-url", settings.base_url),
    ):
        words += [f"{option}={value}"] if value else []
    return printable(shlex.join(words), 400)
