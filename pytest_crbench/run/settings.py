"""All options of a run as one value, read from anything that looks names up (pytest, the commands)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.errors import UsageError
from ..core.scoring import SCORINGS
from ..core.settings import Settings
from ..core.status import RERUN
from ..text import urls
from ..text.printable import printable
from ..text.secrets import in_text, passed_through, register
from .options import FOLDED, FOLDED_IN, now_called

if TYPE_CHECKING:
    from collections.abc import Callable


_SIZES = {"": 1, "k": 1024, "m": 1024**2, "g": 1024**3, "t": 1024**4}
_MATCHERS = ("model", "embedding", "exact")
_FILE_LEVELS = ("nothing", "file")
_WHOLE = re.compile(r"[+-]?[0-9]{1,15}")
#: No system waits for longer (in seconds), or has as many of anything.
_MOST = 1e9


def read(lookup: Callable[[str], Any], base: Path) -> Settings:
    """Make settings from ``lookup(field name)``, which returns None where an option is not given.

    Args:
        lookup: by the name of a field of `Settings`; text, list of text, or bool.
        base: the folder that relative paths are meant from.

    Raises:
        UsageError: naming the option, what it was given and what it takes.
    """
    given: dict[str, Any] = {}
    for name in Settings.__dataclass_fields__:
        value = lookup(name)
        if value is None or value in ([], ""):
            continue
        _register_credentials(name, value)
        convert: Callable[[str, Any], Any] = _CONVERT.get(name, _text)
        given[name] = convert(_option(name), value)
    for name in ("cache", "run_dir", "baseline", "ca_bundle", "embedding_threshold"):
        if isinstance(given.get(name), Path):
            given[name] = base / given[name]
    given.setdefault("cache", _user_cache())
    given.setdefault("run_dir", base / ".crbench" / "runs")
    return _checked(Settings(**given))


def found_in(source: Callable[[str], Any], name: str) -> Any:
    """Look a setting up in ``source(option)``, where it may be a key of a folded option; None if not there.

    Args:
        source: by the name of an option or setting, with dashes or underscores as `Settings` has them.
        name: the name of a field of `Settings`.

    Raises:
        UsageError: for a key that a folded option does not have.
    """
    value = source(name)
    option = FOLDED_IN.get(name.replace("_", "-"))
    if value is not None or option is None:
        return value
    return _keys(option, source(option)).get(name)


def _keys(option: str, value: Any) -> dict[str, Any]:
    """Read ``KEY=VALUE``s of a folded option, by the name of the setting."""
    found: dict[str, Any] = {}
    known = {key: bool(metavar) for key, metavar, _ in FOLDED[option]}
    for word in (w for item in _texts(option, value or ()) for w in item.split()):
        key, equals, text = word.partition("=")
        key = key.replace("_", "-")
        if key not in known:
            raise UsageError(f"--crbench-{option} {_shown(word)}: unknown key; known: {', '.join(known)}")
        if known[key] and not text:
            raise UsageError(f"--crbench-{option} {_shown(word)}: expected {key}=VALUE")
        found[key.replace("-", "_")] = text if equals else True
    return found


def _checked(settings: Settings) -> Settings:
    for scoring in settings.scoring:
        if scoring not in SCORINGS.names():
            raise UsageError(
                f"--crbench-scoring={_shown(scoring)}: unknown scoring; known: {', '.join(SCORINGS.names())}"
            )
    _one_of("--crbench-matcher", settings.matcher, _MATCHERS)
    _one_of("--crbench-comments", settings.comments, ("all", "diff"))
    if settings.comments == "diff" and settings.offline:
        raise UsageError("--crbench-comments=diff needs the diff, which --crbench-offline does not have")
    _one_of("--crbench-matching file-level", settings.file_level, _FILE_LEVELS)
    if settings.matcher_votes % 2 == 0:
        raise UsageError(
            f"--crbench-matcher-votes={settings.matcher_votes}: expected an odd number, so that votes decide"
        )
    if settings.fail_if_regressed is not None and settings.baseline is None:
        raise UsageError(
            "--crbench-fail-if-regressed needs --crbench-baseline=RESULTS, the results.json of an earlier run"
        )
    if settings.rerun_errors is not None:
        _one_of("--crbench-rerun-errors", settings.rerun_errors, tuple(RERUN))
    if settings.rerun_errors and settings.resume is None:
        raise UsageError("--crbench-rerun-errors goes with --crbench-resume[=RUN]")
    if settings.reviewer_network and settings.reviewer_image is None:
        raise UsageError(
            "--crbench-reviewer-network goes with --crbench-reviewer-image=IMAGE: a reviewer on the host has "
            "the network anyway"
        )
    if settings.resume and settings.replay:
        raise UsageError("--crbench-resume and --crbench-replay exclude one another")
    if settings.ca_bundle is not None and not _is_file(settings.ca_bundle):
        raise UsageError(f"--crbench-ca-bundle={_shown(settings.ca_bundle)}: no such file")
    return settings


def _one_of(option: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise UsageError(f"{option}={_shown(value)}: expected one of {', '.join(known)}")


def _register_credentials(name: str, value: Any) -> None:
    """Whatever is said of an option from here on, also that it is wrong, is said without these."""
    words = [str(item) for item in value] if isinstance(value, (list, tuple)) else [str(value)]
    register(secret for word in words for secret in in_text(word))
    if name in ("reviewer_env", "agent_env"):
        handed = (item for item in words if "=" not in item)
        register(passed_through(word for item in handed for word in re.split(r"[\s,]+", item) if word))


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a name that no disk can hold
        return False


def _option(name: str) -> str:
    return "--crbench-" + now_called(name.replace("_", "-"))


def _user_cache() -> Path:
    import platformdirs

    return Path(platformdirs.user_cache_dir("pytest-crbench", appauthor=False))


def _shown(value: Any) -> str:
    return printable(str(value), 100)


def _text(option: str, value: Any) -> str:
    if not isinstance(value, str):  # of a TOML file: 1.10 has become 1.1
        raise UsageError(f"{option}={_shown(value)}: expected text: write it in quotes")
    return value


def _number_as_text(option: str, value: Any) -> str:
    plain = isinstance(value, str | int | float) and not isinstance(value, bool)
    return str(value) if plain else _text(option, value)


def _url(option: str, value: Any) -> str:
    if not re.match(r"(https?|file)://.", str(value)):
        raise UsageError(f"{option}: expected a URL such as https://index.example.com/simple")
    if problem := urls.problem(str(value)):
        raise UsageError(f"{option}: {problem}")
    return str(value)


def _path(option: str, value: Any) -> Path:
    try:
        return Path(_text(option, value)).expanduser()
    except (RuntimeError, ValueError):
        raise UsageError(f"{option}={_shown(value)}: expected a path; nobody has that home folder") from None


def _flag(option: str, value: Any) -> bool:
    if isinstance(value, bool):
        return value
    word = str(value).strip().lower()
    if word in ("1", "true", "yes", "on"):
        return True
    if word in ("0", "false", "no", "off"):
        return False
    raise UsageError(f"{option}={_shown(value)}: expected true or false")


def _texts(_option: str, value: Any) -> tuple[str, ...]:
    items = value if isinstance(value, list | tuple) else [value]
    return tuple(str(item).strip() for item in items if str(item).strip())


def _words(option: str, value: Any) -> tuple[str, ...]:
    return tuple(w for item in _texts(option, value) for w in re.split(r"[\s,]+", item) if w)


def _variables(option: str, value: Any) -> tuple[str, ...]:
    """Names of variables, and ``NAME=VALUE``, where a value may hold anything."""
    found: list[str] = []
    for item in _texts(option, value):
        found += [item] if "=" in item else _words(option, item)
    for item in found:
        name = item.partition("=")[0]
        if not name.isprintable() or not name or re.search(r"[\s,]", name):
            raise UsageError(f"{option}={_shown(item)}: expected NAME, or NAME=VALUE")
    return tuple(found)


def _integers(option: str, value: Any) -> tuple[int, ...]:
    return tuple(_integer(0)(option, word) for word in _words(option, value))


def _integer(least: int) -> Callable[[str, Any], int]:
    def convert(option: str, value: Any) -> int:
        number = int(str(value)) if _WHOLE.fullmatch(str(value).strip()) else least - 1
        if number < least:
            raise UsageError(f"{option}={_shown(value)}: expected a whole number of at least {least}")
        return number

    return convert


def _number(option: str, value: Any) -> float:
    try:
        number = float(str(value))
    except ValueError:
        number = float("nan")
    if not 0 < number < _MOST:
        raise UsageError(f"{option}={_shown(value)}: expected a number above 0 (and below {_MOST:g})")
    return number


def _share(option: str, value: Any) -> float:
    number = 0.0 if str(value).strip() in ("0", "0.0") else _number(option, value)
    if number > 1:
        raise UsageError(f"{option}={_shown(value)}: expected a number from 0 to 1")
    return number


def _threshold(option: str, value: Any) -> float | Path:
    """A cosine, or the file that holds a measured one."""
    try:
        float(str(value))
    except ValueError:
        return _path(option, value)
    return _share(option, value)


def _temperature(option: str, value: Any) -> float:
    return 0.0 if str(value).strip() in ("0", "0.0") else _number(option, value)


def _matcher(option: str, value: Any) -> str:
    # Matching's own name for it, before a judge became what is under test.
    return "model" if value == "judge" else _text(option, value)


def bytes_of(option: str, value: Any) -> int:
    """Return a size such as ``512m`` or ``2g`` in bytes.

    Raises:
        UsageError: naming ``option``.
    """
    found = re.fullmatch(r"([0-9]{1,15})\s*([kmgt]?)(i?b)?", str(value).strip().lower())
    if not found:
        raise UsageError(f"{option}={_shown(value)}: expected a size such as 512m or 2g")
    return int(found[1]) * _SIZES[found[2]]


_CONVERT: dict[str, Callable[[str, Any], Any]] = {
    "reviewer_timeout": _number,
    "reviewer_exit_ok": _integers,
    "reviewer_env": _variables,
    "reviewer_network": _flag,
    "reviewer_snippets": _integer(0),
    "reviewer_temperature": _temperature,
    "reviewer_top_p": _share,
    "reviewer_top_k": _integer(0),
    "agent_timeout": _number,
    "agent_env": _variables,
    "agent_command_timeout": _number,
    "temperature": _temperature,
    "max_steps": _integer(1),
    "max_tokens": _integer(1),
    "max_cost": _number,
    "max_total_tokens": _integer(1),
    "max_total_cost": _number,
    "dataset": _texts,
    "ca_bundle": _path,
    "index_url": _url,
    "memory": bytes_of,
    "cpus": _number,
    "pids": _integer(16),
    "test_timeout": _number,
    "cache": _path,
    "run_dir": _path,
    "min_free": bytes_of,
    "disk_budget": bytes_of,
    "repeats": _integer(1),
    "scoring": _words,
    "offline": _flag,
    "line_tolerance": _integer(0),
    "matcher": _matcher,
    "max_errors": _integer(0),
    "matcher_votes": _integer(1),
    "embedding_threshold": _threshold,
    "aacr_legacy": _flag,
    "classify": _flag,
    "min_coverage": _number_as_text,
    "fail_if_regressed": _number_as_text,
    "fail_under": _texts,
    "fail_over": _texts,
    "baseline": _path,
    "fail_on_miss": _flag,
    "report": _words,
}
