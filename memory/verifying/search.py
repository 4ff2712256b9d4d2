"""Checks of what notes and raw items are found by: search texts, postings, statistics, vectors."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from memory import claims
from memory.findings import Found
from memory.llm.choice import embedder
from memory.making import ITEM_KINDS
from memory.models import Note, StageRun
from memory.verifying.check import Check, Look, count, rows

#: Hours that something may be without its search text or vector, though `embed` ran to its end.
# Why: a large import is indexed over many passes, and a note that was revived comes back into the
# line; what a whole day of passes left out is forgotten.
# Calibrate: the longest time from `captured_at` to the search text of an import.
SETTLED_HOURS = 24

TEXTS = """
SELECT 'note', memory_note.id::text, memory_note.owner_id,
    jsonb_build_object('lacks', CASE WHEN s.id IS NULL THEN 'search text' ELSE 'postings' END)
FROM memory_note LEFT JOIN memory_searchtext s ON s.note_id = memory_note.id
WHERE {live} AND memory_note.created_at < %(settled)s AND (s.id IS NULL OR (s.length > 0
    AND NOT EXISTS (SELECT FROM memory_posting p WHERE p.text_id = s.id AND p.live)))
UNION ALL
SELECT 'item', i.id::text, i.owner_id, '{"lacks": "search text"}'::jsonb FROM memory_rawitem i
WHERE i.captured_at < %(settled)s
    AND NOT EXISTS (SELECT FROM memory_searchtext s WHERE s.raw_item_id = i.id)
"""

# A retired note is found by nobody: its terms are asleep.
ASLEEP = """
SELECT 'note', n.id::text, n.owner_id, jsonb_build_object('text', s.id)
FROM memory_note n JOIN memory_searchtext s ON s.note_id = n.id
WHERE n.deleted_at IS NOT NULL
    AND EXISTS (SELECT FROM memory_posting p WHERE p.text_id = s.id AND p.live)
"""

UNEMBEDDED = """
SELECT 'note', memory_note.id::text, owner_id, '{"lacks": "vector"}'::jsonb FROM memory_note
WHERE {live} AND embedding IS NULL AND created_at < %(settled)s
    AND 'note:' || memory_note.id <> ALL (%(parked)s::text[])
"""

# A vector of nothing has no direction: it is as near to everything as to anything.
VECTORS = """
SELECT 'note', memory_note.id::text, owner_id, jsonb_build_object(
    'model', embedding_model, 'wrong',
    CASE WHEN embedding_model <> %(model)s THEN 'model' ELSE 'numbers' END)
FROM memory_note
WHERE {live} AND embedding IS NOT NULL AND (embedding_model <> %(model)s
    OR l2_norm(embedding) IN (0, 'NaN', 'Infinity'))
UNION ALL
SELECT 'item', v.raw_item_id::text, i.owner_id,
    jsonb_build_object('model', v.model, 'wrong', 'numbers')
FROM memory_turnvector v LEFT JOIN memory_rawitem i ON i.id = v.raw_item_id
WHERE l2_norm(v.embedding) IN (0, 'NaN', 'Infinity')
UNION ALL
SELECT 'item', v.raw_item_id::text, min(i.owner_id),
    jsonb_build_object('model', min(v.model), 'wrong', 'model')
FROM memory_turnvector v LEFT JOIN memory_rawitem i ON i.id = v.raw_item_id
WHERE 'item:' || v.raw_item_id <> ALL (%(parked)s::text[])
GROUP BY v.raw_item_id HAVING bool_and(v.model <> %(model)s)
"""

ORPHANS = """
SELECT 'vector', v.id::text, NULL::bigint, jsonb_build_object('item', v.raw_item_id)
FROM memory_turnvector v
WHERE NOT EXISTS (SELECT FROM memory_rawitem i WHERE i.id = v.raw_item_id)
UNION ALL
SELECT 'search text', s.id::text, s.owner_id,
    jsonb_build_object('item', s.raw_item_id, 'note', s.note_id)
FROM memory_searchtext s
WHERE (s.raw AND NOT EXISTS (SELECT FROM memory_rawitem i WHERE i.id = s.raw_item_id))
   OR (NOT s.raw AND NOT EXISTS (SELECT FROM memory_note n WHERE n.id = s.note_id))
UNION ALL
SELECT 'search text', p.text_id::text, min(p.owner_id), jsonb_build_object('postings', count(*))
FROM memory_posting p
WHERE NOT EXISTS (SELECT FROM memory_searchtext s WHERE s.id = p.text_id) GROUP BY p.text_id
"""

STATISTICS = """
SELECT 'collection', coalesce(c.owner_id, t.owner_id)::text, coalesce(c.owner_id, t.owner_id),
    jsonb_build_object('raw', coalesce(c.raw, t.raw), 'texts', coalesce(t.texts, 0),
        'length', coalesce(t.length, 0), 'counted', c.texts, 'counted_length', c.length)
FROM memory_collection c FULL JOIN (
    SELECT s.owner_id, s.raw, count(*) AS texts, sum(s.length) AS length FROM memory_searchtext s
    WHERE s.length > 0
        AND EXISTS (SELECT FROM memory_posting p WHERE p.text_id = s.id AND p.live)
    GROUP BY s.owner_id, s.raw
) t ON t.owner_id = c.owner_id AND t.raw = c.raw
WHERE coalesce(c.texts, 0) <> coalesce(t.texts, 0)
   OR coalesce(c.length, 0) <> coalesce(t.length, 0)
"""


# Read without those lists. What they name and is not there was purged: nobody comes for it.
WAITING = """
WITH lacking (lacks, kind, id, owner) AS (
    SELECT 'text', 'note', n.id::text, n.owner_id FROM memory_note n
    WHERE NOT EXISTS (SELECT FROM memory_searchtext s WHERE s.note_id = n.id)
  UNION ALL SELECT 'verdict', 'note', n.id::text, n.owner_id FROM memory_note n
    WHERE NOT EXISTS (SELECT FROM memory_dedupverdict v WHERE v.note_id = n.id)
  UNION ALL SELECT 'text', 'item', i.id::text, i.owner_id FROM memory_rawitem i
    WHERE NOT EXISTS (SELECT FROM memory_searchtext s WHERE s.raw_item_id = i.id)
  UNION ALL SELECT 'vector', 'item', i.id::text, i.owner_id FROM memory_rawitem i
    WHERE NOT EXISTS (SELECT FROM memory_turnvector v WHERE v.raw_item_id = i.id)
  UNION ALL SELECT 'distilled', 'item', i.id::text, i.owner_id FROM memory_rawitem i
    WHERE i.kind = ANY(%(kinds)s::text[])
        AND NOT EXISTS (SELECT FROM memory_distilleditem d WHERE d.raw_item_id = i.id)
), waiting (lacks, kind, id) AS (
    SELECT lacks, 'note', note_id::text FROM memory_waitingnote
    UNION ALL SELECT lacks, 'item', raw_item_id::text FROM memory_waitingitem
)
SELECT kind, id, owner, jsonb_build_object('lacks', lacks, 'waits', w.id IS NOT NULL)
FROM lacking FULL JOIN waiting w USING (lacks, kind, id)
WHERE lacking.owner IS NULL OR w.id IS NULL
"""


def texts(look: Look) -> Iterator[Found]:
    """What cannot be found by its words though it should be, or is though it should not."""
    live = Note.objects.as_pipeline().live(look.now)
    count(look, "SELECT count(*) FROM memory_searchtext")
    if settled := _settled(look.now):
        yield from rows(look, TEXTS, live=live, settled=settled)
    yield from rows(look, ASLEEP)


def vectors(look: Look) -> Iterator[Found]:
    """Live notes without a vector, and notes and items whose vector cannot be compared with a
    question's."""
    live = Note.objects.as_pipeline().live(look.now)
    count(look, "SELECT count(*) FROM memory_note WHERE {live}", live=live)
    count(look, "SELECT count(*) FROM memory_turnvector")
    parked = sorted({*claims.parked("embed"), *claims.parked("reembed")})
    if settled := _settled(look.now):
        yield from rows(look, UNEMBEDDED, live=live, settled=settled, parked=parked)
    yield from rows(look, VECTORS, live=live, model=embedder().name, parked=parked)


def orphans(look: Look) -> Iterator[Found]:
    """Vectors, search texts and postings of nothing."""
    count(look, "SELECT count(*) FROM memory_turnvector")
    count(look, "SELECT count(*) FROM memory_searchtext")
    yield from rows(look, ORPHANS)


def statistics(look: Look) -> Iterator[Found]:
    """Collections that count other texts than there are: every score of BM25 leans on them."""
    count(look, "SELECT count(*) FROM memory_collection")
    yield from rows(look, STATISTICS)


def _settled(now: datetime) -> datetime | None:
    """Before when everything has its search text and vector: what was there a day ago, and when
    the last `embed` that left nothing began. None when there was no such run: what waits is told
    on the board, and is no fault of the record."""
    runs = StageRun.objects.filter(stage="embed", status="done", report__pending=0)
    began = runs.order_by("-started_at").values_list("started_at", flat=True).first()
    return min(began, now - timedelta(hours=SETTLED_HOURS)) if began else None


def waiting(look: Look) -> Iterator[Found]:
    """What lacks something and waits for no stage, or waits and lacks nothing."""
    count(look, "SELECT count(*) FROM memory_waitingnote")
    count(look, "SELECT count(*) FROM memory_waitingitem")
    yield from rows(look, WAITING, kinds=list(ITEM_KINDS))


CHECKS = (
    Check("waiting", "what waits for a stage is what lacks something", waiting),
    Check("texts", "every live note and raw item is found by its words, a retired note not", texts),
    Check("vectors", "live notes and items have vectors of the model in force", vectors),
    Check("orphans", "no vector, search text or posting is of nothing", orphans),
    Check("statistics", "what is counted for ranking is what there is", statistics),
)
