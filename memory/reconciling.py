"""What `reconcile` asks: is what was captured distilled, do turns and notes still belong together,
and would today's gate let the notes of a unit through?

Reads: session, raw_item, episode, note, evidence, claim, rejected_fact. Writes nothing. Knows
nothing about runs, models or what is done with an answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta

from memory import gate, rejected
from memory.findings import Found
from memory.llm.ports import Candidate
from memory.making import ITEM_KINDS, Unit
from memory.models import Evidence, Note
from memory.models.record import CONFIDENTIALITIES
from memory.text.poison import poison
from memory.verifying.check import Check, Look, count, rows

#: Hours that something captured may wait before it counts as forgotten.
# Why: a model that is away or a budget that is spent puts work off to the next day.
# Calibrate: the oldest wait on the board of a house that is well.
WAITED_HOURS = 24

# What a parked or a held claim says is known, and told elsewhere. A purge puts units that lost a
# turn back into the line, and a person a parked one: those, and no others, wait since then.
WAITING = """
SELECT 'episode', e.id::text, e.owner_id, jsonb_build_object('unit', e.unit_key)
FROM memory_episode e WHERE e.distilled_at IS NULL AND e.created_at < %(since)s
    AND e.unit_key NOT IN (SELECT jsonb_array_elements_text(
            CASE jsonb_typeof(l.counts -> 'units') WHEN 'array' THEN l.counts -> 'units'
                ELSE '[]' END)
        FROM memory_purgeledger l WHERE l.created_at >= %(since)s)
    AND NOT EXISTS (SELECT FROM memory_distillfailure f WHERE f.unit = e.unit_key
        AND f.created_at >= %(since)s)
    AND NOT EXISTS (SELECT FROM memory_claim c WHERE c.stage = 'distill' AND c.unit = e.unit_key
        AND (c.parked_at IS NOT NULL OR c.lease_until > %(now)s))
UNION ALL
SELECT 'item', i.id::text, i.owner_id, jsonb_build_object('unit', 'item:' || i.id)
FROM memory_rawitem i WHERE i.kind = ANY(%(kinds)s::text[]) AND i.captured_at < %(since)s
    AND NOT EXISTS (SELECT FROM memory_distilleditem d WHERE d.raw_item_id = i.id)
    AND NOT EXISTS (SELECT FROM memory_distillfailure f WHERE f.unit = 'item:' || i.id
        AND f.created_at >= %(since)s)
    AND NOT EXISTS (SELECT FROM memory_claim c WHERE c.stage = 'distill'
        AND c.unit = 'item:' || i.id AND (c.parked_at IS NOT NULL OR c.lease_until > %(now)s))
UNION ALL
SELECT 'item', i.id::text, i.owner_id, '{"lacks": "episode"}'::jsonb
FROM memory_rawitem i WHERE i.kind = 'turn' AND i.captured_at < %(since)s
    AND NOT EXISTS (SELECT FROM memory_episodeturn t WHERE t.raw_item_id = i.id)
    AND NOT EXISTS (SELECT FROM memory_session s WHERE s.owner_id = i.owner_id
        AND s.source = i.source AND s.key = i.session AND s.pending)
"""

# An episode is closed once and never changed, but for what a purge takes out of it.
TURNS = """
SELECT 'episode', e.id::text, e.owner_id, jsonb_build_object(
    'turns', e.turn_count, 'there', count(t.id), 'foreign', count(*) FILTER (WHERE t.foreign_one),
    'ends', (array_agg(t.raw_item_id ORDER BY t.position))[1] = e.first_item_id
        AND (array_agg(t.raw_item_id ORDER BY t.position DESC))[1] = e.last_item_id)
FROM memory_episode e LEFT JOIN (
    SELECT t.id, t.episode_id, t.raw_item_id, t.position,
        (i.owner_id, i.source, i.session) IS DISTINCT FROM (o.owner_id, o.source, o.session)
            OR i.kind <> 'turn' AS foreign_one,
        array_position(%(levels)s::text[], i.confidentiality)
            > array_position(%(levels)s::text[], o.confidentiality) AS stricter
    FROM memory_episodeturn t JOIN memory_episode o ON o.id = t.episode_id
    JOIN memory_rawitem i ON i.id = t.raw_item_id
) t ON t.episode_id = e.id
GROUP BY e.id HAVING e.turn_count <> count(t.id) OR bool_or(t.foreign_one) OR bool_or(t.stricter)
    OR (array_agg(t.raw_item_id ORDER BY t.position))[1] IS DISTINCT FROM e.first_item_id
    OR (array_agg(t.raw_item_id ORDER BY t.position DESC))[1] IS DISTINCT FROM e.last_item_id
"""

# What a duplicate left to a note stands elsewhere by right; what the note was made of may not.
EVIDENCE = """
SELECT 'note', memory_note.id::text, memory_note.owner_id,
    jsonb_build_object('unit', memory_note.unit_key, 'now_in', o.unit_key, 'item', e.raw_item_id)
FROM memory_note JOIN memory_evidence e ON e.note_id = memory_note.id AND e.origin = 'distill'
JOIN memory_episodeturn t ON t.raw_item_id = e.raw_item_id
JOIN memory_episode o ON o.id = t.episode_id
WHERE {live} AND starts_with(memory_note.unit_key, 'episode:')
    AND o.unit_key <> memory_note.unit_key
UNION ALL
SELECT 'note', memory_note.id::text, memory_note.owner_id,
    jsonb_build_object('unit', memory_note.unit_key, 'lacks', 'evidence')
FROM memory_note WHERE {live}
    AND NOT EXISTS (SELECT FROM memory_evidence e WHERE e.note_id = memory_note.id
        AND (e.parent_id IS NOT NULL
            OR EXISTS (SELECT FROM memory_rawitem i WHERE i.id = e.raw_item_id)))
"""


def waiting(look: Look) -> Iterator[Found]:
    """What was captured long ago and never came to be an episode, or to be distilled."""
    count(look, "SELECT count(*) FROM memory_rawitem")
    since = look.now - timedelta(hours=WAITED_HOURS)
    yield from rows(look, WAITING, since=since, now=look.now, kinds=list(ITEM_KINDS))


def turns(look: Look) -> Iterator[Found]:
    """Episodes whose turns are not those that they were closed with, or are less strict."""
    count(look, "SELECT count(*) FROM memory_episode")
    yield from rows(look, TURNS, levels=list(CONFIDENTIALITIES))


def evidence(look: Look) -> Iterator[Found]:
    """Live notes whose evidence is gone, or belongs to another unit by now."""
    live = Note.objects.as_pipeline().live(look.now)
    count(look, "SELECT count(*) FROM memory_note WHERE {live}", live=live)
    yield from rows(look, EVIDENCE, live=live)


#: Looked at whole, whatever the sample: one statement each.
SWEEPS = (
    Check("waiting", "what was captured is distilled within a day", waiting),
    Check("turns", "every episode has the turns that it was closed with", turns),
    Check("evidence", "every live note has its evidence, in its own unit", evidence),
)


def refused(unit: Unit, notes: Sequence[Note]) -> Iterator[Found]:
    """The notes of a unit that today's gate would refuse. Not those that a person accepted, which
    it refused at the time. `notes` are live ones, with their evidence."""
    unwanted = rejected.among(unit.source.owner_id, [note.content for note in notes])
    for note in notes:
        edge = next((one for one in note.evidence.all() if one.raw_item_id in unit.items), None)
        if edge is None or note.accepted.all():
            continue
        judged = gate.judge(candidate(note, edge), unit.passages, unwanted=unwanted)
        if isinstance(judged, gate.Rejection):
            detail = {"unit": unit.key, "reason": judged.reason}
            yield Found("note", str(note.pk), note.owner_id, detail)


def poisoned(unit: Unit, notes: Sequence[Note]) -> Iterator[Found]:
    """The notes of a unit whose source would not be captured today: an error or a refusal that
    looks like an answer."""
    for note in notes:
        for edge in note.evidence.all():
            item = unit.items.get(edge.raw_item_id or 0)
            if item is None or item.kind != "turn":
                continue
            if what := poison(item.body, item.role):
                detail = {"unit": unit.key, "item": item.pk, "reason": what}
                yield Found("note", str(note.pk), note.owner_id, detail)
                break


def candidate(note: Note, edge: Evidence) -> Candidate:
    """The note as a model would propose it again."""
    return Candidate(
        title=note.title,
        content=note.content,
        source_ref=edge.quote,
        importance=note.importance,
        keywords=tuple(note.keywords),
        tags=tuple(note.tags),
        context=note.context,
        memory_kind=note.memory_kind,
    )
