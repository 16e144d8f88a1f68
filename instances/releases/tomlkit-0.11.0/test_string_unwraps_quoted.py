import tomlkit


def test_unwrapped_strings_have_no_toml_quotes():
    doc = tomlkit.parse('name = "ab\\"c"\n[t]\nitems = ["x", \'y\']\n')
    plain = doc.unwrap()
    assert plain == {"name": 'ab"c', "t": {"items": ["x", "y"]}}
    assert type(plain["name"]) is str
