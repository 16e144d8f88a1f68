"""The published schemas are current, and say the same as the loader."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import textwrap
import tomllib

import jsonschema
import pytest

from pytest_crbench.datasets import schema


def published(repo_root, name):
    return json.loads((repo_root / "docs" / name).read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", ["instance.schema.json", "dataset.schema.json"])
def test_the_published_schema_is_current(repo_root, name):
    text = (repo_root / "docs" / name).read_text(encoding="utf-8")
    assert text == schema.rendered()[name], "run: python -m pytest_crbench.datasets.schema docs"


def test_the_command_writes_the_schemas(tmp_path):
    command = [sys.executable, "-m", "pytest_crbench.datasets.schema"]
    subprocess.run([*command, str(tmp_path)], check=True)
    assert {p.name: p.read_text(encoding="utf-8") for p in tmp_path.iterdir()} == schema.rendered()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "usage" in done.stderr


def test_all_bundled_files_are_valid(repo_root):
    instance = published(repo_root, "instance.schema.json")
    jsonschema.Draft202012Validator.check_schema(instance)
    validator = jsonschema.Draft202012Validator(instance)
    files = sorted((repo_root / "instances").glob("*/*/instance.toml"))
    assert len(files) >= 30
    for path in files:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
        assert [e.message for e in validator.iter_errors(table)] == [], path
    dataset = tomllib.loads((repo_root / "instances/releases/dataset.toml").read_text(encoding="utf-8"))
    jsonschema.validate(dataset, published(repo_root, "dataset.schema.json"))


@pytest.mark.parametrize(
    "change",
    [
        {"schema": 2},
        {"extra": 1},
        {"id": "no spaces"},
        {"source": {"kind": "svn"}},
        {"comment": []},
        {"created_at": "yesterday"},
    ],
)
def test_the_schema_refuses_what_the_loader_refuses(repo_root, change):
    path = next((repo_root / "instances/releases").glob("*/instance.toml"))
    table = tomllib.loads(path.read_text(encoding="utf-8"))
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**table, **change}, published(repo_root, "instance.schema.json"))


def test_the_examples_of_the_guide_are_valid(repo_root):
    """Every indented TOML block of the guide; its shortened ids and digests are filled up first."""
    guide = (repo_root / "docs" / "writing-an-instance.md").read_text(encoding="utf-8")
    blocks = re.findall(r"(?:^    .*\n|^\n)+", guide, re.MULTILINE)
    tables = [textwrap.dedent(b).strip() for b in blocks if "kind = " in b or "schema = 1" in b]
    filled = [re.sub(r'"[0-9a-f]*…"', '"' + "a" * 40 + '"', t) for t in tables]
    filled = [re.sub(r'sha256 = "a{40}"', f'sha256 = "{"a" * 64}"', t) for t in filled]
    parsed = [tomllib.loads(t) for t in filled]
    dataset, instance, *sources = parsed
    jsonschema.validate(dataset, published(repo_root, "dataset.schema.json"))
    assert {s["source"]["kind"] for s in (instance, *sources)} == {"git", "git+patch", "tree", "pypi"}
    for source in ({}, *sources):
        schema.InstanceFile.model_validate({**instance, **source})
        jsonschema.validate({**instance, **source}, published(repo_root, "instance.schema.json"))
