"""Candidates in numbers: what the ranker weighs of each, against the others of the same question.

Pure numpy over a `Pool`. A text without a session (a note, a document) has its own numbers only; a
neighbour counts as nothing, and its session is itself. Knows nothing about weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

import numpy as np
from numpy.typing import NDArray

from memory.lexical import idf, saturate
from recall.pool import Pool
from recall.questions import kinds, of_date

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]

#: Candidates of one question; the turns around what the tracks bring are among them.
# Why: a tenth of the evidence of dialogues stands beside what a track finds and is found by none.
# 50 a track with two turns on each side make 210 rows that hold .96 of it; the best 100 hold .94.
# Calibrate: recall@10 of `manage.py eval`, by half as many and by half as many again.
CANDIDATES_MAX = 200

#: Share of the way from the pool's lowest to its highest cosine that counts for nothing, where
#: candidates are chosen and sessions compared.
# Why: the lower half of a pool is what the other track and the turns around brought; how far below
# the best it lies tells nothing.
# Calibrate: share of the evidence among the candidates, and the held-out loss of
# `manage.py calibrate --rank`.
COSINE_LOW = 0.5

#: What being said by the one who is named is worth there, beside at most 1 of each track.
# Why: it breaks ties between turns that say alike; more would fill the candidates with whatever
# somebody said.
# Calibrate: as COSINE_LOW, on questions that name a speaker.
NAMED_BONUS = 0.3

#: How much of the turn before, as far as it holds what the question asks, counts as the text's own.
# Why: an answer is read with its question, and repeats little of it.
# Calibrate: held-out loss of `manage.py calibrate --rank`.
LEAD_SHARE = 0.6

#: What neighbours weigh in a window beside the text's own 1: the next turns, and those after them.
# Why: tried from .5 and 0 to 1 and 1; the order hardly moves.
# Calibrate: held-out loss of `manage.py calibrate --rank`.
BESIDE, FARTHER = 0.7, 0.5

#: Best candidates of a session whose cosines speak for it.
# Why: one can be chance, and the sum of all would only tell how long a session is.
# Calibrate: held-out loss of `manage.py calibrate --rank`.
SESSION_BEST = 3

#: Candidates at which a z-score counts half.
# Why: among two, any difference is one standard deviation, and would outvote the project's boost.
# Calibrate: order of small memories. At the 170 of a dialogue it scales every sum by .955, which
# moves no order; the weights that ship were trained without it.
FEW = 8

#: Days outside an asked stretch of time after which a text counts as half as near.
# Why: what happened in a week is told in it or in the next.
# Calibrate: recall@5 of questions that name a time, `manage.py eval`.
NEAR_DAYS = 7.0

#: Days outside from which on a text is of another time.
# Why: "in May" can mean a May of which nothing is told; scored within the question, the least of
# differences would decide then.
# Calibrate: as NEAR_DAYS.
FAR_DAYS = 60.0

#: What is measured of every candidate.
PLAIN = (
    "cosine", "bm25", "coverage", "rarest", "length", "asks", "time", "digit", "first_person",
    "proper", "named", "cosine_around", "coverage_around", "led", "date_near", "date_named",
    "bm25_before", "bm25_after", "asked", "asked_bm25", "asked_cosine", "session_bm25",
    "session_words", "session_best", "session_cosine",
)  # fmt: skip

#: What weighs otherwise in questions of one kind, as (feature, kind).
# Why these: of a hundred pairs, those that made the held-out loss less when tried one by one.
CROSSED = (
    ("time", "when"), ("time", "several"), ("proper", "where"), ("proper", "several"),
    ("digit", "many"), ("asked", "why"),
)  # fmt: skip

FEATURES = PLAIN + tuple(f"{name}*{kind}" for name, kind in CROSSED)


@dataclass(frozen=True)
class Sought:
    """A question for the ranker: its text, its query terms in the order of the pool's columns (as
    the index keeps them), and the stretches of time it names as (start, end) in epoch seconds."""

    text: str
    words: Sequence[str]
    stretches: Sequence[tuple[float, float]] = ()


def choose(pool: Pool, sought: Sought, most: int = CANDIDATES_MAX) -> Pool:
    """The pool with its best `most` rows as candidates, those that were fetched as surroundings
    among them."""
    if len(pool.length) <= most:
        return replace(pool, candidate=np.ones(len(pool.length), dtype=bool))
    best = np.argsort(-_read(pool, sought).standing, kind="stable")[:most]
    candidate = np.zeros(len(pool.length), dtype=bool)
    candidate[best] = True
    return replace(pool, candidate=candidate)


def features(pool: Pool, sought: Sought) -> Floats:
    """Each candidate, in the order of the pool, in FEATURES: [n, f], z-scored over the candidates.

    A feature that is the same for all of them is 0. A crossed one counts only in questions of its
    kind.
    """
    read = _read(pool, sought)
    found = {**_own(read), **_around(read), **_dates(read), **_sessions(read)}
    raw = np.stack([found[name] for name in PLAIN], axis=1)[pool.candidate]
    if not len(raw):
        return np.zeros((0, len(FEATURES)))
    spread = raw.std(axis=0)
    same = spread < 1e-9
    plain = np.where(same, 0.0, (raw - raw.mean(axis=0)) / np.where(same, 1.0, spread))
    plain = plain * len(raw) / (len(raw) + FEW)
    asked = kinds(sought.text)
    crossed = [PLAIN.index(name) for name, _ in CROSSED]
    holds = np.array([kind in asked for _, kind in CROSSED], dtype=np.float64)
    return np.concatenate((plain, plain[:, crossed] * holds), axis=1)


@dataclass(frozen=True)
class _Read:
    """What several features share, over all m rows and t terms of the pool.

    `share` is BM25 of each term but for its idf. `before` and `after` hold, of the rows one and two
    places away, (share, bm25, cosine, asks, 1) as [m, t + 4], zeros where there is none.
    """

    pool: Pool
    sought: Sought
    dates: Bools
    idf: Floats
    total: float
    cosine: Floats
    share: Floats
    bm25: Floats
    named: Floats
    before: tuple[Floats, Floats]
    after: tuple[Floats, Floats]
    standing: Floats


def _read(pool: Pool, sought: Sought) -> _Read:
    is_date = np.array([of_date(word) for word in sought.words], dtype=bool)
    headed = pool.heads.any(axis=0)
    names, dates = headed & ~is_date, headed & is_date
    # Why: in what is said, the name of a speaker is whom it is said to.
    idf = np.where(names, 0.0, pool.idf)
    unknown = np.isnan(pool.cosine)
    lowest = float(np.min(pool.cosine, where=~unknown, initial=1.0))
    cosine = np.where(unknown, lowest, pool.cosine)
    share = saturate(pool.counts, pool.length, pool.known.mean_length)
    bm25 = share @ idf
    # Two names are two people: no row is said by both.
    named = (pool.heads[:, names] > 0).all(axis=1) if names.any() else np.zeros(len(cosine))
    alone = (cosine - lowest) / max(float(cosine.max(initial=lowest)) - lowest, 1e-9)
    alone = np.maximum(alone - COSINE_LOW, 0.0) / (1.0 - COSINE_LOW)
    alone = alone + bm25 / max(float(bm25.max(initial=0.0)), 1e-9)
    ones = np.ones(len(cosine))
    rows = np.column_stack((share, bm25, cosine, pool.asks, ones, alone))
    first, next_ = _moved(rows, pool.before), _moved(rows, pool.after)
    second, third = _moved(first, pool.before), _moved(next_, pool.after)
    near, far = first[:, -1] + next_[:, -1], second[:, -1] + third[:, -1]
    return _Read(
        pool,
        sought,
        dates,
        idf,
        max(float(idf.sum()), 1e-9),
        cosine,
        share,
        bm25,
        np.asarray(named, dtype=np.float64),
        (first[:, :-1], second[:, :-1]),
        (next_[:, :-1], third[:, :-1]),
        alone + BESIDE * near + FARTHER * far + NAMED_BONUS * named,
    )


def _moved(values: Floats, rows: Ints) -> Floats:
    """The values of other rows, zeros where there is none."""
    return np.asarray(values[np.maximum(rows, 0)] * (rows >= 0)[:, None])


def _own(read: _Read) -> dict[str, Floats]:
    """What a text has by itself."""
    pool = read.pool
    weighed = (pool.counts > 0) * read.idf
    return {
        "cosine": read.cosine,
        "bm25": read.bm25,
        "coverage": weighed.sum(axis=1) / read.total,
        "rarest": weighed.max(axis=1, initial=0.0),
        "length": np.log1p(pool.length),
        "asks": pool.asks.astype(np.float64),
        "time": pool.time.astype(np.float64),
        "digit": pool.digit.astype(np.float64),
        "first_person": pool.first_person.astype(np.float64),
        "proper": pool.proper.astype(np.float64),
        "named": read.named,
    }


def _around(read: _Read) -> dict[str, Floats]:
    """What the turns around it have, and what it has with them."""
    many = read.share.shape[1]
    (before, second), (after, third) = read.before, read.after
    beside, farther = before + after, second + third
    held = (read.share + beside[:, :many] + farther[:, :many]) > 0
    weight = 1.0 + BESIDE * beside[:, many + 3] + FARTHER * farther[:, many + 3]
    cosine = read.cosine + BESIDE * beside[:, many + 1] + FARTHER * farther[:, many + 1]
    asked = before[:, many + 2]
    return {
        "cosine_around": cosine / weight,
        "coverage_around": held @ read.idf / read.total,
        "led": np.maximum(read.share, LEAD_SHARE * before[:, :many]) @ read.idf,
        "bm25_before": before[:, many],
        "bm25_after": after[:, many],
        "asked": asked,
        "asked_bm25": asked * before[:, many],
        "asked_cosine": asked * before[:, many + 1],
    }


def _dates(read: _Read) -> dict[str, Floats]:
    """How near a text is to the time that the question names, and whether it bears that date."""
    at = read.pool.occurred
    near: Floats = np.zeros(at.shape)
    named: Floats = np.zeros(at.shape)
    for start, end in read.sought.stretches:
        away = np.maximum(np.maximum(start - at, at - end), 0.0) / timedelta(days=1).total_seconds()
        close = np.where(away < FAR_DAYS, 1.0 / (1.0 + away / NEAR_DAYS), 0.0)
        near = np.maximum(near, close)
    if read.dates.any():
        whole = (read.pool.heads[:, read.dates] > 0).all(axis=1)
        named = np.asarray(whole, dtype=np.float64)
    return {"date_near": near, "date_named": named}


def _sessions(read: _Read) -> dict[str, Floats]:
    """How the session stands that a text is of, as far as the pool holds it. What is of none is a
    session of its own."""
    pool = read.pool
    rows = np.arange(len(pool.length))
    _, of = np.unique(np.where(pool.session < 0, -1 - rows, pool.session), return_inverse=True)
    many = int(of.max(initial=-1)) + 1
    counts = np.zeros((many, pool.counts.shape[1]))
    np.add.at(counts, of, pool.counts)
    length = np.bincount(of, pool.length, minlength=many).astype(np.float64)
    holding = (counts > 0).sum(axis=0)
    rare = idf(many, holding.astype(np.float64)) * (read.idf > 0)
    bm25 = saturate(counts, length, float(length.mean()) if many else 1.0) @ rare
    words = counts / (counts + 1.0) @ read.idf
    standing = np.where(pool.candidate, read.standing, 0.0)
    cosine = np.where(pool.candidate, np.maximum(read.cosine, 0.0), 0.0)
    return {
        "session_bm25": bm25[of],
        "session_words": words[of],
        "session_best": _best(of, many, standing, 1)[of],
        "session_cosine": _best(of, many, cosine, SESSION_BEST)[of],
    }


def _best(of: Ints, many: int, values: Floats, count: int) -> Floats:
    """The sum of the `count` highest values of each group."""
    order = np.lexsort((-values, of))
    place = np.arange(len(of)) - np.searchsorted(of[order], np.arange(many))[of[order]]
    kept = order[place < count]
    return np.bincount(of[kept], values[kept], minlength=many).astype(np.float64)
