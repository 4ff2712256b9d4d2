"""The floors that a person may move, as sliders: where each stands now and on trial, and between
which ends.

Pure: a trial in, numbers out. Knows nothing about how floors are tried (`recall.trial`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from memory.llm.thresholds import recall_floor
from recall.floors import SOURCES
from recall.trial import SAME, Trial
from recall.weighed import numbers

#: The ends of a slider, as far as the hits of the ledger do not reach beyond them.
SLIDES: Mapping[str, tuple[float, float]] = {
    "semantic": (0.0, 1.0),
    "keyword": (0.0, 1.0),
    "relevance": (-6.0, 4.0),
    "score": (0.0, 0.05),
}

#: What the ends of a slider are multiples of, so that its steps are round numbers.
GRAINS: Mapping[str, float] = {"semantic": 1.0, "keyword": 1.0, "relevance": 1.0, "score": 0.05}


@dataclass(frozen=True)
class Slider:
    """A floor that can be moved: its name in the form, what it is of, its ends, and where it
    stands now and on trial. The one of the final score has no source."""

    name: str
    track: str
    source: str
    low: float
    high: float
    now: float
    then: float

    @property
    def moved(self) -> bool:
        return abs(self.now - self.then) > SAME


def sliders(trial: Trial) -> list[Slider]:
    """One for each floor that a person may move, the weightiest first."""
    own = recall_floor(trial.model, "english")
    now, then = trial.now, trial.then
    reached: dict[tuple[str, str], list[float]] = {}
    for (name, source, _), some in numbers(tuple(trial.rows)).items():
        # The slider of the final score is one for both.
        slid = (name, SOURCES[0] if name == "score" else source)
        reached.setdefault(slid, []).extend((some[0], some[-1]) if some else ())
    made = []
    for name, source in [
        *((name, source) for name in ("relevance", "keyword", "semantic") for source in SOURCES),
        ("score", SOURCES[0]),
    ]:
        ends = [now[source].as_json(own=own)[name], then[source].as_json(own=own)[name]]
        seen = reached.get((name, source), [])
        low, high = SLIDES[name]
        score = name == "score"
        made.append(
            Slider(
                name=name if score else f"{source}_{name}",
                track=name,
                source="" if score else source,
                low=math.floor(min([low, *ends, *seen]) / GRAINS[name]) * GRAINS[name],
                high=math.ceil(max([high, *ends, *seen]) / GRAINS[name]) * GRAINS[name],
                now=ends[0],
                then=ends[1],
            )
        )
    return made
