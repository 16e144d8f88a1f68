"""Programs under test that count themselves, and hang where a test wants it."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

#: A reviewer that comments on every file of the diff, but has nothing to say on the instance ``quiet``.
_REVIEWER = """\
instance=$(sed -n 's:^+++ b/shop/\\([a-z]\\)[0-9]*_.py$:\\1:p' "$1" | head -1)
echo "$instance $$ $PPID $TASK_SESSION" >> {log}/reviews
{hang}
sleep {seconds}
if [ "$instance" = "{quiet}" ]; then echo '{{"comments": []}}'; exit; fi
sed -n 's:^+++ b/\\(shop/[a-z0-9]*_.py\\)$:\\1:p' "$1" | (
  printf '{{"comments": ['
  comma=''
  while read path; do
    printf '%s{{"path": "%s", "lines": [2, 2], "body": "This is wrong."}}' "$comma" "$path"
    comma=', '
  done
  printf ']}}'
)
"""
#: An agent that resolves every check, in the checkout that is its working folder.
_AGENT = """\
instance=$(sed -n 's:^+++ b/shop/\\([a-z]\\)[0-9]*_.py$:\\1:p' "$1" | head -1)
echo "$instance $$ $PPID $TASK_SESSION" >> {log}/revisions
{hang}
for file in shop/*_.py; do
  name=$(basename "$file" _.py)
  sed -i "s/wrong/$name/" "$file"
done
"""
#: One child in the group of its parent, one that left it; both end only when somebody kills them.
_HANG = """\
if [ "$instance" = "{instance}" ]; then
  setsid sleep {nap} &
  sleep {nap}
fi
"""


@dataclass(frozen=True)
class Programs:
    """A counting reviewer and agent; what is counted lies in ``log``."""

    log: Path

    @property
    def options(self) -> list[str]:
        """The options that name both."""
        return [self.reviewer, self.agent]

    @property
    def reviewer(self) -> str:
        """The reviewer's option."""
        return f"--crbench-reviewer=cmd:sh {shlex.quote(str(self.log / 'reviewer.sh'))} {{diff}}"

    @property
    def agent(self) -> str:
        """The agent's option."""
        return f"--crbench-agent=cmd:sh {shlex.quote(str(self.log / 'agent.sh'))} {{diff}}"

    def reviews(self) -> list[str]:
        """First letters of the instances that were reviewed, sorted, one for each start of the reviewer."""
        return [line[0] for line in sorted(self._lines("reviews"))]

    def revisions(self) -> list[str]:
        """The same for the agent."""
        return [line[0] for line in sorted(self._lines("revisions"))]

    def session(self) -> str:
        """The token of the session that started the reviewer last."""
        return self._lines("reviews")[-1].split()[3]

    def parents(self, which: str = "reviews") -> list[int]:
        """Process ids of those who started the programs: the workers."""
        return [int(line.split()[2]) for line in self._lines(which)]

    def _lines(self, name: str) -> list[str]:
        path = self.log / name
        return path.read_text().splitlines() if path.exists() else []


def write_programs(
    log: Path,
    *,
    seconds: float = 0,
    quiet: str = "",
    hang: str = "",
    instance: str = "",
    nap: str = "",
    hangs: Mapping[str, tuple[str, str]] | None = None,
) -> Programs:
    """Write both programs; ``hang`` ("review" or "revision") is where they nap on ``instance``.

    ``hangs``: the same for both, instance and nap by stage.
    """
    log.mkdir(exist_ok=True)
    naps = dict(hangs or {hang: (instance, nap)})
    values = {"log": shlex.quote(str(log)), "seconds": seconds, "quiet": quiet}
    for name, text, stage in (("reviewer", _REVIEWER, "review"), ("agent", _AGENT, "revision")):
        here = _HANG.format(instance=naps[stage][0], nap=naps[stage][1]) if stage in naps else ""
        (log / f"{name}.sh").write_text(text.format(hang=here, **values))
    return Programs(log)


def napping_test(check: str, nap: str) -> str:
    """A hidden test that sleeps, with one child in its group and one that left it."""
    return (
        f"import subprocess\nfrom shop.{check}_ import {check}\n\n\ndef test_{check}():\n"
        f"    subprocess.Popen(['sleep', {json.dumps(nap)}], start_new_session=True)\n"
        f"    subprocess.run(['sleep', {json.dumps(nap)}])\n"
        f"    assert {check}() == '{check}'\n"
    )
