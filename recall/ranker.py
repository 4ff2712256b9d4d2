"""The linear ranker: a weight for each feature, so that every result can print its sum.

The sum is a log-odds: that this candidate holds the answer, on questions that one does. It compares
the candidates of one question and says nothing about whether any of them is worth showing. Reads
`ranker.json` beside it. Knows nothing about where candidates come from.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memory.errors import ContentError
from recall.features import FEATURES

Floats = NDArray[np.float64]

#: The weights that ship, and how they were trained.
SHIPPED = Path(__file__).with_name("ranker.json")

#: Weight beyond which a ranker is taken for broken.
# Why: features are z-scores, and the largest trained weight is 1.03; one of twenty would decide
# every order alone.
WEIGHT_MAX = 20.0

#: Parts of a sum that an explanation names.
# Why: the first few hold nearly all of it, and a page of fifty says nothing.
PARTS_SHOWN = 8


@dataclass(frozen=True)
class Ranker:
    """Weights in the order of FEATURES, and how they came about."""

    weights: tuple[float, ...]
    intercept: float = 0.0
    trained: Mapping[str, Any] = field(default_factory=dict)

    def sums(self, matrix: Floats) -> Floats:
        """The log-odds of each candidate: [n] from features [n, f]."""
        return np.asarray(matrix @ np.array(self.weights) + self.intercept)

    def contributions(self, matrix: Floats) -> list[dict[str, float]]:
        """What each feature adds to each candidate's sum, from features [n, f]."""
        made = (matrix * np.array(self.weights)).tolist()
        return [
            {"intercept": self.intercept, **dict(zip(FEATURES, row, strict=True))} for row in made
        ]

    def as_json(self) -> dict[str, Any]:
        """The form of ranker.json and of a stored calibration: weights by name."""
        named = zip(FEATURES, self.weights, strict=True)
        return {
            "weights": {name: round(weight, 4) for name, weight in named},
            "intercept": round(self.intercept, 4),
            "trained": dict(self.trained),
        }


def parse(given: Mapping[str, Any]) -> Ranker:
    """A ranker from its JSON. Raises ContentError when it was made for other features, or holds
    what is no weight."""
    weights = given.get("weights")
    if not isinstance(weights, Mapping):
        raise ContentError("A ranker needs weights by feature.")
    if unknown := sorted(set(weights) - set(FEATURES)):
        raise ContentError(f"The ranker weighs what is no feature: {', '.join(unknown)}.")
    if missing := sorted(set(FEATURES) - set(weights)):
        raise ContentError(f"The ranker does not weigh {', '.join(missing)}.")
    numbers = [*weights.values(), given.get("intercept", 0.0)]
    if not all(_is_weight(number) for number in numbers):
        raise ContentError(f"Every weight is a number between -{WEIGHT_MAX} and {WEIGHT_MAX}.")
    return Ranker(
        tuple(float(weights[name]) for name in FEATURES),
        float(given.get("intercept", 0.0)),
        dict(given.get("trained", {})),
    )


def _is_weight(number: object) -> bool:
    return (
        isinstance(number, int | float)
        and not isinstance(number, bool)
        and math.isfinite(number)
        and abs(number) <= WEIGHT_MAX
    )


@lru_cache(maxsize=1)
def shipped() -> Ranker:
    """The ranker that is in force until a calibration says otherwise."""
    return parse(json.loads(SHIPPED.read_text(encoding="utf-8")))
