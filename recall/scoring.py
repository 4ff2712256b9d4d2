"""From what was found to a final order: prior, decay, project boost, and which floors were cleared.

Two numbers are kept of every hit. `score` is the fused score of the ledger with the three factors,
which floors read; `order` is the ranker's sum with the same factors, which decides who comes first:
its sum is log-odds, so a factor on the odds is a summand there. Pure; the clock is an argument.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings

from memory.text.tongue import tongue
from recall.floors import Evidence, Floors, Judged, Source, above, judge
from recall.found import Found
from recall.search import Searched

#: Weight of a note by its memory kind, of a raw item by its own.
# Why: 1.0 until measuring shows that a kind deserves more.
# Calibrate: useful injections by kind against injections by kind; `manage.py eval` by kind.
KIND_PRIORS: Mapping[str, float] = {"semantic": 1.0, "episodic": 1.0, "procedural": 1.0}

#: Weight of a hit of the project that asks.
# Why: some fifteen ranks of one track, a fifth of a hit in both: what was decided here comes before
# what was decided elsewhere, and a note that both tracks put first still wins from anywhere.
# Calibrate: share of injected notes of other projects that people marked wrong.
SAME_PROJECT_BOOST = 1.25

#: The least that a factor counts for in an order.
# Why: the logarithm of nothing is no number; this is below every sum of the ranker's.
FACTOR_MIN = 1e-9

#: Name of what is left of a sum beside the parts that are told.
REST = "rest"


@dataclass(frozen=True)
class Hit:
    """One note or raw item with every number that decided about it. `facts` is what is told of
    it; `turns` are raw items that a note stands for, `twins` hits of its source that say the same,
    both once results are folded."""

    found: Found
    facts: Mapping[str, Any]
    prior: float
    decay: float
    boost: float
    score: float
    order: float
    judged: Judged
    seen: Evidence
    withheld: str = ""
    state: str = "live"
    turns: tuple[int, ...] = ()
    twins: tuple[str, ...] = ()

    @property
    def source(self) -> str:
        return self.found.source

    @property
    def key(self) -> Any:
        return self.found.key

    def with_facts(self, facts: Mapping[str, Any]) -> Hit:
        return replace(self, facts=facts)

    def sums(self, most: int | None = None) -> dict[str, float]:
        """What `order` is the sum of: the ranker's parts and the factors in log-odds. `most`: the
        weightiest one by one, and the rest as one number."""
        factors = {"prior": self.prior, "decay": self.decay, "boost": self.boost}
        parts = {name: part for name, part in self.found.features.items() if part}
        parts |= {name: _log_odds(factor) for name, factor in factors.items() if factor != 1.0}
        if most is None or len(parts) <= most:
            return parts
        weighty = sorted(parts, key=lambda name: (-abs(parts[name]), name))[:most]
        kept = {name: parts[name] for name in weighty}
        return {**kept, REST: math.fsum(parts.values()) - math.fsum(kept.values())}

    def as_json(self, *, rank: int, injected: bool, parts: int | None = None) -> dict[str, Any]:
        """What the ledger keeps of a hit; numbers, ids and words of the question alone. `parts`:
        the most of the ranker's sum that are told one by one."""
        found = self.found
        return {
            self.source: str(self.key) if self.source == "note" else self.key,
            "source": self.source,
            "rank": rank,
            "score": round(self.score, 6),
            "fused": round(found.fused, 6),
            "prior": self.prior,
            "decay": round(self.decay, 6),
            "boost": self.boost,
            "order": round(self.order, 4),
            "features": {name: round(part, 4) for name, part in self.sums(parts).items()},
            "tracks": {
                name: {"rank": at.rank, "score": round(at.score, 6)}
                for name, at in found.tracks.items()
            },
            "cosine": None if found.cosine is None else round(found.cosine, 4),
            "coverage": round(found.coverage, 4),
            "relevance": round(self.judged.relevance, 4),
            "terms": list(found.words),
            "cleared": list(self.judged.cleared),
            "refused": self.withheld or self.judged.refused,
            "injected": injected,
            "turns": list(self.turns),
            "twins": list(self.twins),
            "neighbour": str(found.near) if isinstance(found.near, UUID) else found.near,
            "reranked": self.facts.get("reranked_score"),
            **self._became(),
        }

    def _became(self) -> dict[str, Any]:
        """Of what holds no more its state and, by id, the note that stands in its place."""
        state = self.facts.get("state", self.state)
        heir = self.facts.get("replaced_by")
        return {} if state == "live" else {"state": state, "replaced_by": heir and heir["id"]}


@dataclass(frozen=True)
class Scales:
    """What hits of one recall are weighed by: the place that asks, with the names of projects that
    were merged with it (`alike`), floors, tongue and clock."""

    project: str | None
    floors: Mapping[Source, Floors]
    model: str
    tongue: str
    half_life_days: float
    now: datetime
    alike: Collection[str] = ()


def weigh(found: Found, scales: Scales) -> Hit:
    """Apply prior, decay and boost, and compare with the floors; equal to a floor is above it."""
    facts = found.facts
    prior = KIND_PRIORS.get(facts.get("memory_kind") or "", 1.0)
    decay = freshness(facts["at"], half_life_days=scales.half_life_days, now=scales.now)
    name = facts["project__name"]
    here = bool(scales.project) and (name == scales.project or name in scales.alike)
    boost = SAME_PROJECT_BOOST if here else 1.0
    score = found.fused * prior * decay * boost
    keyword = found.tracks.get("keyword")
    seen = Evidence(
        above(found.cosine, scales.model, scales.tongue),
        keyword.score if keyword else 0.0,
        found.coverage,
        score,
        here,
    )
    judged = judge(seen, scales.floors[found.source])
    order = found.order + sum(map(_log_odds, (prior, decay, boost)))
    return Hit(found, facts, prior, decay, boost, score, order, judged, seen)


def weigh_all(
    searched: Searched,
    floors: Mapping[Source, Floors],
    *,
    project: str | None,
    now: datetime,
    alike: Collection[str] = (),
) -> list[Hit]:
    """Every find as a hit, those of each source by `order`. Between the sources relevance decides:
    a ranker's sum compares the candidates of one source and says nothing about another's."""
    question = searched.question
    scales = Scales(
        project,
        floors,
        question.model,
        tongue(question.text),
        settings.ARGUS.recency_half_life_days,
        now,
        alike,
    )
    hits = [weigh(one, scales) for one in searched.found]
    hits.sort(key=lambda hit: (-hit.order, str(hit.key)))
    # None stands behind one of its source that it is ordered before: it counts for as relevant.
    placed: list[tuple[float, str, int, Hit]] = []
    for source in floors:
        most = -math.inf
        own = [hit for hit in hits if hit.source == source]
        for place, hit in reversed(list(enumerate(own))):
            most = max(most, hit.judged.relevance)
            placed.append((-most, source, place, hit))
    return [hit for *_, hit in sorted(placed, key=lambda one: one[:3])]


def _log_odds(factor: float) -> float:
    """A factor on the odds as a summand; what is all but nothing stays finite."""
    return math.log(max(factor, FACTOR_MIN))


def freshness(at: datetime, *, half_life_days: float, now: datetime) -> float:
    """Weight of a note by its age: halves every `half_life_days`; 0 days switches it off."""
    if half_life_days <= 0:
        return 1.0
    days = max((now - at) / timedelta(days=1), 0.0)
    return float(0.5 ** (days / half_life_days))
