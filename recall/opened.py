"""Opening a note or a turn for an agent: what it reads is on the ledger, as what was injected is.

Audits: injection (mode open). A note that an agent read here and says again bears nothing out.
"""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any
from uuid import UUID

from memory.models import Injection, Principal
from recall.links import open_note
from recall.surroundings import open_turn
from recall.where import where


def read_note(
    note_id: UUID, *, principal: Principal, now: datetime, session: str = "", **how: Any
) -> dict[str, Any]:
    """`open_note`, with its row."""
    opened = open_note(note_id, principal=principal, now=now, **how)
    _record(opened, principal=principal, now=now, session=session, note_ids=[note_id])
    return opened


def read_turn(
    turn_id: int, *, principal: Principal, now: datetime, session: str = "", **how: Any
) -> dict[str, Any]:
    """`open_turn`, with its row; the notes named beside the turn were read with it."""
    opened = open_turn(turn_id, principal=principal, now=now, **how)
    named = [UUID(one["id"]) for one in opened["notes"]]
    _record(
        opened, principal=principal, now=now, session=session, turn_ids=[turn_id], note_ids=named
    )
    return opened


def _record(
    opened: dict[str, Any], *, principal: Principal, now: datetime, session: str, **ids: Any
) -> None:
    Injection.objects.create(
        owner=principal,
        mode="open",
        session=where(principal=principal, session=session).session,
        outcome="opened",
        characters=len(json.dumps(opened, default=str, ensure_ascii=False)),
        created_at=now,
        **ids,
    )
