"""What a verdict does to two notes: apply it, hold it for a person, take it back.

Reads: evidence, injection, dedup_verdict. Writes: note (by retire), evidence.
Knows nothing about how a verdict was reached, or who may decide a held one (review does).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import Q

from memory import retire
from memory.errors import Conflict
from memory.ledger import VAULT, lie_in_vault, shown_in
from memory.models import DedupVerdict, Evidence, Note
from memory.models.record import VISIBILITIES
from memory.querysets import NoteQuerySet

#: Confidence of an old note from which on a supersession waits for a person.
# Why: two independent corroborations (0.5, 0.65, 0.755) are worth a person's minute.
# Calibrate: share of held verdicts that people approve; near 1 means the bar is too low.
HOLD_CONFIDENCE_MIN = 0.70

#: Share of the distance to certainty that one independent corroboration covers.
# Why: diminishing returns; no number of repetitions reaches 1.
CONFIDENCE_STEP_SHARE = 0.3

#: Confidence of a note that nothing corroborates yet.
CONFIDENCE_START = 0.5

#: What stands in the model columns where a person's words decided.
PERSON = "person"

#: Why a note is retired that a person put into other words.
EDITED = "edited"

#: Why verdicts retire notes: in each case another note stands in its place.
RETIREMENTS = ("superseded", "refined", "duplicate", EDITED)

#: Why a note is retired that a person made, and whose making was taken back.
UNDONE = "undone"


@dataclass(frozen=True)
class Effect:
    """What a verdict means: who stays, who goes and why, and whether a person must say so."""

    kept: Note
    retired: Note | None = None
    reason: str = ""
    valid_to: datetime | None = None
    held: bool = False


@dataclass(frozen=True)
class Step:
    """Confidence of the note that stays, before and after, and whether the new one bore it out."""

    before: float | None = None
    after: float | None = None
    corroborates: bool = False


def effect(verdict: str, new: Note, old: Note | None, *, family: Collection[int] = ()) -> Effect:
    """Pure: the consequences of a verdict about `new` and the older note `old`.

    Two notes of two projects (one of them `global`) are never settled without a person: what holds
    everywhere does not end because one project says otherwise. Projects that were merged (`family`,
    the ids of those of `new`) are one. Nor is a note that others see retired for one that they do
    not.
    """
    if old is None or verdict == "distinct":
        return Effect(kept=new)
    across = new.project_id != old.project_id and old.project_id not in family
    if verdict == "duplicate":
        return Effect(old, new, "duplicate", held=across or _narrows(new, old))
    if verdict == "refine":
        return Effect(new, old, "refined", held=across or _narrows(old, new))
    # What was said later holds, whichever of the two was read later.
    winner, loser = (new, old) if new.valid_from >= old.valid_from else (old, new)
    return Effect(
        kept=winner,
        retired=loser,
        reason="superseded",
        valid_to=max(winner.valid_from, loser.valid_from),
        held=across or _narrows(loser, winner) or loser.confidence >= HOLD_CONFIDENCE_MIN,
    )


def _narrows(retired: Note, kept: Note) -> bool:
    """Whether people who see the retired note would not see the kept one."""
    seen_by = VISIBILITIES.index
    return seen_by(retired.visibility) > seen_by(kept.visibility)


def step(verdict: str, new: Note, old: Note | None) -> Step:
    """What a verdict does to confidence: a duplicate lends the old note a step when it is
    independent, a refinement inherits the old note's confidence with that step."""
    if old is None or verdict not in ("duplicate", "refine"):
        return Step()
    counts = corroborates(new, old)
    borne_out = raised(old.confidence) if counts else old.confidence
    if verdict == "duplicate":
        return Step(old.confidence, borne_out, counts)
    return Step(new.confidence, max(new.confidence, borne_out), counts)


def raised(confidence: float) -> float:
    """Confidence after one independent corroboration: 0.5, 0.65, 0.755, ..."""
    return round(confidence + CONFIDENCE_STEP_SHARE * (1 - confidence), 6)


def carried(confidence: float, *, before: float, after: float) -> float:
    """The confidence when the step from `before` to `after` is laid on it, whatever other steps it
    took meanwhile; with the two swapped, when the step is taken out again."""
    if before >= 1:
        return after
    rest = (1 - confidence) * (1 - after) / (1 - before)
    return round(min(1.0, max(0.0, 1 - rest)), 6)


def corroborates(new: Note, old: Note) -> bool:
    """Whether the new note is independent evidence for the old one.

    Not from a session that already bears the old one out, not from a near copy of a raw item, not
    when a person wrote both into their vault (a note that is edited says the rest again), and never
    when Argus itself had put the old note, or one that went into it, before that session, or
    into the vault in which somebody wrote the new one down.
    """
    rows = Evidence.objects.filter(note__in=(new.pk, old.pk), raw_item__isnull=False)
    values = rows.values_list(
        "note", "raw_item__source", "raw_item__session", "raw_item__owner", "raw_item",
        "raw_item__near_duplicate_of",
    )  # fmt: skip
    heard: dict[UUID, set[tuple[str, str]]] = {new.pk: set(), old.pk: set()}
    for note, source, session, owner, item, near in values:
        if note == new.pk and near is not None:
            return False
        # Without a session every raw item stands for itself; in a vault one person writes them all.
        alone = f"vault of {owner}" if source == VAULT else f"item {item}"
        heard[note].add((source, session or alone))
    if not heard[new.pk] or heard[new.pk] & heard[old.pk]:
        return False
    family = gone_into(old)
    if any(source == VAULT for source, _ in heard[new.pk]) and lie_in_vault(
        family, owner=new.owner
    ):
        return False
    sessions = {new.session} - {""}
    if new.said_by != "user":
        # A recall that named no session may have been this one's: an agent repeats what it reads.
        sessions.add("")
    return not shown_in(family, owner=new.owner, sessions=sessions)


def gone_into(note: Note) -> set[UUID]:
    """The note, and all that were retired into it as duplicates or by being refined, step by step:
    who was shown one of them was told the same."""
    family, edge = {note.pk}, {note.pk}
    standing = DedupVerdict.objects.as_pipeline().filter(status__in=("applied", "approved"))
    while edge:
        merged = Q(verdict="duplicate", target__in=edge) | Q(verdict="refine", note__in=edge)
        pairs = standing.filter(merged).values_list("note", "target")
        edge = {pk for pair in pairs for pk in pair} - family
        family |= edge
    return family


def lock(new: Note, old: Note | None, *, now: datetime) -> tuple[Note, Note | None]:
    """Both notes as they stand, locked. Raises Conflict when either is no longer live."""
    wanted = {new.pk} if old is None else {new.pk, old.pk}
    rows = _locked(Note.objects.as_pipeline().live(now).filter(pk__in=wanted))
    if len(rows) != len(wanted):
        raise Conflict("one of the two notes is no longer live")
    return rows[new.pk], rows[old.pk] if old is not None else None


def _locked(notes: NoteQuerySet) -> dict[UUID, Note]:
    # In one order: who wants the same two notes waits for the other and not in a ring.
    rows = notes.select_related("owner").defer("embedding").order_by("pk")
    return {row.pk: row for row in rows.select_for_update(of=("self",), no_key=True)}


def apply(row: DedupVerdict, *, now: datetime) -> None:
    """Carry out a verdict; call inside the transaction that writes its row.

    Raises Conflict when either note is no longer live: someone else decided meanwhile. An edit that
    was taken back and is approved again has its note again.
    """
    taken_back = Note.objects.as_pipeline().filter(pk=row.note.pk, retired_reason=UNDONE)
    if edits(row) and taken_back.exists():
        retire.revive(row.note.pk)
    new, old = lock(row.note, row.target, now=now)
    result = effect(row.verdict, new, old)
    if result.retired is None:
        return
    reason = EDITED if edits(row) else result.reason
    retire.retire([result.retired.pk], reason=reason, now=now, valid_to=result.valid_to)
    if result.reason == "superseded":
        return
    hand_over(result.retired, result.kept, origin="edit" if edits(row) else reason, now=now)
    if row.confidence_before is not None and row.confidence_after is not None:
        moved = carried(
            result.kept.confidence, before=row.confidence_before, after=row.confidence_after
        )
        retire.set_confidence(result.kept.pk, moved)


def edits(row: DedupVerdict) -> bool:
    """Whether a person made the new note of the old one, in words of their own."""
    return row.verdict == "refine" and row.model_real == PERSON


def hand_over(retired: Note, kept: Note, *, origin: str, now: datetime) -> None:
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
            created_at=now,
        )
        for edge in Evidence.objects.filter(note=retired)
        if (edge.raw_item_id, edge.start, edge.end, edge.parent_id) not in standing
    )


def take_back(row: DedupVerdict, *, now: datetime) -> None:
    """Undo what an applied verdict did to the two notes; call inside the undo's transaction.

    Evidence handed over stays with the kept note: it is a true quote. The kept note loses this
    verdict's step of confidence and keeps those of others; the note of an edit goes, as nobody but
    who edited ever said it. Raises Conflict when a later verdict built on this one.
    """
    if row.target is None or row.verdict == "distinct":
        raise Conflict("this verdict changed nothing")
    both = (row.note.pk, row.target.pk)
    rows = _locked(Note.objects.as_pipeline().filter(pk__in=both))
    result = effect(row.verdict, rows[row.note.pk], rows[row.target.pk])
    assert result.retired is not None
    if result.kept.deleted_at is not None:
        raise Conflict(_built_on(result.kept))
    if not retire.revive(result.retired.pk):
        raise Conflict(f"note {result.retired.pk} is not retired")
    if row.confidence_before is not None and row.confidence_after is not None:
        moved = carried(
            result.kept.confidence, before=row.confidence_after, after=row.confidence_before
        )
        retire.set_confidence(result.kept.pk, moved)
    if edits(row):
        retire.retire([result.kept.pk], reason=UNDONE, now=now)


def _built_on(kept: Note) -> str:
    """Why a verdict cannot be taken back whose note is gone, and what to do first."""
    if kept.retired_reason in RETIREMENTS:
        return f"note {kept.pk} was retired by a later verdict: undo that one first"
    return f"note {kept.pk} was retired since ({kept.retired_reason}): restore it first"
