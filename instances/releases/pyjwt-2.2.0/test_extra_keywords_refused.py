import jwt


def test_unknown_keyword_arguments_are_tolerated():
    token = jwt.encode({"a": 1}, "secret-secret-secret-secret-secret", algorithm="HS256")
    payload = jwt.decode(token, "secret-secret-secret-secret-secret", algorithms=["HS256"], some_wrapper_option=True)
    assert payload == {"a": 1}
