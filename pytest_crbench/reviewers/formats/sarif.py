"""SARIF 2.1.0 (OASIS): one comment per result, at the result's first location."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ...text.printable import printable
from .base import PATH_LIMIT, Parsed, Remark, Unreadable
from .draft import BODY_LIMIT, draft
from .edits import as_lines, edit_of, lines_of
from .jsontext import empty_in_prose, whole
from .paths import OUTSIDE, from_uri, repository_path
from .rdjson import placed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...core.model import ReviewComment
    from .base import ParseContext
    from .edits import Lines, Unit

_PLACEHOLDER = re.compile(r"\{\{|\}\}|\{(\d{1,3})\}")
#: Kinds of result that are no findings (SARIF 3.27.9).
_NO_FINDING = frozenset({"pass", "notApplicable", "informational"})
_MAX_BASES = 20
#: A URI with a scheme other than "file".
_REMOTE = re.compile(r"(?!file:)[A-Za-z][A-Za-z0-9+.-]+:")


def parse(raw: bytes, context: ParseContext) -> Parsed:
    """Read a SARIF log. No findings are a run whose ``results`` is an empty list.

    Suppressed results, passes, and results absent from this version are skipped, and counted. A fix becomes
    a suggestion where replacing whole lines around the result says exactly the same.

    Raises:
        Unreadable: if it is no SARIF, or a run says nothing of its results (the tool did not get to them).
    """
    document = whole(raw, "sarif")
    log = document.value
    if not isinstance(log, dict) or not isinstance(log.get("runs"), list):
        raise Unreadable('sarif: an object with a list "runs" is expected')
    if not log["runs"]:
        raise Unreadable("sarif: there is no run, so nothing says that the tool looked at anything")
    remarks = list(document.remarks)
    if log.get("version") != "2.1.0":
        raise Unreadable(
            f"sarif: 'version' is {printable(str(log.get('version')), 20)!r}; only 2.1.0 is read: earlier "
            "versions keep message and place elsewhere. Let the tool write 2.1.0, or convert the file with "
            "`sarif transform` of Sarif.Multitool."
        )
    comments: list[ReviewComment] = []
    skipped = 0
    for number, run in enumerate(log["runs"]):
        found, passed_over, noted = _run(run, number, context)
        comments += found
        skipped += passed_over
        remarks += noted
    if document.prose and not comments and not all(map(_completed, log["runs"])):
        raise empty_in_prose("sarif", '"executionSuccessful": true in the invocation of each run')
    if skipped:
        said = f"{skipped} results that are suppressed or no findings were skipped"
        remarks.append(Remark(said, "skipped", skipped))
    return Parsed(tuple(comments), tuple(remarks))


def _run(raw: Any, number: int, context: ParseContext) -> tuple[list[ReviewComment], int, list[Remark]]:
    results = raw.get("results") if isinstance(raw, dict) else None
    failed = any(_dict(i).get("executionSuccessful") is False for i in _list(_dict(raw).get("invocations")))
    if isinstance(raw, dict) and results is None and not failed:
        raise Unreadable(
            f"sarif: run {number} has no 'results': no results were computed (SARIF 3.14.23), which is not a "
            'clean review. A clean run has "results": []'
        )
    if not isinstance(results, list) or (failed and not results):
        raise Unreadable(
            f"sarif: run {number} has no results because the tool did not finish; no result is not "
            "a clean review"
        )
    said = _error_of(raw)
    if not results and said is not None:
        raise Unreadable(
            f"sarif: run {number} has no results, and the tool reports an error ({printable(said, 200)}): "
            "this is no clean review"
        )
    run = _Run(raw, context)
    comments = []
    skipped = 0
    for index, result in enumerate(results):
        if not isinstance(result, dict):
            raise Unreadable(f"sarif: result {index} of run {number} is no object")
        if _is_no_finding(result):
            skipped += 1
        else:
            comments.append(run.comment(result))
    noted = [Remark("sarif: the tool says that it did not finish", "not-completed")] if failed else []
    if said is not None:
        noted.append(Remark(f"sarif: the tool reports an error ({printable(said, 200)})", "tool-error"))
    return comments, skipped, noted


def _completed(run: Mapping[str, Any]) -> bool:
    invocations = _list(run.get("invocations"))
    return bool(invocations) and all(_dict(i).get("executionSuccessful") is True for i in invocations)


def _error_of(run: Mapping[str, Any]) -> str | None:
    """Return the first notification of level "error" of a run (SARIF 3.58.6); None if there is none."""
    for invocation in _list(run.get("invocations")):
        for kind in ("toolConfigurationNotifications", "toolExecutionNotifications"):
            for notification in map(_dict, _list(_dict(invocation).get(kind))):
                if notification.get("level") == "error":
                    return str(_dict(notification.get("message")).get("text"))
    return None


def _is_no_finding(result: Mapping[str, Any]) -> bool:
    kind = result.get("kind")
    if (isinstance(kind, str) and kind in _NO_FINDING) or result.get("baselineState") == "absent":
        return True
    suppressions = [_dict(s).get("status", "accepted") for s in _list(result.get("suppressions"))]
    # One under review or rejected leaves the result standing (SARIF 3.27.23).
    return bool(suppressions) and all(status == "accepted" for status in suppressions)


@dataclass(frozen=True)
class _Run:
    """One run: its rules, base URIs and artifacts, for reading its results."""

    run: Mapping[str, Any]
    context: ParseContext
    #: Rules by id, by the identity of their list, which the run keeps alive.
    indexes: dict[int, dict[str, Any]] = field(default_factory=dict)

    def comment(self, result: Mapping[str, Any]) -> ReviewComment:
        rule = self._rule(result)
        places = [_dict(_dict(p).get("physicalLocation")) for p in _list(result.get("locations"))]
        place = places[0] if places else {}
        raw_path = self._path(_dict(place.get("artifactLocation")))
        path, _ = repository_path(raw_path, self.context)
        head = self.context.head.lines(path) if path else None
        start, end = lines_of(_dict(place.get("region")), head)
        body = self._message(_dict(result.get("message")), rule)
        for other in places[1:]:
            where = from_uri(str(_dict(other.get("artifactLocation")).get("uri", "?")))
            line = _dict(other.get("region")).get("startLine")
            body += f"\n\nAlso at {printable(where)}" + (f":{line}" if isinstance(line, int) else "")
        comment = draft(
            self.context,
            body=body,
            path=raw_path,
            start=start,
            end=end,
            severity=result.get("level") or _dict(rule.get("defaultConfiguration")).get("level") or "warning",
            rule=result.get("ruleId") or rule.get("id"),
        )
        return self._fixed(comment, _list(result.get("fixes")), head)

    def _fixed(self, comment: ReviewComment, fixes: list[Any], head: Lines | None) -> ReviewComment:
        """Add the first fix; several are alternatives (SARIF 3.27.30)."""
        if not fixes:
            return comment
        changes = _list(_dict(fixes[0]).get("artifactChanges"))
        found = None
        if len(changes) == 1 and comment.lines and comment.path and head and OUTSIDE not in comment.flags:
            change = _dict(changes[0])
            path, _ = repository_path(self._path(_dict(change.get("artifactLocation"))), self.context)
            edits = [edit_of(_dict(r), head, self._unit) for r in _list(change.get("replacements"))]
            known = [edit for edit in edits if edit is not None]
            if path == comment.path and len(known) == len(edits):
                found = as_lines(head, known, comment.lines)
        if len(fixes) > 1 and found is not None:
            comment = replace(comment, flags=(*comment.flags, "several-suggestions"))
        return placed(comment, found, self.context)

    @property
    def _unit(self) -> Unit:
        return "utf-16" if self.run.get("columnKind") == "utf16CodeUnits" else "characters"

    def _rule(self, result: Mapping[str, Any]) -> Mapping[str, Any]:
        reference = _dict(result.get("rule"))
        tool = _dict(self.run.get("tool"))
        component = _dict(tool.get("driver"))
        if (extension := _dict(reference.get("toolComponent")).get("index")) is not None:
            component = _dict(_at(tool.get("extensions"), extension))
        rules = component.get("rules")
        index = result.get("ruleIndex", reference.get("index"))
        if index is not None and (found := _dict(_at(rules, index))):
            return found
        wanted = result.get("ruleId") or reference.get("id")
        if not isinstance(wanted, str):
            return {}
        # An id may be hierarchical: "CA1000/1" is described by the rule "CA1000".
        known = self._by_id(_list(rules))
        return known.get(wanted) or known.get(wanted.rpartition("/")[0]) or {}

    def _by_id(self, rules: list[Any]) -> Mapping[str, Any]:
        """The rules of a component by id; of several with one id, the first."""
        if id(rules) not in self.indexes:
            found: dict[str, Any] = {}
            for rule in rules:
                if isinstance(rule, dict) and isinstance(rule.get("id"), str):
                    found.setdefault(rule["id"], rule)
            self.indexes[id(rules)] = found
        return self.indexes[id(rules)]

    def _message(self, message: Mapping[str, Any], rule: Mapping[str, Any]) -> str:
        text = message.get("text") or message.get("markdown")
        if not isinstance(text, str):
            wanted = message.get("id")
            shared = _dict(_dict(_dict(self.run.get("tool")).get("driver")).get("globalMessageStrings"))
            string: Mapping[str, Any] = {}
            if isinstance(wanted, str):
                string = _dict(_dict(rule.get("messageStrings")).get(wanted)) or _dict(shared.get(wanted))
            text = string.get("text") or _dict(rule.get("shortDescription")).get("text")
        arguments = _list(message.get("arguments"))
        if not isinstance(text, str):
            return ""
        return _filled(text, arguments) if arguments else text

    def _path(self, location: Mapping[str, Any]) -> str | None:
        if location.get("uri") is None and location.get("index") is not None:
            location = _dict(_dict(_at(self.run.get("artifacts"), location["index"])).get("location"))
        uri, base = location.get("uri"), location.get("uriBaseId")
        if not isinstance(uri, str) or not uri:
            return None
        if len(uri) > 3 * PATH_LIMIT:  # as long as that no path is, whatever of it is escaped
            return uri[: 3 * PATH_LIMIT]
        path = from_uri(uri)
        for _ in range(_MAX_BASES):
            if not isinstance(base, str) or path.startswith("/"):
                break
            known = _dict(_dict(self.run.get("originalUriBaseIds")).get(base))
            base, prefix = known.get("uriBaseId"), known.get("uri")
            if not isinstance(prefix, str) or not 0 < len(prefix) <= PATH_LIMIT:
                continue
            if base is None and _REMOTE.match(prefix):
                # Where the root is published. The artifact's own URI is relative to it, and so its path.
                return path
            joined = from_uri(prefix).rstrip("/") + "/" + path
            if base is None and prefix.startswith("file:"):
                # The root's own address is where the tool ran; elsewhere, only what is below it counts
                # (SARIF 3.14.14: whoever reads the log may put the root in another place).
                _, flags = repository_path(joined, self.context)
                return path if OUTSIDE in flags else joined
            path = joined
        return path


def _filled(text: str, arguments: list[Any]) -> str:
    """Put arguments in the place of ``{0}`` and so on, as long as the message is not longer than is kept."""
    left = BODY_LIMIT

    def value(match: re.Match[str]) -> str:
        nonlocal left
        if match[1] is None:
            return match[0][0]
        found = _at(arguments, int(match[1]))
        if not isinstance(found, str) or left < 0:
            return match[0]
        left -= len(found)
        return found[: 2 * BODY_LIMIT]

    return _PLACEHOLDER.sub(value, text[: 2 * BODY_LIMIT])


def _at(items: Any, index: Any) -> Any:
    inside = isinstance(items, list) and type(index) is int and 0 <= index < len(items)
    return items[index] if inside else None


def _dict(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
