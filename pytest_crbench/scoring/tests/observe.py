"""From the records of one pytest process to an `Observation`."""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING, Any

from ...core.runner import Canaries, Ending, Observation, Outcome
from ...text.printable import printable

if TYPE_CHECKING:
    from collections.abc import Sequence

Records = list[dict[str, Any]]
#: Top-level names that a tree often has and the runner has too: not a sign of a wrong import.
_COMMON = frozenset({"conftest", "setup", "tests", "test", "docs"})
#: What our recorder writes: the fields of each event, and of which type.
_FIELDS: dict[str, dict[str, type]] = {
    "collect-error": {"file": str, "message": str},
    "collected": {"tests": list},
    "called": {"test": str},
    "returned": {"test": str, "raised": str, "patched": list},
    "report": {
        **dict.fromkeys(("test", "when", "outcome", "exception", "message"), str),
        "xfail": bool,
    },
    "modules": {"files": dict, "executed": list},
    "finished": {"exitstatus": int},
}
_ENDED = {"timed-out": "timed out", "out-of-memory": "ran out of memory", "crashed": "crashed"}
#: Characters of a message that are kept.
_CLIPPED = 500


def observe(
    result: dict[str, Any],
    *,
    hidden: str,
    must_pass: tuple[str, str],
    must_fail: tuple[str, str],
    expected: frozenset[str],
    tops: Sequence[str],
    roots: Sequence[str],
    oom: bool,
) -> Observation:
    """Interpret what the supervisor wrote.

    Args:
        result: the supervisor's result: returncode, timed_out, records, forged, output, seconds,
            limits.
        hidden: file name of the hidden test.
        must_pass: file names of the canaries before and after that must pass.
        must_fail: the same, of those that must fail.
        expected: names of the tests that the hidden file defines; each needs a pass of its call phase.
        tops: top-level module names that the tree provides.
        roots: absolute import roots in the sandbox.
        oom: whether the sandbox saw a kill for memory.
    """
    records: Records = result["records"]
    malformed = _malformed(records)
    if malformed:
        records = []
    finished = any(r.get("event") == "finished" for r in records)
    ending: Ending
    if result["timed_out"]:
        ending = "timed-out"
    elif oom or ("memory" in result["limits"] and not finished):
        ending = "out-of-memory"
    elif not finished:
        ending = "crashed"
    else:
        ending = "completed"
    outcome, exception, message = _outcome(records, hidden, expected)
    loaded = _loaded(records, tops)
    inside = [f for f in loaded.values() if _below(f, roots)]
    bent = malformed or _bent(result["forged"], records, must_pass, must_fail)
    return Observation(
        outcome=outcome,
        ending=ending,
        canaries="bent" if bent else _canaries(records, must_pass, must_fail),
        bent=printable(bent),
        exception=printable(exception),
        message=printable(message, _CLIPPED),
        line=_failing_line(str(result["output"]), hidden) if exception else 0,
        modules=len(inside),
        executed=sum(len(r["executed"]) for r in records if r["event"] == "modules"),
        foreign={n: f for n, f in loaded.items() if not _below(f, roots) and n not in _COMMON} or None,
        log=str(result["output"]).encode() + _legend(hidden, must_pass, must_fail, outcome, ending),
        duration=float(result["seconds"]),
        limits=tuple(result["limits"]),
        installed=tuple(result["installed"]),
    )


def _legend(
    hidden: str, must_pass: tuple[str, str], must_fail: tuple[str, str], outcome: Outcome, ending: Ending
) -> bytes:
    """Say which file is which: pytest's last line counts the canaries too, as "2 failed"."""
    said = (
        f"\n\ncrbench: {' and '.join(must_pass)} must pass and {' and '.join(must_fail)} must fail. They are "
        "canaries, which show that the test run works; pytest counts them too.\n"
        "crbench: hidden test "
    )
    how = "" if ending == "completed" else f" (the run {_ENDED[ending]})"
    return f"{said}{hidden}: {outcome}{how}\n".encode()


def _reports(records: Records, file: str) -> Records:
    return [r for r in records if r.get("event") == "report" and _file(r.get("test")) == file]


def _malformed(records: Records) -> str:
    """Say which record is none that our recorder writes; "" if all are.

    Whoever finds the recorder's key can write any: they must not end who reads them.
    """
    for number, record in enumerate(records):
        event = record.get("event") if isinstance(record, dict) else None
        fields = _FIELDS.get(event, {}) if isinstance(event, str) else {}
        if not fields or record.keys() != {"event", *fields}:
            return f"record {number} is none that our recorder writes"
        for name, kind in fields.items():
            value = record[name]
            inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
            if not isinstance(value, kind) or not all(isinstance(one, str) for one in inner):
                return f"record {number} ({event}) is none that our recorder writes"
    return ""


def _file(test: Any) -> str:
    return posixpath.basename(str(test).split("::")[0])


def _outcome(records: Records, hidden: str, expected: frozenset[str]) -> tuple[Outcome, str, str]:
    for record in records:
        if record.get("event") == "collect-error" and _file(record.get("file")) == hidden:
            message = str(record.get("message", "")).removeprefix("E ").strip()
            return "error", message.split(":")[0], message
    reports = _reports(records, hidden)
    for when in ("setup", "teardown", "call"):
        for r in reports:
            if r["when"] == when and r["outcome"] == "failed":
                return ("failed" if when == "call" else "error"), str(r["exception"]), str(r["message"])
    for r in reports:
        if r["outcome"] == "skipped" or r["xfail"]:
            return "skipped", str(r["exception"]), str(r["message"])
    passed = {
        _name(r["test"])
        for r in reports
        if r["when"] == "call" and r["outcome"] == "passed" and not r["exception"]
    }
    torn_down = {_name(r["test"]) for r in reports if r["when"] == "teardown" and r["outcome"] == "passed"}
    collected = {
        _name(t)
        for r in records
        if r.get("event") == "collected"
        for t in r.get("tests", ())
        if _file(t) == hidden
    }
    bare = {name.split("[")[0] for name in passed}
    if passed and expected <= bare and collected <= passed and passed <= torn_down:
        return "passed", "", ""
    return "absent", "", "not every test of the file has a recorded pass of its call phase"


def _failing_line(output: str, hidden: str) -> int:
    """Find the first line of the test file in what pytest printed: for people, so printed text is enough."""
    found = re.search(rf"^(?:\S*/)?{re.escape(hidden)}:(\d{{1,7}}): ?", output, re.MULTILINE)
    return int(found[1]) if found else 0


def _name(test: Any) -> str:
    return str(test).partition("::")[2]


def _bent(forged: int, records: Records, must_pass: tuple[str, str], must_fail: tuple[str, str]) -> str:
    """Say what contradicts itself in the records; "" if nothing does."""
    if forged:
        return f"{forged} lines that our recorder did not write came through its pipe"
    for file in (*must_pass, *must_fail):
        wanted = ("passed", "", False) if file in must_pass else ("failed", "AssertionError", False)
        for r in _reports(records, file):
            seen = (r["outcome"], r["exception"], r["xfail"])
            if seen != (wanted if r["when"] == "call" else ("passed", "", False)):
                word = "pass" if file in must_pass else "fail"
                return f"a canary that must {word}: {r['when']} {r['outcome']} {r['exception']}".rstrip()
    collected = [set(r["tests"]) for r in records if r["event"] == "collected"]
    ran = {r["test"] for r in records if "test" in r}
    if len(collected) > 1 or not ran <= set().union(*collected):
        return "tests ran that were not collected, or were collected twice"
    for test in sorted(ran):
        if said := _contradiction([r for r in records if r.get("test") == test]):
            return f"{said} ({_name(test)})"
    return ""


def _contradiction(records: Records) -> str:
    """Compare the witnesses of one test: what left its function, and what pytest reported.

    A test runs once: set-up, then call (unless set-up did not pass), then tear-down; an end before that is
    no contradiction.
    """
    steps = [str(r.get("when", r["event"])) for r in records]
    whole = ["setup", "called", "returned", "call", "teardown"]
    if records and records[0].get("outcome", "passed") != "passed":
        whole = ["setup", "teardown"]
    if steps != whole[: len(steps)]:
        return f"a test ran in another order than tests run: {', '.join(steps[:12])}"
    returned = next((r for r in records if r["event"] == "returned"), {"raised": "", "patched": ()})
    if returned["patched"]:
        return f"what runs the test was patched: {', '.join(returned['patched'])}"
    odd = next((r for r in records if r.get("when") in ("setup", "teardown") and _odd(r)), None)
    if odd:
        return f"a {odd['when']} that passed with an exception"
    raised = returned["raised"]
    call = next((r for r in records if r.get("when") == "call"), None)
    if raised and call and call["outcome"] == "passed" and not call["exception"] and not call["xfail"]:
        return f"a test that raised {raised} was reported as passed"
    return ""


def _odd(report: dict[str, Any]) -> bool:
    return bool(report["outcome"] == "passed" and report["exception"] and not report["xfail"])


def _canaries(records: Records, must_pass: tuple[str, str], must_fail: tuple[str, str]) -> Canaries:
    seen = [r for f in (*must_pass, *must_fail) for r in _reports(records, f) if r["when"] == "call"]
    return "behaved" if len(seen) == 4 else "absent"


def _loaded(records: Records, tops: Sequence[str]) -> dict[str, str]:
    wanted = frozenset(tops)
    return {
        name: file
        for r in records
        if r.get("event") == "modules"
        for name, file in r.get("files", {}).items()
        if name.split(".")[0] in wanted
    }


def _below(file: str, roots: Sequence[str]) -> bool:
    return any(posixpath.normpath(file).startswith(posixpath.normpath(root) + "/") for root in roots)
