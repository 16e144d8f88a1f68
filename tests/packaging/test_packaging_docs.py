"""What the documents say is what the code does."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pytest_crbench.core.settings import Settings
from pytest_crbench.plugin.options import ini_name, options, options_page
from pytest_crbench.run.options import FOLDED_IN, RENAMED

if TYPE_CHECKING:
    from pathlib import Path

_OPTION = re.compile(r"--crbench-([a-z][a-z-]*[a-z])")
_INI = re.compile(r"\bcrbench_([a-z_]*[a-z])\s*=")


def documents(root: Path) -> list[Path]:
    found = [*root.glob("*.md"), *root.glob("docs/*.md"), *root.glob("examples/*/*.md")]
    return [*found, *root.glob("instances/*.md"), *root.glob("examples/*/pyproject.toml")]


def test_the_table_of_options_is_current(repo_root: Path) -> None:
    """Write it anew with ``python -m pytest_crbench.plugin.options docs/options.md``."""
    page = (repo_root / "docs" / "options.md").read_text("utf-8")
    assert page == options_page()
    assert len(re.findall(r"^\| `--crbench-", page, re.MULTILINE)) == len(list(options()))


def test_every_option_is_read_and_every_setting_can_be_given() -> None:
    # A contract is looked at without a run.
    plain = {name for name, kind, *_ in options() if kind != "folded"} - {"contract"}
    assert {ini_name(name) for name in (*plain, *FOLDED_IN)} == {
        f"crbench_{field}" for field in Settings.__dataclass_fields__
    }


def test_documents_name_only_options_that_exist(repo_root: Path) -> None:
    known = {name for name, *_ in options()}
    for path in documents(repo_root):
        text = path.read_text("utf-8")
        # "--crbench-x-y" stands for any of them. What has been renamed is told of where that is the subject.
        former = {*FOLDED_IN, *RENAMED} if path.name in ("CHANGELOG.md", "options.md") else set()
        assert set(_OPTION.findall(text)) - {"x-y"} <= known | former, path
        if path.suffix == ".toml":
            assert {f"crbench_{name}" for name in _INI.findall(text)} <= {ini_name(name) for name in known}, (
                path
            )


def test_links_between_documents_lead_somewhere(repo_root: Path) -> None:
    for path in documents(repo_root):
        if path.suffix != ".md":
            continue
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", path.read_text("utf-8")):
            if "://" not in target:
                assert (path.parent / target).exists(), f"{path}: {target}"


def test_the_readme_names_every_document(repo_root: Path) -> None:
    """Nobody finds a document that no other leads to."""
    index = (repo_root / "docs" / "README.md").read_text("utf-8")
    names = {p.name for p in (repo_root / "docs").iterdir() if p.is_file() and p.name != "README.md"}
    assert {name for name in names if name not in index} == set()
    assert "docs/README.md" in (repo_root / "README.md").read_text("utf-8")


def test_each_document_is_listed_once(repo_root: Path) -> None:
    index = (repo_root / "docs" / "README.md").read_text("utf-8")
    targets = re.findall(r"\]\(([^)]+)\)", index.partition("\n## ")[2])
    assert len(targets) == len(set(targets))


def test_the_site_names_every_page(repo_root: Path) -> None:
    """``mkdocs build --strict`` refuses the rest, but is no part of every change."""
    named = re.findall(r"^ +- [^:]+: (\S+\.md)$", (repo_root / "mkdocs.yml").read_text("utf-8"), re.MULTILINE)
    assert sorted(named) == sorted(path.name for path in (repo_root / "docs").glob("*.md"))


def test_the_ten_files_of_an_evaluation_are_there(repo_root: Path) -> None:
    page = (repo_root / "docs" / "architecture.md").read_text("utf-8")
    files = re.findall(r"^\| \d+ \| `([^`]+)`", page, re.MULTILINE)
    assert len(files) == 10
    for name in [*files, *re.findall(r"`([a-z]+/[a-z/_]+(?:\.py|/))`", page)]:
        path = repo_root if name.startswith("pytest_crbench/") else repo_root / "pytest_crbench"
        assert (path / name).exists(), name


def test_tests_and_bench_need_no_private_names(repo_root: Path) -> None:
    """Of modules of the package; ruff's SLF001 holds the same for attributes."""
    private = re.compile(r"from pytest_crbench[\w.]* import (?:[^\n(]*\b|\([^)]*\b)_[a-z]\w*", re.IGNORECASE)
    set_one = re.compile(r"setattr\(\w+, ['\"]_[a-z]", re.IGNORECASE)
    for path in [*repo_root.glob("tests/**/*.py"), *repo_root.glob("bench/*.py")]:
        text = path.read_text("utf-8")
        for found in (private.search(text), set_one.search(text)):
            assert found is None, f"{path}: {found}"
