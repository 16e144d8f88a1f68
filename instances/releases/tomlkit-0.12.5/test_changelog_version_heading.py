import collections
import pathlib
import re


def test_changelog_sections_are_unique_and_complete():
    text = pathlib.Path("CHANGELOG.md").read_text(encoding="utf-8")
    counts = collections.Counter(re.findall(r"^## \[(\d[^\]]*)\]", text, flags=re.M))
    assert counts["0.12.5"] == 1
    assert [v for v, n in counts.items() if n > 1] == []
