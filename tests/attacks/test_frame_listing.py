"""The table of attacks is current, and each defence that it names can be taken out."""

from __future__ import annotations

import ast
import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest


def load(root: Path, path: str) -> Any:
    spec = importlib.util.spec_from_file_location(Path(path).stem, root / path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def listing() -> Any:
    return load(Path(__file__).parents[2], "tests/attacks/listing.py")


@pytest.fixture(scope="module")
def mutations() -> Any:
    root = Path(__file__).parents[2]
    return load(root, "bench/defences.py").read(root / "tests" / "attacks" / "mutations")


def test_the_table_of_attacks_is_current(listing: Any, repo_root: Path) -> None:
    """Write it anew with ``python tests/attacks/listing.py --write``."""
    text = (repo_root / "docs" / "attacks.md").read_text("utf-8")
    assert text == listing.page(text, listing.attacks())


def test_no_attack_hides_another_of_its_name(listing: Any) -> None:
    names = [attack.id for attack in listing.attacks()]
    assert len(names) == len(set(names))


def test_defences_name_modules_that_exist(listing: Any, repo_root: Path) -> None:
    for attack in listing.attacks():
        for defence in attack.defences:
            for module in defence.modules:
                assert (repo_root / "pytest_crbench" / module).is_file(), f"{attack.id}: {module}"


@pytest.mark.parametrize(
    ("docstring", "said"),
    [
        ("", "no docstring"),
        ("Does harm.", "no line 'Defence"),
        ("Does harm.\n\nDefence: a wall", "expected 'Defence: NAME"),
        ("Does harm.\n\nDefence: a wall (host/digest.py)\nHolds: on Mondays", "expected docker, local"),
    ],
)
def test_an_attack_that_is_not_told_is_refused(
    listing: Any, tmp_path: Path, docstring: str, said: str
) -> None:
    source = f"def test_it():\n    {docstring!r}\n"
    (tmp_path / "test_attacks_x.py").write_text(source)
    with pytest.raises(ValueError, match=said):
        listing.attacks(tmp_path)


def test_every_defence_can_be_taken_out(listing: Any, mutations: Any, repo_root: Path) -> None:
    known = {mutation.defence for mutation in mutations}
    named = {defence.name for attack in listing.attacks() for defence in attack.defences}
    assert named - known == set(), "defences without a mutation in tests/attacks/mutations"
    assert known - named == set(), "mutations of defences that no attack names"


def test_mutations_still_fit_the_code(mutations: Any, repo_root: Path) -> None:
    for mutation in mutations:
        for edit in mutation.edits:
            source = (repo_root / edit.file).read_text("utf-8")
            assert source.count(edit.old) == 1, f"{edit.defence}: {edit.file}: {edit.old!r}"
            mutated = edit.applied(source)
            if edit.file.endswith(".py"):
                ast.parse(mutated)
        for test in mutation.tests:
            file, _, name = test.partition("::")
            functions = ast.parse((repo_root / file).read_text("utf-8")).body
            assert name.partition("[")[0] in {getattr(f, "name", "") for f in functions}, test


def test_there_are_as_many_attacks_as_the_documents_promise(listing: Any) -> None:
    assert len(listing.attacks()) >= 40
