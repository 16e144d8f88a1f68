from multipart.multipart import parse_options_header


def test_rfc2231_parameter_does_not_crash():
    ctype, options = parse_options_header("text/plain; filename*=us-ascii'en'report.txt")
    assert ctype == b"text/plain"
    assert options[b"filename"] == b"report.txt"
