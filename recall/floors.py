"""What a hit must reach before it is put before an agent: floors by source, and how relevant it is.

Each track has a floor of its own; one of them must be cleared. What decides about silence is
`relevance`: meaning and words together, because a hit that is middling in both is better evidence
than one that is fair in either alone. Pure; knows nothing about where the numbers are kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from memory.llm.thresholds import recall_floor

Source = Literal["note", "turn"]
SOURCES: tuple[Source, ...] = ("note", "turn")

#: Floors of one source, in the order in which they are read and printed.
NAMES = ("semantic", "keyword", "relevance", "score")

#: What a floor says of a hit that it refuses.
BELOW_TRACKS = "below every track's floor"
BELOW_RELEVANCE = "below the floor of relevance"
BELOW_SCORE = "below the floor of the final score"
REFUSALS = (BELOW_TRACKS, BELOW_RELEVANCE, BELOW_SCORE)


@dataclass(frozen=True)
class Weights:
    """Relevance in log-odds: what a cosine above its tongue's floor weighs, what coverage does, and
    what it is worth that a hit is of the project that asks."""

    cosine: float
    coverage: float
    here: float
    intercept: float


@dataclass(frozen=True)
class Floors:
    """What a hit of one source must reach: one of the tracks' floors, and both of the others.

    `semantic` is a cosine above what the embedder's row asks for in the tongue of the prompt;
    `keyword` is BM25 as a share of what a text could reach at most, 0 to 1; `relevance` is in
    log-odds; `score` is the final score.
    """

    semantic: float
    keyword: float
    relevance: float
    score: float
    weights: Weights

    def as_json(self, *, own: float) -> dict[str, float]:
        """The floors as they are told: with the embedder's `own` floor of the tongue the semantic
        one is a cosine again."""
        told = {name: round(float(getattr(self, name)), 4) for name in NAMES}
        return {**told, "semantic": round(own + self.semantic, 4)}


@dataclass(frozen=True)
class Evidence:
    """The numbers of one hit that floors read.

    `above` is the cosine above the embedder's own floor of the tongue, None without a vector;
    `coverage` is the share of what the question's words weigh that the text holds, without the
    names of projects; `here`: it is of the project that asks.
    """

    above: float | None
    keyword: float
    coverage: float
    score: float
    here: bool = False


@dataclass(frozen=True)
class Judged:
    """Which floors were cleared, why the hit is refused ("": it is not), and how relevant it is."""

    cleared: tuple[str, ...]
    refused: str
    relevance: float


#: Relevance of notes and of raw turns, by the start of the embedder's name.
# Why: fitted on one half of the two prompt sets of the tests. On the other half it tells right
# notes from those of off-topic prompts at an AUC of .990; cosine or coverage alone do at .960, both
# together at .987.
# Calibrate: `manage.py calibrate` fits them anew and keeps them when the held-out half is better.
WEIGHTS: Mapping[str, Mapping[Source, Weights]] = {
    "minilm-l6-v2-int8-pad768": {
        "note": Weights(10.9, 5.8, 0.95, -4.54),
        "turn": Weights(9.3, 4.6, 0.0, -4.45),
    },
}

#: For an embedder that nobody measured: the words alone.
# Why: some embedders put any two texts above .8; a slope of another model would let all of them by.
WORDS_ALONE: Mapping[Source, Weights] = {
    "note": Weights(0.0, 5.8, 0.95, -4.54),
    "turn": Weights(0.0, 4.6, 0.0, -4.45),
}

#: Log-odds from which a hit may be put before an agent.
# Why: notes at -1.8 (one in seven) inject for 2 % of off-topic prompts, all of them near-misses,
# and keep nine in ten right notes. A turn comes only where it all but answers: at lower floors
# turns brought no right answer that the notes had not, and false ones.
# Calibrate: `manage.py calibrate`.
RELEVANCE_FLOORS: Mapping[Source, float] = {"note": -1.8, "turn": -0.5}

#: Share of the highest possible BM25 from which words alone are evidence.
# Why: beside the floor of relevance anything from .10 to .25 lost no right note.
# Calibrate: `manage.py calibrate`.
KEYWORD_FLOORS: Mapping[Source, float] = {"note": 0.10, "turn": 0.25}


def shipped(embedder: str, *, score: float) -> dict[Source, Floors]:
    """The floors that come with Argus for an embedder; `score` is the machine's setting."""
    weights = next((row for name, row in WEIGHTS.items() if embedder.startswith(name)), WORDS_ALONE)
    return {
        source: Floors(
            semantic=0.0,
            keyword=KEYWORD_FLOORS[source],
            relevance=RELEVANCE_FLOORS[source],
            score=score,
            weights=weights[source],
        )
        for source in SOURCES
    }


def above(cosine: float | None, embedder: str, tongue: str) -> float | None:
    """A cosine above the embedder's own floor of a tongue: what it knows badly looks alike to it,
    so that cosines of two tongues compare only like this."""
    return None if cosine is None else cosine - recall_floor(embedder, tongue)


def told(
    floors: Mapping[Source, Floors], embedder: str, tongue: str
) -> dict[Source, dict[str, float]]:
    """The floors of every source as the ledger and replies have them, in numbers that the tracks'
    scores compare with."""
    own = recall_floor(embedder, tongue)
    return {source: one.as_json(own=own) for source, one in floors.items()}


def relevance(seen: Evidence, weights: Weights) -> float:
    """Log-odds that a hit is what was asked for. Without a vector its meaning counts as fair."""
    odds = weights.cosine * (seen.above or 0.0) + weights.coverage * seen.coverage
    return odds + weights.here * seen.here + weights.intercept


def judge(seen: Evidence, floors: Floors) -> Judged:
    """Compare one hit with the floors of its source; equal to a floor is above it."""
    odds = relevance(seen, floors.weights)
    values = {"semantic": seen.above, "keyword": seen.keyword, "relevance": odds,
              "score": seen.score}  # fmt: skip
    cleared = tuple(
        name
        for name, value in values.items()
        if value is not None and value >= getattr(floors, name)
    )
    refused = ""
    if not {"semantic", "keyword"} & set(cleared):
        refused = BELOW_TRACKS
    elif "relevance" not in cleared:
        refused = BELOW_RELEVANCE
    elif "score" not in cleared:
        refused = BELOW_SCORE
    return Judged(cleared, refused, odds)


def clears(seen: Evidence, floors: Floors) -> bool:
    """Whether `judge` would refuse nothing: the same, for who judges thousands and asks no more."""
    if seen.score < floors.score:
        return False
    meant = seen.above is not None and seen.above >= floors.semantic
    if not (meant or seen.keyword >= floors.keyword):
        return False
    return relevance(seen, floors.weights) >= floors.relevance
