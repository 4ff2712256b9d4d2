"""The tracks: ranked lists of live, visible notes for one query, by meaning and by words.

Reads: note. Used by prompt recall, later by every other way of asking. Knows nothing about
floors, gates or what is done with a hit.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from django.contrib.postgres.search import SearchRank
from django.db import transaction
from django.db.models import F, Q
from pgvector.django import CosineDistance

from memory.errors import Confidential, ContentError, InfraError
from memory.lexical import AnyOf, query_terms, selective, statistics
from memory.llm.choice import embedder
from memory.llm.ports import Origin
from memory.models import DedupVerdict, Note, Principal
from memory.neighbours import wide_scan

#: Notes that each track brings to the fusion.
# Why: measured on dialogues, depth 20 to 30 orders better than 100; the rest is noise.
# Calibrate: recall@5 by depth under cross-validation.
TRACK_DEPTH = 30

#: What of a note is read for a hit.
COLUMNS = (
    "id", "title", "content", "context", "tags", "importance", "confidence", "memory_kind",
    "said_by", "project_id", "project__name", "valid_from", "valid_to", "content_key", "session",
    "owner_id", "owner__name",
)  # fmt: skip


#: What each track scores a row by.
SCORES: Mapping[str, Callable[[Mapping[str, Any]], float]] = {
    "semantic": lambda row: 1.0 - float(row["distance"]),
    "keyword": lambda row: float(row["rank"]),
}


@dataclass(frozen=True)
class Tracks:
    """Ranked (note id, score) lists by track name, with what it took to make them.

    `notes` has the columns of every note in a track; `degraded` says why a track is missing.
    """

    ranked: Mapping[str, Sequence[tuple[UUID, float]]]
    model: str
    terms: tuple[str, ...]
    notes: Mapping[UUID, dict[str, Any]]
    degraded: Mapping[str, str] = field(default_factory=dict)
    milliseconds: Mapping[str, float] = field(default_factory=dict)


def search(query: str, *, principal: Principal, now: datetime) -> Tracks:
    """Both tracks for a query. Without an embedder the words alone answer, and it is said."""
    timings: dict[str, float] = {}
    degraded: dict[str, str] = {}
    found: dict[str, list[dict[str, Any]]] = {}
    model = embedder()
    started = time.perf_counter()
    try:
        vector = model.embed_query(query, origin=Origin("recall"))
    except (InfraError, ContentError, Confidential) as error:
        vector = None
        degraded["semantic"] = str(error)
    timings["embed"] = _since(started)
    pool = Note.objects.visible_to(principal).live(now)
    if vector is not None:
        started = time.perf_counter()
        with transaction.atomic():
            wide_scan()
            found["semantic"] = list(
                pool.of_model(model.name)
                .annotate(distance=CosineDistance("embedding", vector))
                .order_by("distance", "pk")
                .values(*COLUMNS, "distance")[:TRACK_DEPTH]
            )
        timings["semantic"] = _since(started)
    started = time.perf_counter()
    known = statistics()
    asked = query_terms(query, known)
    if asked:
        found["keyword"] = list(
            pool.filter(search=AnyOf(selective(asked, known)))
            .annotate(rank=SearchRank(F("search"), AnyOf(asked)))
            .order_by("-rank", "pk")
            .values(*COLUMNS, "rank")[:TRACK_DEPTH]
        )
    timings["keyword"] = _since(started)
    ranked = {
        name: [(row["id"], score_of(row)) for row in found[name]]
        for name, score_of in SCORES.items()
        if name in found
    }
    notes = {row["id"]: row for rows in found.values() for row in rows}
    return Tracks(ranked, model.name, tuple(asked), notes, degraded, timings)


def told(rows: Sequence[Mapping[str, Any]], *, principal: Principal) -> list[dict[str, Any]]:
    """These rows with what a reader must know beside them: whose they are, when not the reader's
    own (`shared_by`), and whether a supersession of them waits for a person (`disputed`)."""
    if not rows:
        return []
    ids = [row["id"] for row in rows]
    pending = DedupVerdict.objects.as_pipeline().filter(
        Q(note__in=ids) | Q(target__in=ids), status="pending"
    )
    held = {pk for pair in pending.values_list("note", "target") for pk in pair}
    return [
        {
            **row,
            "shared_by": "" if row["owner_id"] == principal.pk else row["owner__name"],
            "disputed": row["id"] in held,
        }
        for row in rows
    ]


def _since(started: float) -> float:
    return round((time.perf_counter() - started) * 1000, 2)
