"""Whether an instance measures what it says: its hidden tests fail at head and pass at fixed, every time."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ..core.errors import StageError
from ..core.records import to_row
from ..core.status import Status
from ..scoring.tests.hidden_tests import HiddenTests
from ..text.printable import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from ..core.model import Check, Instance, Tree
    from ..core.runner import Observation
    from ..evaluation.evaluation import Evaluation


@dataclass(frozen=True)
class Validation:
    """What was found of one check. ``problems`` is empty if it holds; ``flaky`` if its runs disagreed.

    ``lines`` are for people: what failed on each side, with the line of the test. ``unconfirmed``: all is
    well, but nobody has said yet that ``exception`` is the one to expect.

    ``head`` and ``fixed`` say what each run showed, e.g. ``failed (AssertionError)``. ``modules_from_tree``
    is the least number of modules that a run at fixed imported from the tree, ``executed_from_tree`` that of
    the tree's files which it, or a program that it started, executed; both are 0 if it reads the tree.
    """

    instance: str
    check: str
    head: tuple[str, ...] = ()
    fixed: tuple[str, ...] = ()
    exception: str = ""
    modules_from_tree: int = 0
    executed_from_tree: int = 0
    seconds: float = 0.0
    flaky: bool = False
    problems: tuple[str, ...] = ()
    #: Network, engine or disk failed: nothing is known about the check.
    unknown: bool = False
    unconfirmed: bool = False
    lines: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        """Whether the check may be used."""
        return not self.problems

    def to_json(self) -> dict[str, Any]:
        """Plain JSON, as in the report of ``crbench validate --json``."""
        return {**to_row(self), "holds": self.holds}


def validate(
    evaluation: Evaluation,
    *,
    fixed: Callable[[], Tree],
    capture: Callable[[Tree, Path], bytes],
    needs_tree: Callable[[str], bool],
    repeats: int,
    accept: bool,
    before_each: Callable[[], None],
) -> Iterator[Validation]:
    """Validate every check of one instance that has a hidden test.

    Args:
        evaluation: the instance, with what it needs.
        fixed: fetches the fixed tree.
        capture: makes the patch of an edited tree, for the no-op revision.
        needs_tree: whether a test's source imports anything that the tree could provide.
        repeats: runs of each test at head and at fixed.
        accept: whether the exception at head is taken as the expected one where the instance names none.
        before_each: called before every run; what it raises ends the validation.
    """
    instance, tests = evaluation.instance, HiddenTests(evaluation)
    checks = [check for check in instance.checks if check.test]
    try:
        head, after = evaluation.trees.head, fixed()
        noop = capture(head, head.path)
        whole = () if noop == b"" else (f"a revision that changes nothing has {len(noop)} bytes of patch",)
        if evaluation.trees.base.digest == head.digest:
            whole = (*whole, "base and head are the same tree: correct [source]")
    except StageError as error:
        for check in checks:
            yield _failed(instance, check, error)
        return
    for check in checks:
        try:
            found: list[Observation] = []
            for tree in [head] * repeats + [after] * repeats:
                before_each()
                found.append(tests.observe(check, tree))
        except StageError as error:
            yield _failed(instance, check, error)
            continue
        problems = (*whole, *_misplaced(evaluation, check))
        judged = _judge(tests, check, found[:repeats], found[repeats:], needs_tree(check.test), problems)
        yield _expected(check, judged, accept=accept)


#: What a mistake in a test raises, or an interpreter that is too new for it, more often than a concern.
_OWN_MISTAKES = frozenset(
    {
        "ImportError",
        "IndentationError",
        "ModuleNotFoundError",
        "NameError",
        "SyntaxError",
        "TabError",
        "UnboundLocalError",
    }
)


def _expected(check: Check, found: Validation, *, accept: bool) -> Validation:
    """Compare the exception at head with the one that the instance expects, or ask for it."""
    seen = found.exception
    if not found.holds or seen == check.expect:
        return found
    if check.expect:
        return replace(
            found,
            problems=(
                f"at head it fails with {seen}, but the instance expects {check.expect}: it fails for "
                "another reason than when that was written. If this is the concern, correct `expect`",
            ),
        )
    if seen in _OWN_MISTAKES:
        said = (
            f"at head it fails with {seen}, as a test does that is wrong or too old for its interpreter. "
            f'If the comment is about that, write expect = "{seen}" into its [[comment]]'
        )
    elif accept:
        return found
    else:
        said = f"is {seen} at this line what the comment is about? Then --accept writes it down as expected"
    return replace(found, problems=(said,), unconfirmed=True)


def _failed(instance: Instance, check: Check, error: StageError) -> Validation:
    outside = error.status is Status.INFRA_ERROR
    return Validation(instance.id, check.id, problems=(printable(str(error)),), unknown=outside)


def _misplaced(evaluation: Evaluation, check: Check) -> Iterator[str]:
    """Tell if a comment names a file or lines that its side of the pull request does not have."""
    comment = check.comment
    if comment.path is None:
        return
    side = evaluation.trees.head if comment.side == "right" else evaluation.trees.base
    file = side.path / comment.path
    where = "head" if comment.side == "right" else "base"
    if not file.is_file():
        yield f"the comment is about {comment.path}, which {where} does not have"
        return
    if comment.lines is not None:
        count = len(file.read_bytes().splitlines())
        if comment.lines[1] > count:
            yield f"the comment names line {comment.lines[1]} of {comment.path}, which has {count} at {where}"
            return
    if evaluation.diff is not None and not evaluation.diff.shows(comment.path, comment.side, comment.lines):
        shown = f"{_lines(comment.lines)} of {comment.path}" if comment.lines else comment.path
        yield f"the comment is about {shown}, which the diff of the pull request does not show"


def _lines(lines: tuple[int, int]) -> str:
    first, last = lines
    return f"line {first}" if first == last else f"lines {first}-{last}"


def _judge(
    tests: HiddenTests,
    check: Check,
    head: list[Observation],
    fixed: list[Observation],
    needs_tree: bool,
    problems: tuple[str, ...],
) -> Validation:
    found = [*problems]
    flaky = len({_shown(o) for o in head}) > 1 or len({_shown(o) for o in fixed}) > 1
    if flaky:
        found.append(f"flaky: at head {_counted(head)}; at fixed {_counted(fixed)}")
    for where, runs, wanted in (("head", head, "failed"), ("fixed", fixed, "passed")):
        wrong = [o for o in runs if not (o.proper and o.outcome == wanted)]
        if wrong and not flaky:
            found.append(f"at {where} it must have {wanted} in its call phase, but {_explain(wrong[0])}")
    tops = set(tests.tops)
    modules, executed = min(o.modules for o in fixed), min(o.executed for o in fixed)
    if (
        needs_tree
        and tops
        and not modules
        and not executed
        and not flaky
        and all(o.outcome == "passed" for o in fixed)
    ):
        found.append("nothing of the tree was imported or run, though the test could do so")
    return Validation(
        instance=tests.evaluation.instance.id,
        check=check.id,
        head=tuple(_shown(o) for o in head),
        fixed=tuple(_shown(o) for o in fixed),
        exception=head[0].exception,
        modules_from_tree=modules,
        executed_from_tree=executed,
        seconds=round(sum(o.duration for o in [*head, *fixed]) / (len(head) + len(fixed)), 3),
        flaky=flaky,
        problems=tuple(found),
        lines=tuple(_failing(check, "head", head) + _failing(check, "fixed", fixed)),
    )


def _failing(check: Check, where: str, runs: list[Observation]) -> list[str]:
    """Say which line of the test failed on a side, and with what message; nothing if it passed there."""
    observed = next((o for o in runs if o.exception), None)
    if observed is None:
        return []
    source = check.test.splitlines()
    said = printable(observed.message, 160)
    if not 0 < observed.line <= len(source):
        return [f"{where}: {said}"]
    return [f"{where}, line {observed.line}: {printable(source[observed.line - 1].strip(), 120)}  # {said}"]


def _shown(observed: Observation) -> str:
    if observed.ending != "completed":
        return observed.ending
    if observed.foreign:
        return "foreign module"
    if observed.canaries != "behaved":
        return f"canaries {observed.canaries}"
    return f"{observed.outcome} ({observed.exception})" if observed.exception else observed.outcome


def _counted(runs: list[Observation]) -> str:
    return ", ".join(f"{n}x {what}" for what, n in Counter(_shown(o) for o in runs).items())


def _explain(observed: Observation) -> str:
    if observed.foreign:
        name, file = min(observed.foreign.items())
        return f"module {name} came from {file}, not from the tree"
    detail = printable(observed.message, 160)
    return f"{_shown(observed)}: {detail}" if detail else _shown(observed)
