"""The draw of the feed: how likely each note is to come up, and which one does.

A note weighs (1 / notes of its source) x 0.5^shown: a long document comes up as often as a short
one, and what was seen lately waits. Pure; the clock and the dice are arguments.

Drawn in two steps, with the odds of one: a source first, by the sum of what its notes weigh, then
one of its notes. Only notes that were shown weigh other than the others of their source, so the
first step needs a count of each source and nothing of each note.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)

#: Days after which a showing counts half.
# Why: what one saw a month ago is half forgotten.
# Calibrate: share of ratings "again" by days since a note was shown last.
HALF_LIFE_DAYS = 30.0


@dataclass(frozen=True)
class Drawn(Generic[Key]):
    """What came up, and how likely that was, 0 to 1."""

    key: Key
    probability: float


def showings(ages_days: Iterable[float]) -> float:
    """How often a note was shown, each time counting half after HALF_LIFE_DAYS and so on."""
    return math.fsum(math.pow(0.5, max(age, 0.0) / HALF_LIFE_DAYS) for age in ages_days)


def faded(shown: float) -> float:
    """What is left of a weight after so many showings."""
    return math.pow(0.5, shown)


def fades(shown: Mapping[Key, float]) -> dict[Key, float]:
    """What is left of each weight, as parts of the largest of them: of some, one is always 1."""
    # Why: what was shown a thousand times weighs nothing in floats, and may be all there is.
    least = min(shown.values(), default=0.0)
    return {key: faded(one - least) for key, one in shown.items()}


def weights(sizes: Mapping[str, int], shown: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """The weight of each source: 1 while none of its notes was shown, less for those that were.

    `sizes` are the notes of each source, `shown` the showings of those of its notes that were. When
    every note was shown, all is measured by the one that was shown least: some source always weighs
    something.
    """
    fresh = {
        source: max(size - len(shown.get(source, ())), 0)
        for source, size in sizes.items()
        if size > 0
    }
    times = [one for source in fresh for one in shown.get(source, ())]
    least = 0.0 if any(fresh.values()) else min(times, default=0.0)
    return {
        source: (new + math.fsum(faded(one - least) for one in shown.get(source, ())))
        / sizes[source]
        for source, new in fresh.items()
    }


def draw(weighed: Mapping[Key, float], random: Random) -> Drawn[Key]:
    """One of these by weight, in the order given. Raises ValueError when none weighs anything."""
    whole = sum(weighed.values())
    if whole <= 0:
        raise ValueError("nothing to draw from")
    left = random.random() * whole
    last: Drawn[Key] | None = None
    for key, weight in weighed.items():
        if weight <= 0:
            continue
        last = Drawn(key, weight / whole)
        left -= weight
        if left < 0:
            break
    # Rounding may leave a crumb after the last one.
    assert last is not None
    return last
