"""Arithmetic and checks on vectors as lists of floats. Pure; knows nothing about models or HTTP.

No message of this module carries the numbers of a vector: they are long and say nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from memory.errors import ContentError

Vector = list[float]

#: Shortest vector that still has a direction.
# Why: the cosine of a zero vector is NaN, and a vector this short is rounding noise.
# Calibrate: far below the norm of any real embedding (about 1), far above float noise.
NORM_MIN = 1e-6


class BadVectors(ContentError):
    """Some texts of a batch got no usable vector."""

    #: Position in the batch -> why. Empty when the model did not say which text it was.
    bad: Mapping[int, str]
    #: Position in the batch -> unit-length vector of a text that is fine.
    good: Mapping[int, Vector]

    def __init__(
        self,
        message: str,
        bad: Mapping[int, str] | None = None,
        good: Mapping[int, Vector] | None = None,
        raw: str = "",
    ) -> None:
        super().__init__(message, raw)
        self.bad = dict(bad or {})
        self.good = dict(good or {})


def unit(vector: Sequence[float]) -> Vector:
    """The vector at length 1. Raises ValueError for one without a direction."""
    norm = math.sqrt(sum(number * number for number in vector))
    if not math.isfinite(norm) or norm < NORM_MIN:
        raise ValueError("no direction")
    return [number / norm for number in vector]


def cosine(a: Sequence[float], b: Sequence[float]) -> float:
    """Cosine of two vectors of any length, -1 to 1; 0 when either is zero."""
    norm = math.sqrt(sum(x * x for x in a) * sum(y * y for y in b))
    if not norm:
        return 0.0
    return max(-1.0, min(1.0, sum(x * y for x, y in zip(a, b, strict=True)) / norm))


def mean(vectors: Sequence[Sequence[float]]) -> Vector | None:
    """Mean of vectors of one size, as long as it comes out; None of none."""
    if not vectors:
        return None
    return [sum(column) / len(vectors) for column in zip(*vectors, strict=True)]


def fault(vector: object, size: int) -> str | None:
    """Why this cannot be stored as a vector of `size`, or None."""
    if not isinstance(vector, (list, tuple)):
        return "missing"
    if len(vector) != size:
        return f"{len(vector)} numbers, not {size}"
    if not all(isinstance(n, (int, float)) and not isinstance(n, bool) for n in vector):
        return "not numbers"
    if not all(math.isfinite(number) for number in vector):
        return "NaN or infinity"
    norm = math.sqrt(sum(number * number for number in vector))
    if not math.isfinite(norm):
        return "too long"
    if norm < NORM_MIN:
        return "all zeros"
    return None


def accept(vectors: Mapping[int, object], count: int, size: int) -> list[Vector]:
    """`count` unit-length vectors in order of position. Raises BadVectors naming the positions."""
    good: dict[int, Vector] = {}
    bad: dict[int, str] = {}
    for position in range(count):
        vector = vectors.get(position)
        why = fault(vector, size)
        if why is None and isinstance(vector, (list, tuple)):
            good[position] = unit(vector)
        else:
            bad[position] = why or "missing"
    if bad:
        first = ", ".join(f"{position}: {why}" for position, why in list(bad.items())[:5])
        raise BadVectors(f"{len(bad)} of {count} vectors cannot be stored ({first})", bad, good)
    return [good[position] for position in range(count)]
