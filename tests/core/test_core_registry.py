"""Registries: parts of ours, of other packages, and what is said of a package that is broken."""

from __future__ import annotations

import importlib.metadata
import sys
from importlib.metadata import EntryPoint
from typing import TYPE_CHECKING, Any

import pytest
from support.foreign import install

from pytest_crbench.core.agent import AGENTS
from pytest_crbench.core.datasets import DATASETS
from pytest_crbench.core.errors import UsageError
from pytest_crbench.core.registry import Registry
from pytest_crbench.core.report import REPORTS
from pytest_crbench.core.reviewer import REVIEWERS
from pytest_crbench.core.runner import RUNNERS
from pytest_crbench.core.sandbox import SANDBOXES
from pytest_crbench.core.scoring import SCORINGS

if TYPE_CHECKING:
    from pathlib import Path

ALL: list[Registry[Any]] = [AGENTS, DATASETS, REPORTS, REVIEWERS, RUNNERS, SANDBOXES, SCORINGS]
each = pytest.mark.parametrize("registry", ALL, ids=[registry.group for registry in ALL])


def fresh(registry: Registry[Any]) -> Registry[Any]:
    """The same registry, which has not looked for packages yet."""
    return Registry(registry.what, registry.kind, registry.group, registry.own)


@each
def test_every_part_of_ours_can_be_loaded_without_a_look_at_packages(
    registry: Registry[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(**_asked: Any) -> Any:
        raise AssertionError("looked at the packages")

    monkeypatch.setattr(importlib.metadata, "entry_points", never)
    here = fresh(registry)
    for name in here.own:
        assert isinstance(here.get(name), registry.kind)


@each
def test_an_unknown_word_lists_the_known_ones(registry: Registry[Any]) -> None:
    with pytest.raises(UsageError) as caught:
        fresh(registry).get("nothing\x1b[31m")
    said = str(caught.value)
    assert said.startswith(f"unknown {registry.what} ")
    assert said.endswith(f"; known: {', '.join(registry.own)}")
    assert "\x1b" not in said


@each
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("import nothing_of_that_name\n", "ModuleNotFoundError: No module named 'nothing_of_that_name'"),
        ("raise SystemExit('not today')\n", "SystemExit: not today"),
        ("", "AttributeError: module 'vendor_part' has no attribute 'PART'"),
        ("PART = 1\n", "is no instance of a subclass of pytest_crbench.{kind}, but int"),
    ],
    ids=["missing", "exits", "no attribute", "another type"],
)
def test_a_broken_package_is_named_with_its_entry_point(
    registry: Registry[Any], text: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = registry.group.removeprefix("pytest_crbench.")
    install(tmp_path, monkeypatch, "vendor_part", text, (group, "part = vendor_part:PART"))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "vendor_part", raising=False)
    here = fresh(registry)
    assert here.names() == (*registry.own, "part")
    with pytest.raises(UsageError) as caught:
        here.get("part")
    assert said.format(kind=registry.kind.__name__) in str(caught.value)
    assert f"the entry point part ({registry.group}) of vendor_part 1.0" in str(caught.value)


def test_a_name_of_two_packages_is_nobodys(monkeypatch: pytest.MonkeyPatch) -> None:
    here = fresh(REPORTS)
    entries = [EntryPoint("page", f"{module}:PAGE", REPORTS.group) for module in ("one", "two")]
    monkeypatch.setattr(here, "entries", {"page": entries})
    with pytest.raises(UsageError, match=r"report 'page' is registered by .* and .*: uninstall one of them"):
        here.get("page")


def test_no_package_takes_a_name_of_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch, "vendor_part", "PART = 1\n", ("agents", "llm = vendor_part:PART"))
    monkeypatch.syspath_prepend(tmp_path)
    assert fresh(AGENTS).names() == tuple(AGENTS.own)
