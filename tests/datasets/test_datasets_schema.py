"""The published schemas are current, and say the same as the loader."""

from __future__ import annotations

import json
import subprocess
import sys
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
