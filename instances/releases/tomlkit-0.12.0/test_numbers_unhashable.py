import tomlkit


def test_numbers_stay_hashable():
    doc = tomlkit.parse("i = 7\nf = 2.5\n")
    assert {doc["i"]: "x"}[7] == "x"
    assert doc["f"] in {2.5}
