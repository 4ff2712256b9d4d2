"""Which older notes a new one should be held against: near in meaning, or sharing rare words.

Reads: note. Shared by dedup and by recall's links. Thresholds belong to the embedder
(`memory.llm.thresholds`). Knows nothing about verdicts.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.contrib.postgres.search import SearchRank
from django.db import connection, transaction
from django.db.models import F
from pgvector.django import CosineDistance

from memory.lexical import AnyOf, query_terms, selective, statistics
from memory.models import Note
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
    """An older note with its cosine (None: found by words alone) and its lexical rank score."""

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


def older_neighbours(note: Note, *, now: datetime, floor: float, limit: int) -> list[Neighbour]:
    """Live notes of the same owner and project that are older or were judged before: those over the
    embedder's floor by cosine, then those that share rare terms; at most `limit`, best first."""
    pool = (
        Note.objects.visible_to(note.owner)
        .live(now)
        .filter(owner=note.owner, project=note.project, level=note.level)
        .met_by(note)
    )
    by_words = _lexical(pool, note)
    by_vector = _dense(pool, note) if note.embedding is not None else {}
    notes = {one.pk: one for one, _ in (*by_vector.values(), *by_words.values())}
    found = [
        Neighbour(
            notes[pk],
            by_vector[pk][1] if pk in by_vector else None,
            by_words[pk][1] if pk in by_words else None,
        )
        for pk in notes
        if pk in by_words or by_vector[pk][1] >= floor
    ]
    found.sort(key=lambda n: (-(n.similarity or 0.0), -(n.lexical or 0.0), str(n.note.pk)))
    return found[:limit]


def _dense(pool: NoteQuerySet, note: Note) -> dict[object, tuple[Note, float]]:
    with transaction.atomic():
        wide_scan()
        rows = (
            pool.of_model(note.embedding_model)
            .annotate(distance=CosineDistance("embedding", note.embedding))
            .order_by("distance", "pk")[:NEIGHBOURS_A_TRACK]
        )
        return {row.pk: (row, 1.0 - row.distance) for row in rows}


def _lexical(pool: NoteQuerySet, note: Note) -> dict[object, tuple[Note, float]]:
    known = statistics()
    asked = query_terms(note.content, known)
    if not asked:
        return {}
    rows = (
        pool.filter(search=AnyOf(selective(asked, known)))
        .annotate(rank=SearchRank(F("search"), AnyOf(asked)))
        .order_by("-rank", "pk")[:NEIGHBOURS_A_TRACK]
    )
    return {row.pk: (row, float(row.rank)) for row in rows}
