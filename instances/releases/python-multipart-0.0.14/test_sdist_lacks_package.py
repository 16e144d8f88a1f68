import pathlib
import tomllib


def test_sdist_ships_exactly_what_exists():
    conf = tomllib.loads(pathlib.Path("pyproject.toml").read_text(encoding="utf-8"))
    include = conf["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
    names = {entry.strip("/") for entry in include}
    assert "multipart" in names
    assert not [n for n in names if n.startswith("_python_multipart")]
