import pytest
from tinyreview import check


@pytest.mark.parametrize(
    ("source", "rule", "suggestion"),
    [
        ("ok = x == None\n", "none-equality", "ok = x is None\n"),
        ("if é != None: pass\n", "none-equality", "if é is not None: pass\n"),
        ("def f(a=[]): pass\n", "shared-default", None),
        ("try:\n    f()\nexcept:\n    pass\n", "bare-except", None),
        ("assert (x, 'message')\n", "assert-tuple", None),
        (
            "if isinstance(v, Sequence):\n    pass\n",
            "string-is-sequence",
            "if (isinstance(v, Sequence) and not isinstance(v, (str, bytes))):\n",
        ),
    ],
)
def test_finds(source, rule, suggestion):
    (finding,) = check("a.py", source)
    assert (finding.rule, finding.suggestion) == (rule, suggestion)


@pytest.mark.parametrize(
    "source",
    ["x is None\n", "def f(a=()): pass\n", "assert x, 'message'\n", "isinstance(v, list)\n", "not python\n"],
)
def test_is_silent(source):
    assert list(check("a.py", source)) == []
