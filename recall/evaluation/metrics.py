"""How good a ranked list is against what was asked for. Pure.

A hit is the set of names it stands for (a note stands for itself and its evidence), a fact the set
of names any of which bears it out. Knows nothing about engines.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, fields
from statistics import fmean

#: Hits looked at; the shallower of the two recalls.
# Why: five notes go before an agent, ten are what a person reads.
DEPTH_MAX, SHALLOW_MAX = 10, 5


@dataclass(frozen=True)
class Marks:
    """recall5, recall10: share of the facts in the top hits. mrr10: one over the rank of the first
    right hit. ndcg10: right hits weighed by how high they stand, against the best order."""

    recall5: float
    recall10: float
    mrr10: float
    ndcg10: float


def mark(hits: Sequence[Set[str]], facts: Sequence[Set[str]]) -> Marks:
    """Judge one ranked list, best first, against at least one fact.

    A fact counts once: a second hit that bears out nothing new is as good as a wrong one.
    """
    left = list(facts)
    found_by: list[int] = []
    for rank, hit in enumerate(hits[:DEPTH_MAX], start=1):
        found = [fact for fact in left if fact & hit]
        found_by += [rank] * len(found)
        left = [fact for fact in left if not fact & hit]
    shallow = sum(rank <= SHALLOW_MAX for rank in found_by)
    first = min(found_by, default=0)
    # One hit that bears out two facts is one right place, of the ideal list, too.
    gain = sum(_discount(rank) for rank in dict.fromkeys(found_by))
    ideal_places = min(len(facts) - len(found_by) + len(set(found_by)), DEPTH_MAX)
    ideal = sum(_discount(rank) for rank in range(1, ideal_places + 1))
    return Marks(
        recall5=shallow / len(facts),
        recall10=len(found_by) / len(facts),
        mrr10=1 / first if first else 0.0,
        ndcg10=gain / ideal,
    )


def _discount(rank: int) -> float:
    return 1 / math.log2(rank + 1)


def average(marks: Iterable[Marks]) -> dict[str, float]:
    """The mean of each number, to four digits; zeros of nothing."""
    rows = list(marks)
    return {
        one.name: round(fmean(getattr(row, one.name) for row in rows), 4) if rows else 0.0
        for one in fields(Marks)
    }


def share(part: int, whole: int) -> float:
    """A part of a whole, to four digits; zero of nothing."""
    return round(part / whole, 4) if whole else 0.0


def percentile(values: Sequence[float], percent: float) -> float:
    """The value that so many percent of the values do not exceed; zero of nothing."""
    if not values:
        return 0.0
    ordered = sorted(values)
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)]
