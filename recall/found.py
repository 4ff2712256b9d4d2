"""What was found, in order: each candidate's place in every track, its fused score, and its sum.

Pure but for numpy. The fused score is the ledger's, which floors read; the ranker's sum decides who
comes first. Knows nothing about the database, about floors, or about what is done with a hit.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import numpy as np

from memory.lexical import bm25, ceiling
from memory.tracks import Asked
from recall.candidates import Fetched
from recall.coverage import rarity, shares
from recall.features import Sought, choose, features
from recall.floors import Source
from recall.fusion import Fused, Placed, fuse
from recall.pool import Bools, Floats, Pool, build
from recall.ranker import Ranker

#: Texts that each track brings to the fusion, of each source.
# Why: measured on dialogues, depth 20 to 30 orders better than 100; the rest is noise.
# Calibrate: recall@5 by depth under cross-validation.
TRACK_DEPTH = 30

#: What a place in each track weighs in the fused score.
# Why: the first two find by themselves; the others point at what those two found, and what stands
# beside a hit is half of one.
# Calibrate: they move no order, which is the ranker's: share of hits that clear the score's floor.
TRACK_WEIGHTS: Mapping[str, float] = {
    "semantic": 1.0,
    "keyword": 1.0,
    "names": 0.5,
    "time": 0.5,
    "around": 0.5,
}

#: Candidates kept of each source, best first.
# Why: no caller asks for more, the ledger keeps thirty, and each is an object.
FOUND_MAX = 60

#: Hits of the two main tracks beside which a text counts as found.
# Why: as many as are shown; what stands beside a middling hit is found by nothing.
# Calibrate: share of right turns that only `around` lets over the score's floor.
AROUND_HITS = 5


@dataclass(frozen=True)
class Question:
    """What is asked, in the forms that the tracks need: stemmed words with their hashes, vectors
    (the second as a speaker would say it, where the question names one), which words are exact
    names of things, and the stretches of time it speaks of, in epoch seconds."""

    text: str
    words: tuple[str, ...]
    terms: tuple[int, ...]
    model: str
    vector: Sequence[float] | None = None
    said: Sequence[float] | None = None
    names: frozenset[str] = frozenset()
    stretches: tuple[tuple[float, float], ...] = ()


@dataclass(frozen=True)
class Found:
    """One text that was found: its place in each track, the fused score of the ledger, and the sum
    of `features` by which it stands.

    `coverage` is the share of what the question's words weigh that the text holds; `near` is the
    neighbour that it was found beside; `content` is the same for texts that hold
    the same terms as often, in whatever order.
    """

    source: Source
    key: UUID | int
    text: int
    facts: Mapping[str, Any]
    tracks: Mapping[str, Placed]
    fused: float
    order: float
    cosine: float | None
    coverage: float
    words: tuple[str, ...]
    content: bytes = field(repr=False)
    near: int | UUID | None = None
    row: Floats | None = field(default=None, repr=False, compare=False)
    ranker: Ranker | None = field(default=None, repr=False, compare=False)

    @property
    def features(self) -> dict[str, float]:
        """What each feature adds to the sum; made when somebody asks."""
        if self.ranker is None or self.row is None:
            return {}
        return self.ranker.contributions(self.row[None, :])[0]


def place(
    source: Source,
    fetched: Fetched,
    question: Question,
    known: Asked,
    ranker: Ranker,
    *,
    silent: Collection[str] = (),
) -> list[Found]:
    """Every candidate in the ranker's order; `silent` words count in no coverage."""
    pool, order = build(fetched.rows, known.terms, known.known)
    words = _words(question, known)
    sought = Sought(question.text, words, question.stretches)
    pool = choose(pool, sought)
    rows = np.flatnonzero(pool.candidate)
    matrix = features(pool, sought)
    sums = ranker.sums(matrix)
    names = [fetched.rows[order[row]].text for row in rows]
    held = pool.counts[rows] > 0
    lexical = bm25(pool.counts[rows], pool.length[rows], known.known) / ceiling(known.known)
    weighed = rarity(known.known.texts, known.known.holding)
    share = shares(question.text, dict(zip(words, weighed, strict=True)), silent)
    telling = np.array([share.get(word, 0.0) for word in words])
    covered = (held | (pool.heads[rows] > 0)) @ telling
    cosine = pool.cosine[rows]
    tracks = {
        "semantic": _ranked(names, cosine, ~np.isnan(cosine)),
        "keyword": _ranked(names, lexical, lexical > 0),
    }
    tracks |= _pointers(pool, rows, names, question, words, sums)
    beside = _beside(pool, rows, names, fuse(tracks)[:AROUND_HITS])
    at_text = {text: at for at, text in enumerate(names)}
    tracks["around"] = [(text, float(sums[at_text[text]])) for text in beside]
    fused = {one.key: one for one in fuse(tracks, weights=TRACK_WEIGHTS)}
    found = []
    best = sorted(range(len(rows)), key=lambda at: (-sums[at], names[at]))[:FOUND_MAX]
    for at in best:
        one: Fused[int] = fused.get(names[at]) or Fused(names[at], 0.0)
        facts = fetched.facts(names[at])
        row = fetched.rows[order[rows[at]]]
        near = beside.get(names[at])
        found.append(
            Found(
                source,
                _key(source, facts),
                names[at],
                facts,
                one.tracks,
                one.score,
                float(sums[at]),
                None if np.isnan(cosine[at]) else float(cosine[at]),
                float(covered[at]),
                tuple(word for word, yes in zip(words, held[at], strict=True) if yes),
                row.terms + row.counts,
                None if near is None else _key(source, fetched.facts(near)),
                matrix[at],
                ranker,
            )
        )
    return found


def _pointers(
    pool: Pool,
    rows: Any,
    names: Sequence[int],
    question: Question,
    words: Sequence[str],
    sums: Floats,
) -> dict[str, list[tuple[int, float]]]:
    """The tracks that point at candidates: those that hold what the question names exactly, and
    those of the time it speaks of."""
    exact = pool.idf * [word in question.names for word in words]
    named = (pool.counts[rows] > 0) @ exact
    at = pool.occurred[rows]
    within: Bools = np.zeros(len(rows), dtype=bool)
    for start, end in question.stretches:
        within |= (start <= at) & (at < end)
    return {"names": _ranked(names, named, named > 0), "time": _ranked(names, sums, within)}


def _beside(
    pool: Pool, rows: Any, names: Sequence[int], best: Sequence[Fused[int]]
) -> dict[int, int]:
    """The candidates that stand right before or after one of the best hits, with that hit."""
    at = {int(row): text for row, text in zip(rows, names, strict=True)}
    place_of = {text: row for row, text in at.items()}
    found: dict[int, int] = {}
    for hit in best:
        row = place_of[hit.key]
        for other in (int(pool.before[row]), int(pool.after[row])):
            if other in at and at[other] != hit.key:
                found.setdefault(at[other], hit.key)
    return found


def _key(source: Source, facts: Mapping[str, Any]) -> UUID | int:
    key: UUID | int = facts["id"] if source == "note" else facts["raw_item_id"]
    return key


def _words(question: Question, known: Asked) -> tuple[str, ...]:
    """The asked words in the order of the collection's terms."""
    by_hash = dict(zip(question.terms, question.words, strict=True))
    return tuple(by_hash[term] for term in known.terms)


def _ranked(names: Sequence[int], scores: Any, there: Any) -> list[tuple[int, float]]:
    places = sorted(np.flatnonzero(there).tolist(), key=lambda at: (-scores[at], names[at]))
    return [(names[at], float(scores[at])) for at in places[:TRACK_DEPTH]]
