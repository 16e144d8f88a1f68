import jwt
import pytest

KEY = "secret-secret-secret-secret-secret"


@pytest.mark.parametrize("iss", ["acme", "", "e"])
def test_partial_issuer_is_rejected(iss):
    token = jwt.encode({"iss": iss}, KEY, algorithm="HS256")
    with pytest.raises(jwt.InvalidIssuerError):
        jwt.decode(token, KEY, algorithms=["HS256"], issuer="acme.example")
    good = jwt.encode({"iss": "acme.example"}, KEY, algorithm="HS256")
    assert jwt.decode(good, KEY, algorithms=["HS256"], issuer="acme.example")
