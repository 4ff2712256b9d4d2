"""Reciprocal rank fusion: several ranked lists become one. Pure; knows nothing about notes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

K = TypeVar("K")

#: The constant of reciprocal rank fusion.
# Why: the field's standard; operators set their floors against scores made with it.
# Calibrate: do not; order by something else and keep this number on the row.
RRF_K = 60


@dataclass(frozen=True)
class Placed:
    """Where one track put a thing: rank from 1, and the track's own score."""

    rank: int
    score: float


@dataclass(frozen=True)
class Fused(Generic[K]):
    """One thing with its fused score and its place in each track that has it."""

    key: K
    score: float
    tracks: Mapping[str, Placed] = field(default_factory=dict)


def fuse(
    tracks: Mapping[str, Sequence[tuple[K, float]]],
    *,
    weights: Mapping[str, float] | None = None,
) -> list[Fused[K]]:
    """Merge ranked (key, score) lists by the sum of weight / (RRF_K + rank), 1 where no weight is
    given; best first, ties by key."""
    weights = weights or {}
    places: dict[K, dict[str, Placed]] = {}
    for name, ranked in tracks.items():
        for rank, (key, score) in enumerate(ranked, start=1):
            places.setdefault(key, {}).setdefault(name, Placed(rank, score))
    fused = [
        Fused(
            key,
            sum(weights.get(name, 1.0) / (RRF_K + place.rank) for name, place in at.items()),
            at,
        )
        for key, at in places.items()
    ]
    return sorted(fused, key=lambda one: (-one.score, str(one.key)))
