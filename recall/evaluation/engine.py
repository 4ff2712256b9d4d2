"""The real engine as an evaluation asks it: one question in, a ranked list out. Nothing of its own.

Reads and writes what recall does. Knows nothing about which answers are right.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from memory.models import Principal
from recall.evaluation.ground import note_key, raw_key
from recall.notes import Wanted, recall_notes
from recall.query import recall_query
from recall.scoring import Hit


@dataclass(frozen=True)
class Found:
    """One hit: its keys (a note's own and those of raw items folded into it), the score it is
    ordered by, and whether it cleared its floors."""

    keys: tuple[str, ...]
    score: float
    cleared: bool


def rank_texts(
    question: str, *, principal: Principal, project: str, now: datetime, depth: int
) -> list[Found]:
    """Notes and raw items of a project (of all, when it is ""), best first, floors only marked."""
    answered = recall_query(question, principal=principal, now=now, project=project, limit=depth)
    return [Found(_keys(hit), hit.order, not hit.judged.refused) for hit in answered.hits]


def injected(
    prompt: str, *, principal: Principal, project: str, now: datetime
) -> Sequence[tuple[str, ...]]:
    """Keys of what would be put before an agent that asks this, gates and floors and all."""
    wanted = Wanted(project=project)
    recalled = recall_notes(prompt, principal=principal, now=now, wanted=wanted)
    return [_keys(hit) for hit in recalled.hits]


def _keys(hit: Hit) -> tuple[str, ...]:
    own = note_key(hit.key) if hit.source == "note" else raw_key(hit.key)
    return (own, *map(raw_key, hit.turns))
