import gc
import io

import click._termui_impl as impl


class FakeTTY(io.TextIOWrapper):
    def isatty(self):
        return True


def test_stdout_survives_when_pager_is_missing(monkeypatch):
    raw = io.BytesIO()
    out = FakeTTY(raw, encoding="utf-8")
    monkeypatch.setattr(impl, "_default_text_stdout", lambda: out)
    monkeypatch.setattr(impl, "isatty", lambda stream: True)
    monkeypatch.setenv("PAGER", "no-such-pager-program-anywhere")
    with impl.get_pager_file(color=False) as pager:
        pager.write("hello")
    del pager
    gc.collect()
    assert not raw.closed
    out.write("still open")
    out.flush()
