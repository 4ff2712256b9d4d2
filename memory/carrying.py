"""What waits about a note that a person puts into other words goes over to the note in its place.

Reads: note. Writes: dedup_verdict (a hold about the new note in place of each about the old one).
Audits: decision and act, in the transaction of the edit or of its undo. Knows nothing about edits.
"""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from django.db.models import Q

from memory.acts import record_act
from memory.models import Decision, DedupVerdict, Note, Principal

#: What a hold's decisions say of one that went over, or that came back.
CARRIED = "carry"


def carry_holds(old: Note, new: Note, *, by: Principal, now: datetime) -> int:
    """Let each hold about `old` wait about `new`; how many there were. Call it after `old` went,
    in the same transaction.

    Each becomes undone, and a new one like it waits; one that went over before waits again itself.
    A hold about the two of them is left: the one note took the other's place.

    One that somebody decides at this moment is left to them: they hear that a note is gone.
    """
    carried = _waiting(old, new)
    for row in carried:
        pair = _pair(row, old, new)
        before = _went_over(row, *pair)
        _set(row, "undone", by=by, now=now)
        if before is not None:
            _set(before, "pending", by=by, now=now)
        else:
            _again(row, *pair)
    return len(carried)


def bring_holds_back(new: Note, old: Note, *, by: Principal, now: datetime) -> int:
    """Take `carry_holds` back, where the edit is: what still waits about `new` and once waited
    about `old` waits there again; how many those were. What came up about the new words alone says
    nothing of the old ones, and is left."""
    back = 0
    for row in _waiting(new, old):
        before = _went_over(row, *_pair(row, new, old))
        if before is not None:
            _set(row, "undone", by=by, now=now)
            _set(before, "pending", by=by, now=now)
            back += 1
    return back


def _waiting(old: Note, new: Note) -> list[DedupVerdict]:
    """The holds about `old` and a third note, locked."""
    rows = DedupVerdict.objects.as_pipeline().filter(
        Q(note=old.pk) | Q(target=old.pk), status="pending", target__isnull=False
    )
    rows = rows.exclude(note=new.pk).exclude(target=new.pk).order_by("pk")
    # Why none is waited for: who decides one holds its row and waits for its notes.
    return list(rows.select_for_update(of=("self",), no_key=True, skip_locked=True))


def _pair(row: DedupVerdict, old: Note, new: Note) -> tuple[UUID, UUID]:
    """The two notes of a hold, `new` in place of `old`."""
    assert row.target_id is not None
    swap = {old.pk: new.pk}
    return swap.get(row.note_id, row.note_id), swap.get(row.target_id, row.target_id)


def _went_over(row: DedupVerdict, note_id: UUID, target_id: UUID) -> DedupVerdict | None:
    """The hold about these two that went over to another note before, when that came last."""
    same = DedupVerdict.objects.as_pipeline().filter(
        note=note_id, target=target_id, verdict=row.verdict, status="undone"
    )
    for one in same.select_for_update(of=("self",), no_key=True, skip_locked=True).order_by("-pk"):
        last = one.decisions.order_by("-pk").first()
        if last is not None and last.action == CARRIED:
            found: DedupVerdict = one
            return found
    return None


def _again(row: DedupVerdict, note_id: UUID, target_id: UUID) -> DedupVerdict:
    """A hold like this one about these two notes. Its scores are those of the words before."""
    made: DedupVerdict = DedupVerdict.objects.create(
        owner_id=row.owner_id,
        note_id=note_id,
        target_id=target_id,
        verdict=row.verdict,
        status="pending",
        similarity=row.similarity,
        lexical=row.lexical,
        candidates=row.candidates,
        reasoning=row.reasoning,
        confidence_before=row.confidence_before,
        confidence_after=row.confidence_after,
        corroborates=row.corroborates,
        model_asked=row.model_asked,
        model_real=row.model_real,
        prompt_version=row.prompt_version,
        run_id=row.run_id,
        # As old as what it asks.
        created_at=row.created_at,
    )
    return made


def _set(row: DedupVerdict, status: str, *, by: Principal, now: datetime) -> None:
    before, row.status = row.status, status
    row.decided_by, row.decided_at = by, now
    row.save(update_fields=["status", "decided_by", "decided_at"])
    Decision.objects.create(
        verdict=row,
        principal=by,
        action=CARRIED,
        status_before=before,
        status_after=status,
        created_at=now,
    )
    detail = {"kind": row.verdict, "before": before, "after": status}
    record_act(by, CARRIED, "verdict", row.pk, now=now, detail=detail)
