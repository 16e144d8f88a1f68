from marshmallow.validate import URL


def test_uppercase_file_scheme_is_accepted():
    for schemes in ({"file"}, {"FILE"}):
        validator = URL(schemes=schemes)
        assert validator("file:///tmp/x") == "file:///tmp/x"
        assert validator("FILE:///tmp/x") == "FILE:///tmp/x"
