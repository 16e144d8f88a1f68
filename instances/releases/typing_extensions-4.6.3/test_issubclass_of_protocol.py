import typing_extensions as te


def test_issubclass_against_the_protocol_base():
    class P(te.Protocol):
        x: int

    class Impl(P):
        pass

    assert issubclass(P, te.Protocol)
    assert issubclass(Impl, te.Protocol)
