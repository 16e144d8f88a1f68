import os

import werkzeug.security as security


def test_device_names_with_any_suffix_are_refused(monkeypatch):
    monkeypatch.setattr(os, "name", "nt")
    results = {n: security.safe_join("base", n) for n in ("NUL", "nul.tar.gz", "CON .txt", "CONIN$")}
    good = security.safe_join("base", "null.txt")
    monkeypatch.undo()
    assert results == dict.fromkeys(results, None)
    assert good is not None
