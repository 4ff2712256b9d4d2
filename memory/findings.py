"""Findings: what a run of verify or reconcile found, kept as rows, and what the last run came to.

Reads: stage_run, note, proposal. Writes: finding. Knows nothing about what is looked for.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db.models import Q

from memory.lately import ask
from memory.models import Finding, Note, Proposal, StageRun

#: Stages that write findings.
STAGES = ("verify", "reconcile")

#: Checks of reconcile that look at units one by one: at all of them, or at a sample.
OF_A_UNIT = ("gate", "source", "notes")

#: Latest runs of a stage among which one over everything is looked for.
# Why: a run of verify that was cut short begins the next time with what it left: a few of them are
# a whole. One of reconcile that was cut short takes the place of what it replayed, and of no more.
RUNS_LOOKED_AT = 20

#: Units that a report of reconcile names.
# Why: a sample can be looked at unit by unit; of a whole record a number says as much.
UNITS_NAMED_MAX = 200

#: The latest runs of a stage that ended, but for looks at one thing alone: those say nothing of the
#: others. Parameters: the stage, how many.
# Why SQL: every board asks this twice, and a queryset takes longer to put together than to ask.
RUNS = """
SELECT * FROM memory_stagerun
WHERE stage = %s AND status = 'done' AND NOT progress ?| '{unit,checks}'
ORDER BY started_at DESC, id DESC LIMIT %s
"""

# By the orders in which a replay goes: of all units that of their names, of a sample the one of
# `memory.stages.reconcile.SAMPLE`.
REPLAYED = """
SELECT unit FROM unnest(%(units)s::text[]) AS unit
WHERE CASE WHEN %(full)s THEN unit <= %(after)s
    ELSE (md5(unit || ':' || %(run)s::text), unit) <=
        (md5(%(after)s || ':' || %(run)s::text), %(after)s) END
"""


@dataclass(frozen=True)
class Found:
    """One thing that is not as it should be: which noun, its id, whose it is. `detail` holds
    numbers, ids and names; never a text of the record, which a purge could not reach."""

    kind: str
    reference: str
    owner_id: int | None = None
    detail: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Last:
    """What the last runs of a stage came to: findings by check, zeros included, each by the latest
    run that looked at it, and of a run that did not replay every unit with what earlier ones found
    of the others. `run` is the latest of all; `at`, when the oldest of these looks was; `left`:
    checks that none of them looked at."""

    run: int
    at: datetime
    counts: dict[str, int]
    left: tuple[str, ...] = ()

    @property
    def total(self) -> int:
        return sum(self.counts.values())


def write(run: StageRun, check: str, found: Sequence[Found], *, now: datetime) -> int:
    """Keep these as rows of the run; how many."""
    rows = Finding.objects.bulk_create(
        Finding(
            run=run,
            owner_id=one.owner_id,
            check_name=check,
            kind=one.kind,
            reference=one.reference,
            detail=dict(one.detail),
            created_at=now,
        )
        for one in found
    )
    return len(rows)


def last(stage: str) -> Last | None:
    """What the last runs of this stage that ended found: of each check the latest look at it, since
    a run that was cut short says nothing of what it left. None when no run looked at anything."""
    counts: dict[str, int] = {}
    runs = _runs(stage)
    left: set[str] = set()
    looks: list[datetime] = []
    for run in runs:
        left |= set(_left(run))
        if _told(run).keys() - counts.keys():
            looks.append(run.finished_at or run.started_at)
        counts = _told(run) | counts
    if not looks:
        return None
    for check, ids in _of_other_units(runs).items():
        counts[check] = counts.get(check, 0) + len(ids)
    return Last(runs[0].pk, looks[-1], counts, tuple(sorted(left - counts.keys())))


def standing(stage: str) -> Q:
    """Which findings the last runs of this stage left: of each check those of the latest look at
    it, and of units that the latest run did not replay what an earlier one found."""
    runs = _runs(stage)
    wanted = Q(pk__in=[pk for ids in _of_other_units(runs).values() for pk in ids])
    again: set[str] = set()
    for run in runs:
        wanted |= Q(run=run.pk) & ~Q(check_name__in=sorted(again))
        again |= _told(run).keys()
    return wanted


def _of_other_units(runs: Sequence[StageRun]) -> dict[str, list[int]]:
    """Of these runs, latest first, findings of units that the latest did not replay, and an earlier
    one did, by check, the last one of each thing: they hold until somebody looks again, decides the
    proposal, or retires the note."""
    if len(runs) < 2:
        return {}
    kept = Finding.objects.as_pipeline().filter(run__in=runs, check_name__in=OF_A_UNIT)
    rows = list(kept.order_by("-run", "pk"))
    named = {str(row.detail.get("unit")) for row in rows}
    replayed = {run.pk: _replayed(run, named) for run in runs}
    told: set[tuple[str, str, str]] = set()
    standing: list[Finding] = []
    for row in rows:
        thing = (row.check_name, row.kind, row.reference)
        unit = (row.check_name, row.detail.get("unit"))
        again = any(unit in units for later, units in replayed.items() if later > row.run_id)
        if thing not in told and not again and row.run_id != runs[0].pk:
            standing.append(row)
        told.add(thing)
    proposals = [row.detail["proposal"] for row in standing if "proposal" in row.detail]
    waiting = Proposal.objects.as_pipeline().filter(pk__in=proposals, status="open")
    open_ones = set(waiting.values_list("pk", flat=True)) if proposals else set()
    notes = [row.reference for row in standing if row.kind == "note"]
    retired = Note.objects.as_pipeline().filter(pk__in=notes).exclude(deleted_at=None)
    gone = {str(pk) for pk in retired.values_list("pk", flat=True)} if notes else set()
    found: dict[str, list[int]] = {}
    for row in standing:
        if row.detail.get("proposal", None) in {None, *open_ones} and row.reference not in gone:
            found.setdefault(row.check_name, []).append(row.pk)
    return found


def _replayed(run: StageRun, named: Collection[str]) -> set[tuple[str, str | None]]:
    """What this run of reconcile looked at, (check, unit): the units that it names, or, where they
    were too many, those of `named` that it came to."""
    units = set(run.report.get("sampled") or ())
    if not units and (after := run.report.get("after")):
        values = {"units": sorted(named), "after": after, "run": run.pk,
                  "full": "full" in run.progress}  # fmt: skip
        units = {unit for (unit,) in ask(REPLAYED, values)}
    unread = set(run.report.get("unread") or ())
    # A list that is full may lack some.
    answered = units - unread if len(unread) < UNITS_NAMED_MAX else set()
    return {
        (check, unit) for check in OF_A_UNIT for unit in (answered if check == "notes" else units)
    }


def _told(run: StageRun) -> dict[str, int]:
    """Findings of a run by check."""
    return {name: int(n) for name, n in (run.report.get("found") or {}).items()}


def left_out(stage: str) -> tuple[str, ...]:
    """Checks that the latest run of this stage had no time for."""
    runs = _runs(stage)
    return _left(runs[0]) if runs else ()


def _left(run: StageRun) -> tuple[str, ...]:
    """Of a run of verify; reconcile looks at every check, and counts units that it left."""
    left = run.report.get("left")
    return tuple(left) if isinstance(left, list) else ()


def _whole(run: StageRun) -> bool:
    """Whether this run looked at all that there is to look at, and could read every answer."""
    cut = any(run.report.get(word) for word in ("left", "stopped", "content_failures"))
    return not cut and "sample" not in run.progress


def _runs(stage: str) -> list[StageRun]:
    """The latest runs of this stage that ended, latest first, back to the last one over all that
    there is to look at."""
    found: list[StageRun] = []
    for run in StageRun.objects.raw(RUNS, [stage, RUNS_LOOKED_AT]):
        found.append(run)
        if _whole(run):
            break
    return found
