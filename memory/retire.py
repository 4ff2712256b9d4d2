"""The one place where notes leave the living, and where a person's undo brings them back.

Writes: note (deleted_at, retired_reason, valid_to, invalidated_at, confidence), and by
`memory.searchtexts` what is searched and counted.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from uuid import UUID

from django.db import transaction

from memory.models import Note
from memory.searchtexts import restore, withdraw


@transaction.atomic
def retire(
    notes: Collection[UUID], *, reason: str, now: datetime, valid_to: datetime | None = None
) -> int:
    """Tombstone these notes; how many were still there. `valid_to` ends what was true, as well."""
    ended = {"valid_to": valid_to, "invalidated_at": now} if valid_to else {}
    gone = (
        Note.objects.as_pipeline()
        .filter(pk__in=notes, deleted_at__isnull=True)
        .update(deleted_at=now, retired_reason=reason, **ended)
    )
    withdraw(notes)
    return gone


@transaction.atomic
def revive(note: UUID) -> int:
    """Undo a retirement; 0 when the note was not retired."""
    back = (
        Note.objects.as_pipeline()
        .filter(pk=note, deleted_at__isnull=False)
        .update(deleted_at=None, retired_reason="", valid_to=None, invalidated_at=None)
    )
    restore([note])
    return back


def set_confidence(note: UUID, confidence: float) -> None:
    Note.objects.as_pipeline().filter(pk=note).update(confidence=confidence)
