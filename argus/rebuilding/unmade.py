"""What a rebuild cannot make: brought over as it was.

A unit whose reply is not in the log any more; a session that lost turns to a purge, whose borders
were found with all of them there; what was made or judged of what a purge took; what came by a
file; what people decided about. Reads: the schema `was`. Writes: a throwaway database. Knows
nothing about the order of things, or what an earlier rebuild left (`argus.rebuilding.earlier`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction

from argus.rebuilding.record import ask, nothing_is_left
from memory import verdicts
from memory.errors import NotFound
from memory.models import DedupVerdict, Note
from memory.retire import retire
from memory.searchtexts import index_notes
from memory.stages.segment import LEARNS_FROM
from memory.verdicts import CONFIDENCE_START

# The episodes that this look at a session closed.
CLOSED = """
SELECT e.id FROM was.memory_episode e JOIN memory_session s
    ON s.owner_id = e.owner_id AND s.source = e.source AND s.key = e.session
WHERE s.id = %(session)s AND e.created_at = %(at)s
"""

# An episode that lost a turn: a place is empty, or it begins or ends when none of them was said.
HURT = f"""
SELECT 1 FROM was.memory_episode e JOIN was.memory_episodeturn t ON t.episode_id = e.id
JOIN was.memory_rawitem r ON r.id = t.raw_item_id WHERE e.id IN ({CLOSED})
GROUP BY e.id, e.started_at, e.ended_at HAVING count(*) <> max(t.position) + 1
    OR min(r.occurred_at) <> e.started_at OR max(r.occurred_at) <> e.ended_at
"""

# Which centroids a purge took is told by those that are there: they learned from what came later
# alone.
FORGET = """
DELETE FROM memory_centroid c
WHERE c.owner_id IN (SELECT owner FROM was.purged WHERE purge = %(purge)s) AND (
    SELECT count(*) FROM was.memory_episode e WHERE e.owner_id = c.owner_id
        AND e.project_id = c.project_id AND e.created_at > %(at)s
        AND e.project_method = ANY(%(learned)s)
) = coalesce((
    SELECT w.episodes FROM was.memory_centroid w WHERE w.owner_id = c.owner_id
        AND w.project_id = c.project_id AND w.model = c.model), 0)
"""

#: What of a verdict follows from how often a word stands in all texts.
COUNTED = "candidates,similarity,lexical"

# With which status a verdict began, by the first that a person did to it.
FIRST_STATUS = """coalesce((SELECT d.status_before FROM was.memory_decision d
    WHERE d.verdict_id = w.id ORDER BY d.created_at, d.id LIMIT 1),
    CASE w.status WHEN 'pending' THEN 'pending' ELSE 'applied' END)"""


def forget_centroids(purge: int, at: datetime) -> None:
    """What a purge at this time took of the centroids of projects is taken again."""
    ask(FORGET, purge=purge, at=at, learned=sorted(LEARNS_FROM))


def hurt(session: int, at: datetime) -> bool:
    """Whether an episode that this look at a session closed lost turns since."""
    return bool(ask(HURT, session=session, at=at))


def borders_as_they_were(session: int, at: datetime) -> None:
    """Its episodes, their turns and attribution, and what was looked at before turns."""
    values: dict[str, Any] = {"session": session, "at": at}
    ask(
        f"INSERT INTO memory_episode SELECT * FROM was.memory_episode WHERE id IN ({CLOSED})",
        **values,
    )
    ask(f"UPDATE memory_episode SET distilled_at = NULL WHERE id IN ({CLOSED})", **values)
    for table in ("memory_episodeturn", "memory_attribution"):
        # Without the number: turns and attributions have no other name than their episode.
        ask(
            f"INSERT INTO {table} OVERRIDING USER VALUE SELECT * FROM was.{table}"
            f" WHERE episode_id IN ({CLOSED})",
            **values,
        )
    ask(
        "INSERT INTO memory_segmentcheck OVERRIDING USER VALUE SELECT c.*"
        " FROM was.memory_segmentcheck c JOIN was.memory_rawitem r ON r.id = c.raw_item_id"
        " JOIN memory_session s ON s.owner_id = r.owner_id AND s.source = r.source"
        " AND s.key = r.session WHERE s.id = %(session)s AND c.created_at = %(at)s"
        " ON CONFLICT DO NOTHING",
        **values,
    )


def keep_parked() -> None:
    """What waits for nobody now held nobody up then either."""
    ask(
        "INSERT INTO memory_claim SELECT * FROM was.memory_claim WHERE parked_at IS NOT NULL"
        " AND (stage IN ('dedup', 'embed') OR %(all)s)",
        all=nothing_is_left(),
    )


def notes_as_they_were(unit: str, at: datetime) -> None:
    """The notes that came of a unit at this time, as they came."""
    rows = ask(
        "SELECT n.id FROM was.memory_note n WHERE n.unit_key = %(unit)s AND n.created_at = %(at)s"
        " AND NOT EXISTS (SELECT FROM was.unmade u WHERE u.note = n.id)",
        unit=unit,
        at=at,
    )
    _as_they_came([pk for (pk,) in rows])


def note_as_it_was(note: str) -> bool:
    """A note about which people decided, brought over as it came where nothing made it again;
    whether that was so."""
    if ask("SELECT 1 FROM memory_note WHERE id = %(id)s", id=note):
        return False
    _as_they_came([UUID(note)])
    return True


def _as_they_came(notes: Sequence[UUID]) -> None:
    ask(
        "INSERT INTO memory_note SELECT n.* FROM was.memory_note n WHERE n.id = ANY(%(ids)s)"
        " ON CONFLICT DO NOTHING",
        ids=notes,
    )
    # What ended it later is done again by whatever ended it.
    rows = Note.objects.as_pipeline().filter(pk__in=notes)
    rows.filter(invalidated_at__isnull=False).update(valid_to=None)
    rows.update(
        deleted_at=None,
        retired_reason="",
        invalidated_at=None,
        confidence=CONFIDENCE_START,
        embedding=None,
        embedding_model="",
        embedded_at=None,
    )
    ask(
        "INSERT INTO memory_evidence SELECT e.* FROM was.memory_evidence e JOIN memory_note n"
        " ON n.id = e.note_id WHERE n.id = ANY(%(ids)s) AND e.created_at = n.created_at"
        " ON CONFLICT DO NOTHING",
        ids=notes,
    )


def come_as_they_were(unit: str, at: datetime) -> None:
    """What no stage makes again: notes of a file that was read, or of a unit that is another one
    since a purge; and what the gate refused of the file."""
    notes_as_they_were(unit, at)
    ask(
        "INSERT INTO memory_distilleditem SELECT * FROM was.memory_distilleditem"
        " WHERE 'item:' || raw_item_id = %(unit)s AND distilled_at = %(at)s ON CONFLICT DO NOTHING",
        unit=unit,
        at=at,
    )
    ask(
        "INSERT INTO memory_gaterejection SELECT * FROM was.memory_gaterejection"
        " WHERE 'import:' || raw_item_id = %(unit)s AND created_at = %(at)s"
        " AND model_asked = 'import' ON CONFLICT DO NOTHING",
        unit=unit,
        at=at,
    )
    if unit.startswith("import:"):
        index_notes(only=list(_made_of(unit, at)))


def happen_as_it_did(note: str, at: datetime) -> None:
    """What happened to a note at this time by a verdict or an act that is gone."""
    ask(
        "INSERT INTO memory_evidence SELECT e.* FROM was.memory_evidence e"
        " JOIN memory_note n ON n.id = e.note_id WHERE e.note_id = %(note)s"
        " AND e.created_at = %(at)s AND NOT EXISTS (SELECT FROM memory_evidence i"
        " WHERE i.note_id = e.note_id AND i.raw_item_id IS NOT DISTINCT FROM e.raw_item_id"
        ' AND i.start IS NOT DISTINCT FROM e.start AND i."end" IS NOT DISTINCT FROM e."end"'
        " AND i.parent_id IS NOT DISTINCT FROM e.parent_id)",
        note=note,
        at=at,
    )
    ended = ask(
        "SELECT retired_reason, CASE WHEN invalidated_at = deleted_at THEN valid_to END"
        " FROM was.memory_note WHERE id = %(note)s AND deleted_at = %(at)s",
        note=note,
        at=at,
    )
    for reason, valid_to in ended:
        retire([UUID(note)], reason=reason, now=at, valid_to=valid_to)


def keep_confidence(purge: int, at: datetime) -> None:
    """At a purge: what it took may have raised or lowered notes of the same owners, which stay as
    they were then: as the next verdict found them, or as they are."""
    ask(
        "UPDATE memory_note n SET confidence = coalesce((SELECT v.confidence_before"
        "  FROM was.memory_dedupverdict v WHERE v.created_at > %(at)s"
        "  AND n.id = CASE v.verdict WHEN 'duplicate' THEN v.target_id ELSE v.note_id END"
        "  AND v.confidence_before IS NOT NULL ORDER BY v.created_at, v.id LIMIT 1), w.confidence)"
        " FROM was.memory_note w WHERE w.id = n.id AND w.created_at < %(at)s"
        " AND n.owner_id IN (SELECT owner FROM was.purged WHERE purge = %(purge)s) AND NOT EXISTS"
        " (SELECT FROM was.memory_dedupverdict v WHERE n.id IN (v.note_id, v.target_id)"
        "  AND v.decided_at > %(at)s)",
        purge=purge,
        at=at,
    )


def attribute_as_it_was(session: int, at: datetime) -> None:
    """Which project the nearest episodes spoke for, where a purge took some of those since."""
    near = (
        "IN (SELECT episode_id FROM was.memory_attribution WHERE score IS NOT NULL"
        f" AND episode_id IN ({CLOSED}))"
    )
    ask(
        f"DELETE FROM memory_attribution WHERE episode_id {near};"
        " INSERT INTO memory_attribution OVERRIDING USER VALUE SELECT * FROM was.memory_attribution"
        f" WHERE episode_id {near} AND episode_id IN (SELECT id FROM memory_episode);"
        " UPDATE memory_episode e SET project_id = w.project_id,"
        " project_method = w.project_method, project_confidence = w.project_confidence"
        f" FROM was.memory_episode w WHERE w.id = e.id AND e.id {near}",
        session=session,
        at=at,
    )


def _made_of(unit: str, at: datetime) -> Iterator[UUID]:
    rows = Note.objects.as_pipeline().filter(unit_key=unit, created_at=at)
    yield from rows.values_list("pk", flat=True)


def purged_since(
    at: datetime | None = None, *, owner: int | None = None, session: int | None = None
) -> bool:
    """Whether something of this owner, of whoever has this session, or of anybody, was purged at
    this time or later, or ever: then not all is there that was judged, or whose words were
    counted."""
    return bool(
        ask(
            "SELECT 1 FROM was.purged WHERE (%(at)s::timestamptz IS NULL OR at >= %(at)s)"
            " AND (%(owner)s::bigint IS NULL OR owner = %(owner)s)"
            " AND (%(session)s::bigint IS NULL OR owner ="
            "  (SELECT owner_id FROM memory_session WHERE id = %(session)s)) LIMIT 1",
            at=at,
            owner=owner,
            session=session,
        )
    )


def judged_as_it_was(verdict: int, *, but: str = "") -> bool:
    """Whether a verdict came out as it is told, `but` for these columns; what a person decided of
    it is not yet known."""
    later = f"'{{id,run_id,status,decided_by_id,decided_at{but and ',' + but}}}'::text[]"
    return bool(
        ask(
            "SELECT 1 FROM memory_dedupverdict v JOIN was.memory_dedupverdict w ON w.id = v.id"
            f" WHERE v.id = %(id)s AND v.status = {FIRST_STATUS}"
            f" AND to_jsonb(v) - {later} = to_jsonb(w) - {later}",
            id=verdict,
        )
    )


@transaction.atomic
def verdict_as_it_was(verdict: int, at: datetime) -> None:
    """A verdict brought over as it came then, and what it does done again; both or neither."""
    ask(
        "INSERT INTO memory_dedupverdict SELECT w.* FROM was.memory_dedupverdict w"
        " WHERE w.id = %(id)s",
        id=verdict,
    )
    ask(
        "UPDATE memory_dedupverdict v SET decided_by_id = NULL, decided_at = NULL,"
        f" status = {FIRST_STATUS} FROM was.memory_dedupverdict w WHERE w.id = v.id"
        " AND v.id = %(id)s",
        id=verdict,
    )
    rows = DedupVerdict.objects.as_pipeline().select_related("note", "target").filter(pk=verdict)
    row = rows.first()
    if row is None:
        raise NotFound(f"the note of verdict {verdict} was not made again")
    if row.status == "applied" and row.target is not None:
        verdicts.apply(row, now=at)


def is_gone(kind: str, subject: str, at: datetime) -> bool:
    """Whether a purge took what somebody did something about."""
    tables = {"note": "note", "verdict": "dedupverdict", "rejection": "gaterejection"}
    if kind not in tables or nothing_is_left() or not purged_since(at):
        return False
    return not ask(f"SELECT 1 FROM was.memory_{tables[kind]} WHERE id::text = %(id)s", id=subject)


def unit_as_it_was(unit: str, at: datetime) -> None:
    """What a unit gave whose reply nobody has any more: brought over as it came then."""
    values: dict[str, Any] = {"unit": unit, "at": at}
    notes_as_they_were(unit, at)
    ask(
        "INSERT INTO memory_gaterejection SELECT g.* FROM was.memory_gaterejection g"
        " LEFT JOIN was.memory_episode e ON e.id = g.episode_id WHERE g.created_at = %(at)s"
        " AND coalesce(e.unit_key, 'item:' || g.raw_item_id) = %(unit)s ON CONFLICT DO NOTHING",
        **values,
    )
    ask(
        "INSERT INTO memory_distilleditem SELECT d.* FROM was.memory_distilleditem d"
        " WHERE 'item:' || d.raw_item_id = %(unit)s ON CONFLICT DO NOTHING",
        **values,
    )
    ask(
        "UPDATE memory_episode SET distilled_at = %(at)s WHERE unit_key = %(unit)s",
        **values,
    )
