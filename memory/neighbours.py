"""Which older notes a new one should be held against: near in meaning, or sharing rare words.

Reads: note. Shared by dedup and by recall's links. Thresholds belong to the embedder
(`memory.llm.thresholds`). Knows nothing about verdicts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from itertools import zip_longest
from uuid import UUID

from django.contrib.postgres.search import SearchRank
from django.db import connection, transaction
from django.db.models import Case, F, FloatField, Q, When
from pgvector.django import CosineDistance

from memory.attribution import GLOBAL
from memory.lexical import AnyOf, query_terms, selective, statistics
from memory.models import Note, Project
from memory.querysets import NoteQuerySet

#: Neighbours taken from each of the two searches before any floor.
# Why: the floor must not stand in the kNN's WHERE: the index would be walked to its end.
NEIGHBOURS_A_TRACK = 20

#: Candidates that HNSW looks at.
# Why: tried at 10k notes: recall@10 of 1.0 in 2 ms; must be at least the LIMIT.
# Calibrate: recall@10 of the index against an exact scan.
HNSW_EF_SEARCH = 100

assert NEIGHBOURS_A_TRACK <= HNSW_EF_SEARCH


@dataclass(frozen=True)
class Neighbour:
    """An older note with its cosine (None: no vector of that embedder) and its rank by words."""

    note: Note
    similarity: float | None
    lexical: float | None


def wide_scan() -> None:
    """Let HNSW go on until enough rows pass the filters; only until the transaction ends."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SET LOCAL hnsw.iterative_scan = strict_order;"
            f" SET LOCAL hnsw.ef_search = {HNSW_EF_SEARCH}"
        )


def comparable(note: Note, *, now: datetime) -> NoteQuerySet:
    """Live notes of the same owner and level that are older or were judged before, in the note's
    project or in `global`: what holds everywhere is restated and changed inside projects, too.

    The other way round no: a note of `global` says nothing about what one project does.
    """
    # A subquery over a tiny table: a join would keep the planner off HNSW.
    everywhere = Project.objects.filter(name=GLOBAL).values("pk")
    found: NoteQuerySet = (
        Note.objects.visible_to(note.owner)
        .live(now)
        .filter(Q(project=note.project_id) | Q(project__in=everywhere))
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
    with transaction.atomic():
        wide_scan()
        rows = (
            pool.of_model(note.embedding_model)
            .annotate(distance=CosineDistance("embedding", note.embedding))
            .order_by("distance", "pk")[:NEIGHBOURS_A_TRACK]
        )
        return [Neighbour(row, 1.0 - row.distance, None) for row in rows]


def _lexical(pool: NoteQuerySet, note: Note) -> list[Neighbour]:
    """The best by words first, with their cosine where they have a vector of the same model."""
    known = statistics()
    asked = query_terms(note.content, known)
    if not asked:
        return []
    rows = pool.filter(search=AnyOf(selective(asked, known)))
    rows = rows.annotate(rank=SearchRank(F("search"), AnyOf(asked)))
    if note.embedding is not None:
        alike = When(
            embedding_model=note.embedding_model, then=CosineDistance("embedding", note.embedding)
        )
        rows = rows.annotate(distance=Case(alike, output_field=FloatField()))
    return [
        Neighbour(
            row,
            None if (far := getattr(row, "distance", None)) is None else 1.0 - far,
            float(row.rank),
        )
        for row in rows.order_by("-rank", "pk")[:NEIGHBOURS_A_TRACK]
    ]
