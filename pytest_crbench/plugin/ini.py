"""Our keys of the ini file, whatever its format: pytest's own reading refuses numbers for options of text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..run.options import OPTIONS, ini_name

if TYPE_CHECKING:
    import pytest

_LISTS = {ini_name(name) for name, kind, *_ in OPTIONS if kind == "list"}


def ini_values(config: pytest.Config) -> dict[str, Any]:
    """Return the keys that look like ours, with values: text, bool, number, or a list for a list option.

    What ``-o`` overrides is overridden.
    """
    # pytest 9 wraps a value with its origin.
    values = {key: getattr(value, "value", value) for key, value in ini_of(config).items()}
    # pytest 8 applies these only as it reads a value.
    values |= dict(text.split("=", 1) for text in config.getoption("override_ini") or ())
    return {key: _read(key, value) for key, value in values.items() if key.startswith("crbench_")}


def ini_of(config: pytest.Config) -> dict[str, Any]:
    """Return the keys and values of the ini file, as pytest keeps them; `pytest_crbench.plugin` does too."""
    return config._inicfg if hasattr(config, "_inicfg") else config.inicfg  # type: ignore[return-value]


def _read(key: str, value: Any) -> Any:
    if key not in _LISTS:
        return value
    items = value.splitlines() if isinstance(value, str) else value if isinstance(value, list) else [value]
    return [text for item in items if (text := str(item).strip())]
