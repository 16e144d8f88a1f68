import pathspec


def test_match_file_always_returns_a_bool():
    spec = pathspec.PathSpec.from_lines("gitwildmatch", ["*.txt", "!keep.txt"])
    assert spec.match_file("a.txt") is True
    assert spec.match_file("keep.txt") is False
    assert spec.match_file("a.py") is False
