"""Verify: does the record still say what it said? Looks, tells, and repairs nothing.

Reads: every table. Writes: finding.
Audits: stage_run; its report says of each check what was looked at and found, and how long it took.
Verify: for each check a test breaks what it holds and sees the finding.
Outside the pipeline; asks no model. What is being written while it looks is no finding.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from tqdm import tqdm

from memory import findings
from memory.audit import Clock, beat, open_run, stage
from memory.errors import NotFound
from memory.models import StageRun
from memory.verifying.check import Check, Look, taken
from memory.verifying.offered import checks

#: Findings of one check that are kept as rows; the others are counted.
# Why: where one thing is wrong a thousand are, and a person looks at a handful.
# Calibrate: none needed; `--limit` says otherwise.
FINDINGS_A_CHECK_MAX = 100


@dataclass(frozen=True)
class VerifyReport:
    """By check: things looked at, findings, milliseconds. Not done: findings that are `unwritten`,
    and checks that are `left` because the time was over or somebody said to stop."""

    findings: int = 0
    looked: dict[str, int] = field(default_factory=dict)
    found: dict[str, int] = field(default_factory=dict)
    milliseconds: dict[str, int] = field(default_factory=dict)
    unwritten: int = 0
    left: tuple[str, ...] = ()


def ask(names: Sequence[str], *, trigger: str, now: datetime) -> StageRun:
    """A run that looks at these checks alone, for `verify(run=...)`. Raises NotFound for a name
    that no check has."""
    if unknown := sorted(set(names) - set(checks())):
        raise NotFound(f"no check {', '.join(unknown)}: there are {', '.join(checks())}")
    run = open_run("verify", trigger=trigger, now=now)
    run.progress = {"checks": list(names)} if names else {}
    return run


@stage
def verify(
    run: StageRun, *, clock: Clock, limit: int | None, until: datetime | None
) -> VerifyReport:
    """Look at every check, or at those that the run was asked for; `limit` bounds the rows that are
    kept of each."""
    asked = run.progress.get("checks")
    todo = [check for name, check in checks().items() if not asked or name in asked]
    # What there was no time for the last time comes first: all have their turn.
    waiting = findings.left_out("verify")
    todo.sort(key=lambda check: check.name not in waiting)
    most = FINDINGS_A_CHECK_MAX if limit is None else limit
    report = VerifyReport()
    written, left = 0, []
    silent = None if run.trigger_source == "command" else True
    for check in tqdm(todo, desc="verify", unit=" checks", disable=silent, leave=False):
        over = until is not None and clock() >= until
        if beat(run) or over:
            left.append(check.name)
            continue
        written += _look(run, check, report, most=most, now=clock())
    total = sum(report.found.values())
    return VerifyReport(
        total, report.looked, report.found, report.milliseconds, total - written, tuple(left)
    )


def _look(run: StageRun, check: Check, report: VerifyReport, *, most: int, now: datetime) -> int:
    """One check, entered into the report; how many of its findings were written."""
    began = time.monotonic()
    look = Look(now, most)
    kept = taken(check, look)
    report.looked[check.name] = look.looked
    report.found[check.name] = len(kept) + look.beyond
    report.milliseconds[check.name] = round((time.monotonic() - began) * 1000)
    return findings.write(run, check.name, kept, now=now)
