import pathlib


def test_package_is_marked_as_typed():
    assert pathlib.Path("wcwidth/py.typed").is_file()
