import tomlkit
from tomlkit.container import Container


def count_mode_switches(monkeypatch, tables):
    calls = []
    original = Container.parsing

    def parsing(self, value):
        calls.append(value)
        return original(self, value)

    with monkeypatch.context() as patch:
        patch.setattr(Container, "parsing", parsing)
        tomlkit.parse("".join("[a.x%d]\nv = 1\n[b.y%d]\nw = 1\n" % (i, i) for i in range(tables)))
    return len(calls)


def test_parsing_interleaved_tables_scales_linearly(monkeypatch):
    small, large = (count_mode_switches(monkeypatch, n) for n in (10, 40))
    assert large <= 6 * max(small, 1), (small, large)
