"""Which vectors are nearest to each other: exactly, all against all, within groups.

In blocks, so that memory stays bounded; the blocks' size changes nothing in the result.
Knows nothing about notes, models or thresholds.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

#: Cosines held at once.
# Why: 4 million of them are 32 MB; the matrix product is as fast as in one piece.
BLOCK_CELLS = 4_000_000

#: Steps to 1: cosines are rounded to four digits.
# Why: the last bits differ with the size of a block; what is shown must not.
STEPS = 10_000

#: Times as many as asked for from which on they are thinned before they are sorted.
# Why: thinning looks at every cosine, sorting at those above the floor; ten thousand notes that are
# all alike take seven times as long without.
CROWD = 4

Neighbours = list[list[tuple[int, float]]]


def nearest(
    vectors: NDArray[np.float32],
    groups: NDArray[np.int64] | None,
    *,
    k: int,
    floor: float,
    cells: int = BLOCK_CELLS,
) -> Neighbours:
    """For each row the at most `k` other rows of its group with a cosine of at least `floor`.

    `vectors`: (n, d); rows need not be of length 1; one of nothing but zeros has no neighbours.
    `groups`: (n,), or None for one group. Best first, ties by row; cosines rounded to 4 digits.
    """
    found: Neighbours = [[] for _ in range(len(vectors))]
    if not len(vectors) or k < 1:
        return found
    # Why in double precision: then no rounding to four digits depends on the order of summing.
    rows = np.asarray(vectors, dtype=np.float64)
    # Narrow embedders are stored with zeros behind.
    rows = rows[:, rows.any(axis=0)]
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    some = lengths > 0
    rows = rows / np.where(some, lengths, 1.0)[:, None]
    for members in _parts(groups, some):
        _among(rows[members], members, k, floor, cells, found)
    return found


def _parts(groups: NDArray[np.int64] | None, some: NDArray[np.bool_]) -> Iterator[NDArray[np.intp]]:
    """The rows of each group that have a vector, ascending."""
    rows = np.flatnonzero(some)
    if groups is None:
        yield rows
        return
    order = rows[np.argsort(groups[rows], kind="stable")]
    yield from np.split(order, np.flatnonzero(np.diff(groups[order])) + 1)


def _among(
    rows: NDArray[np.float64],
    members: NDArray[np.intp],
    k: int,
    floor: float,
    cells: int,
    found: Neighbours,
) -> None:
    """Fill in the neighbours of one group's rows."""
    least = math.ceil(floor * STEPS - 1e-6)
    count = len(members)
    step = max(1, cells // max(1, count))
    for start in range(0, count, step):
        near = rows[start : start + step] @ rows.T
        here = np.arange(len(near))
        near[here, start + here] = -np.inf
        # Whatever may round up to the floor; few are left to be rounded and sorted.
        flat = np.flatnonzero(near.ravel() >= (least - 1) / STEPS)
        if k < count and len(flat) > CROWD * k * len(near):
            flat = flat[_best(near, k).ravel()[flat]]
        scores = np.rint(near.ravel()[flat] * STEPS).astype(np.int64)
        flat, scores = flat[scores >= least], scores[scores >= least]
        at, other = np.divmod(flat, count)
        order = np.lexsort((other, -scores, at))
        at, other, scores = at[order], other[order], scores[order]
        # The place of each within its row; beyond k is not asked for.
        first = np.arange(len(at)) - np.searchsorted(at, at) < k
        cosines = np.minimum(scores[first], STEPS) / STEPS
        row, name = members[start + at[first]].tolist(), members[other[first]].tolist()
        for mine, theirs, cosine in zip(row, name, cosines.tolist(), strict=True):
            found[mine].append((theirs, cosine))


def _best(near: NDArray[np.float64], k: int) -> NDArray[np.bool_]:
    """Which are the `k` best of their row: by cosine as it is shown, then by column."""
    count = near.shape[1]
    # One exact number for both: 10,000 steps times a column fits well into a double.
    ranks = np.rint(near * STEPS) * count - np.arange(count)
    best: NDArray[np.bool_] = ranks >= np.partition(ranks, count - k, axis=1)[:, [count - k]]
    return best
