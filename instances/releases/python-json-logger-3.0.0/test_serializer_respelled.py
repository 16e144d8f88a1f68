import json
import logging

from pythonjsonlogger import jsonlogger


def test_custom_serializer_keyword_is_accepted():
    calls = []

    def dumps(obj, **kwargs):
        calls.append(obj)
        return json.dumps(obj, default=str)

    fmt = jsonlogger.JsonFormatter(json_serializer=dumps)
    record = logging.LogRecord("n", logging.INFO, "p", 1, "hi", None, None)
    assert json.loads(fmt.format(record))["message"] == "hi"
    assert calls
