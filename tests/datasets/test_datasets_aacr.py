# ruff: noqa: E501
"""AACR-Bench's files: what is read, what is refused, ids that stay, and the published data's numbers."""

from __future__ import annotations

import json
import random
import socket
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from support.aacr import BASE, HEAD, comment, pull, write

from pytest_crbench.core.errors import UsageError
from pytest_crbench.core.model import ReviewComment
from pytest_crbench.datasets import folder_of, notes_of, open_dataset
from pytest_crbench.datasets.aacr import load, read, size_of
from pytest_crbench.datasets.aacr_schema import PullRequestEntry
from pytest_crbench.datasets.problems import BrokenDatasetError

#: What is known of the published data (196 pull requests, 1,505 comments).
KNOWN = {
    "range-reversed": 1,
    "place-shared": 70,
    "side-left": 8,
    "note-repeated": 11,
    "note-in-both": 1,
    "trailing-space": 503,
    "suggestion-block": 291,
    "suggestion-cut-off": 1,
    "written-by-model": 1114,
    "no-human-comment": 18,
    "no-reference": 4,
}


def counts(path: Path) -> dict[str, int]:
    spec = f"aacr:{path}"
    return {note.name: len(note.where) for note in notes_of(spec, open_dataset(spec))}


def ids(path: Path) -> dict[tuple[str, ...], str]:
    """The id of each check by all that the file says of it."""
    return {
        (i.id, c.comment.path or "", str(c.comment.lines), c.comment.side, c.comment.body, c.category): c.id
        for i in load(path).instances
        for c in i.checks
    }


def test_an_instance_and_its_checks(tmp_path: Path) -> None:
    said = comment("Not checked.  \n", is_ai_comment=True, source_model="M", context="Repo Level")
    left = comment("Gone.", side="left", category="Performance")
    path = write(tmp_path, [pull(7, said, left)], [pull(7, comment("No."))])
    dataset = open_dataset(f"aacr:{path}")
    assert (dataset.name, dataset.scoring, dataset.path) == ("aacr", "matching", tmp_path)
    assert dataset.notice.startswith("1 of 2 reference comments were written by models. A comment")
    assert "experts" not in dataset.title
    (instance,) = dataset.instances
    assert (instance.id, instance.language, instance.origin) == ("team__project-7", "C", "pull_request")
    assert instance.repo == "team/project"
    assert "7" not in instance.title + instance.body
    source = instance.source
    assert (source.kind, source.base, source.head, source.fixed) == ("git", BASE, HEAD, None)
    assert source.url == "https://github.com/team/project.git"
    first, second = instance.checks
    assert first.comment == ReviewComment(first.id, "Not checked.", "src/a.c", (3, 5))
    assert (first.kind, first.test) == (None, "")
    assert instance.facets(first) == {
        "category": "Code Defect",
        "language": "C",
        "repo": "team/project",
        "level": "inline",
        "context": "Repo Level",
        "side": "right",
        "origin": "model",
        "size": "051-200",
    }
    assert instance.facets(second)["side"] == second.comment.side == "left"
    assert instance.facets(second)["origin"] == "human"
    assert [c.body for c in instance.rejected] == ["No."]


def test_the_positive_file_alone_is_what_it_says(tmp_path: Path) -> None:
    write(tmp_path, [pull(1)], [pull(1, comment("No."))])
    (whole,) = open_dataset(f"aacr:{tmp_path}/positive_samples.json").instances
    assert len(whole.rejected) == 1
    (tmp_path / "some.json").write_text(json.dumps([pull(1)]))
    (some,) = open_dataset(f"aacr:{tmp_path}/some.json").instances
    assert some.rejected == ()
    assert some.checks == whole.checks
    for spec in (f"aacr:{tmp_path}", f"aacr:{tmp_path}/some.json"):
        assert folder_of(spec) == tmp_path


def test_a_pull_request_without_a_reference_is_left_out_and_told(tmp_path: Path) -> None:
    path = write(tmp_path, [pull(1), pull(2, comments=[])], [pull(2), pull(3), pull(1)])
    assert [i.id for i in load(path).instances] == ["team__project-1"]
    assert counts(path)["no-reference"] == 2
    (note,) = [n for n in notes_of(f"aacr:{path}", load(path)) if n.name == "no-reference"]
    assert note.where == ("team__project-2 (0 rejected)", "team__project-3 (1 rejected)")
    with pytest.raises(UsageError, match="holds no pull request with a comment"):
        load(write(tmp_path / "none", [pull(2, comments=[])]))


def test_names_that_look_alike_have_ids_of_their_own(tmp_path: Path) -> None:
    urls = [f"https://github.com/{name}/pull/1" for name in ("a-b/c", "a/b-c", "a/b.c", "a/b_c", "a/_b-c")]
    loaded = load(write(tmp_path, [pull(githubPrUrl=url) for url in urls]))
    assert len({i.id for i in loaded.instances}) == len(urls)
    assert all(i.id.isascii() and "/" not in i.id for i in loaded.instances)


def test_a_reversed_range_is_read_in_order_and_flagged(tmp_path: Path) -> None:
    path = write(tmp_path, [pull(1, comment(from_line=9, to_line=4))])
    (check,) = load(path).instances[0].checks
    assert (check.comment.lines, check.comment.flags) == ((4, 9), ("range-swapped",))
    straight = load(write(tmp_path / "b", [pull(1, comment(from_line=4, to_line=9))]))
    assert straight.instances[0].checks[0].id == check.id


def test_equal_comments_have_ids_whatever_their_order(tmp_path: Path) -> None:
    """The last three differ only in what an id is not made of; two of them in nothing."""
    said = [comment(), comment("Other."), comment(category="Performance"), comment(), comment(from_line=4)]
    known = ids(write(tmp_path / "a", [pull(1, *said)]))
    turned = ids(write(tmp_path / "b", [pull(1, *reversed(said))]))
    assert known == turned
    checks = load(tmp_path / "a").instances[0].checks
    assert len({c.id for c in checks}) == 5
    base = checks[0].id.partition("-")[0]
    assert {c.id for c in checks if c.comment.body == "Say why." and c.comment.lines == (3, 5)} == {
        base,
        f"{base}-2",
        f"{base}-3",
    }


def test_what_digests_cover(tmp_path: Path) -> None:
    def digests(name: str, *, negatives: Any = None, **changes: Any) -> tuple[str, str, str, str]:
        dataset = load(write(tmp_path / name, [pull(1, **changes)], negatives))
        (one,) = dataset.instances
        return (one.checks[0].digest, one.digest, one.request_digest, dataset.digest)

    plain = digests("plain")
    space = digests("space", comments=[comment("Say why. \n")])
    assert space == plain
    text = digests("text", comments=[comment("Say how.")])
    assert [a == b for a, b in zip(plain, text, strict=True)] == [False, False, True, False]
    sort = digests("sort", comments=[comment(category="Performance")])
    assert [a == b for a, b in zip(plain, sort, strict=True)] == [True, False, True, False]
    head = digests("head", target_commit="3" * 40)
    assert [a == b for a, b in zip(plain, head, strict=True)] == [False] * 4
    more = digests("more", negatives=[pull(1, comment("No."))])
    assert [a == b for a, b in zip(plain, more, strict=True)] == [True, False, True, False]


@pytest.mark.parametrize(
    ("lines", "size"),
    [(0, "001-050"), (50, "001-050"), (51, "051-200"), (200, "051-200"), (500, "201-500"), (501, "501+")],
)
def test_sizes(lines: int, size: str) -> None:
    assert size_of(PullRequestEntry.model_validate(pull(change_line_count=lines))) == size


BROKEN: dict[str, tuple[Any, str]] = {
    "no list": ({"a": 1}, "positive_samples.json: found {'a': 1}, expected a list of pull requests"),
    "null": (None, "found None, expected a list of pull requests"),
    "no object": ([pull(), "x"], "[1]: found 'x', expected a pull request"),
    "a key that lacks": ([pull(source_commit=None)], "[0].source_commit: found nothing, expected a full commit"),
    "half a commit": ([pull(target_commit="12ab")], "[0].target_commit: found '12ab', expected a full commit id"),
    "another forge": (
        [pull(githubPrUrl="https://git.example.com/a/b/pull/1")],
        "[0].githubPrUrl: found 'https://git.example.com/a/b/pull/1', expected the address of a pull request",
    ),
    "a URL with more": ([pull(githubPrUrl="https://github.com/a/b/pull/1/files")], "[0].githubPrUrl: found"),
    "a URL on two lines": ([pull(githubPrUrl="https://github.com/a/b/pull/1\n")], "[0].githubPrUrl: found"),
    "no count": ([pull(change_line_count="9")], "[0].change_line_count: found '9', expected the number of"),
    "no comments": ([pull(comments=3)], "[0].comments: found 3, expected a list of comments"),
    "an empty note": ([pull(1, comment(" \n"))], "[0].comments[0].note: found ' \\n', expected the text of"),
    "line 0": ([pull(1, comment(), comment(from_line=0))], "[0].comments[1].from_line: found 0, expected a line"),
    "no line": ([pull(1, comment(to_line=None))], "[0].comments[0].to_line: found nothing, expected a line"),
    "line true": ([pull(1, comment(to_line=True))], "[0].comments[0].to_line: found True, expected a line"),
    "a line of thousands of digits": ([pull(1, comment(to_line=10**400))], "[0].comments[0].to_line: found 1000"),
    "no path": ([pull(1, comment(path=""))], "[0].comments[0].path: found '', expected a file of the tree"),
    "a path elsewhere": ([pull(1, comment(path="../a"))], "[0].comments[0].path: found '../a', expected a file"),
    "another side": ([pull(1, comment(side="Right"))], "[0].comments[0].side: found 'Right', expected 'left' or"),
    "another level": ([pull(1, comment(context="Line Level"))], "[0].comments[0].context: found 'Line Level'"),
    "another category": ([pull(1, comment(category="Bug"))], "[0].comments[0].category: found 'Bug', expected"),
    "half a character": ([pull(1, comment("\ud800"))], "[0].comments[0].note: found"),
    "twice": ([pull(1), pull(2), pull(1)], "[2].githubPrUrl: found 'https://github.com/team/project/pull/1', which"),
}  # fmt: skip


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_file_is_told_with_its_key(case: str, tmp_path: Path) -> None:
    value, message = BROKEN[case]
    with pytest.raises(BrokenDatasetError) as caught:
        load(write(tmp_path, value))
    assert message in str(caught.value)
    assert f"{tmp_path}/positive_samples.json" in str(caught.value)
    assert "docs/aacr.md tells what each key means" in str(caught.value)
    assert len(caught.value.problems) == 1


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"", "expected JSON"),
        (b"[", "expected JSON"),
        (b"\xff", "found a byte that is not UTF-8 at offset 0"),
        (b"[" * 100_000, "nested more than 200 levels deep, expected JSON"),
        (b'[{"comments": [], "comments": []}]', "an object with the key 'comments' twice, expected JSON"),
    ],
)
def test_a_file_that_is_no_json(raw: bytes, message: str, tmp_path: Path) -> None:
    write(tmp_path, [])
    (tmp_path / "positive_samples.json").write_bytes(raw)
    with pytest.raises(BrokenDatasetError, match=message):
        load(tmp_path)


def test_all_problems_of_both_files_are_told_at_once(tmp_path: Path) -> None:
    write(tmp_path, [pull(1, comment(from_line=0), comment(side="up"))], [pull(1, target_commit="x")])
    with pytest.raises(BrokenDatasetError, match=r"^3 problem\(s\)") as caught:
        load(tmp_path)
    assert [p.partition(": found")[0].rpartition("/")[2] for p in caught.value.problems] == [
        "positive_samples.json: [0].comments[0].from_line",
        "positive_samples.json: [0].comments[1].side",
        "negative_samples.json: [0].target_commit",
    ]


def test_the_two_files_must_agree(tmp_path: Path) -> None:
    write(tmp_path, [pull(1)], [pull(2), pull(1, target_commit="3" * 40)])
    with pytest.raises(
        BrokenDatasetError, match=r"negative_samples.json: \[1\].target_commit: found '3+', exp"
    ):
        load(tmp_path)


def test_paths_that_are_no_dataset(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "gone", tmp_path / ("x" * 300)):
        with pytest.raises(UsageError, match="takes the folder of AACR-Bench"):
            open_dataset(f"aacr:{path}")
    write(tmp_path, [pull(1)], [])
    with pytest.raises(UsageError, match="comments that experts rejected, which no review must find"):
        open_dataset(f"aacr:{tmp_path}/negative_samples.json")


def test_keys_of_a_later_release_are_told_not_refused(tmp_path: Path) -> None:
    path = write(tmp_path, [pull(1, comment(severity="high"), stars=3)])
    (note,) = [n for n in notes_of(f"aacr:{path}", load(path)) if n.name == "key-not-read"]
    assert note.where == ("comments.severity", "stars")


def test_notes_on_our_own_files(tmp_path: Path) -> None:
    plain = comment("A.", from_line=1, to_line=1)
    assert counts(write(tmp_path / "plain", [pull(1, plain)])) == {}
    odd = [
        comment("B. ", from_line=9, to_line=4),
        comment("C.", from_line=4, to_line=9, is_ai_comment=True),  # the same place, in order
        comment("C.", path="b.c", side="left"),
        comment("Do:\n```suggestion\nx\n```", path="c.c"),
        comment('Or:\n```suggestion\nf"```', path="f.c"),
        comment("In a ```suggestion of words", path="d.c"),
    ]
    path = write(tmp_path / "odd", [pull(1, *odd)], [pull(1, comment("B.", path="e.c"))])
    assert counts(path) == {
        "range-reversed": 1,
        "place-shared": 1,
        "side-left": 1,
        "note-repeated": 1,
        "note-in-both": 1,
        "trailing-space": 1,
        "suggestion-block": 2,
        "suggestion-cut-off": 1,
        "written-by-model": 1,
    }


def test_the_published_data(aacr_data: Path) -> None:
    dataset = open_dataset(f"aacr:{aacr_data}")
    checks = [c for i in dataset.instances for c in i.checks]
    assert (len(dataset.instances), len(checks)) == (196, 1505)
    assert counts(aacr_data) == KNOWN
    left = read(aacr_data).left_out()
    rejected = sum(len(i.rejected) for i in dataset.instances)
    assert rejected + sum(len(e.comments) for e in left) == 640
    assert len({i.id.casefold() for i in dataset.instances}) == 196
    for instance in dataset.instances:
        assert len({c.id for c in instance.checks}) == len(instance.checks)
        assert len({c.id for c in instance.rejected}) == len(instance.rejected)
    assert Counter(c.facets["context"] for c in checks) == {
        "Diff Level": 754,
        "File Level": 518,
        "Repo Level": 233,
    }
    assert Counter(c.facets["origin"] for c in checks) == {"model": 1114, "human": 391}
    assert (
        "1114 of 1505 reference comments were written by models, and all were verified by" in dataset.notice
    )
    swapped = [c.comment.lines for c in checks if c.comment.flags]
    assert swapped == [(1144, 1153)]


def test_the_published_data_shuffled(aacr_data: Path, tmp_path: Path) -> None:
    chance = random.Random(4)
    files = []
    for name in ("positive_samples.json", "negative_samples.json"):
        entries = json.loads((aacr_data / name).read_text("utf-8"))
        chance.shuffle(entries)
        for entry in entries:
            chance.shuffle(entry["comments"])
        files.append(entries)
    shuffled = write(tmp_path, *files)
    assert ids(shuffled) == ids(aacr_data)
    assert counts(shuffled) == KNOWN


def test_loading_asks_no_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("the network was asked")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    path = write(tmp_path, [pull(1)], [pull(1)])
    assert len(notes_of(f"aacr:{path}", load(path))) > 0
