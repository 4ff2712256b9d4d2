"""Prompt recall: the few notes that answer a prompt, or silence, with the reason for either.

Reads: note. Writes: emission. Audits: injection, for every call, refusals and zero hits included,
in the same transaction as the emission. Verify: nothing injected is below the floors on its row.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import transaction

from memory.ledger import emit
from memory.llm.choice import embedder
from memory.llm.thresholds import recall_floor
from memory.models import Injection, Principal
from memory.text.secrets import redact
from memory.text.tongue import tongue
from recall.block import render
from recall.fusion import fuse
from recall.gates import Asked, ask
from recall.scoring import KEYWORD_FLOOR, Floors, Hit, weigh
from recall.search import Tracks, search, told
from recall.where import Where, where

#: Notes put before an agent for one prompt.
NOTES_MAX = 5

#: Weighed hits kept on the row, best first.
# Why: all of both tracks are weighed; what ranks below thirty explains nothing any more.
HITS_KEPT_MAX = 30

#: Characters of the prompt kept on the row.
QUERY_KEPT_CHARACTERS_MAX = 2_000

assert NOTES_MAX <= HITS_KEPT_MAX


@dataclass(frozen=True)
class Recalled:
    """What goes back: an outcome word, the block, the hits in it, and all that was weighed."""

    outcome: str
    text: str = ""
    notes: tuple[Hit, ...] = ()
    weighed: tuple[Hit, ...] = ()
    omitted: int = 0
    asked: Asked = Asked("")
    floors: Floors = Floors(0, 0, 0)
    tracks: Tracks | None = None
    milliseconds: float = 0.0
    injection: int | None = None

    def as_json(self) -> dict[str, Any]:
        degraded = self.tracks.degraded if self.tracks else {}
        return {
            "outcome": self.outcome,
            "gate": self.asked.gate,
            "detail": self.asked.detail or "; ".join(f"{k}: {why}" for k, why in degraded.items()),
            "text": self.text,
            "notes": [_told(hit, rank) for rank, hit in enumerate(self.notes, start=1)],
            "omitted": self.omitted,
            "degraded": list(degraded),
            "floors": self.floors.as_json(),
            "milliseconds": self.milliseconds,
            "injection": self.injection,
        }


def recall_notes(
    prompt: str,
    *,
    principal: Principal,
    now: datetime,
    session: str = "",
    cwd: str = "",
    floor: float | None = None,
) -> Recalled:
    """Notes for a prompt, best first; `floor` replaces the machine's floor of the final score."""
    started = time.perf_counter()
    here = where(session=session, cwd=cwd)
    asked = ask(prompt)
    floors = Floors(
        score=settings.ARGUS.recall_floor if floor is None else floor,
        semantic=recall_floor(embedder().name, tongue(asked.text)),
        keyword=KEYWORD_FLOOR,
    )
    recalled = (
        Recalled("gated", asked=asked, floors=floors)
        if asked.gate
        else _search(asked, here, floors, principal=principal, now=now)
    )
    took = round((time.perf_counter() - started) * 1000, 2)
    return _record(replace(recalled, milliseconds=took), here, principal=principal, now=now)


def _search(
    asked: Asked, here: Where, floors: Floors, *, principal: Principal, now: datetime
) -> Recalled:
    """Search, weigh, and keep what clears the floors, each statement once."""
    tracks = search(asked.text, principal=principal, now=now)
    fused = fuse(tracks.ranked)
    half_life = settings.ARGUS.recency_half_life_days
    weighed = [
        weigh(
            one,
            tracks.notes[one.key],
            project=here.project,
            floors=floors,
            half_life_days=half_life,
            now=now,
        )
        for one in fused
    ]
    weighed.sort(key=lambda hit: (-hit.score, str(hit.note["id"])))
    chosen: dict[str, Hit] = {}
    for hit in weighed:
        if not hit.refused:
            chosen.setdefault(hit.note["content_key"], hit)
    top = list(chosen.values())[:NOTES_MAX]
    rows = told([hit.note for hit in top], principal=principal)
    block = render(rows)
    notes = tuple(replace(top[place], note=rows[place]) for place in block.included)
    return Recalled(
        _outcome(weighed, notes),
        block.text,
        notes,
        tuple(weighed[:HITS_KEPT_MAX]),
        block.omitted,
        asked,
        floors,
        tracks,
    )


def _outcome(weighed: list[Hit], notes: tuple[Hit, ...]) -> str:
    if notes:
        return "injected"
    return "below_floor" if weighed else "no_hits"


@transaction.atomic
def _record(recalled: Recalled, here: Where, *, principal: Principal, now: datetime) -> Recalled:
    """Write the ledger row and the emission; both or neither."""
    injected = {hit.note["id"] for hit in recalled.notes}
    tracks = recalled.tracks
    row = Injection.objects.create(
        owner=principal,
        mode="prompt",
        query=redact(recalled.asked.text).text[:QUERY_KEPT_CHARACTERS_MAX],
        session=here.session,
        cwd=here.cwd,
        project_id=here.project_id,
        outcome=recalled.outcome,
        gate=recalled.asked.gate,
        note_ids=[hit.note["id"] for hit in recalled.notes],
        hits=[
            hit.as_json(rank=rank, injected=hit.note["id"] in injected)
            for rank, hit in enumerate(recalled.weighed, start=1)
        ],
        floors=recalled.floors.as_json(),
        timings={**(tracks.milliseconds if tracks else {}), "total": recalled.milliseconds},
        degraded=list(tracks.degraded) if tracks else [],
        omitted=recalled.omitted,
        characters=len(recalled.text),
        model_asked=tracks.model if tracks else "",
        created_at=now,
    )
    if recalled.text:
        emit(recalled.text, owner=principal, kind="recall", reference=str(row.pk), now=now)
    return replace(recalled, injection=row.pk)


def _told(hit: Hit, rank: int) -> dict[str, Any]:
    note = hit.note
    more = {
        "title": note["title"],
        "content": note["content"],
        "context": note["context"],
        "project": note["project__name"],
        "said_by": note["said_by"],
        "valid_from": note["valid_from"].isoformat(),
        "confidence": note["confidence"],
        "tags": note["tags"],
        "shared_by": note["shared_by"],
        "disputed": note["disputed"],
    }
    return {**hit.as_json(rank=rank, injected=True), "id": str(note["id"]), **more}
