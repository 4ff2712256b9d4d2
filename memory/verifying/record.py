"""Checks of the record: raw items say what was captured, notes quote it, edges lead on."""

from __future__ import annotations

from collections.abc import Iterator

from memory.findings import Found
from memory.models import Note
from memory.verifying.check import Check, Look, count, rows

ITEMS = """
SELECT 'item', i.id::text, i.owner_id, jsonb_build_object('characters', length(i.body))
FROM memory_rawitem i
WHERE encode(sha256(convert_to(i.body, 'UTF8')), 'hex') <> i.sha256
"""

# Offsets are characters, from 0. CASE: what is no span at all is never cut out.
QUOTES = """
SELECT 'note', e.note_id::text, n.owner_id, jsonb_build_object(
    'evidence', e.id, 'item', e.raw_item_id, 'start', e.start, 'end', e."end",
    'wrong', CASE WHEN e.same THEN 'hash' ELSE 'span' END)
FROM (
    SELECT e.*, e.raw_item_id IS NULL OR i.id IS NULL OR CASE
        WHEN e.start < 0 OR e."end" - e.start <> length(e.quote) THEN false
        ELSE substr(i.body, e.start + 1, e."end" - e.start) = e.quote END AS same
    FROM memory_evidence e LEFT JOIN memory_rawitem i ON i.id = e.raw_item_id
) e LEFT JOIN memory_note n ON n.id = e.note_id
WHERE NOT e.same OR encode(sha256(convert_to(e.quote, 'UTF8')), 'hex') <> e.sha256
"""

PARENTS = """
SELECT 'note', e.note_id::text, n.owner_id, jsonb_build_object('evidence', e.id, 'gone',
    CASE WHEN n.id IS NULL THEN 'note' WHEN e.raw_item_id IS NOT NULL AND i.id IS NULL THEN 'item'
    ELSE 'parent' END)
FROM memory_evidence e LEFT JOIN memory_note n ON n.id = e.note_id
LEFT JOIN memory_rawitem i ON i.id = e.raw_item_id
LEFT JOIN memory_note p ON p.id = e.parent_id
WHERE n.id IS NULL OR (e.raw_item_id IS NOT NULL AND i.id IS NULL)
   OR (e.parent_id IS NOT NULL AND p.id IS NULL)
UNION ALL
SELECT 'note', memory_note.id::text, owner_id, '{"gone": "evidence"}'::jsonb FROM memory_note
WHERE {live} AND NOT EXISTS (SELECT FROM memory_evidence e WHERE e.note_id = memory_note.id)
UNION ALL
SELECT 'note', e.note_id::text, n.owner_id, jsonb_build_object('evidence', e.id, 'gone', 'itself')
FROM memory_evidence e JOIN memory_note n ON n.id = e.note_id WHERE e.parent_id = e.note_id
UNION ALL
SELECT 'episode', t.episode_id::text, o.owner_id, jsonb_build_object('item', t.raw_item_id)
FROM memory_episodeturn t LEFT JOIN memory_rawitem i ON i.id = t.raw_item_id
LEFT JOIN memory_episode o ON o.id = t.episode_id WHERE i.id IS NULL OR o.id IS NULL
"""


def items(look: Look) -> Iterator[Found]:
    """Raw items whose body is not the one that was captured."""
    count(look, "SELECT count(*) FROM memory_rawitem")
    yield from rows(look, ITEMS)


def quotes(look: Look) -> Iterator[Found]:
    """Evidence whose quote is not what stands at its place, or not what its hash was made of."""
    count(look, "SELECT count(*) FROM memory_evidence")
    yield from rows(look, QUOTES)


def parents(look: Look) -> Iterator[Found]:
    """Edges that lead to nothing, and live notes that nothing bears out."""
    count(look, "SELECT count(*) FROM memory_evidence")
    yield from rows(look, PARENTS, live=Note.objects.as_pipeline().live(look.now))


CHECKS = (
    Check("items", "every raw item has the hash of what it says", items),
    Check("quotes", "every quote is the span of its raw item, and has its hash", quotes),
    Check("parents", "every note has evidence, and every edge leads to a row", parents),
)
