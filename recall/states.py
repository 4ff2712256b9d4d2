"""What became of a note: does it hold, did it hold then, and what stands in its place today.

Reads: note, dedup_verdict. Pure but for `stale`. Used by recalls that ask about the past and by an
opened note. Knows nothing about how notes are found.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from memory import verdicts
from memory.heirs import lines
from memory.models import Note
from recall.reader import Reader

#: Every state, and what it says.
STATES = {
    "live": "it holds",
    "superseded": "something else holds instead",
    "refined": "a fuller note says it",
    "duplicate": "another note says the same",
    "edited": "a person put it into other words",
    "retired": "it was withdrawn for another reason",
    "ended": "it held until a day that has passed",
    "not_yet": "it holds from a later day on",
    "unknown": "Argus did not know of it then",
}

#: What of a note its state is read from.
STATE_COLUMNS = (
    "id", "valid_from", "valid_to", "created_at", "deleted_at", "invalidated_at", "retired_reason",
)  # fmt: skip


def state(note: Mapping[str, Any], now: datetime) -> str:
    """What became of a note by `now`: one of STATES. `live` is what the predicate says."""
    if note["deleted_at"] is not None:
        return _reason(note)
    return believed(note, as_of=now, known_at=now)


def believed(note: Mapping[str, Any], *, as_of: datetime, known_at: datetime) -> str:
    """What Argus, knowing what it knew at `known_at`, took the note for at the moment `as_of`:
    `live` for exactly the notes of the predicate `believed`, else why it is not among them."""
    if note["created_at"] > known_at:
        return "unknown"
    gone = note["deleted_at"] is not None and note["deleted_at"] <= known_at
    if gone and note["retired_reason"] != "superseded":
        return _reason(note)
    if note["valid_from"] > as_of:
        return "not_yet"
    over = note["valid_to"] is not None and note["valid_to"] <= as_of
    if over and (note["invalidated_at"] is None or note["invalidated_at"] <= known_at):
        return "superseded" if gone else "ended"
    return "live"


def _reason(note: Mapping[str, Any]) -> str:
    why = str(note["retired_reason"])
    return why if why in verdicts.RETIREMENTS else "retired"


def stale(rows: Sequence[Mapping[str, Any]], *, who: Reader, now: datetime) -> list[dict[str, Any]]:
    """These notes (rows with an `id`) with their `state` today and, of those that were retired for
    another note, `replaced_by`: the note that stands in its place now, as far as it may go to the
    reader. Two statements more when one of them was."""
    pool = Note.objects.visible_to(who.principal, mates=who.mates)
    wanted = pool.filter(pk__in=[row["id"] for row in rows])
    found = {one["id"]: one for one in wanted.values(*STATE_COLUMNS)}
    states = {pk: state(one, now) for pk, one in found.items()}
    gone = [pk for pk, what in states.items() if what in verdicts.RETIREMENTS]
    heirs = _heirs(gone, who=who, now=now) if gone else {}
    return [
        {
            **row,
            "state": states.get(row["id"], "unknown"),
            "replaced_by": heirs.get(row["id"]),
        }
        for row in rows
    ]


def _heirs(notes: Collection[UUID], *, who: Reader, now: datetime) -> dict[UUID, dict[str, Any]]:
    """The last note of each line of replacements that the reader may be shown."""
    ends = {pk: [heir.kept.pk for heir in line] for pk, line in lines(notes).items()}
    later = {pk for line in ends.values() for pk in line}
    columns = {*STATE_COLUMNS, "title", "content", "project__name"}
    seen = who.notes().filter(pk__in=later).values(*columns)
    told = {one["id"]: one for one in seen}
    shown = {pk: [one for one in line if one in told] for pk, line in ends.items()}
    return {pk: _told(told[line[-1]], now) for pk, line in shown.items() if line}


def _told(note: Mapping[str, Any], now: datetime) -> dict[str, Any]:
    return {
        "id": str(note["id"]),
        "title": note["title"],
        "content": note["content"],
        "project": note["project__name"],
        "valid_from": note["valid_from"].isoformat(),
        "state": state(note, now),
    }
