"""Which older notes a new one should be held against: near in meaning, or sharing rare words.

Reads: note, by the tracks. Shared by dedup and by recall's links. Thresholds belong to the embedder
(`memory.llm.thresholds`). Knows nothing about verdicts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import zip_longest
from typing import Any
from uuid import UUID

from django.db.models import Q

from memory.attribution import GLOBAL, family
from memory.lexical import ceiling, hashed, query_terms
from memory.llm.vectors import cosine
from memory.models import Note, Project
from memory.querysets import NoteQuerySet
from memory.tracks import HNSW_EF_SEARCH, asked, heaviest, nearest, notes_of

#: Neighbours taken from each of the two searches before any floor.
# Why: the floor must not stand in the kNN's WHERE: the index would be walked to its end.
# Calibrate: verdicts of `python -m tests.bench.judge_pairs` by the rank of the older note.
NEIGHBOURS_A_TRACK = 20

assert NEIGHBOURS_A_TRACK <= HNSW_EF_SEARCH

#: Texts looked at by words, of which the pool keeps those that may be met.
# Why: a pool is mostly the owner's whole memory; what is not of it falls out afterwards.
# Calibrate: pairs whose older note is not among the first NEIGHBOURS_A_TRACK that are left.
TEXTS_BY_WORDS = 60


@dataclass(frozen=True)
class Neighbour:
    """An older note with its cosine (None: no vector of that embedder), and how much of what the
    new one says by words it shares, 0 to 1 (BM25 over what no text can reach)."""

    note: Note
    similarity: float | None
    lexical: float | None


def comparable(note: Note, *, now: datetime) -> NoteQuerySet:
    """Live notes of the same owner and level that are older or were judged before, in the note's
    project, in one merged with it or in `global`: what holds everywhere is restated and changed
    inside projects, too.

    The other way round no: a note of `global` says nothing about what one project does.
    """
    # A subquery over a tiny table: a join would keep the planner off HNSW.
    everywhere = Project.objects.filter(name=GLOBAL).values("pk")
    merged = family(note.project_id)
    own = Q(project__in=merged) if merged else Q(project=None)
    found: NoteQuerySet = (
        Note.objects.visible_to(note.owner)
        .live(now)
        .filter(own | Q(project__in=everywhere))
        .filter(owner=note.owner, level=note.level)
        .met_by(note)
    )
    return found


def older_neighbours(note: Note, *, now: datetime, floor: float, limit: int) -> list[Neighbour]:
    """Notes that this one should be held against, at most `limit`: by turns the nearest of those
    over the embedder's floor by cosine, and the best of those that share rare terms."""
    pool = comparable(note, now=now)
    near = [one for one in _dense(pool, note) if (one.similarity or 0.0) >= floor]
    worded = _lexical(pool, note)
    ranks = {one.note.pk: one.lexical for one in worded}
    near = [replace(one, lexical=ranks.get(one.note.pk)) for one in near]
    # By turns: neither measure is on the other's scale, and either may be the one that knows.
    found: dict[UUID, Neighbour] = {}
    for pair in zip_longest(near, worded):
        for one in pair:
            if one is not None:
                found.setdefault(one.note.pk, one)
    return list(found.values())[:limit]


def _dense(pool: NoteQuerySet, note: Note) -> list[Neighbour]:
    """The nearest first."""
    if note.embedding is None:
        return []
    found = nearest(pool, _numbers(note.embedding), note.embedding_model, depth=NEIGHBOURS_A_TRACK)
    rows = pool.defer("embedding").in_bulk([key for key, _ in found])
    # One that another worker retired since it was found is no neighbour any more.
    return [Neighbour(rows[key], near, None) for key, near in found if key in rows]


def _lexical(pool: NoteQuerySet, note: Note) -> list[Neighbour]:
    """The best by words first, with their cosine where they have a vector of the same model."""
    terms = [hashed(term) for term in query_terms(note.content)]
    mine = asked(note.owner, terms)[False]
    found = heaviest(note.owner, {False: mine}, depth=TEXTS_BY_WORDS)[False]
    keys = notes_of([text for text, _ in found])
    # A vector takes longer to read than all else of a note: those of the best are enough.
    rows = pool.defer("embedding").in_bulk(list(keys.values()))
    most = ceiling(mine.known)
    met = [(rows[keys[text]], score) for text, score in found if keys[text] in rows]
    best = met[:NEIGHBOURS_A_TRACK]
    near = _near(note, [row.pk for row, _ in best])
    return [Neighbour(row, near.get(row.pk), score / most) for row, score in best]


def _near(note: Note, others: Sequence[UUID]) -> dict[UUID, float]:
    """The cosines of those of these notes that have a vector of the same model."""
    if note.embedding is None:
        return {}
    own = _numbers(note.embedding)
    alike = Note.objects.as_pipeline().filter(pk__in=others, embedding_model=note.embedding_model)
    kept = alike.filter(embedding__isnull=False).values_list("pk", "embedding")
    return {pk: cosine(own, _numbers(vector)) for pk, vector in kept}


def _numbers(vector: Any) -> list[float]:
    """A vector as numbers, whichever way it came: just made, or read back."""
    return list(vector.to_list()) if hasattr(vector, "to_list") else [float(one) for one in vector]
