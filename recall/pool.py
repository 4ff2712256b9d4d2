"""The candidates of one query in numbers: one row a text, candidates and the turns around them.

Pure numpy. Knows nothing about the database or about how rows are scored.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memory.lexical import TRAITS, Statistics

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Row:
    """One text as the database gives it; `cosine` is nan without a vector."""

    place: int | None
    occurred: float
    text: int
    cosine: float
    length: int
    traits: int
    terms: bytes
    counts: bytes
    heads: bytes


@dataclass(frozen=True)
class Pool:
    """m texts and t query terms. Rows of one session stand together, in the order they were said:
    around a candidate nothing is missing, so the row before is the turn before. All of them are
    candidates until `features.choose` takes the best."""

    candidate: Bools
    before: Ints
    after: Ints
    session: Ints
    cosine: Floats
    length: Floats
    counts: Floats
    heads: Floats
    asks: Bools
    time: Bools
    digit: Bools
    first_person: Bools
    proper: Bools
    occurred: Floats
    known: Statistics
    idf: Floats


def build(rows: Sequence[Row], terms: Sequence[int], known: Statistics) -> tuple[Pool, list[int]]:
    """The pool of these rows, and which of them stands at each of its places."""
    order = sorted(
        range(len(rows)),
        key=lambda at: (rows[at].place or -1, rows[at].occurred, rows[at].text),
    )
    sorted_ = [rows[at] for at in order]
    session = np.array([row.place or -1 for row in sorted_], dtype=np.int64)
    at = np.arange(len(rows))
    same = (session[1:] == session[:-1]) & (session[1:] >= 0)
    before, after = np.full(len(rows), -1), np.full(len(rows), -1)
    before[1:][same] = at[:-1][same]
    after[:-1][same] = at[1:][same]
    flat = np.frombuffer(b"".join(row.terms for row in sorted_), dtype="<i8")
    flat_counts = np.frombuffer(b"".join(row.counts for row in sorted_), dtype="<u2")
    flat_heads = np.frombuffer(b"".join(row.heads for row in sorted_), dtype="<u2")
    sizes = np.array([len(row.terms) // 8 for row in sorted_], dtype=np.int64)
    counts, heads = np.zeros((len(rows), len(terms))), np.zeros((len(rows), len(terms)))
    if len(terms) and len(flat):
        asked = np.array(terms, dtype=np.int64)
        by_hash = np.argsort(asked)
        found = np.clip(np.searchsorted(asked, flat, sorter=by_hash), 0, len(asked) - 1)
        hit = np.flatnonzero(asked[by_hash[found]] == flat)
        row_of = np.repeat(at, sizes)[hit]
        column = by_hash[found[hit]]
        counts[row_of, column] = flat_counts[hit]
        heads[row_of, column] = flat_heads[hit]
    bits = np.array([row.traits for row in sorted_], dtype=np.int64)
    has = {name: (bits >> bit & 1).astype(bool) for bit, name in enumerate(TRAITS)}
    pool = Pool(
        np.ones(len(rows), dtype=bool),
        before,
        after,
        session,
        np.array([row.cosine for row in sorted_], dtype=np.float64),
        np.array([row.length for row in sorted_], dtype=np.float64),
        counts,
        heads,
        has["asks"],
        has["time"],
        has["digit"],
        has["first_person"],
        has["proper"],
        np.array([row.occurred for row in sorted_], dtype=np.float64),
        known,
        known.idf(),
    )
    return pool, order
