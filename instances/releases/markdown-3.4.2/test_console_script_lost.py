import pathlib
import tomllib


def test_command_line_script_is_declared():
    project = tomllib.loads(pathlib.Path("pyproject.toml").read_text(encoding="utf-8"))["project"]
    scripts = dict(project.get("scripts", {}))
    scripts.update(project.get("entry-points", {}).get("console_scripts", {}))
    assert scripts.get("markdown_py", "").startswith("markdown.__main__")
