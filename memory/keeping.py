"""What a person does to a note as it is: retire it, restore it, pin it for oneself.

Reads: note, dedup_verdict, act. Writes: note (by `memory.retire`), pin. Audits: act, in the same
transaction. Verify: nobody retires or restores what another decided meanwhile: they hear who and
when. Other words for a note are `memory.edits`.
"""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from django.db import transaction

from memory.acts import record_act
from memory.errors import Conflict, NotFound
from memory.heirs import heirs, lines
from memory.models import Act, DedupVerdict, Note, Pin, Principal
from memory.retire import retire, revive
from memory.text.clean import clean_text
from memory.verdicts import EDITED, PERSON, RETIREMENTS, UNDONE

#: Why a note is retired that a person wants gone.
RETIRED = "retired"


@transaction.atomic
def retire_note(note_id: UUID, *, by: Principal, now: datetime, reason: str = "") -> Note:
    """Take a note out of what is recalled; it stays to be read, and can be restored.

    Raises NotFound, and Conflict with who and when for one that is retired already.
    """
    note = mine(note_id, by=by)
    if note.deleted_at is not None:
        raise Conflict(gone(note))
    retire([note.pk], reason=RETIRED, now=now)
    record_act(by, "retire", "note", note.pk, now=now, reason=reason)
    return _fresh(note)


@transaction.atomic
def restore_note(note_id: UUID, *, by: Principal, now: datetime, reason: str = "") -> Note:
    """Bring a retired note back. Raises NotFound; Conflict when it is not retired, or when another
    note stands in its place: that one's verdict is to be undone first."""
    note = mine(note_id, by=by)
    if note.deleted_at is None:
        raise Conflict(f"note {note.pk} is not retired: there is nothing to restore")
    if note.retired_reason == UNDONE and (row := undone_edit(note)) is not None:
        raise Conflict(f"the edit that made it was undone: approve verdict {row.pk} again instead")
    if (heir := standing_for(note)) is not None:
        row, kept = heir
        raise Conflict(f"note {kept.pk} ({kept.title}) stands in its place: undo verdict {row.pk}")
    revive(note.pk)
    detail = {"was": note.retired_reason}
    record_act(by, "restore", "note", note.pk, now=now, reason=reason, detail=detail)
    return _fresh(note)


@transaction.atomic
def pin(note_id: UUID, *, by: Principal, now: datetime) -> bool:
    """Put a note first in one's own contexts; whether it was not pinned before.

    Raises NotFound for a note that `by` may not see, Conflict for one that is not live.
    """
    note = seen(note_id, by=by)
    if note.deleted_at is not None:
        raise Conflict(gone(note))
    if not Note.objects.as_pipeline().live(now).filter(pk=note.pk).exists():
        raise Conflict(f"note {note.pk} does not hold now: only what is live is pinned")
    _, fresh = Pin.objects.get_or_create(principal=by, note=note, defaults={"created_at": now})
    if fresh:
        record_act(by, "pin", "note", note.pk, now=now)
    return fresh


@transaction.atomic
def unpin(note_id: UUID, *, by: Principal, now: datetime) -> bool:
    """Take one's own pin away; whether there was one. Raises NotFound."""
    note = seen(note_id, by=by)
    went, _ = Pin.objects.filter(principal=by, note=note).delete()
    if went:
        record_act(by, "unpin", "note", note.pk, now=now)
    return bool(went)


def standing_for(note: Note) -> tuple[DedupVerdict, Note] | None:
    """The live note that stands in the place of a retired one, with the verdict that put the first
    of them there; None when there is none."""
    line = lines([note.pk])[note.pk]
    if not line or line[-1].kept.deleted_at is not None:
        return None
    return line[0].verdict, line[-1].kept


def gone(note: Note) -> str:
    """A sentence about a note that is retired: why, when, and by whom where a person did it."""
    who = ""
    if note.retired_reason in RETIREMENTS and (heir := heirs([note.pk]).get(note.pk)) is not None:
        row = heir.verdict
        who = f" by {row.decided_by}" if row.decided_by else f" by verdict {row.pk}"
    elif note.retired_reason == RETIRED:
        acts = Act.objects.filter(kind="note", reference=str(note.pk), verb="retire")
        act = acts.select_related("principal").order_by("-pk").first()
        who = f" by {act.principal}" if act else ""
    return f"note {note.pk} was {_past(note)}{who} at {note.deleted_at:%Y-%m-%d %H:%M:%S}Z"


def _past(note: Note) -> str:
    words = {EDITED: "edited", "duplicate": "retired as a duplicate", UNDONE: "taken back"}
    known = (*RETIREMENTS, RETIRED)
    reason = note.retired_reason
    return words.get(reason, reason if reason in known else f"retired ({reason or 'no reason'})")


def undone_edit(note: Note) -> DedupVerdict | None:
    """The edit that made this note and was taken back."""
    rows = DedupVerdict.objects.as_pipeline().filter(note=note, status="undone", verdict="refine")
    return rows.filter(model_real=PERSON).order_by("-pk").first()


def pinned(note: Note, *, by: Principal) -> bool:
    """Whether this principal pinned the note."""
    return Pin.objects.filter(principal=by, note=note).exists()


def seen(note_id: UUID, *, by: Principal) -> Note:
    """The note, if `by` may see it. Raises NotFound."""
    rows = Note.objects.visible_to(by).select_related("owner", "project").defer("embedding")
    found: Note | None = rows.filter(pk=note_id).first()
    if found is None:
        raise NotFound(f"no note {note_id}")
    return found


def mine(note_id: UUID, *, by: Principal) -> Note:
    """The note, locked: whoever decides about it meanwhile waits. Raises NotFound also for one that
    strangers let everybody see."""
    rows = Note.objects.decidable_by(by).filter(pk=note_id).defer("embedding")
    found: Note | None = (
        rows.select_related("owner", "project")
        .select_for_update(of=("self",), no_key=True)
        .first()
    )  # fmt: skip
    if found is None:
        raise NotFound(f"no note {note_id}")
    return found


def _fresh(note: Note) -> Note:
    found: Note = (
        Note.objects.as_pipeline().select_related("owner", "project").defer("embedding").get(
            pk=note.pk
        )
    )  # fmt: skip
    return found


def clean_lines(text: str) -> str:
    return clean_text(text)[0].replace("\r\n", "\n").replace("\r", "\n")
