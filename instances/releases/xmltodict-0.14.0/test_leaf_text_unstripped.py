import xmltodict


def test_leaf_text_is_still_stripped_by_default():
    doc = xmltodict.parse("<r><a>\n   1  </a><b> </b></r>")
    assert doc == {"r": {"a": "1", "b": None}}
