"""Opening a note or a turn for an agent: what it reads is on the ledger, as what was injected is.

Reads: injection. Writes: emission. Audits: injection (mode open), in the same transaction. A note
that an agent read here, by itself or as a link, and says again bears nothing out.
Verify: a note that was silenced is answered like one that is not there, and so is a turn that bears
it out. The id may have stayed with the agent from before, and what somebody asked never to see
again goes to no agent by any door; who wants it back has the id from `feedback list`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction

from memory.errors import NotFound
from memory.ledger import emit
from memory.models import Injection, Principal
from recall.links import open_note
from recall.reader import Reader, reader
from recall.surroundings import open_turn
from recall.where import Where, where

#: Keys of an answer that hold what somebody said, or what was made of it.
WORDS = ("content", "context", "quote", "body")


def read_note(
    note_id: UUID,
    *,
    principal: Principal,
    now: datetime,
    session: str = "",
    cwd: str = "",
    **how: Any,
) -> dict[str, Any]:
    """`open_note`, with its row; raises NotFound also for a note that was silenced here."""
    here, who = _asker(principal, session, cwd)
    if note_id in who.notes_out:
        raise NotFound(f"no note {note_id}")
    opened = open_note(note_id, who=who, now=now, **how)
    _record(opened, here, principal=principal, now=now)
    return opened


def read_turn(
    turn_id: int,
    *,
    principal: Principal,
    now: datetime,
    session: str = "",
    cwd: str = "",
    **how: Any,
) -> dict[str, Any]:
    """`open_turn`, with its row; raises NotFound also for a turn that bears out a note that was
    silenced here."""
    here, who = _asker(principal, session, cwd)
    if turn_id in who.turns_out:
        raise NotFound(f"no turn {turn_id}")
    opened = open_turn(turn_id, who=who, now=now, **how)
    _record(opened, here, principal=principal, now=now)
    return opened


def _asker(principal: Principal, session: str, cwd: str) -> tuple[Where, Reader]:
    """Where it is read, and by whom: the project of the folder, or the one that the session was
    last told something for."""
    here = where(principal=principal, session=session, cwd=cwd)
    project = here.project_id
    if here.session and not here.cwd:
        rows = Injection.objects.visible_to(principal).filter(session=here.session)
        # A skipped recall told nothing, and is noted whenever its client gets to it.
        rows = rows.exclude(project=None).exclude(outcome="skipped")
        told = rows.order_by("-pk").values_list("project", flat=True)
        project = told.first()
    return here, reader(principal, project)


@transaction.atomic
def _record(opened: dict[str, Any], here: Where, *, principal: Principal, now: datetime) -> None:
    notes, turns = _ids(opened)
    row = Injection.objects.create(
        owner=principal,
        mode="open",
        session=here.session,
        cwd=here.cwd,
        project_id=here.project_id,
        outcome="opened",
        note_ids=notes,
        turn_ids=turns,
        characters=len(json.dumps(opened, default=str, ensure_ascii=False)),
        created_at=now,
    )
    text = "\n".join(_words(opened))
    emit(text, owner=principal, kind="recall", reference=str(row.pk), now=now)


def _ids(opened: Mapping[str, Any]) -> tuple[list[UUID], list[int]]:
    """Every note and every turn that the answer tells something of, the opened one first."""
    notes: dict[UUID, None] = {}
    turns: dict[int, None] = {}
    for piece in _pieces([opened]):
        if isinstance(piece.get("id"), str):
            notes[UUID(piece["id"])] = None
        elif "id" in piece:
            turns[piece["id"]] = None
    return list(notes), list(turns)


def _words(opened: Mapping[str, Any]) -> Iterator[str]:
    for piece in _pieces([opened]):
        yield from (piece[name] for name in WORDS if piece.get(name))


def _pieces(values: Iterable[Any]) -> Iterator[Mapping[str, Any]]:
    """Every object of an answer, outer ones before inner ones."""
    for value in values:
        if isinstance(value, Mapping):
            yield value
            yield from _pieces(value.values())
        elif isinstance(value, list):
            yield from _pieces(value)
