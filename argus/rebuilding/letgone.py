"""What a rebuild reads in the place of ledger rows that were let go.

Old rows of a ledger may be gone by `purge --ledger`; what followed from them still stands, and says
enough. Reads: the schema `was`, purge_ledger. Writes: a throwaway database. Knows nothing about the
order of things.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

from argus.rebuilding.record import ask

# When a session had ended, as it was known at a moment: by the receipts, by the session itself, and
# by the episodes that were closed then because it had.
ENDED = """
UPDATE memory_session s SET ended_at = (SELECT max(at) FROM (
    SELECT max(r.created_at) FROM was.memory_capturereceipt r WHERE r.owner_id = s.owner_id
        AND r.session_end ->> 'session' = s.key AND r.created_at <= %(at)s
    UNION ALL SELECT w.ended_at FROM was.memory_session w WHERE w.id = s.id AND w.ended_at <= %(at)s
    UNION ALL SELECT max(i.captured_at) FROM was.memory_episode e
        JOIN was.memory_episodeturn t ON t.episode_id = e.id
        JOIN was.memory_rawitem i ON i.id = t.raw_item_id
        WHERE e.owner_id = s.owner_id AND e.source = s.source AND e.session = s.key
            AND e.created_at = %(at)s GROUP BY e.created_at
            HAVING bool_or(e.boundary_reason = 'session_end')
) known (at)) WHERE s.id = %(session)s
"""

# A recall that is gone had put a note, or one that went into it, into the session of another: that
# this one was no independent evidence is all that is left of it.
SHOWN = """
INSERT INTO memory_injection OVERRIDING USER VALUE
SELECT (jsonb_populate_record(NULL::memory_injection, jsonb_build_object(
    'owner_id', n.owner_id, 'mode', 'let go', 'query', '', 'session', n.session, 'cwd', '',
    'outcome', 'injected', 'gate', '', 'options', '{}'::jsonb, 'note_ids', ARRAY[v.target_id],
    'turn_ids', ARRAY[]::bigint[], 'hits', '[]'::jsonb, 'floors', '{}'::jsonb,
    'timings', '{}'::jsonb, 'degraded', ARRAY[]::text[], 'omitted', 0, 'characters', 0,
    'model_asked', '', 'created_at', v.created_at))).*
FROM was.memory_dedupverdict v JOIN memory_note n ON n.id = v.note_id
WHERE v.id = %(verdict)s AND NOT v.corroborates AND v.verdict IN ('duplicate', 'refine')
    AND v.created_at < (SELECT max((l.counts ->> 'before')::date) FROM memory_purgeledger l
        WHERE l.counts ->> 'ledger_of' = 'injection')
"""

# Looks for a border that are gone: those of turns that were there before that day and lie in an
# episode.
UNLOOKED = """
DELETE FROM memory_segmentcheck c USING memory_rawitem i WHERE i.id = c.raw_item_id
    AND i.captured_at < (SELECT max((l.counts ->> 'before')::date) FROM memory_purgeledger l
        WHERE l.counts ->> 'ledger_of' = 'segment_check')
    AND EXISTS (SELECT FROM memory_episodeturn t WHERE t.raw_item_id = i.id)
    AND NOT EXISTS (SELECT FROM was.memory_segmentcheck w WHERE w.raw_item_id = c.raw_item_id
        AND w.check_kind = c.check_kind AND w.outcome = c.outcome)
"""


def end_session(session: int, at: datetime) -> None:
    """Say when the session had ended, as it was known at this moment."""
    ask(ENDED, session=session, at=at)


@contextmanager
def shown_again(verdict: int) -> Iterator[None]:
    """While this verdict is made again: what was recalled before it, where that was let go."""
    ask(SHOWN, verdict=verdict)
    try:
        yield
    finally:
        ask("DELETE FROM memory_injection WHERE mode = 'let go'")


def forget_looks() -> None:
    """After all was played: looks for borders that were let go stay away."""
    ask(UNLOOKED)
