import logging

from python_multipart.multipart import MultipartParser


def test_trailing_line_break_is_not_reported(caplog):
    body = b"--B\r\nContent-Disposition: form-data; name=a\r\n\r\n1\r\n--B--\r\n"
    parser = MultipartParser(b"B")
    with caplog.at_level(logging.WARNING):
        assert parser.write(body) == len(body)
        parser.finalize()
    assert caplog.records == []
