# ruff: noqa: E501, PTH
"""Dataset files, the sources of hidden tests, and what a validation writes back."""

from __future__ import annotations

import tomllib
from functools import lru_cache
from pathlib import Path
from typing import Any

from pytest_crbench.core.errors import UsageError
from pytest_crbench.datasets import open_dataset
from pytest_crbench.datasets.native import load
from pytest_crbench.datasets.record import write_expected, write_validation
from pytest_crbench.scoring.tests.decide import imported_tops, needs_tree_on_path, test_names
from pytest_crbench.text.printable import clean

from .shapes import mutated, sometimes, table
from .source import NASTY, Source, either, listed, one_of, text, whole
from .target import Target, refused

_ROOT = Path(__file__).parents[3]
_SHA = one_of("0" * 64, "A" * 64, "0" * 63)
_COMMIT = one_of("1" * 40, "2" * 64, "1" * 39)
_NAME = one_of(
    "t.py", "sub/t.py", "../t.py", "gone.py", "t.txt", "x" * 300 + ".py", "a/" * 2100 + "b.py", "loop/x.py"
)


def targets() -> list[Target]:
    """Reading a folder of instances, and naming one."""
    return [
        Target("instance-toml", either(_instance, _instance, mutated(_corpus())), _load_instance, cost=3),
        Target("dataset-toml", either(_dataset, _dataset, mutated(_corpus())), _load_dataset, cost=3),
        Target("dataset-name", _name, _open, cost=3),
        Target("validation-record", _validation, _write, cost=4),
        Target("hidden-test-source", either(_python, mutated(_tests())), _static, cost=2),
    ]


@lru_cache(maxsize=1)
def _corpus() -> list[bytes]:
    return [file.read_bytes() for file in sorted((_ROOT / "instances").rglob("*.toml"))[:12]]


@lru_cache(maxsize=1)
def _tests() -> list[bytes]:
    return [file.read_bytes() for file in sorted((_ROOT / "instances").rglob("*.py"))[:12]]


def _instance(source: Source) -> bytes:
    artifact = table({"file": one_of("a-1.tar.gz", "a.exe"), "sha256": _SHA}, 20)
    sides = {"base": artifact, "head": artifact, "fixed": artifact}
    place = one_of("base", "../base", "gone", "/x", "x" * 300, "a\0b", "loop")
    url = one_of("https://example.org/x.git", "./x", "-x", "ext::sh")
    sources = (
        table({"kind": one_of("pypi"), "package": one_of("a", "-"), **sides}, 20),
        table({"kind": one_of("git"), "url": url, "base": _COMMIT, "head": _COMMIT}, 20),
        table(
            {"kind": one_of("git+patch"), "url": url, "base": _COMMIT, "patch": place, "fixed_patch": place},
            20,
        ),
        table({"kind": one_of("tree"), "base": place, "head": place, "fixed": place}, 20),
    )
    comment = table(
        {
            "id": one_of("one", "ONE", "two", "x y"), "level": one_of("inline", "file", "general"),
            "path": one_of("a.py", "../a", "a\\b"), "lines": listed(sometimes(whole(0, 3)), 3, 1),
            "side": one_of("right", "left"), "kind": one_of("behavioral", "structural"), "category": one_of("Robustness", "x"),
            "body": text, "suggestion": text, "test": _NAME,
        },
        20,
    )  # fmt: skip
    specifier = one_of(">=3.11", "==3.11.*,!=3.11.4", ">=9", "~=3", "===x", "," * 50, ">=" + "9" * 5000)
    requirement = one_of(
        "attrs", "a>=1; python_version < '3'", "a @ file:///x", "a;" + "(" * 3000, "a[" + "b," * 50, "-r x"
    )
    environment = table(
        {
            "python": specifier, "runner": one_of("pytest", "jest"), "import_roots": listed(one_of(".", "src", "../x"), 2, 1),
            "install": one_of("none", "editable"), "requirements": listed(requirement, 3), "network": one_of(False, True),
        },
        20,
    )  # fmt: skip
    whole_file = table(
        {
            "schema": one_of(1), "id": one_of("one", "x/y"), "language": one_of("Python"), "origin": one_of("release", "x"),
            "created_at": one_of("2025-01-01", "2025-13-01", "٢025-01-01"), "canary": text, "repo": text,
            "source": either(*sources), "pull_request": table({"title": text, "body": text}, 20),
            "environment": environment, "comment": listed(sometimes(comment, 30), 3, 1), "validation": table({"digest": text}),
        },
        25,
    )  # fmt: skip
    return toml(source, whole_file(source)).encode("utf-8", "surrogatepass")


def _dataset(source: Source) -> bytes:
    pattern = one_of(
        "*", ".", "**", "**x", "one", "[", "", "/x", "../x", "one/..", "\n", "x" * 300, "*/" * 60
    )
    maker = table(
        {
            "schema": one_of(1), "name": one_of("own", "x/y"), "title": text, "notice": text,
            "instances": listed(sometimes(pattern, 30), 3, 1),
        },
        15,
    )  # fmt: skip
    return toml(source, maker(source)).encode("utf-8", "surrogatepass")


def toml(source: Source, value: dict[str, Any]) -> str:
    """Write a table as TOML; values that TOML has not become text, and once in a while it is broken."""
    lines = [f"{_string(str(key))} = {_inline(item)}" for key, item in value.items() if item is not None]
    broken = (
        "",
        "",
        "",
        "",
        "a = [[[",
        "[validation]\n",
        "x = " + "[" * 3000 + "]" * 3000,
        "y = " + "9" * 5000,
        "z = 0000-00-00",
    )
    return "\n".join([*lines, source.pick(broken)]) + "\n"


def _inline(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return (
            str(value)
            if value == value and abs(value) != float("inf")
            else {"nan": "nan"}.get(str(value), "inf")
        )
    if isinstance(value, int):
        return str(value)
    if isinstance(value, list):
        return "[" + ", ".join(_inline(item) for item in value if item is not None) + "]"
    if isinstance(value, dict):
        items = (f"{_string(str(key))} = {_inline(item)}" for key, item in value.items() if item is not None)
        return "{" + ", ".join(items) + "}"
    return _string(str(value))


def _string(value: str) -> str:
    def escape(character: str) -> str:
        code = ord(character)
        return f"\\U{code:08X}" if code < 32 or code == 127 or character in '"\\' else character

    return '"' + "".join(map(escape, value)) + '"'


def _folder(folder: Path) -> Path:
    """A dataset of one sound instance."""
    root = folder / "dataset"
    one = root / "one"
    if not one.exists():
        (one / "base").mkdir(parents=True)
        (one / "base" / "a.py").write_text("x = 1\n")
        (one / "head").mkdir()
        (one / "head" / "a.py").write_text("x = 2\n")
        (one / "t.py").write_text("def test_it():\n    assert 0\n")
        (one / "loop").symlink_to("loop")
        (folder / "sound.toml").write_text(SOUND)
    (one / "instance.toml").write_text(SOUND)
    (root / "dataset.toml").unlink(missing_ok=True)
    return root


SOUND = """\
schema = 1
id = "one"
language = "Python"
origin = "release"
[source]
kind = "tree"
base = "base"
head = "head"
[pull_request]
title = "t"
[[comment]]
id = "c"
level = "general"
kind = "structural"
category = "Design"
body = "b"
test = "t.py"
"""


def _load_instance(raw: bytes, folder: Path) -> None:
    root = _folder(folder)
    (root / "one" / "instance.toml").write_bytes(raw)
    with refused(UsageError):
        found = load(root / "one")
        assert [instance.id for instance in found.instances]
        assert found == load(root / "one")


def _load_dataset(raw: bytes, folder: Path) -> None:
    root = _folder(folder)
    (root / "dataset.toml").write_bytes(raw)
    with refused(UsageError):
        assert load(root).digest == load(root).digest


def _name(source: Source) -> str:
    parts = (
        "releases",
        "native:",
        "native",
        ":",
        "~",
        "~nobody-here",
        "/",
        "..",
        "x" * 300,
        "\0",
        "a",
        ".",
        "*",
        "instance.toml",
    )
    return "".join(source.pick((*parts, *NASTY)) for _ in range(source.between(1, 3)))


def _open(spec: str, _folder: Path) -> None:
    if "releases" in spec and len(spec) == 8:
        return
    with refused(UsageError):
        open_dataset(spec)


def _validation(source: Source) -> Any:
    body = source.pick(
        ['"b"', '"""\nx\n[validation]\ny\n"""', "'''\n[validation]\n[x]\n'''", '"[validation]"']
    )
    after = source.pick(
        ["", "[validation]\nrepeats = 3\n", '[validation]\nx = """\n[y]\n"""\n', "[validation] # x\n"]
    )
    names = _exceptions(source)
    return SOUND.replace('"b"', body) + after, names


def _exceptions(source: Source) -> list[str]:
    """Names of exceptions, as a language may allow them."""
    return [
        source.pick(["AssertionError", "É", "𝒳", "\x7f", '"', "\\", "", "a\nb", "\ud800"])
        for _ in range(source.below(3))
    ]


def _write(value: Any, folder: Path) -> None:
    """What a validation writes leaves the rest of the file as it was, in meaning, and can be read."""
    content, exceptions = value
    root = _folder(folder)
    file = root / "one" / "instance.toml"
    file.write_text(content)
    (instance,) = load(root / "one").instances
    before = tomllib.loads(content)
    for name in exceptions:
        file.write_text(content)
        write_expected(instance, {instance.checks[0].id: name})
        expected = tomllib.loads(content)
        expected["comment"][0]["expect"] = clean(name)
        assert tomllib.loads(file.read_text("utf-8")) == expected
    file.write_text(content)
    for _ in range(2):
        write_validation(instance, 3, {"name": "docker"})
        after = tomllib.loads(file.read_text("utf-8"))
        assert after.pop("validation")["repeats"] == 3
        assert after == {key: item for key, item in before.items() if key != "validation"}
    assert load(root / "one").instances[0].digest == instance.digest


def _python(source: Source) -> bytes:
    parts = (
        "def test_it():\n",
        "    assert 0\n",
        "class Test:\n",
        "import os\n",
        "from . import x\n",
        "(" * 150,
        "x = 1\n",
        "\0",
        "[" * 90,
    )
    nasty = (
        "-" * 9000,
        "1" + "+1" * 4000,
        "a" + ".b" * 3000,
        "'''",
        "\t",
        "é = 1\n",
        "\ufeff",
        "# coding: rot13\n",
    )
    return "".join(source.pick(parts + nasty) for _ in range(source.below(8))).encode()


def _static(raw: bytes, folder: Path) -> None:
    """A dataset whose hidden test is no Python is refused when it is loaded, not when it is run."""
    root = _folder(folder)
    test = root / "one" / "t.py"
    test.write_bytes(raw)
    try:
        with refused(UsageError):
            (instance,) = load(root / "one").instances
            source = instance.checks[0].test
            needs_tree_on_path(source)
            imported_tops(source)
            test_names(source)
    finally:
        test.write_text("def test_it():\n    assert 0\n")
