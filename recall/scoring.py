"""From fused ranks to a final order: prior, decay, project boost, and which floors were cleared.

Pure; the clock is an argument. Knows nothing about how tracks were made.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from recall.fusion import Fused

#: Weight of a note by its memory kind.
# Why: 1.0 until measuring shows that a kind deserves more.
# Calibrate: useful injections by kind against injections by kind.
KIND_PRIORS: Mapping[str, float] = {"semantic": 1.0, "episodic": 1.0, "procedural": 1.0}

#: Weight of a note of the project that asks.
# Why: some fifteen ranks of one track, a fifth of a hit in both: what was decided here comes before
# what was decided elsewhere, and a note that both tracks put first still wins from anywhere.
# Calibrate: share of injected notes of other projects that people marked wrong.
SAME_PROJECT_BOOST = 1.25

#: The keyword track's score below which words alone put no note before an agent.
# Why: ts_rank of any-of queries is 0.06 times the share of the asked terms that a note holds,
# (and up to 0.08 for one that stands in title and content), so this asks for more than half of
# them. At 0.03 prompts of seven everyday words found notes that share three of them.
# Calibrate: false injections and misses of the two prompt sets of the tests, by floor.
KEYWORD_FLOOR = 0.04


@dataclass(frozen=True)
class Floors:
    """What a hit must reach: the final score's floor, and one of the two tracks' own."""

    score: float
    semantic: float
    keyword: float

    def as_json(self) -> dict[str, float]:
        return {"score": self.score, "semantic": self.semantic, "keyword": self.keyword}


@dataclass(frozen=True)
class Hit:
    """One note with every number that decided about it."""

    note: Mapping[str, Any]
    fused: Fused[UUID]
    prior: float
    decay: float
    boost: float
    score: float
    cleared: tuple[str, ...]
    refused: str

    def as_json(self, *, rank: int, injected: bool) -> dict[str, Any]:
        return {
            "note": str(self.note["id"]),
            "rank": rank,
            "score": round(self.score, 6),
            "fused": round(self.fused.score, 6),
            "prior": self.prior,
            "decay": round(self.decay, 6),
            "boost": self.boost,
            "tracks": {
                name: {"rank": at.rank, "score": round(at.score, 6)}
                for name, at in self.fused.tracks.items()
            },
            "cleared": list(self.cleared),
            "refused": self.refused,
            "injected": injected,
        }


def weigh(
    fused: Fused[UUID],
    note: Mapping[str, Any],
    *,
    project: str | None,
    floors: Floors,
    half_life_days: float,
    now: datetime,
) -> Hit:
    """Apply prior, decay and boost, and compare with the floors; equal to a floor is above it."""
    prior = KIND_PRIORS.get(note["memory_kind"], 1.0)
    decay = freshness(note["valid_from"], half_life_days=half_life_days, now=now)
    boost = SAME_PROJECT_BOOST if project and note["project__name"] == project else 1.0
    score = fused.score * prior * decay * boost
    own = {"semantic": floors.semantic, "keyword": floors.keyword}
    cleared = tuple(name for name, at in fused.tracks.items() if at.score >= own[name])
    refused = "" if cleared else "below every track's floor"
    if not refused and score < floors.score:
        refused = "below the floor of the final score"
    return Hit(note, fused, prior, decay, boost, score, cleared, refused)


def freshness(at: datetime, *, half_life_days: float, now: datetime) -> float:
    """Weight of a note by its age: halves every `half_life_days`; 0 days switches it off."""
    if half_life_days <= 0:
        return 1.0
    days = max((now - at) / timedelta(days=1), 0.0)
    return float(0.5 ** (days / half_life_days))
