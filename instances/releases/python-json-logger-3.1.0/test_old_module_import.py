import importlib
import json
import logging
import warnings


def test_old_module_path_can_still_be_imported():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        old = importlib.import_module("pythonjsonlogger.jsonlogger")
    record = logging.LogRecord("n", logging.INFO, "p", 1, "hi", None, None)
    assert json.loads(old.JsonFormatter().format(record))["message"] == "hi"
