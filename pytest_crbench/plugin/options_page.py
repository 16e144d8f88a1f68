"""The table of options: ``python -m pytest_crbench.plugin.options_page docs/options.md`` writes it."""

from __future__ import annotations

import sys
from pathlib import Path

from ..run.options import FOLDED
from .options import GROUPS, ini_name

_HEAD = """\
# Options

Every option can be given on the command line or, by the name in the second column, in the ini file
(`pytest.ini`, or `[tool.pytest.ini_options]` of `pyproject.toml`). The command line wins. *Lists* may be
repeated on the command line, and hold one value a line (in TOML: an array of strings) in the ini file;
*flags* take no value on the command line, and `true` or `false` in the ini file. Paths are relative to the
folder that pytest is started in.

`--crbench-reviewer`, `--crbench-replay` and `--crbench-resume` turn the benchmark on. Any other option on the
command line without one of them is a usage error, and so is a gate in the ini file;
[gating.md](gating.md) has the whole table. In TOML with native types (`pytest.toml`, `[tool.pytest]`) numeric
options take numbers, and a list of one value may be that value.

A *folded* option holds several settings as `KEY=VALUE`, several times or in one text:
`--crbench-limit "memory=4g cpus=4"`; the command line wins key by key. Options that had a name of their own
before (`--crbench-memory`, `--crbench-meaning`) are still taken under it, here and in the ini file.
"""
_KINDS = {
    "value": "",
    "list": "*List.* ",
    "flag": "*Flag.* ",
    "optional": "*Value may be left out.* ",
    "folded": "*Folded.* ",
}


def options_page() -> str:
    """Return docs/options.md."""
    page = _HEAD
    for title, options in GROUPS.items():
        short = title.partition(": ")[2] or "run"
        page += f"\n## {short.capitalize()}\n\n| option | ini | what |\n|---|---|---|\n"
        page += "".join(_row(*option) for option in options)
        for name, kind, *_ in options:
            if kind == "folded":
                page += f"\n`--crbench-{name}` takes:\n\n| key | what |\n|---|---|\n"
                page += "".join(
                    f"| `{key}{f'={value}' if value else ''}` | {text} |\n"
                    for key, value, text in FOLDED[name]
                )
    return page


def _row(name: str, kind: str, metavar: str, text: str) -> str:
    value = {"flag": "", "optional": f"[={metavar}]"}.get(kind, f"={metavar}")
    return f"| `--crbench-{name}{value}` | `{ini_name(name)}` | {_KINDS[kind]}{text} |\n"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(options_page(), encoding="utf-8")
