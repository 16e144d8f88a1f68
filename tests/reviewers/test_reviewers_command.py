"""Programs on the host: crashed, timed out, unreadable, empty and clean are five different things."""

from __future__ import annotations

import json
import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.reviewing import loaded

from pytest_crbench.core.errors import InfraError, ReviewerError, UsageError
from pytest_crbench.reviewers import host
from pytest_crbench.reviewers.load import load

COMMENT = '{"comments": [{"path": "app/core.py", "line": 6, "body": "Use is."}]}'


@pytest.fixture
def script(tmp_path: Path) -> Any:
    """Make an executable Python program and return the reviewer that runs it."""

    def make(body: str, arguments: str = "", **options: Any) -> Any:
        program = tmp_path / "tool dir" / "tool"
        program.parent.mkdir(exist_ok=True)
        program.write_text(f"#!{os.sys.executable}\nimport os, sys, json, time, subprocess\n{body}\n")  # type: ignore[attr-defined]
        program.chmod(0o755)
        return loaded(f"cmd:'{program}' {arguments}", **options)

    return make


def failed(reviewer: Any, task: Any) -> ReviewerError:
    with pytest.raises(ReviewerError) as caught:
        reviewer.review(task)
    return caught.value


def test_a_review_on_stdout(script: Any, project: Any, tmp_path: Path) -> None:
    review = script(f"print('''{COMMENT}''')").review(project.task(tmp_path / "run"))
    (comment,) = review.comments
    assert (comment.path, comment.lines, comment.body, comment.flags) == (
        "app/core.py",
        (6, 6),
        "Use is.",
        (),
    )
    assert review.reviewer == "cmd:tool"
    assert review.duration > 0
    assert (tmp_path / "run" / review.raw).read_text() == COMMENT + "\n"


def test_clean_is_said(script: Any, project: Any, tmp_path: Path) -> None:
    review = script("print('[]')").review(project.task(tmp_path / "run"))
    assert review.comments == ()


@pytest.mark.parametrize("body", ["pass", "print(' \\n')"])
def test_nothing_written_is_not_clean(body: str, script: Any, project: Any, tmp_path: Path) -> None:
    assert failed(script(body), project.task(tmp_path / "run")).reason == "empty"
    assert json.loads((tmp_path / "run/review.run.json").read_text())["returncode"] == 0


def test_an_output_file_that_was_not_written_is_empty(script: Any, project: Any, tmp_path: Path) -> None:
    reviewer = script(f"print('''{COMMENT}''')", "{out}")
    assert failed(reviewer, project.task(tmp_path / "run")).reason == "empty"


def test_prose_is_unreadable_and_kept(script: Any, project: Any, tmp_path: Path) -> None:
    error = failed(script("print('No issues found.')"), project.task(tmp_path / "run"))
    assert error.reason == "unreadable"
    assert (tmp_path / "run/review.stdout").read_text() == "No issues found.\n"


def test_a_crash_counts_though_its_output_parses(script: Any, project: Any, tmp_path: Path) -> None:
    body = f"print('''{COMMENT}'''); print('quota used up', file=sys.stderr); sys.exit(3)"
    error = failed(script(body), project.task(tmp_path / "run"))
    assert error.reason == "crashed"
    assert "exit status 3" in str(error)
    assert "quota used up" in str(error)
    assert (tmp_path / "run/review.stderr").read_text() == "quota used up\n"


def test_the_end_of_a_traceback_is_told(script: Any, project: Any, tmp_path: Path) -> None:
    body = "def f(n):\n    if not n: raise RuntimeError('no quota left')\n    f(n - 1)\nf(40)"
    error = failed(script(body), project.task(tmp_path / "run"))
    assert "RuntimeError: no quota left. Fine is 0" in str(error)
    assert "Traceback" not in str(error)
    assert "^" not in str(error)


def test_a_signal_is_a_crash(script: Any, project: Any, tmp_path: Path) -> None:
    body = f"print('''{COMMENT}''', flush=True); os.kill(os.getpid(), 9)"
    assert failed(script(body), project.task(tmp_path / "run")).reason == "crashed"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("print('[]'); print('429 Too Many Requests', file=sys.stderr); sys.exit(75)", "429 Too Many"),
        ("print('503 from the endpoint'); sys.exit(75)", "stdout: 503 from the endpoint"),
        (
            """print('{"comments": [], "outside_failure": "401 from the model"}')""",
            "401 from the model",
        ),
        ("""print('{"outside_failure": "401 from the model"}')""", "401 from the model"),
    ],
)
@pytest.mark.parametrize("format", ["native", "auto"])
def test_an_outside_failure_is_nobodys_score(
    body: str, said: str, format: str, script: Any, project: Any, tmp_path: Path
) -> None:
    with pytest.raises(InfraError) as caught:
        script(body, format=format).review(project.task(tmp_path / "run"))
    assert caught.value.reason == "reviewer-outside"
    assert said in str(caught.value)


def test_an_outside_failure_that_is_not_said_in_words(script: Any, project: Any, tmp_path: Path) -> None:
    body = """print('{"comments": [], "outside_failure": {"code": 429}}')"""
    assert failed(script(body), project.task(tmp_path / "run")).reason == "unreadable"
    quiet = """print('{"comments": [], "outside_failure": null}')"""
    assert script(quiet).review(project.task(tmp_path / "run")).comments == ()


def test_what_stood_on_stdout_where_stderr_is_empty(script: Any, project: Any, tmp_path: Path) -> None:
    error = failed(script("print('no model is set'); sys.exit(2)"), project.task(tmp_path / "run"))
    assert "exit status 2: stdout: no model is set." in str(error)
    assert "review.stdout" in str(error)
    assert "nothing on stderr or stdout" in str(failed(script("sys.exit(2)"), project.task(tmp_path / "run")))


LINTED = {
    "sarif": '{"version": "2.1.0", "runs": [{"tool": {"driver": {"name": "x"}}, "results": []}]}',
    "checkstyle": "<checkstyle></checkstyle>",
    "rdjson": '{"diagnostics": []}',
}


@pytest.mark.parametrize("format", LINTED)
def test_a_linter_that_exits_1(format: str, script: Any, project: Any, tmp_path: Path) -> None:
    """Many exit with 1 when they find something: the option that says so is named."""
    body = f"print('''{LINTED[format]}'''); sys.exit("
    error = failed(script(f"{body}1)", format="auto"), project.task(tmp_path / "run"))
    assert f"can be read as {format}" in str(error)
    assert "--crbench-reviewer-exit-ok=0,1" in str(error)
    error = failed(script(f"{body}2)", format="auto"), project.task(tmp_path / "run"))
    assert "exit-ok=0,1" not in str(error)


def test_the_changed_files(script: Any, project: Any, tmp_path: Path) -> None:
    """Deletions are left out; patterns look at names; within a word the list is quoted for a shell."""
    body = "print(json.dumps([{'body': json.dumps(sys.argv[1:])}]))"
    template = "{files} -- {files:*.py} 'sh {files:*.py,*.bin}'"
    (comment,) = script(body, template).review(project.task(tmp_path / "run")).comments
    python, both = ["app/core.py", "app/täst.py"], ["app/core.py", "app/täst.py", "data.bin"]
    assert json.loads(comment.body) == [*both, "--", *python, "sh app/core.py 'app/täst.py' data.bin"]


def test_a_file_that_is_called_like_an_option(script: Any, project: Any, tmp_path: Path) -> None:
    diff = b"".join(
        b"diff --git a/%s b/%s\n--- a/%s\n+++ b/%s\n@@ -1 +1 @@\n-a\n+b\n" % ((name,) * 4)
        for name in (b"--config=evil.toml", b"a b;$(touch pwned).py")
    )
    body = "print(json.dumps([{'body': json.dumps(sys.argv[1:])}]))"
    task = project.task(tmp_path / "run", diff=diff)
    (comment,) = script(body, "{files} 'sh {files}'").review(task).comments
    assert json.loads(comment.body) == [
        "./--config=evil.toml",
        "a b;$(touch pwned).py",
        "sh ./--config=evil.toml 'a b;$(touch pwned).py'",
    ]


def test_without_a_file_to_look_at_nothing_is_run(script: Any, project: Any, tmp_path: Path) -> None:
    """A linter without a file would take the whole tree, or its standard input."""
    review = script("sys.exit(9)", "{files:*.rs}").review(project.task(tmp_path / "run"))
    assert (review.comments, list(review.noted)) == ((), ["not run: no file to look at"])
    assert "was not run" in review.warnings[0]


def test_an_argument_that_is_too_long(script: Any, project: Any, tmp_path: Path) -> None:
    task = project.task(tmp_path / "run")
    request = replace(task.pull_request, body="x" * 200_000)
    error = failed(script("print('[]')", "{body}"), replace(task, pull_request=request))
    assert "Argument list too long. One argument can hold 128 KiB" in str(error)
    assert "executable" not in str(error)


def test_exit_statuses_that_mean_fine(script: Any, project: Any, tmp_path: Path) -> None:
    review = script(f"print('''{COMMENT}'''); sys.exit(1)", exit_ok=(0, 1)).review(
        project.task(tmp_path / "run")
    )
    assert len(review.comments) == 1


def test_a_time_out_kills_children_that_left_the_group(script: Any, project: Any, tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    body = f"""
for detached in (False, True):
    p = subprocess.Popen(["sleep", "300"], start_new_session=detached)
    open({str(pids)!r}, "a").write(f"{{p.pid}}\\n")
print("so far", flush=True)
time.sleep(300)
"""
    began = time.monotonic()
    error = failed(script(body, timeout=1.5), project.task(tmp_path / "run"))
    assert error.reason == "timeout"
    assert time.monotonic() - began < 20
    assert (tmp_path / "run/review.stdout").read_text() == "so far\n"
    numbers = [int(line) for line in pids.read_text().split()]
    assert len(numbers) == 2
    assert [n for n in numbers if alive(n)] == []


def test_children_left_behind_by_a_good_review_die(script: Any, project: Any, tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    body = f"""
p = subprocess.Popen(["sleep", "300"], start_new_session=True)
open({str(pids)!r}, "w").write(str(p.pid))
print('[]')
"""
    assert script(body).review(project.task(tmp_path / "run")).comments == ()
    assert not alive(int(pids.read_text()))


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_flood_is_bounded_and_unreadable(
    script: Any, project: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host, "OUTPUT_LIMIT", 10**6)
    body = "for _ in range(300): sys.stdout.write('x' * 10**5); sys.stderr.write('y' * 10**5)\nprint('[]')"
    error = failed(script(body), project.task(tmp_path / "run"))
    assert error.reason == "unreadable"
    assert "1000000 bytes" in str(error)
    assert (tmp_path / "run/review.stdout").stat().st_size < 1.2 * 10**6
    assert (tmp_path / "run/review.stderr").stat().st_size < 1.2 * 10**6


def test_much_on_stderr_does_not_spoil_a_review(
    script: Any, project: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host, "OUTPUT_LIMIT", 10**6)
    body = "for _ in range(30): sys.stderr.write('y' * 10**5)\nprint('[]')"
    assert script(body).review(project.task(tmp_path / "run")).comments == ()


@pytest.mark.parametrize(
    "body", ["os.mkdir(sys.argv[1])", "os.mkfifo(sys.argv[1])", "os.symlink('/etc/passwd', sys.argv[1])"]
)
def test_an_output_that_is_no_file(body: str, script: Any, project: Any, tmp_path: Path) -> None:
    assert failed(script(body, "{out}"), project.task(tmp_path / "run")).reason == "unreadable"


def test_what_a_program_is_given(
    script: Any, project: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOL_TOKEN", "s3cr3t-t0ken")
    monkeypatch.setenv("OTHER_TOKEN", "not for you")
    body = """
found = dict(zip("base head diff workspace title body cwd python".split(), sys.argv[1:]))
found["files"] = sorted(os.listdir("."))
found["where"] = os.getcwd()
found["diff text"] = open(found["diff"]).read()
found["log"] = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True).stdout.strip()
found["env"] = dict(os.environ)
found["backwards"] = os.environ["TOOL_TOKEN"][::-1]
open("app/core.py", "w").write("changed")
print(json.dumps({"comments": [{"body": json.dumps(found)}]}))
print("token", os.environ["TOOL_TOKEN"], file=sys.stderr)
"""
    template = "{base} {head} {diff} {workspace} {title} {body} {cwd} {python}"
    reviewer = script(body, template, environment=("TOOL_TOKEN",))
    review = reviewer.review(project.task(tmp_path / "run"))
    found = json.loads(review.comments[0].body)
    assert (found["base"], found["head"]) == (project.base, project.head)
    assert found["log"] == project.head
    assert found["where"] == found["workspace"]
    assert found["diff text"] == project.diff.decode()
    assert (found["title"], found["body"]) == ("Title; $(touch pwned)", "Body {x} 'q'")
    assert found["cwd"] == str(Path.cwd())
    assert "app" in found["files"]
    assert found["backwards"] == "nek0t-t3rc3s"
    assert found["env"]["TOOL_TOKEN"] == "[redacted]"
    assert "OTHER_TOKEN" not in found["env"]
    assert "one" not in Path(found["workspace"]).parts
    assert not Path(found["workspace"]).is_relative_to(tmp_path / "run")
    assert not Path(found["workspace"]).exists()
    assert (project.root / "app/core.py").read_text() != "changed"
    for path in (tmp_path / "run").iterdir():
        assert "s3cr3t" not in path.read_text()
    assert "token [redacted]" in (tmp_path / "run/review.stderr").read_text()


def test_a_key_in_a_comment_is_not_passed_on(
    script: Any, project: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOL_TOKEN", 'quo"ted-s3cr3t')
    body = "print(json.dumps([{'body': 'my key is ' + os.environ['TOOL_TOKEN']}]))"
    review = script(body, environment=("TOOL_TOKEN",)).review(project.task(tmp_path / "run"))
    assert review.comments[0].body == "my key is [redacted]"


def test_old_output_is_not_read_again(script: Any, project: Any, tmp_path: Path) -> None:
    task = project.task(tmp_path / "run")
    script("open(sys.argv[1], 'w').write('[]')", "{out}").review(task)
    assert failed(script("pass", "{out}"), task).reason == "empty"
    assert (tmp_path / "run/review.out").read_text() == ""


def test_braces_are_doubled(script: Any, project: Any, tmp_path: Path) -> None:
    reviewer = script("print(json.dumps([{'body': sys.argv[1]}]))", '\'{{"a": "{base}"}}\'')
    review = reviewer.review(project.task(tmp_path / "run"))
    assert review.comments[0].body == f'{{"a": "{project.base}"}}'


def test_read_only_leavings_are_removed(script: Any, project: Any, tmp_path: Path) -> None:
    body = """
os.makedirs("deep/er"); open("deep/er/f", "w"); os.chmod("deep/er", 0o500); os.chmod("deep", 0o500)
print(json.dumps([{"body": os.getcwd()}]))
"""
    review = script(body).review(project.task(tmp_path / "run"))
    assert not Path(review.comments[0].body).parent.exists()


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("cmd:no-such-program-here {base}", "there is no program"),
        ("cmd:ruff {bse}", "no placeholder {bse}"),
        ("cmd:ruff {base!r}", "no placeholder {base}"),
        ("cmd:ruff {", "braces"),
        ("cmd:ruff 'x", "No closing quotation"),
        ("cmd:", "nothing follows"),
        ("cmd:./not-there.sh", "there is no program"),
        ("cmd:{workspace}/tool", "can only hold"),
        ("file:reviews/all.json", "{instance}"),
        ("file:reviews/{instanc}.json", "no placeholder {instanc}"),
    ],
)
def test_bad_templates_are_found_at_once(spec: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        load(spec)
    assert said in str(caught.value)


def test_a_relative_program_is_relative_to_where_pytest_runs(
    project: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tool.sh").write_text("#!/bin/sh\necho '[]'\n")
    (tmp_path / "tool.sh").chmod(0o755)
    monkeypatch.chdir(tmp_path)
    assert load("cmd:./tool.sh").review(project.task(tmp_path / "run")).comments == ()


def test_identity_of_a_command(script: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = script("print('[]')")
    assert not plain.shareable
    versioned = script("print('[]')", version="1.2", name="mine")
    assert versioned.shareable
    assert versioned.name == "mine"
    assert plain.fingerprint != versioned.fingerprint
    assert json.loads(json.dumps(plain.fingerprint)) == plain.fingerprint
    monkeypatch.setenv("KEY", "very-secret-value")
    hidden = script("pass", "--key very-secret-value", environment=("KEY",))
    assert "very-secret-value" not in json.dumps(hidden.fingerprint)
