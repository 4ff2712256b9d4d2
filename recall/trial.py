"""Floors on trial: chosen by a person, and tried on the recalls of the ledger.

Reads: injection, feedback, calibration. Writes nothing (`recall.adopting` puts them into force).
Knows nothing about forms: a page hands over numbers by name.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from memory.errors import RefusedError
from memory.llm.choice import embedder
from memory.llm.thresholds import recall_floor
from memory.models import Principal
from memory.querysets import OwnerQuerySet
from recall.calibration import ADOPTED, InForce, in_force
from recall.floors import NAMES, Floors, Source
from recall.labels import RIGHT, words_of
from recall.weighed import Weighed, weighed
from recall.whatif import WhatIf, whatif

#: The ends of what a floor may be set to, as people read it: a semantic one is a cosine.
# Why: beyond them everything or nothing passes.
RANGES: Mapping[str, tuple[float, float]] = {
    "semantic": (-1.0, 1.0),
    "keyword": (0.0, 1.0),
    "relevance": (-20.0, 20.0),
    "score": (0.0, 10.0),
}

#: Digits of a floor that are kept: those that people read.
DIGITS = 4

#: How different two floors must be to be two.
# Why: a form sends back what it was given, shortened to what people read.
SAME = 1e-4

#: Modes of recall that floors are tried on, by what a page calls them. Floors hold prompts back
#: alone; a query is judged as if it had been one.
MODES: Mapping[str, tuple[str, ...]] = {"prompts": ("prompt",), "all": ("prompt", "query")}


@dataclass(frozen=True)
class Trial:
    """Floors in force (by `calibration`) and on trial, and what they make of the same recalls."""

    model: str
    calibration: int | None
    now: Mapping[Source, Floors]
    then: Mapping[Source, Floors]
    rows: Sequence[Weighed]
    whatif: WhatIf

    @property
    def moved(self) -> bool:
        """Whether there is anything to save; the floor of the final score is saved elsewhere."""
        pairs = ((self.now[source], self.then[source]) for source in self.now)
        return any(
            abs(getattr(now, name) - getattr(then, name)) > SAME
            for now, then in pairs
            for name in ADOPTED
        )


def try_floors(
    given: Mapping[str, str],
    *,
    rows: OwnerQuerySet,
    principal: Principal,
    modes: str = "prompts",
) -> Trial:
    """What the floors of `given` ("note_relevance": "-1.5", ..., "score": ".02") would have done to
    the latest of `rows`, the injections that may be looked at. What is not given is as in force.

    The labels are the principal's own words. Raises RefusedError for what is no floor.
    """
    model = embedder().name
    standing = in_force(model)
    then = _moved(given, standing.floors, model)
    return tried(then, standing, model, rows=rows, principal=principal, modes=modes)


def tried(
    then: Mapping[Source, Floors],
    standing: InForce,
    model: str,
    *,
    rows: OwnerQuerySet,
    principal: Principal,
    modes: str = "prompts",
) -> Trial:
    """What the floors `then`, in place of those that `standing` has in force for the embedder
    `model`, would have done to the latest of `rows`, by the principal's own words. `modes`: of
    MODES; "" is prompts. Raises RefusedError for others."""
    if (asked := MODES.get(modes or "prompts")) is None:
        raise RefusedError(f"floors are tried on {' or '.join(MODES)}, not on {modes[:40]!r}")
    kept = weighed(rows, model=model, modes=asked)
    labels = {
        said: RIGHT[verdict] for said, verdict in words_of(principal).items() if verdict in RIGHT
    }
    return Trial(
        model,
        standing.calibration,
        standing.floors,
        then,
        kept,
        whatif(kept, now=standing.floors, then=then, labels=labels),
    )


def _moved(
    given: Mapping[str, str], base: Mapping[Source, Floors], model: str
) -> dict[Source, Floors]:
    """The floors in force with those in their place that were given and differ from what people
    read of them."""
    own = recall_floor(model, "english")
    moved = {}
    for source, floors in base.items():
        shown = floors.as_json(own=own)
        changed: dict[str, Any] = {}
        for name in NAMES:
            field = "score" if name == "score" else f"{source}_{name}"
            value = _number(field, name, given.get(field, ""))
            if value is not None and abs(value - shown[name]) > SAME:
                changed[name] = round(value - (own if name == "semantic" else 0.0), DIGITS)
        moved[source] = replace(floors, **changed)
    return moved


def _number(field: str, name: str, text: str) -> float | None:
    if not text.strip():
        return None
    try:
        value = float(text)
    except ValueError:
        raise RefusedError(f"{field.replace('_', ' ')}: {text[:40]!r} is no number") from None
    low, high = RANGES[name]
    if not (math.isfinite(value) and low <= value <= high):
        raise RefusedError(f"{field.replace('_', ' ')}: from {low:g} to {high:g}")
    return value
