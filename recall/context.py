"""Context: what a session should know from its start. Deterministic; no embedding, no model.

Reads: note, pin. Writes: emission. Audits: injection, for every call, in the same transaction.
Verify: the same notes in the same order for the same rows; what its principal pinned, then the own
project, then global.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import Case, IntegerField, Q, Value, When

from memory.attribution import GLOBAL
from memory.ledger import emit
from memory.models import Injection, Note, Pin, Principal
from recall.block import BLOCK_CHARACTERS_MAX, Block, render
from recall.reader import reader
from recall.results import NOTE_READ, told
from recall.search import Past
from recall.states import stale
from recall.where import NO_FACTS, Facts, where

#: Notes of a context.
# Why: a minute's reading for a person, some 600 tokens for an agent.
# Calibrate: share of a session's prompts whose recalled notes were in its context already.
CONTEXT_NOTES_MAX = 12

#: The most of them that a caller may ask for.
# Why: more than a block holds, so that short notes are not cut off by their number.
CONTEXT_NOTES_ASKED_MAX = 50


@dataclass(frozen=True)
class Context:
    """The block and its notes, in order; `omitted` notes did not fit."""

    outcome: str
    text: str
    notes: tuple[dict[str, Any], ...]
    omitted: int
    injection: int

    def as_json(self) -> dict[str, Any]:
        named = ("title", "content", "context", "said_by", "confidence", "importance", "tags")
        told_as = ("shared_by", "disputed")
        return {
            "outcome": self.outcome,
            "text": self.text,
            "notes": [
                {
                    "id": str(note["id"]),
                    "project": note["project__name"],
                    "valid_from": note["valid_from"].isoformat(),
                    **{name: note[name] for name in (*named, *told_as)},
                }
                for note in self.notes
            ],
            "omitted": self.omitted,
            "injection": self.injection,
        }


@transaction.atomic
def recall_context(
    *,
    principal: Principal,
    now: datetime,
    cwd: str = "",
    session: str = "",
    facts: Facts = NO_FACTS,
    most: int = CONTEXT_NOTES_MAX,
    characters: int = BLOCK_CHARACTERS_MAX,
    past: Past | None = None,
) -> Context:
    """The `most` important notes of the project that `cwd` and `facts` name, then of `global`; what
    the principal pinned comes before all others. What is live, or held then."""
    started = time.perf_counter()
    here = where(principal=principal, session=session, cwd=cwd, facts=facts)
    pool = Note.objects.visible_to(principal).wanted_by(principal, here.project_id)
    own_first = Case(
        When(project__in=here.family, then=Value(0)),
        default=Value(1),
        output_field=IntegerField(),
    )
    found = (
        (pool.believed(as_of=past.as_of, known_at=past.known_at) if past else pool.live(now))
        .filter(Q(project__in=here.family) | Q(project__name=GLOBAL))
        .annotate(own=own_first, pinned=_pinned_first(principal))
        .order_by("pinned", "own", "-importance", "-valid_from", "pk")
        .values(*NOTE_READ, "pinned")[:most]
    )
    rows = told(list(found), principal=principal)
    if past:
        rows = stale(rows, who=reader(principal, here.project_id), now=now)
    block: Block = render(rows, characters=characters)
    notes = tuple(rows[position] for position in block.included)
    row = Injection.objects.create(
        owner=principal,
        mode="context",
        session=here.session,
        cwd=here.cwd,
        project_id=here.project_id,
        options=past.as_json() if past else {},
        outcome="injected" if notes else "no_hits",
        note_ids=[note["id"] for note in notes],
        hits=[
            {"note": str(note["id"]), "rank": n, **({} if note["pinned"] else {"pinned": True})}
            for n, note in enumerate(notes, start=1)
        ],
        timings={"total": round((time.perf_counter() - started) * 1000, 2)},
        omitted=block.omitted,
        characters=len(block.text),
        created_at=now,
    )
    if block.text:
        emit(block.text, owner=principal, kind="recall", reference=str(row.pk), now=now)
    return Context(row.outcome, block.text, notes, block.omitted, row.pk)


def _pinned_first(principal: Principal) -> Case:
    """0 for what the principal pinned, 1 for the rest."""
    # Without correlation: hashed once, whatever the number of notes.
    pins = Pin.objects.filter(principal=principal).values("note")
    return Case(When(pk__in=pins, then=Value(0)), default=Value(1), output_field=IntegerField())
