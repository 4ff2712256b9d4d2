"""What a verdict does to two notes: apply it, hold it for a person, take it back.

Reads: evidence, injection. Writes: note (by retire), evidence, dedup_verdict.
Knows nothing about how a verdict was reached, or who may decide a held one (review does).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from memory import retire
from memory.errors import Conflict
from memory.ledger import shown_before
from memory.models import DedupVerdict, Evidence, Note

#: Confidence of an old note from which on a supersession waits for a person.
# Why: two independent corroborations (0.5, 0.65, 0.755) are worth a person's minute.
# Calibrate: share of held verdicts that people approve; near 1 means the bar is too low.
HOLD_CONFIDENCE_MIN = 0.70

#: Share of the distance to certainty that one independent corroboration covers.
# Why: diminishing returns; no number of repetitions reaches 1.
CONFIDENCE_STEP_SHARE = 0.3

#: Confidence of a note that nothing corroborates yet.
CONFIDENCE_START = 0.5


@dataclass(frozen=True)
class Effect:
    """What a verdict means: who stays, who goes and why, and whether a person must say so."""

    kept: Note
    retired: Note | None = None
    reason: str = ""
    valid_to: datetime | None = None
    held: bool = False


def effect(verdict: str, new: Note, old: Note | None) -> Effect:
    """Pure: the consequences of a verdict about `new` and the older note `old`."""
    if old is None or verdict == "distinct":
        return Effect(kept=new)
    if verdict == "duplicate":
        return Effect(kept=old, retired=new, reason="duplicate")
    if verdict == "refine":
        return Effect(kept=new, retired=old, reason="refined")
    # What was said later holds, whichever of the two was read later.
    winner, loser = (new, old) if new.valid_from >= old.valid_from else (old, new)
    return Effect(
        kept=winner,
        retired=loser,
        reason="superseded",
        valid_to=max(winner.valid_from, loser.valid_from),
        held=loser.confidence >= HOLD_CONFIDENCE_MIN,
    )


def raised(confidence: float) -> float:
    """Confidence after one independent corroboration: 0.5, 0.65, 0.755, ..."""
    return round(confidence + CONFIDENCE_STEP_SHARE * (1 - confidence), 6)


def corroborates(new: Note, old: Note) -> bool:
    """Whether the new note is independent evidence for the old one.

    Not from a session that already bears the old one out, not from a near copy of a raw item, and
    never when Argus itself had put the old note before the session that said it again.
    """
    rows = Evidence.objects.filter(note__in=(new.pk, old.pk), raw_item__isnull=False)
    values = rows.values_list(
        "note", "raw_item__source", "raw_item__session", "raw_item", "raw_item__near_duplicate_of"
    )
    heard: dict[UUID, set[tuple[str, str]]] = {new.pk: set(), old.pk: set()}
    for note, source, session, item, near in values:
        if note == new.pk and near is not None:
            return False
        # Without a session every raw item stands for itself.
        heard[note].add((source, session or f"item {item}"))
    if not heard[new.pk] or heard[new.pk] & heard[old.pk]:
        return False
    echoes = shown_before([old.pk], owner=new.owner, session=new.session, by=new.valid_from)
    return not echoes


def apply(row: DedupVerdict, result: Effect, *, now: datetime) -> None:
    """Carry out a verdict whose row is being written; call inside its transaction.

    Raises Conflict when either note is no longer live: someone else decided meanwhile.
    """
    if result.retired is None:
        return
    if not retire.retire(
        [result.retired.pk], reason=result.reason, now=now, valid_to=result.valid_to
    ):
        raise Conflict(f"note {result.retired.pk} is no longer live")
    if result.reason == "superseded":
        return
    hand_over(result.retired, result.kept, origin=result.reason)
    if row.confidence_after is not None:
        retire.set_confidence(result.kept.pk, row.confidence_after)


def hand_over(retired: Note, kept: Note, *, origin: str) -> None:
    """The kept note stands on the evidence of both."""
    standing = set(
        Evidence.objects.filter(note=kept).values_list("raw_item_id", "start", "end", "parent_id")
    )
    Evidence.objects.bulk_create(
        Evidence(
            note=kept,
            raw_item_id=edge.raw_item_id,
            parent_id=edge.parent_id,
            quote=edge.quote,
            start=edge.start,
            end=edge.end,
            sha256=edge.sha256,
            origin=origin,
        )
        for edge in Evidence.objects.filter(note=retired)
        if (edge.raw_item_id, edge.start, edge.end, edge.parent_id) not in standing
    )


def take_back(row: DedupVerdict) -> None:
    """Undo what an applied verdict did to the two notes; call inside the undo's transaction.

    Evidence handed over stays with the kept note: it is a true quote. Raises Conflict when a later
    verdict built on this one.
    """
    if row.target is None or row.verdict == "distinct":
        raise Conflict("this verdict changed nothing")
    result = effect(row.verdict, row.note, row.target)
    assert result.retired is not None
    kept = Note.objects.as_pipeline().select_for_update(no_key=True).get(pk=result.kept.pk)
    if kept.deleted_at is not None:
        raise Conflict(f"note {kept.pk} was retired by a later verdict: undo that one first")
    if not retire.revive(result.retired.pk):
        raise Conflict(f"note {result.retired.pk} is not retired")
    if row.confidence_after is not None and kept.confidence == row.confidence_after:
        retire.set_confidence(kept.pk, row.confidence_before or CONFIDENCE_START)
