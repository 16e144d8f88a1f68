"""JUnit's file, which in pytest's default family keeps to the schema of Jenkins' xUnit plugin."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from support.benchmarks import MODES, Pull, run, write_dataset

#: Of each element: its attributes (a star: required), and the elements that it may hold.
RULES = {
    "testsuites": ("name time tests failures errors", "testsuite"),
    "testsuite": (
        "name* tests* failures* errors* skipped time timestamp hostname group id package file log url "
        "version",
        "testsuite properties testcase system-out system-err",
    ),
    "properties": ("", "property"),
    "property": ("name* value*", ""),
    "testcase": (
        "name* classname time group",
        "skipped error failure rerunFailure rerunError flakyFailure flakyError system-out system-err",
    ),
    **dict.fromkeys(("skipped", "error", "failure"), ("type message", "")),
    **dict.fromkeys(("system-out", "system-err"), ("", "")),
}


def violations(element: ET.Element, parent: str = "") -> list[str]:
    """What the schema refuses, in this element and below."""
    place = f"{parent}/{element.tag}"
    attributes, children = (text.split() for text in RULES[element.tag])
    known = {name.rstrip("*") for name in attributes}
    found = [f"{place}: attribute {name}" for name in sorted(element.attrib.keys() - known)]
    found += [
        f"{place}: no {name}" for name in attributes if name[-1] == "*" and name[:-1] not in element.attrib
    ]
    if element.tag in ("testsuites", "testsuite") and not re.fullmatch(
        r"\d*(\.\d{0,3})?", element.get("time", "")
    ):
        found.append(f"{place}: time {element.get('time')}")
    for child in element:
        found += violations(child, place) if child.tag in children else [f"{place}: {child.tag}"]
    return found


@pytest.fixture
def written(folder: Path, tmp_path: Path, cache: Path, request: pytest.FixtureRequest) -> ET.Element:
    """The file of a run with a pass, a miss and an error, in a family and a mode."""
    family, mode = request.param
    pulls = [Pull("first", fixable=("price",), hard=("tax",)), Pull("lost", hard=("name",), python="<3.0")]
    data = write_dataset(tmp_path / "data", pulls)
    (folder / "test_own.py").write_text("def test_own():\n    assert False, 'mine'\n")
    asked = ("--crbench-reviewer=human", "--crbench-agent=suggestions", "--junitxml=out.xml", "test_own.py")
    done = run(folder, data, cache, *asked, *family, *MODES[mode])
    assert done.outcomes() == {"passed": 1, "missed": 1, "failed": 1, "error": 1}, done.output
    return ET.parse(folder / "out.xml").getroot()


@pytest.mark.parametrize("written", [([], "serial"), ([], "xdist")], indirect=True, ids=["serial", "xdist"])
def test_the_default_family_keeps_to_its_schema(written: ET.Element) -> None:
    assert violations(written) == []
    messages = {c.get("name"): [one.get("message") for one in c] for c in written.iter("testcase")}
    assert messages["price"] == []
    assert messages["tax"][0].startswith("missed: ")
    assert "infra_error: " in messages["name"][0]
    totals = {one.get("name"): one.get("value") for one in written.iter("property")}
    assert (totals["crbench_strict"], totals["crbench_unmeasured"]) == ("1/2", "1")
    assert totals["crbench_note"] == "small: Made by the tests of this package."


@pytest.mark.parametrize("written", [(["-o", "junit_family=xunit1"], "serial")], indirect=True)
def test_the_older_family_has_each_status(written: ET.Element) -> None:
    found = {
        case.get("name"): [one.get("value") for one in case.iter("property")]
        for case in written.iter("testcase")
    }
    assert found == {
        "price": ["passed"],
        "tax": ["missed"],
        "name": ["infra_error", "no-interpreter"],
        "test_own": [],
    }
    assert "/testsuites/testsuite/testcase: properties" in violations(written)
