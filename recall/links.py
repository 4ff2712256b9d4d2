"""A note's links, computed and shown, never stored: evidence, siblings, chain, neighbours.

Reads: note, evidence, dedup_verdict. Every linked note is one the reader may see.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Q
from pgvector.django import CosineDistance

from memory.errors import NotFound
from memory.llm.thresholds import threshold
from memory.models import DedupVerdict, Evidence, Note, Principal, RawItem
from memory.neighbours import wide_scan

#: Neighbours shown of a note.
NEIGHBOURS_MAX = 5

#: Steps followed along refine and supersede, each way.
CHAIN_STEPS_MAX = 20


def open_note(note_id: UUID, *, principal: Principal, now: datetime) -> dict[str, Any]:
    """A note with its evidence and links. Raises NotFound, also for somebody else's note."""
    note = Note.objects.visible_to(principal).select_related("project").filter(pk=note_id).first()
    if note is None:
        raise NotFound(f"no note {note_id}")
    return {
        **_short(note),
        "context": note.context,
        "importance": note.importance,
        "confidence": note.confidence,
        "valid_from": note.valid_from.isoformat(),
        "valid_to": note.valid_to.isoformat() if note.valid_to else None,
        "deleted_at": note.deleted_at.isoformat() if note.deleted_at else None,
        "retired_reason": note.retired_reason,
        "model": note.model_real,
        "evidence": _evidence(note, principal),
        "siblings": _siblings(note, principal, now),
        "chain": _chain(note, principal),
        "neighbours": _neighbours(note, principal, now),
    }


def _short(note: Note) -> dict[str, Any]:
    return {
        "id": str(note.pk),
        "title": note.title,
        "content": note.content,
        "project": note.project.name if note.project else None,
        "said_by": note.said_by,
    }


def _evidence(note: Note, principal: Principal) -> list[dict[str, Any]]:
    visible = RawItem.objects.visible_to(principal).filter(cited__note=note)
    seen = {item.pk: item for item in visible}
    return [
        {
            "raw_item": edge.raw_item_id,
            "quote": edge.quote,
            "start": edge.start,
            "end": edge.end,
            "role": seen[edge.raw_item_id].role,
            "source": seen[edge.raw_item_id].source,
            "session": seen[edge.raw_item_id].session,
            "occurred_at": seen[edge.raw_item_id].occurred_at.isoformat(),
        }
        for edge in note.evidence.order_by("pk")
        if edge.raw_item_id in seen
    ]


def _siblings(note: Note, principal: Principal, now: datetime) -> list[dict[str, Any]]:
    """Live notes that stand on the same raw items."""
    items = Evidence.objects.filter(note=note, raw_item__isnull=False).values("raw_item")
    pool = Note.objects.visible_to(principal).live(now).select_related("project")
    found = pool.filter(evidence__raw_item__in=items).exclude(pk=note.pk).distinct()
    return [_short(one) for one in found.order_by("valid_from", "pk")[:CHAIN_STEPS_MAX]]


def _chain(note: Note, principal: Principal) -> list[dict[str, Any]]:
    """What this note replaced and what replaced it, oldest verdict first."""
    seen: set[UUID] = {note.pk}
    edge: set[UUID] = {note.pk}
    rows: dict[int, DedupVerdict] = {}
    for _ in range(CHAIN_STEPS_MAX):
        found = (
            DedupVerdict.objects.as_pipeline()
            .filter(Q(note__in=edge) | Q(target__in=edge), target__isnull=False)
            .exclude(pk__in=rows)
        )
        fresh = {row.pk: row for row in found}
        if not fresh:
            break
        rows |= fresh
        edge = {pk for row in fresh.values() for pk in (row.note_id, row.target_id) if pk} - seen
        seen |= edge
    visible = {
        one.pk: one
        for one in Note.objects.visible_to(principal).select_related("project").filter(pk__in=seen)
    }
    return [
        {
            "verdict": row.verdict,
            "status": row.status,
            "new": _short(visible[row.note_id]),
            "old": _short(visible[row.target_id]),
        }
        for row in sorted(rows.values(), key=lambda row: row.pk)
        if row.note_id in visible and row.target_id in visible
    ]


def _neighbours(note: Note, principal: Principal, now: datetime) -> list[dict[str, Any]]:
    """Live notes near in meaning, above what counts as related for this embedder."""
    if note.embedding is None:
        return []
    with transaction.atomic():
        wide_scan()
        rows = (
            Note.objects.visible_to(principal)
            .live(now)
            .of_model(note.embedding_model)
            .exclude(pk=note.pk)
            .select_related("project")
            .annotate(distance=CosineDistance("embedding", note.embedding))
            .order_by("distance", "pk")[:NEIGHBOURS_MAX]
        )
        near = threshold(note.embedding_model, "related")
        return [
            {**_short(row), "similarity": round(1.0 - row.distance, 4)}
            for row in rows
            if 1.0 - row.distance >= near
        ]
