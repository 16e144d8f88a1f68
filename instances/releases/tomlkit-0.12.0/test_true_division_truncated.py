import tomlkit


def test_true_division_of_integers_is_a_float():
    doc = tomlkit.parse("a = 7\n")
    result = doc["a"] / 2
    assert isinstance(result, float)
    assert result == 3.5
    assert 7 / tomlkit.item(2) == 3.5
