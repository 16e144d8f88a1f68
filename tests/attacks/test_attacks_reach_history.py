"""A reviewer or an agent looks for the answer in git.

The naive harness gives a copy of upstream's repository with head checked out.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from support.reach import Place, Savanna, git

OBJECTS = "git cat-file --batch-all-objects --batch-check='%(objectname)' | sort"
REACHABLE = "git rev-list --objects base head | cut -d' ' -f1 | sort"


@pytest.fixture
def naive(savanna: Savanna, tmp_path: Path) -> Place:
    """A copy of the checkout, with everything that is in its ``.git``."""
    checkout = tmp_path / "checkout"
    shutil.copytree(savanna.origin.path, checkout)
    git(checkout, "remote", "add", "origin", f"https://example.org/{savanna.instance.id}.git")
    git(checkout, "checkout", "-q", savanna.origin.head)
    return Place("naive", lambda script: host_shell(script, checkout))


def host_shell(script: str, folder: Path) -> str:
    done = subprocess.run(["sh", "-c", script], cwd=folder, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def assert_nothing(place: Place, savanna: Savanna, script: str) -> str:
    """Nothing that is planted is seen, and git did work: it knows head."""
    text = place.once(f"{script}\necho; git rev-parse HEAD; git log -1 --format=%s")
    assert "Add prices" in text, text
    assert savanna.found(text) == set(), text
    return text


def test_git_log_shows_later_commits(place: Place, naive: Place, savanna: Savanna) -> None:
    """Whoever runs ``git log --all -p`` in a clone reads the fix, which upstream committed after the review.

    Defence: two commits and nothing else (workspace/repository.py)
    Holds: docker, local
    """
    script = "git log --all -p"
    assert savanna.found(naive.look(script)) >= {"fixed", "later"}
    assert_nothing(place, savanna, script)


def test_a_tag_names_the_release_that_has_the_fix(place: Place, naive: Place, savanna: Savanna) -> None:
    """A tag of a later release leads to the fix, also where the branch itself was cut back to head.

    Defence: two commits and nothing else (workspace/repository.py)
    Holds: docker, local
    """
    script = "git for-each-ref refs/tags --format='%(contents)'; git show v2:shop.py"
    assert savanna.found(naive.look(script)) >= {"fixed", "later"}
    assert_nothing(place, savanna, script)


def test_the_reflog_remembers_a_later_state(place: Place, naive: Place, savanna: Savanna) -> None:
    """The reflog of a repository that was put back to head still names the commits from before.

    Defence: two commits and nothing else (workspace/repository.py)
    Holds: docker, local
    """
    script = "git reflog --all; cat $(find .git/logs -type f 2>/dev/null) /dev/null"
    assert savanna.found(naive.look(script)) >= {"dangling", "later"}
    text = assert_nothing(place, savanna, script)
    assert "commit:" not in text


def test_notes_and_stashes_hold_the_answer(place: Place, naive: Place, savanna: Savanna) -> None:
    """Refs that are no branches (a stash, notes, a pull request's own) keep later work.

    Defence: two commits and nothing else (workspace/repository.py)
    Holds: docker, local
    """
    script = (
        "git for-each-ref --format='%(refname)'; git notes list; git log -p -g refs/stash; git log --notes"
    )
    assert savanna.found(naive.look(script)) >= {"later"}
    text = assert_nothing(place, savanna, "git for-each-ref --format='%(refname)'")
    assert {line for line in text.splitlines() if line.startswith("refs/")} == {
        "refs/heads/base",
        "refs/heads/head",
    }


def test_objects_that_nothing_refers_to_hold_the_fix(place: Place, naive: Place, savanna: Savanna) -> None:
    """All refs may be right while later objects still lie in packs or loose: ``git cat-file`` lists them.

    Defence: two commits and nothing else (workspace/repository.py)
    Holds: docker, local
    """
    in_naive = set(naive.look(OBJECTS).split())
    assert savanna.origin.fixed_blob in in_naive
    loose = "find .git/objects -type f | sed 's:.*[/.]::' | sort -u"
    stored, reachable, kinds = (
        set(part.split())
        for part in place.look(f"{OBJECTS}; echo =; {REACHABLE}; echo =; {loose}").split("=")
    )
    # Two commits, their two trees, two versions of one file: counted here, not taken from the repository.
    assert len(stored) == 6, stored
    assert stored == reachable
    assert savanna.origin.fixed_blob not in stored
    assert kinds <= {"pack", "idx", "rev", "packs"}, kinds


def test_dangling_commits_are_found_by_fsck(place: Place, naive: Place, savanna: Savanna) -> None:
    """``git fsck --lost-found`` writes out commits that were thrown away: another try at the same change.

    Defence: two commits and nothing else (workspace/repository.py)
    Holds: docker, local
    """
    shown = "for o in $(ls .git/lost-found/commit); do git show $o; done"
    script = f"git fsck --full --no-reflogs --lost-found; {shown}"
    assert "dangling" in savanna.found(naive.look(script))
    text = assert_nothing(place, savanna, script)
    assert "dangling" not in text


def test_an_alternate_leads_to_upstreams_objects(place: Place, savanna: Savanna, tmp_path: Path) -> None:
    """A clone with ``--shared`` or ``--reference`` borrows objects: its alternates name a store with the fix.

    Defence: two commits and nothing else (workspace/repository.py)
    Holds: docker, local
    """
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", "--shared", "--no-checkout", str(savanna.origin.path), str(clone))
    script = f"cat .git/objects/info/alternates; git cat-file -p {savanna.origin.fixed_blob}"
    assert "fixed" in savanna.found(host_shell(script, clone))
    text = assert_nothing(place, savanna, script)
    assert str(savanna.origin.path) not in text


def test_remotes_and_configuration_say_where_upstream_is(
    place: Place, naive: Place, savanna: Savanna
) -> None:
    """A remote's URL names the project, so that the fix can be looked up; a fetch may bring it.

    Defence: a configuration of our own (workspace/repository.py)
    Holds: docker, local
    """
    script = "git remote -v; cat .git/config .git/FETCH_HEAD .git/packed-refs; git config --list --local"
    assert savanna.instance.id in naive.look(script)
    text = place.look(script)
    for word in (savanna.instance.id, "url", "remote", str(savanna.origin.path)):
        assert word not in text


def test_ids_and_dates_tell_which_pull_request_it_is(place: Place, naive: Place, savanna: Savanna) -> None:
    """Commit ids, authors and dates of upstream lead to the pull request and its fix in a search or a memory.

    Defence: commits under a neutral name (workspace/git.py)
    Holds: docker, local
    """
    script = "git log --all --format='%H %an %ae %cn %ad'"
    upstream = naive.look(script)
    assert savanna.origin.head in upstream
    assert "t@example.com" in upstream
    text = place.look(script)
    assert savanna.origin.head not in text
    assert savanna.origin.base not in text
    people = {tuple(line.split()[1:4]) for line in text.splitlines()}
    assert people == {("Author", "author@example.org", "Author")}
