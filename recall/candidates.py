"""The candidates of a query out of the database: notes, or raw items with the turns around them.

Reads: search_text, note, raw_item, turn_vector. One statement a source, and no object of a row that
nothing is made of. Knows nothing about how candidates are ordered.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from memory.querysets import OwnedQuerySet, condition
from memory.reading import server
from recall.pool import Row

#: Turns fetched on each side of a candidate.
# Why: a turn is read in the light of what stands around it; on dialogues a window of five helps
# and one of seven does not help more.
# Calibrate: recall@5 of `manage.py eval` with one more and one less.
AROUND_TURNS = 2


@dataclass(frozen=True)
class Fetched:
    """Rows for the pool, and by search text what a hit must know of itself, as it came: `at` is
    when it was said, in epoch seconds (each datetime made by the driver costs 15 us)."""

    rows: Sequence[Row]
    told: Mapping[int, Sequence[Any]]
    names: Sequence[str]

    def facts(self, text: int) -> dict[str, Any]:
        """What a hit must know of itself, by name; made for those that are kept."""
        facts = dict(zip(self.names, self.told[text], strict=True))
        return {**facts, "at": datetime.fromtimestamp(facts["at"], UTC)}


# Why OFFSET 0: rows are fetched by their keys first and looked at then. Left to choose, the planner
# takes what a predicate's subqueries cost once for a price of every row, and reads the whole table.
_ROW = (
    "memory_searchtext.place_id, extract(epoch FROM memory_searchtext.occurred_at)::float8,"
    " memory_searchtext.id, {cosine}, length, traits, terms, counts, heads"
)

_OF_ROW = 5  # length, traits, terms, counts, heads

#: What of a note its hit carries; the rest is read for those that are shown.
NOTE_FACTS = (
    "id", "title", "content", "memory_kind", "project_id", "content_key", "owner_id",
)  # fmt: skip
_NOTES = (
    "SELECT "
    + _ROW
    + ", p.name, o.name, "
    + ", ".join(f"memory_note.{name}" for name in NOTE_FACTS)
    + " FROM (SELECT unnest(%s::bigint[]) AS id UNION"
    " SELECT id FROM memory_searchtext WHERE note_id = ANY(%s::uuid[])) picked"
    " JOIN memory_searchtext ON memory_searchtext.id = picked.id"
    " CROSS JOIN LATERAL (SELECT * FROM memory_note n"
    " WHERE n.id = memory_searchtext.note_id OFFSET 0) memory_note"
    " LEFT JOIN memory_project p ON p.id = memory_note.project_id"
    " JOIN memory_principal o ON o.id = memory_note.owner_id WHERE {where}"
)

#: What of a raw item its hit carries; what it says is read for those that are shown.
TURN_FACTS = ("raw_item_id", "project_id", "owner_id", "visibility")
_TURNS = (
    """
WITH picked AS (
    SELECT memory_searchtext.id, place_id, occurred_at FROM unnest(%s::bigint[]) wanted (id)
    CROSS JOIN LATERAL (SELECT * FROM memory_searchtext s WHERE s.id = wanted.id OFFSET 0)
        memory_searchtext WHERE {where}
),
around AS (
    SELECT x.id FROM picked CROSS JOIN LATERAL (
        (SELECT b.id FROM memory_searchtext b WHERE b.place_id = picked.place_id
           AND (b.occurred_at, b.id) < (picked.occurred_at, picked.id)
         ORDER BY b.occurred_at DESC, b.id DESC LIMIT {around})
        UNION ALL
        (SELECT a.id FROM memory_searchtext a WHERE a.place_id = picked.place_id
           AND (a.occurred_at, a.id) > (picked.occurred_at, picked.id)
         ORDER BY a.occurred_at, a.id LIMIT {around})
    ) x
), ids AS (
    SELECT id FROM picked UNION SELECT id FROM around
)
SELECT """
    + _ROW
    + ", p.name, o.name, "
    + ", ".join(f"memory_searchtext.{name}" for name in TURN_FACTS)
    + """
FROM ids
CROSS JOIN LATERAL (SELECT * FROM memory_searchtext s WHERE s.id = ids.id OFFSET 0)
    memory_searchtext
JOIN memory_principal o ON o.id = memory_searchtext.owner_id
LEFT JOIN memory_project p ON p.id = memory_searchtext.project_id
LEFT JOIN LATERAL (
    SELECT t.embedding FROM memory_turnvector t
    WHERE t.raw_item_id = memory_searchtext.raw_item_id AND t.model = %s OFFSET 0
) v ON true
WHERE {where}
"""
)


def notes(
    pool: OwnedQuerySet, *, keys: Sequence[Any], texts: Sequence[int], vector: str, model: str
) -> Fetched:
    """Notes of the pool by their ids or search texts; `vector` is a literal, "" for none."""
    where, params = condition(pool)
    cosine, given = _cosine("memory_note.embedding", "memory_note.embedding_model = %s", vector)
    sql = _NOTES.format(where=where, cosine=cosine)
    if given:
        given = [model, *given]
    return _fetch(sql, [*given, list(texts), list(keys), *params], NOTE_FACTS)


def turns(pool: OwnedQuerySet, *, texts: Sequence[int], vector: str, model: str) -> Fetched:
    """Raw items of the pool by their search texts, and the turns around them."""
    where, params = condition(pool)
    cosine, given = _cosine("v.embedding", "v.embedding IS NOT NULL", vector)
    sql = _TURNS.format(where=where, cosine=cosine, around=AROUND_TURNS)
    return _fetch(sql, [list(texts), *params, *given, model, *params], TURN_FACTS)


def _cosine(column: str, known: str, vector: str) -> tuple[str, list[Any]]:
    if not vector:
        return "NULL::float8", []
    return f"CASE WHEN {known} THEN 1 - ({column} <=> %s::halfvec) END", [vector]


def _fetch(sql: str, params: Sequence[Any], names: Sequence[str]) -> Fetched:
    with server().cursor() as cursor:
        cursor.execute(sql, params)
        found = cursor.fetchall()
    rows, told = [], {}
    for place, occurred, text, cosine, *rest in found:
        cosine = float("nan") if cosine is None else cosine
        rows.append(Row(place, occurred, text, cosine, *rest[:_OF_ROW]))
        told[text] = [occurred, *rest[_OF_ROW:]]
    return Fetched(rows, told, ("at", "project__name", "owner__name", *names))
