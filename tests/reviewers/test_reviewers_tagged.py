"""Answers in tags, as models write them, and where what they quote is."""

from __future__ import annotations

import pytest

from pytest_crbench.reviewers.formats import ParseContext, Unreadable, parse
from pytest_crbench.reviewers.formats.tagged import HUNK_FIELDS, read, unfenced
from pytest_crbench.reviewers.llm.prompt import AMBIGUOUS, NOT_FOUND, locate
from pytest_crbench.text.hunks import Hunk, hunks

BLOCK = "<diff>\n+x = 1\n</diff>\n<side>right</side>\n<note>\nWrong.\n</note>\n"
WHOLE = {"diff": "+x = 1", "side": "right", "note": "Wrong."}


def blocks(text: str) -> list[dict[str, str]]:
    return [dict(block) for block in read(text, HUNK_FIELDS).blocks]


@pytest.mark.parametrize(
    "text",
    [
        BLOCK + "<end/>",
        BLOCK,
        "Here is what I found:\n\n" + BLOCK + "\nThat is all.\n<end/>\nThanks!",
        f"```xml\n{BLOCK}<end/>\n```",
        BLOCK.replace("\n+x = 1\n", "\n```diff\n+x = 1\n```\n") + "<end/>",
        BLOCK.replace("<", "< ")
        .replace(">", " >")
        .upper()
        .replace("+X = 1", "+x = 1")
        .replace("WRONG", "Wrong"),
        f"<think>Maybe <note>this</note>? <end/></think>\n{BLOCK}<end/>",
        # Templates that begin the thought in the question leave only its end to the answer.
        f"Is it <diff>\nq\n</diff><note>?</note> or\n<end/>\nNo.\n</think>\n\n{BLOCK}<end/>",
        f"I will end with `<end/>`, as asked.\n\n{BLOCK}<end/>",
        f"{BLOCK}<notesplit/><end/>",
        f"{BLOCK}<end/>{BLOCK}",
        "<notesplit/>" + BLOCK + "<end>",
    ],
)
def test_one_whole_block_however_it_is_dressed(text: str) -> None:
    answer = read(text, HUNK_FIELDS)
    assert [{k: v.lower() if k == "side" else v for k, v in b.items()} for b in answer.blocks] == [WHOLE]
    assert answer.remarks == ()


def test_several_blocks_also_where_a_separator_was_forgotten() -> None:
    second = BLOCK.replace("Wrong", "Also wrong")
    for between in ("<notesplit/>", "\n<notesplit>\n", "", "and then"):
        assert [b["note"] for b in blocks(BLOCK + between + second + "<end/>")] == ["Wrong.", "Also wrong."]


@pytest.mark.parametrize(
    "text",
    [
        "<end/>",
        " <END /> ",
        "No issues found.\n<end/>",
        "<think>hm</think><end/>",
        "<notesplit/><end/>",
        "Nothing: `<end/>`.",
        "Hm.\n</think>\n<end/>",
        f"<end/>\nElse I would have said:\n{BLOCK}",
    ],
)
def test_a_clean_answer_says_so(text: str) -> None:
    answer = read(text, HUNK_FIELDS)
    assert (answer.blocks, answer.half) == ((), 0)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "empty"),
        (" \n", "empty"),
        ("<think>I never came to an end", "empty"),
        ("The code looks good to me.", "unreadable"),
        ("[]", "unreadable"),
        ("<notesplit/>", "unreadable"),
        ("<diff>x</diff><side>right</side><note>half", "unreadable"),
        ("<diff>x</diff><side>right</side><end/>", "unreadable"),
        ("<note>no place at all</note><end/>", "unreadable"),
        ("<diff>x</diff><side>right</side><note> </note><end/>", "unreadable"),
        ("<diff>x<side>right</side><note>n</note><end/>", "unreadable"),
    ],
)
def test_what_says_neither_is_unreadable(text: str, reason: str) -> None:
    with pytest.raises(Unreadable) as caught:
        read(text, HUNK_FIELDS)
    assert caught.value.reason == reason


@pytest.mark.parametrize(
    "half",
    [
        "<diff>+y</diff><side>right</side><note>cut off he",
        "<notesplit/><diff>+y</diff><side>right</side>",
        "<notesplit/><diff>+y<side>right</side><note>n</note>",
        "<notesplit/><side>right</side><note>n</note>",
        "<notesplit/><note>",
    ],
)
def test_half_a_block_is_left_out_and_told(half: str) -> None:
    for text in (
        BLOCK + half,
        BLOCK + half + "<end/>",
        half.removeprefix("<notesplit/>") + "<notesplit/>" + BLOCK,
    ):
        answer = read(text, HUNK_FIELDS)
        assert [dict(b) for b in answer.blocks] == [WHOLE], text
        assert [r.text for r in answer.remarks] == [
            "1 block of the answer lacked a tag and were left out"
        ] or answer.half == 1


def test_a_note_may_speak_of_other_tags() -> None:
    text = BLOCK.replace("Wrong.", "Use <path> or <diff> here, a<b and c>d.")
    assert blocks(text + "<end/>")[0]["note"] == "Use <path> or <diff> here, a<b and c>d."


def test_ten_thousand_tags_take_no_time() -> None:
    for text in ("<note>" * 10_000, "<diff><note>" * 10_000, BLOCK * 3_000, "<" * 100_000, "```\n" * 50_000):
        try:
            read(text + "<end/>", HUNK_FIELDS)
        except Unreadable:
            continue
    unfenced("```\n" * 20_000)


def test_an_agents_file(context: ParseContext) -> None:
    text = (
        "<path>app/core.py</path> <side>right</side> <from>7</from> <to>8</to>\n<note>Use `is`.\n\n"
        "```suggestion\n    if x is None:\n        return None\n```</note>\n<notesplit/>\n"
        "<path>./gone.py</path><side>left</side><from>1</from><to>1</to><note>Was it not used?</note>\n"
        "<notesplit/><path>app/core.py</path><note>About the file.</note><notesplit/>"
        "<path>app/core.py</path><side>up</side><from>9</from><to>7</to><note>Turned round.</note><end/>"
    )
    parsed = parse(text.encode(), "tagged", context)
    assert [(c.path, c.lines, c.side, c.level, c.body) for c in parsed.comments] == [
        ("app/core.py", (7, 8), "right", "inline", "Use `is`."),
        ("gone.py", (1, 1), "left", "inline", "Was it not used?"),
        ("app/core.py", None, "right", "file", "About the file."),
        ("app/core.py", (7, 9), "right", "inline", "Turned round."),
    ]
    assert parsed.comments[0].suggestion == "    if x is None:\n        return None\n"
    assert set(parsed.comments[3].flags) == {"side-unknown", "range-swapped"}
    assert parse(b"<end/>", "tagged", context).comments == ()


HUNK = """\
@@ -10,7 +10,9 @@ def f():
     a = 1
-    b = 2
-    c = 3
+    b = 20
+    c  =  30
+    if a:
+        return b
     d = 4

-    e = 5
+    d = 4
     tail < 1
"""


@pytest.fixture(scope="module")
def hunk() -> Hunk:
    found, notes = hunks(b"diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n" + HUNK.encode())
    assert notes == ()
    return found[0]


@pytest.mark.parametrize(
    ("quoted", "side", "lines"),
    [
        ("    b = 20", "right", (11, 11)),
        ("+    b = 20", "right", (11, 11)),
        ("-    b = 2", "left", (11, 11)),
        ("    b = 2\n    c = 3", "left", (11, 12)),
        ("-    b = 2\n-    c = 3\n+    b = 20\n+    c  =  30", "right", (11, 12)),
        ("-    b = 2\n-    c = 3\n+    b = 20\n+    c  =  30", "left", (11, 12)),
        ("     a = 1\n-    b = 2", "left", (10, 11)),
        ("@@ -10,7 +10,9 @@ def f():\n     a = 1\n+    b = 20", "right", (10, 11)),
        ("b=20\n\nc = 30", "right", (11, 12)),
        ("if a:\n    return b", "right", (13, 14)),
        ("\tif a:\r\n\t\treturn b\r", "right", (13, 14)),
        ("return b\nd = 4\n\nd = 4", "right", (14, 17)),
        ("tail &lt; 1", "right", (18, 18)),
        ("    tail < 1", "left", (16, 16)),
    ],
)
def test_a_quotation_is_found_at_its_lines(
    hunk: Hunk, quoted: str, side: str, lines: tuple[int, int]
) -> None:
    assert locate(quoted, hunk, side) == (lines, "")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("quoted", "side", "why"),
    [
        ("    d = 4", "right", AMBIGUOUS),
        ("d=4", "right", AMBIGUOUS),
        ("    b = 20", "left", NOT_FOUND),
        ("+    b = 20", "left", NOT_FOUND),
        ("    b = 21", "right", NOT_FOUND),
        ("    a = 1\n    c = 3", "left", NOT_FOUND),
        ("b", "right", NOT_FOUND),
        ("", "right", NOT_FOUND),
        ("\n", "left", NOT_FOUND),
    ],
)
def test_what_is_not_at_one_place_has_none(hunk: Hunk, quoted: str, side: str, why: str) -> None:
    assert locate(quoted, hunk, side) == (None, why)  # type: ignore[arg-type]


@pytest.mark.parametrize("quoted", ["+x = '\ufffdzero'", "x = 'zero'", "x = '\u200bzero'"])
def test_what_the_question_cannot_show_is_found_as_it_was_shown(quoted: str) -> None:
    diff = "diff --git a/a.c b/a.c\n--- a/a.c\n+++ b/a.c\n@@ -1 +1,3 @@\n a\n+\x0c\n+x = '\u200bzero'\n"
    (one,), _ = hunks(diff.encode())
    assert locate(quoted, one, "right") == ((3, 3), "")
