"""By what an export knows, without making any page, that it would make the same pages again.

Reads: note, evidence, project, dedup_verdict. Knows nothing about what lies on the disk.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from datetime import datetime
from types import ModuleType
from uuid import UUID

from django.db import connection

from exporter import document, hubs, inert, names, pages, related, wanted
from exporter import resting as at_rest
from exporter.place import Place
from exporter.wanted import allowed, seen
from memory.llm.choice import embedder
from memory.llm.thresholds import thresholds
from memory.models import Principal
from memory.querysets import condition, mates_of

#: What makes pages of what is read.
MADE_BY = (document, hubs, inert, names, pages, related, at_rest, wanted)

FINGERPRINT = """
WITH seen AS MATERIALIZED (
    SELECT true AS live, id, confidence, valid_to, embedding_model, embedded_at
        FROM memory_note WHERE {where}
    UNION ALL
    SELECT false, id, confidence, valid_to, embedding_model, embedded_at
        FROM memory_note WHERE id = ANY(%s)
)
SELECT
    (SELECT count(*) || ':' || coalesce(sum(hashtextextended(concat_ws('|', live, id, confidence,
        valid_to, embedding_model, embedded_at), 0)::numeric), 0) FROM seen),
    (SELECT count(*) || ':' || coalesce(sum(memory_evidence.id), 0)
        FROM memory_evidence JOIN seen ON seen.id = memory_evidence.note_id),
    (SELECT string_agg(concat_ws('|', id, name, merged_into_id), ',' ORDER BY id)
        FROM memory_project),
    (SELECT count(*) || ':' || coalesce(sum(id), 0) FROM memory_dedupverdict
        WHERE status IN ('applied', 'approved') AND verdict <> 'distinct')
"""


def fingerprint(
    place: Place, owner: Principal, *, now: datetime, resting: Collection[UUID] = ()
) -> str:
    """A number for everything that pages are made of: while it is the same, so are they. `resting`:
    the notes of pages that rest."""
    where, parameters = condition(seen(place, owner, now))
    with connection.cursor() as cursor:
        cursor.execute(FINGERPRINT.format(where=where), [*parameters, list(resting)])
        counted = cursor.fetchone()
    model = embedder().name
    return _digest(
        counted, sorted(mates_of(owner)), allowed(place), model, thresholds(model),
        [constants(module) for module in MADE_BY],
    )  # fmt: skip


def constants(module: ModuleType) -> list[tuple[str, object]]:
    """The numbers and words at the head of a module that pages are made by: whoever calibrates one
    gets new pages."""
    return sorted(
        (name, value)
        for name, value in vars(module).items()
        if name.isupper() and name[0] != "_" and isinstance(value, (int, float, str, tuple))
    )


def place_mark(place: Place) -> str:
    """A number for the vault itself: whose, where and how."""
    return _digest(
        str(place.folder.resolve()), place.owner, place.confidentiality, place.retired,
        place.lowercase,
    )  # fmt: skip


def _digest(*parts: object) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:24]
