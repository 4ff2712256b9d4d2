"""The ledger row of a recall, and the sample of what it put out: both or neither.

Writes: injection, emission. Shared by prompt recall and by queries, whose rows tell the same: which
floors and which ranker were in force, and every number of what was weighed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction

from memory.ledger import emit
from memory.models import Injection, Principal
from memory.text.secrets import redact
from recall.calibration import InForce
from recall.floors import Source
from recall.ranker import PARTS_SHOWN
from recall.scoring import Hit
from recall.search import Searched
from recall.where import Where, tidy

#: Weighed hits of each source kept on the row, best first, beside those that went out.
# Why: what ranks below thirty explains nothing any more.
HITS_KEPT_MAX = 30

#: Characters of the question kept on the row.
# Why: enough to ask it again; a pasted log need not be kept twice.
QUERY_KEPT_CHARACTERS_MAX = 2_000


@transaction.atomic
def record(
    mode: str,
    here: Where,
    *,
    principal: Principal,
    now: datetime,
    query: str,
    outcome: str,
    hits: Sequence[Hit],
    weighed: Sequence[Hit],
    floors: Mapping[Source, Mapping[str, float]],
    rules: InForce,
    options: Mapping[str, Any],
    searched: Searched | None,
    omitted: int,
    text: str,
    milliseconds: float,
    gate: str = "",
) -> int:
    """Write both; the id of the row. `hits` went out, in order; `weighed` is all that was seen;
    `floors` are those that were used, by source, and `rules` the adoptions that they and the order
    are from, which the row keeps beside them."""
    shown = {(hit.source, hit.key): hit for hit in hits}
    kept = [
        (rank, hit)
        for source in ("note", "turn")
        for rank, hit in enumerate((one for one in weighed if one.source == source), start=1)
        if rank <= HITS_KEPT_MAX or (source, hit.key) in shown
    ]
    row = Injection.objects.create(
        owner=principal,
        mode=mode,
        query=redact(query).text[:QUERY_KEPT_CHARACTERS_MAX],
        session=here.session,
        cwd=here.cwd,
        project_id=here.project_id,
        outcome=outcome,
        gate=gate,
        options=_told(options) | _read(searched),
        note_ids=_notes(hits),
        turn_ids=[hit.key for hit in hits if hit.source == "turn"],
        hits=[
            shown.get((hit.source, hit.key), hit).as_json(
                rank=rank, injected=(hit.source, hit.key) in shown, parts=PARTS_SHOWN
            )
            for rank, hit in kept
        ],
        floors={
            **floors,
            "calibration": rules.calibration,
            "ranker": rules.ranker_calibration,
        },
        timings={**(searched.milliseconds if searched else {}), "total": milliseconds},
        degraded=list(searched.degraded) if searched else [],
        omitted=omitted,
        characters=len(text),
        model_asked=searched.question.model if searched else "",
        created_at=now,
    )
    if text:
        emit(text, owner=principal, kind="recall", reference=str(row.pk), now=now)
    return row.pk


def _read(searched: Searched | None) -> dict[str, Any]:
    """Which server answered the search, where there is more than one."""
    return {"read": searched.read.as_json()} if searched and searched.read else {}


def _notes(hits: Sequence[Hit]) -> list[UUID]:
    """The notes that went out, in order, and behind them what is told to stand in their place."""
    notes = [hit for hit in hits if hit.source == "note"]
    heirs = [heir["id"] for hit in notes if (heir := hit.facts.get("replaced_by"))]
    return list(dict.fromkeys([*(hit.key for hit in notes), *map(UUID, heirs)]))


def _told(options: Mapping[str, Any]) -> dict[str, Any]:
    """What was asked for, as Postgres holds it, with nothing private or secret in it: a caller
    names a project."""
    return {
        name: tidy(value) if isinstance(value, str) else value for name, value in options.items()
    }
