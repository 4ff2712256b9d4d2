"""Undo of one stage run: its verdicts are taken back and its notes retired, by new rows.

Reads: stage_run, dedup_verdict, note, evidence, injection. Writes: note (by `memory.retire`),
verdicts (by `review.holds`). Audits: decision and act, in the one transaction of it all.
What was built on since is left and told: a person's decision, a later verdict, a note made of one.
Verify: nothing is deleted; a second undo does nothing more.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from django.db import transaction
from django.db.models import Q, QuerySet

from memory import keeping, verdicts
from memory.acts import record_act, record_acts
from memory.errors import Conflict, NotFound, RefusedError
from memory.models import (
    DedupVerdict,
    Evidence,
    Injection,
    Note,
    Principal,
    RejectionDecision,
    StageRun,
)
from memory.passes import WHOLE
from memory.querysets import mates_of, may_settle
from memory.retire import retire, revive
from memory.runs import OPEN, begun_by
from review import holds

#: Stages whose runs can be undone, the last of a pass first.
UNDOABLE = ("dedup", "distill")

#: What a person reads of a note.
TITLE_CHARACTERS_MAX = 70

#: Of what was undone and of what was left, so many are printed; `--json` has all.
PRINTED_MAX = 20


@dataclass(frozen=True)
class Undone:
    """One thing: a verdict or a note, by id, and what became of it or why it was left."""

    kind: str
    id: str
    told: str


@dataclass
class UndoReport:
    """What one undo did. `already`: undone or gone before; `unchanged`: verdicts that had changed
    nothing; `foreign`: things of people for whom `by` may not decide; `shown`: recalls that had put
    one of the notes before an agent, which nothing takes back."""

    run: int
    stage: str
    done: list[Undone] = field(default_factory=list)
    left: list[Undone] = field(default_factory=list)
    already: int = 0
    unchanged: int = 0
    foreign: int = 0
    shown: int = 0
    dry_run: bool = False

    @property
    def partial(self) -> bool:
        return bool(self.left or self.foreign)


def undo_run(
    run_id: int, *, by: Principal, now: datetime, reason: str = "", dry_run: bool = False
) -> UndoReport:
    """Take back what a run of distill, of dedup or of the whole pipeline did, all or nothing.

    `dry_run` does it and takes it back, so that it tells exactly what would happen. Raises NotFound
    for an unknown run, Conflict for one that has not ended, RefusedError for one of another stage.
    """
    run = StageRun.objects.filter(pk=run_id).first()
    if run is None:
        raise NotFound(f"no run {run_id}")
    if run.status in OPEN:
        raise Conflict(f"run {run.pk} of {run.stage} is {run.status}: cancel it first")
    report = UndoReport(run.pk, run.stage, dry_run=dry_run)
    with transaction.atomic():
        told = f"run {run.pk} undone{f': {reason}' if reason else ''}"
        for one in _in_order(run):
            if one.stage == "dedup":
                _undo_verdicts(one, report, by=by, now=now, reason=told)
            else:
                _undo_notes(one, report, by=by, now=now, reason=told)
        if report.done:
            detail = {"stage": run.stage, "done": len(report.done), "left": len(report.left)}
            record_act(by, "undo", "run", run.pk, now=now, reason=reason, detail=detail)
        transaction.set_rollback(dry_run)
    return report


def _in_order(run: StageRun) -> list[StageRun]:
    """The runs to undo, what came last first."""
    runs = [run]
    if run.stage == WHOLE:
        runs = list(StageRun.objects.filter(pk__in=begun_by(run), stage__in=UNDOABLE))
    elif run.stage not in UNDOABLE:
        raise RefusedError(
            f"run {run.pk} is one of {run.stage}, which made no verdicts and no notes: "
            f"{', '.join((*UNDOABLE, WHOLE))} can be undone"
        )
    return sorted(runs, key=lambda one: UNDOABLE.index(one.stage))


def _undo_verdicts(
    run: StageRun, report: UndoReport, *, by: Principal, now: datetime, reason: str
) -> None:
    """Take back every verdict of the run that changed something, the latest first. Of what others
    alone may decide only the number is told."""
    made = DedupVerdict.objects.as_pipeline().filter(run=run)
    mine = Note.objects.decidable_by(by).values("pk")
    rows = made.filter(Q(target__in=mine) | Q(target__isnull=True), note__in=mine)
    report.foreign += made.count() - rows.count()
    for row in rows.select_related("decided_by").order_by("-pk"):
        if row.status == "undone":
            report.already += 1
        elif row.verdict == "distinct" and row.status == "applied":
            report.unchanged += 1
        elif row.status in ("approved", "rejected"):
            report.left.append(Undone("verdict", str(row.pk), f"{_decided(row)} since"))
        else:
            verb = holds.withdraw if row.status == "pending" else holds.undo
            _take_back(row, verb, report, by=by, now=now, reason=reason)


def _decided(row: DedupVerdict) -> str:
    when = f" at {row.decided_at:%Y-%m-%d %H:%M}Z" if row.decided_at else ""
    return f"{row.status} by {row.decided_by}{when}"


def _take_back(
    row: DedupVerdict, verb: Callable[..., DedupVerdict], report: UndoReport, *,
    by: Principal, now: datetime, reason: str,
) -> bool:  # fmt: skip
    """Undo one verdict under its own savepoint; whether that went."""
    try:
        verb(row.pk, by=by, now=now, reason=reason)
    except NotFound:
        report.foreign += 1
    except Conflict as error:
        report.left.append(Undone("verdict", str(row.pk), str(error)))
    else:
        was = "a hold" if row.status == "pending" else f"{row.verdict}, applied"
        report.done.append(Undone("verdict", str(row.pk), f"{was}: {row.note_id}"))
        return True
    return False


def _undo_notes(
    run: StageRun, report: UndoReport, *, by: Principal, now: datetime, reason: str
) -> None:
    """Retire the notes of the run that nothing was built on, and bring back what they replaced."""
    mates = mates_of(by)
    rows = Note.objects.as_pipeline().filter(run=run).defer("embedding").order_by("pk")
    went: list[Note] = []
    stay: list[Note] = []
    seen: set[UUID] = set()
    # Round by round: what went for a note of this very run lives again when that one is let go.
    while alive := [
        note
        for note in rows.exclude(pk__in=seen).select_for_update(no_key=True)
        if note.deleted_at is None
    ]:
        seen.update(note.pk for note in alive)
        before = len(went)
        mine = [
            one for one in alive if may_settle(one.owner_id, one.visibility, by=by.pk, mates=mates)
        ]
        report.foreign += len(alive) - len(mine)
        built, keeping_others = _built_on(mine, by), _kept(mine)
        for note in mine:
            if why := built.get(note.pk):
                report.left.append(Undone("note", str(note.pk), why))
            elif note.pk not in keeping_others or _release(
                note, report, by=by, now=now, reason=reason
            ):
                went.append(note)
        gone = {note.pk for note in went[before:]}
        stay += [note for note in alive if note.pk not in gone]
        retire(gone, reason=verdicts.UNDONE, now=now)
    ids = [note.pk for note in went]
    for note in rows.exclude(pk__in=seen):
        if may_settle(note.owner_id, note.visibility, by=by.pk, mates=mates):
            _gone(note, report)
        else:
            report.foreign += 1
    report.done += [Undone("note", str(one.pk), one.title[:TITLE_CHARACTERS_MAX]) for one in went]
    record_acts(by, "retire", "note", ids, now=now, reason=reason, detail={"run": run.pk})
    report.shown += Injection.objects.as_pipeline().filter(note_ids__overlap=ids).count()
    units = {note.unit_key for note in stay}
    _bring_back([note for note in went if note.unit_key not in units], report, by=by, now=now)


def _gone(note: Note, report: UndoReport) -> None:
    if note.retired_reason in verdicts.RETIREMENTS:
        # What bore it out bears out another note now: that is undone first, or not at all.
        report.left.append(Undone("note", str(note.pk), f"{keeping.gone(note)}: undo that first"))
    else:
        report.already += 1


def _built_on(notes: Sequence[Note], by: Principal) -> dict[UUID, str]:
    """What people or later stages made of these notes, where something stands in the way."""
    ids = {note.pk for note in notes}
    found: dict[UUID, str] = {}
    for row in _keeping(ids).filter(status="approved").select_related("decided_by").order_by("pk"):
        for side in ids & {row.note_id, row.target_id}:
            found[side] = f"verdict {row.pk}, which keeps it, was {_decided(row)}"
    edges = Evidence.objects.filter(parent__in=ids).order_by("-note")
    children = dict(edges.values_list("parent", "note"))
    seen = Note.objects.visible_to(by).filter(pk__in=children.values())
    named = set(seen.values_list("pk", flat=True))
    for parent, child in children.items():
        found[parent] = f"note {child if child in named else 'of others'} was made of it"
    accepted = RejectionDecision.objects.filter(note__in=ids)
    for pk in accepted.values_list("note", flat=True):
        found[pk] = "a person accepted it: undo the rejection's decision instead"
    return found


def _keeping(notes: Collection[UUID]) -> QuerySet[DedupVerdict]:
    """Standing verdicts in which one of these living notes is the one that stays."""
    rows: QuerySet[DedupVerdict] = DedupVerdict.objects.as_pipeline().filter(
        Q(note__in=notes) | Q(target__in=notes),
        status__in=("applied", "approved"), target__isnull=False,
    )  # fmt: skip
    return rows.exclude(verdict="distinct").order_by("-pk")


def _kept(notes: Sequence[Note]) -> set[UUID]:
    """Those of these notes for which others went."""
    sides = _keeping([note.pk for note in notes]).values_list("note", "target")
    return {side for pair in sides for side in pair}


def _release(note: Note, report: UndoReport, *, by: Principal, now: datetime, reason: str) -> bool:
    """Take back the verdicts by which other notes went for this one: all, and they come back, or
    none, and False."""
    before = len(report.done)
    with transaction.atomic():
        for row in _keeping([note.pk]):
            if not _take_back(row, holds.undo, report, by=by, now=now, reason=reason):
                del report.done[before:]
                transaction.set_rollback(True)
                return False
    return True


def _bring_back(went: Sequence[Note], report: UndoReport, *, by: Principal, now: datetime) -> None:
    """The notes that the unit had before: distilling it anew had retired them at that moment."""
    made = {(one.unit_key, one.created_at) for one in went}
    rows = Note.objects.decidable_by(by).filter(
        unit_key__in={unit for unit, _ in made}, deleted_at__in={at for _, at in made},
        retired_reason="redistilled",
    )  # fmt: skip
    told = rows.order_by("pk").values_list("pk", "unit_key", "deleted_at")
    back = [pk for pk, unit, at in told if (unit, at) in made]
    for pk in back:
        revive(pk)
        report.done.append(Undone("note", str(pk), "is back"))
    record_acts(by, "restore", "note", back, now=now, detail={"was": "redistilled"})


def lines(report: UndoReport) -> list[str]:
    """The report for people; the first line is the sum of it."""
    verb = "would undo" if report.dry_run else "undid"
    told = [f"{verb} {_counted(report.done)} of run {report.run} ({report.stage})"]
    told += _listed(report.done)
    if report.left:
        told += [f"left, as something was built on it since: {_counted(report.left)}"]
        told += _listed(report.left)
    if report.foreign:
        told.append(f"left, as they are of others: {report.foreign}")
    if report.already:
        told.append(f"undone or gone before: {report.already}")
    if report.unchanged:
        told.append(f"verdicts that had changed nothing: {report.unchanged}")
    if report.shown:
        told.append(f"its notes had been put before agents {report.shown} times; that stays so")
    ways = {"verdict": "manage.py hold approve ID", "note": "manage.py note restore ID"}
    back = [way for kind, way in ways.items() if any(one.kind == kind for one in report.done)]
    if back:
        told.append(f"the way back, one at a time: {' and '.join(back)}")
    return told


def _counted(things: Sequence[Undone]) -> str:
    counts = {kind: sum(one.kind == kind for one in things) for kind in ("verdict", "note")}
    named = [f"{n} {kind}{'' if n == 1 else 's'}" for kind, n in counts.items() if n]
    return " and ".join(named) or "nothing"


def _listed(things: Sequence[Undone]) -> list[str]:
    rows = [f"  {one.kind} {one.id}  {one.told}" for one in things[:PRINTED_MAX]]
    if len(things) > PRINTED_MAX:
        rows.append(f"  ... and {len(things) - PRINTED_MAX} more (--json lists all)")
    return rows
