"""Loading folders of one's own: what is read, under which name, and what every broken file is told."""

from __future__ import annotations

import textwrap

import pytest

from pytest_crbench.core.errors import UsageError
from pytest_crbench.datasets import open_dataset
from pytest_crbench.datasets.native import load
from pytest_crbench.datasets.native import notes as native_notes

COMMIT = "0123456789abcdef0123456789abcdef01234567"
GOOD = f"""
schema = 1
id = "one"
language = "Python"
origin = "pull_request"
created_at = "2026-01-31"
[source]
kind = "git"
url = "https://git.example.com/team/project.git"
base = "{COMMIT}"
head = "{COMMIT[::-1]}"
[pull_request]
title = "Add a limit"
[environment]
import_roots = ["src"]
requirements = ["attrs>=22"]
[[comment]]
id = "limit"
path = "src/a.py"
lines = [3, 5]
kind = "behavioral"
category = "Error Handling"
body = "Say so."
test = "test_limit.py"
"""


def instance(root, name="one", text=GOOD, test="def test_{}():\n    assert 0\n"):
    folder = root / name
    folder.mkdir(parents=True)
    (folder / "instance.toml").write_text(textwrap.dedent(text), encoding="utf-8")
    if test is not None:
        said = test.format(name.replace("-", "_"))
        (folder / "test_limit.py").write_text(said, encoding="utf-8")
    return folder


def problems(path) -> str:
    with pytest.raises(UsageError) as caught:
        load(path)
    return str(caught.value)


def test_a_folder_without_dataset_toml(tmp_path):
    instance(tmp_path / "mine", "b", GOOD.replace('"one"', '"b"'))
    instance(tmp_path / "mine", "a", GOOD.replace('"one"', '"a"'))
    (tmp_path / "mine" / "notes").mkdir()
    dataset = open_dataset(str(tmp_path / "mine"))
    assert (dataset.name, [i.id for i in dataset.instances]) == ("mine", ["a", "b"])
    assert dataset.notice == ""
    first = dataset.instances[0]
    assert first.dataset == "mine"
    assert first.source.url == "https://git.example.com/team/project.git"
    assert (first.source.base, first.source.head, first.source.fixed) == (COMMIT, COMMIT[::-1], None)
    assert first.environment.import_roots == ("src",)
    assert first.environment.as_of == "2026-01-31"
    (check,) = first.checks
    assert check.comment.lines == (3, 5)
    assert check.comment.level == "inline"
    assert first.facets(check)["repo"] == "a"


def test_dataset_toml_names_and_orders(tmp_path):
    for name in ("x-2", "x-1", "y"):
        instance(tmp_path / "deep", name, GOOD.replace('"one"', f'"{name}"'))
    (tmp_path / "dataset.toml").write_text(
        'schema = 1\nname = "team"\ntitle = "T"\nnotice = "N"\ninstances = ["deep/y", "deep/x-*"]\n'
    )
    dataset = load(tmp_path)
    assert (dataset.name, dataset.title, dataset.notice) == ("team", "T", "N")
    assert [i.id for i in dataset.instances] == ["y", "x-1", "x-2"]


@pytest.mark.parametrize("with_dataset", [True, False])
def test_an_instance_alone_has_the_identity_that_it_has_in_its_dataset(tmp_path, with_dataset):
    folder = instance(tmp_path / "mine")
    if with_dataset:
        (tmp_path / "mine" / "dataset.toml").write_text('schema = 1\nname = "team"\n')
    whole, alone = load(tmp_path / "mine"), load(folder)
    assert whole.instances == alone.instances
    assert whole.name == alone.name == ("team" if with_dataset else "mine")
    assert load(folder / "instance.toml") == alone


def test_native_prefix_and_a_relative_folder(tmp_path, monkeypatch):
    instance(tmp_path / "releases")
    monkeypatch.chdir(tmp_path)
    assert len(open_dataset("releases").instances) == 30
    assert len(open_dataset("./releases").instances) == 1
    assert open_dataset("native:releases") == open_dataset("./releases")
    assert open_dataset("./releases").instances[0].path == tmp_path / "releases" / "one"


def test_urls_relative_to_the_instance(tmp_path):
    instance(tmp_path, text=GOOD.replace("https://git.example.com/team/project.git", "../.."))
    assert load(tmp_path).instances[0].source.url == str(tmp_path.parent)


def test_a_tree_source(tmp_path):
    text = GOOD.replace(
        GOOD[GOOD.index("kind =") : GOOD.index("[pull_request]")],
        'kind = "tree"\nbase = "before"\nhead = "../shared"\nfixed = "after"\n',
    )
    folder = instance(tmp_path, text=text)
    for place in (folder / "before", tmp_path / "shared", folder / "after"):
        place.mkdir()
        (place / "a.py").write_text("a = 1\n")
    (tmp_path / "shared" / "a.py").write_text("a = 0\n")
    one = load(tmp_path).instances[0]
    assert (one.source.base, one.source.head) == (folder / "before", tmp_path / "shared")
    (folder / "after" / "a.py").write_text("a = 2\n")
    two = load(tmp_path).instances[0]
    assert one.digest != two.digest
    assert one.checks[0].digest == two.checks[0].digest, "the fixed tree decides no verdict"
    (folder / "before" / "a.py").write_text("a = 2\n")
    assert load(tmp_path).instances[0].checks[0].digest != two.checks[0].digest


def test_a_patch_source(tmp_path):
    text = GOOD.replace('"git"', '"git+patch"').replace(f'head = "{COMMIT[::-1]}"', 'patch = "pr.diff"')
    folder = instance(tmp_path, text=text)
    assert f"source.patch: found 'pr.diff', expected a file: there is no {folder / 'pr.diff'}" in problems(
        tmp_path
    )
    (folder / "pr.diff").write_bytes(b"one")
    one = load(tmp_path).instances[0]
    assert (one.source.patch, one.source.head) == (folder / "pr.diff", None)
    (folder / "pr.diff").write_bytes(b"two")
    assert load(tmp_path).instances[0].checks[0].digest != one.checks[0].digest


@pytest.mark.parametrize(
    ("old", "new", "check", "whole"),
    [
        ("Say so.", "Say it.", True, True),
        ("[3, 5]", "[3, 4]", True, True),
        ('["src"]', '["src", "."]', True, True),
        ("attrs>=22", "attrs>=23", True, True),
        ("2026-01-31", "2026-02-01", True, True),
        (COMMIT[::-1], COMMIT[1:] + "a", True, True),
        ("Add a limit", "Add limits", False, True),
        ("Error Handling", "Design", False, True),
        ("[[comment]]", '[[comment]]\nlevel = "inline"', False, False),
        ("[[comment]]", "[validation]\nrepeats = 3\n[[comment]]", False, False),
        ("[[comment]]", '[[comment]]\nexpect = "AssertionError"', False, False),
        ("[pull_request]", f'fixed = "{COMMIT}"\n[pull_request]', False, True),
    ],
)
def test_what_digests_cover(tmp_path, old, new, check, whole):
    assert old in GOOD
    instance(tmp_path / "a" / "d")
    instance(tmp_path / "b" / "d", text=GOOD.replace(old, new))
    one, two = (load(tmp_path / side / "d") for side in "ab")
    assert (one.instances[0].checks[0].digest != two.instances[0].checks[0].digest) is check
    assert (one.instances[0].digest != two.instances[0].digest) is whole
    assert (one.digest != two.digest) is whole


def test_digests_cover_the_test(tmp_path):
    instance(tmp_path / "a" / "d")
    instance(tmp_path / "b" / "d", test="def test_a():\n    assert 1\n")
    one, two = (load(tmp_path / side / "d").instances[0] for side in "ab")
    assert one.checks[0].digest != two.checks[0].digest
    assert one.digest != two.digest


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("schema = 1", "schema = 2", "schema: found 2, expected 1"),
        ("schema = 1", "", "schema: found nothing, expected 1, the version"),
        ('id = "one"', 'id = "é"', "id: found 'é', expected a slug"),
        ('id = "one"', 'id = "../one"', "id: found '../one', expected a slug"),
        ('"Python"', '""', "language: found '', expected the language"),
        ('"pull_request"', '"pr"', "origin: found 'pr', expected 'release' or 'pull_request'"),
        ('"2026-01-31"', "2026-01-31", "created_at: found datetime.date(2026, 1, 31), expected the day"),
        ("2026-01-31", "2026-02-30", "created_at: found '2026-02-30', expected a day that exists"),
        ('kind = "git"', 'kind = "svn"', "source.kind: found 'svn', expected one of \"pypi\""),
        ('kind = "git"', "", "source.kind: found nothing, expected one of"),
        (COMMIT[::-1], "abc", "source.head: found 'abc', expected a full commit id"),
        ("https://git", "-https://git", "source.url: found '-https://git"),
        ('title = "Add a limit"', "", "pull_request.title: found nothing, expected the title"),
        (
            'title = "Add',
            'titel = "Add',
            "pull_request.titel: found 'Add a limit', expected only the keys title",
        ),
        ('title = "Add', 'titel = "Add', "(did you mean title?)"),
        ('["src"]', '"src"', "environment.import_roots: found 'src', expected a list of folders"),
        ('["src"]', '["../x"]', "environment.import_roots[0]: found '../x', expected a folder of the tree"),
        (
            '"attrs>=22"',
            '"attrs", "not ok!"',
            "environment.requirements[1]: found 'not ok!', expected a requ",
        ),
        (
            "[environment]",
            '[environment]\npython = "three"',
            "environment.python: found 'three', expected a ver",
        ),
        (
            "[environment]",
            "[environment]\nnetwork = 1",
            "environment.network: found 1, expected true only if",
        ),
        ('"Error Handling"', '"Speed"', "comment[0].category: found 'Speed', expected 'Functional Correct"),
        (
            '"behavioral"',
            '"Behavioral"',
            "comment[0].kind: found 'Behavioral', expected 'behavioral' or 'str",
        ),
        ("[3, 5]", "[5, 3]", "comment[0].lines: found [5, 3], expected [first, last] with first not after"),
        ("[3, 5]", "[3]", "comment[0].lines: found [3], expected [first, last]"),
        ("[3, 5]", "[0, 1]", "comment[0].lines[0]: found 0, expected [first, last]: two line numbers"),
        ("lines = [3, 5]", "", 'comment[0].lines: found nothing, expected a value, as level is "inline"'),
        (
            "[[comment]]",
            '[[comment]]\nlevel = "general"',
            "comment[0].path: found 'src/a.py', expected nothing",
        ),
        ('"src/a.py"', '"/src/a.py"', "comment[0].path: found '/src/a.py', expected a file of the tree"),
        ('"src/a.py"', '"a/../../b"', "comment[0].path: found 'a/../../b', expected a file of the tree"),
        (
            "[[comment]]",
            '[[comment]]\nside = "left"\nsuggestion = "x"',
            "comment[0].suggestion: found 'x', exp",
        ),
        (
            "test_limit.py",
            "test_other.py",
            "comment[0].test: found 'test_other.py', expected a file: there is no",
        ),
        (
            "test_limit.py",
            "../test_limit.py",
            "comment[0].test: found '../test_limit.py', expected a file inside",
        ),
        ("test_limit.py", "/etc/passwd", "comment[0].test: found '/etc/passwd', expected a test file"),
        ("test_limit.py", "instance.toml", "comment[0].test: found 'instance.toml', expected a Python file"),
        (
            "schema = 1",
            "schema = ",
            "instance.toml: found Invalid value (at line 2, column 10), expected valid TOML",
        ),
    ],
)
def test_a_broken_file_is_told_file_key_found_and_expected(tmp_path, old, new, message):
    assert old in GOOD
    folder = instance(tmp_path, text=GOOD.replace(old, new))
    text = problems(tmp_path)
    assert message in text
    assert str(folder / "instance.toml") in text
    assert "docs/writing-an-instance.md" in text


def test_no_comment_at_all(tmp_path):
    instance(tmp_path, text=GOOD[: GOOD.index("[[comment]]")])
    assert "comment: found nothing, expected one or more [[comment]] tables" in problems(tmp_path)


def test_pypi_tables_are_checked(tmp_path):
    text = GOOD.replace(
        GOOD[GOOD.index("kind =") : GOOD.index("[pull_request]")],
        'kind = "pypi"\npackage = "a"\n'
        'base = {file = "../a-1.tar.gz", sha256 = "00"}\nhead = {file = "a.exe"}\n',
    )
    instance(tmp_path, text=text)
    told = problems(tmp_path)
    assert "source.base.file: found '../a-1.tar.gz', expected the file name of an archive" in told
    assert "source.base.sha256: found '00', expected the SHA-256" in told
    assert "source.head.file: found 'a.exe'" in told
    assert "source.head.sha256: found nothing, expected the SHA-256" in told


def test_all_problems_of_a_dataset_are_told_at_once(tmp_path):
    instance(tmp_path, "a", GOOD.replace('"behavioral"', '"b"').replace('"Python"', "1"))
    instance(tmp_path, "b", GOOD.replace('"one"', '"b"').replace("[3, 5]", "[9, 8]"), test=None)
    told = problems(tmp_path)
    assert told.startswith(f"4 problem(s) in the dataset {tmp_path}:\n")
    for key in ("comment[0].kind", "language", "comment[0].lines", "comment[0].test"):
        assert key in told


def test_ids_are_unique_whatever_their_case(tmp_path):
    instance(tmp_path, "a")
    instance(tmp_path, "b", GOOD.replace('"one"', '"ONE"'))
    assert f"id: found 'ONE', which {tmp_path / 'a'} has too, expected an id unique" in problems(tmp_path)


def test_comment_ids_are_unique(tmp_path):
    instance(tmp_path, text=GOOD + GOOD[GOOD.index("[[comment]]") :])
    assert "comment[1].id: found 'limit', expected an id that no other comment has" in problems(tmp_path)


def test_a_test_that_is_a_link_out_of_the_folder(tmp_path):
    folder = instance(tmp_path / "set", test=None)
    (tmp_path / "secret.py").write_text("secret = 1\n")
    (folder / "test_limit.py").symlink_to(tmp_path / "secret.py")
    assert "comment[0].test: found 'test_limit.py', expected a file inside" in problems(tmp_path / "set")


def test_a_test_that_is_a_link_to_itself(tmp_path):
    folder = instance(tmp_path, test=None)
    (folder / "test_limit.py").symlink_to("test_limit.py")
    assert "comment[0].test: found 'test_limit.py', expected a file: there is no" in problems(tmp_path)


@pytest.mark.parametrize(
    ("content", "message"), [(b"\xff\xfe", "that is UTF-8 text"), (b" \n", "that is not empty")]
)
def test_a_test_that_holds_nothing_to_run(tmp_path, content, message):
    folder = instance(tmp_path)
    (folder / "test_limit.py").write_bytes(content)
    assert message in problems(tmp_path)


def test_files_that_are_not_utf_8(tmp_path):
    folder = instance(tmp_path)
    (folder / "instance.toml").write_bytes(b'id = "\xe9"')
    assert "found a byte that is not UTF-8 at offset 6, expected UTF-8 text" in problems(tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('schema = 1\nname = "a b"', "name: found 'a b', expected a slug"),
        (
            'schema = 1\nname = "a"\ninstances = ["zz*"]',
            "instances[0]: found 'zz*', expected folders that hold",
        ),
        (
            'schema = 1\nname = "a"\ninstances = ["../x"]',
            "instances[0]: found '../x', expected a path inside",
        ),
        ('schema = 1\nname = "a"\nnotes = ""', "(did you mean notice?)"),
    ],
)
def test_a_broken_dataset_file(tmp_path, text, message):
    instance(tmp_path)
    (tmp_path / "dataset.toml").write_text(text)
    told = problems(tmp_path)
    assert message in told
    assert str(tmp_path / "dataset.toml") in told


def test_a_folder_with_nothing_in_it(tmp_path):
    with pytest.raises(UsageError, match="no instance in"):
        load(tmp_path)
    with pytest.raises(UsageError, match="is not a folder"):
        load(tmp_path / "absent")


def test_escape_sequences_do_not_reach_the_terminal(tmp_path):
    instance(tmp_path, text=GOOD.replace('"behavioral"', '"\\u001b[31mred"'))
    assert "\x1b" not in problems(tmp_path)


def test_what_is_no_pull_request_is_refused(tmp_path):
    instance(tmp_path / "same", "one", GOOD.replace(COMMIT[::-1], COMMIT))
    assert "source.head: found what source.base is, expected another state than base" in problems(
        tmp_path / "same"
    )
    instance(tmp_path / "late", "one", GOOD.replace("2026-01-31", "2999-01-31"))
    assert "created_at: found '2999-01-31', expected a day that has come" in problems(tmp_path / "late")


def test_a_change_and_test_under_two_ids_are_refused(tmp_path):
    """They would count twice; what differs in name, title and address is the same change all the same."""
    test = "def test_a():\n    assert 0\n"
    instance(tmp_path, "one", test=test)
    other = GOOD.replace('"one"', '"two"').replace("Add a limit", "Limits").replace("team/", "fork/")
    instance(tmp_path, "two", other, test)
    assert "comment[0].test: found the test of one::limit, of the same base and head" in problems(tmp_path)
    (tmp_path / "two" / "test_limit.py").write_text("def test_b():\n    assert 0\n")
    assert len(load(tmp_path).instances) == 2


MATCHED = GOOD.replace('kind = "behavioral"\n', "").replace('test = "test_limit.py"\n', "")


def test_comments_that_are_only_matched_need_no_test(tmp_path):
    instance(tmp_path, "one", MATCHED, test=None)
    instance(tmp_path, "two", MATCHED.replace('"one"', '"two"'), test=None)
    dataset = load(tmp_path)
    assert dataset.scoring == "matching"
    assert [(c.test, c.kind) for i in dataset.instances for c in i.checks] == [("", None)] * 2
    instance(tmp_path, "three", GOOD.replace('"one"', '"three"'))
    mixed = load(tmp_path)
    assert mixed.scoring == "tests"
    assert [n.where for n in native_notes(mixed) if n.name == "no-test"] == [("one::limit", "two::limit")]


def test_what_belongs_to_a_test_needs_one(tmp_path):
    instance(tmp_path, "one", GOOD.replace('kind = "behavioral"\n', ""))
    assert 'comment[0].kind: found nothing, expected "behavioral" or' in problems(tmp_path)
    instance(tmp_path / "b", "one", MATCHED + 'expect = "KeyError"\n', test=None)
    assert "comment[0].expect: found 'KeyError', expected nothing" in problems(tmp_path / "b")


def test_a_version_is_for_an_editable_installation(tmp_path):
    text = GOOD.replace("[environment]", '[environment]\nversion = "1.2.3"')
    instance(tmp_path / "a", "one", text)
    assert "environment.version: found '1.2.3', expected nothing" in problems(tmp_path / "a")
    editable = GOOD.replace("[environment]", '[environment]\ninstall = "editable"')
    plain = load(instance(tmp_path / "b", "one", editable)).instances[0]
    named = load(
        instance(tmp_path / "c", "one", text.replace("[environment]", '[environment]\ninstall = "editable"'))
    ).instances[0]
    assert named.environment.version == "1.2.3"
    assert named.checks[0].digest != plain.checks[0].digest
