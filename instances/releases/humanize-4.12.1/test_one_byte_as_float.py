import humanize


def test_single_byte_has_no_fraction():
    assert humanize.naturalsize(1.0) == "1 Byte"
    assert humanize.naturalsize("-1") == "-1 Byte"
    assert humanize.naturalsize(2.0) == "2 Bytes"
