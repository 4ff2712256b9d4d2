"""Checks of what was done with notes after they were retired: judged, held, given to an agent."""

from __future__ import annotations

from collections.abc import Iterator

from memory.findings import Found
from memory.verifying.check import Check, Look, count, rows, slack

#: Why a note is retired that a rebuild did not make again.
UNMADE = "rebuilt"

# A note that was retired since it was asked about is none: it asks again when the note comes back.
# One that nothing makes again does not come back by itself, and nobody is ever asked.
HOLDS = """
SELECT 'verdict', v.id::text, v.owner_id, jsonb_build_object(
    'note', v.note_id, 'target', v.target_id,
    'wrong', CASE WHEN n.id IS NULL OR t.id IS NULL THEN 'gone'
        WHEN %(unmade)s IN (n.retired_reason, t.retired_reason) THEN 'not made again'
        ELSE 'retired before' END)
FROM memory_dedupverdict v LEFT JOIN memory_note n ON n.id = v.note_id
LEFT JOIN memory_note t ON t.id = v.target_id
WHERE v.status = 'pending' AND (n.id IS NULL OR t.id IS NULL
    OR %(unmade)s IN (n.retired_reason, t.retired_reason)
    OR n.deleted_at < v.created_at - %(slack)s OR t.deleted_at < v.created_at - %(slack)s)
"""

NEIGHBOURS = """
SELECT 'verdict', v.id::text, v.owner_id,
    jsonb_build_object('neighbour', n.id, 'retired', n.deleted_at)
FROM memory_dedupverdict v
CROSS JOIN LATERAL jsonb_array_elements(
    CASE jsonb_typeof(v.candidates) WHEN 'array' THEN v.candidates ELSE '[]' END) AS shown
JOIN memory_note n ON n.id::text = shown ->> 'note'
WHERE n.deleted_at < v.created_at - %(slack)s
UNION ALL
SELECT 'verdict', v.id::text, v.owner_id, '{"wrong": "its candidates are no list of notes"}'::jsonb
FROM memory_dedupverdict v
WHERE CASE jsonb_typeof(v.candidates) WHEN 'array' THEN EXISTS (
        SELECT FROM jsonb_array_elements(v.candidates) AS shown
        WHERE shown ->> 'note' ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' IS NOT TRUE)
    ELSE true END
"""

# Who asks about the past, or opens a note by its name, is told of retired ones on purpose.
INJECTED = """
SELECT 'injection', i.id::text, i.owner_id,
    jsonb_build_object('note', n.id, 'retired', n.deleted_at)
FROM memory_injection i CROSS JOIN LATERAL unnest(i.note_ids) AS given
JOIN memory_note n ON n.id = given
WHERE i.mode <> 'open' AND NOT i.options ? 'as_of' AND n.deleted_at < i.created_at - %(slack)s
"""


def holds(look: Look) -> Iterator[Found]:
    """Verdicts that wait for a decision about notes that there are not, or were not any more."""
    count(look, "SELECT count(*) FROM memory_dedupverdict WHERE status = 'pending'")
    yield from rows(look, HOLDS, slack=slack(), unmade=UNMADE)


def neighbours(look: Look) -> Iterator[Found]:
    """Verdicts whose judge was shown a note that was retired before, or nobody can say what."""
    count(look, "SELECT count(*) FROM memory_dedupverdict")
    yield from rows(look, NEIGHBOURS, slack=slack())


def injected(look: Look) -> Iterator[Found]:
    """Recalls that put a note before an agent which was retired before."""
    count(look, "SELECT count(*) FROM memory_injection")
    yield from rows(look, INJECTED, slack=slack())


CHECKS = (
    Check("holds", "every pending verdict is about notes that were there when it asked", holds),
    Check("neighbours", "no retired note was shown to the judge", neighbours),
    Check("injected", "no retired note was put before an agent", injected),
)
