"""The chronicle of a house: what happened to it, in order, as its rows tell it.

Reads: the schema `was` of a throwaway database (`argus.rebuilding.record`). Knows nothing about how
any of it is done again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from argus.rebuilding.record import ask, nothing_is_left
from memory.carrying import CARRIED
from memory.verdicts import PERSON

#: What happened, in the order in which that of one moment comes.
# Why: by a clock that stands still the stages still follow each other.
KINDS = (
    "fact",
    "come",
    "segment",
    "distill",
    "stay",
    "index",
    "embed",
    "dedup",
    "lost",
    "run",
    "act",
    "stay_of_act",
    "purge",
)

#: Looks whether a note is there about which people decided: nothing is done again by them.
STAY = ("stay", "stay_of_act")

#: What people do that something above the raw items follows from: kind of thing, verb.
FOLLOWED = {
    "verdict": ("approve", "reject", "undo"),
    "run": ("undo",),
    "note": ("edit", "retire", "restore", "pin", "unpin"),
    "rejection": ("accept", "confirm", "forbid", "undo"),
    "unit": ("redistill",),
    "project": ("alias", "unalias", "path", "unpath", "merge", "unmerge"),
}


@dataclass(frozen=True)
class Event:
    """One thing that happened: when, what, to what; `run` is the stage run that did it."""

    at: datetime
    kind: str
    order: int
    subject: str
    run: int | None = None
    detail: Mapping[str, Any] = field(default_factory=dict)

    @property
    def place(self) -> tuple[datetime, int, int, str]:
        return self.at, KINDS.index(self.kind), self.order, self.subject


# Looks at a session: those that closed an episode, and those that left a check before a turn.
SEGMENT = """
SELECT one.at, s.id, one.run_id, min(one.pk) FROM (
    SELECT created_at AS at, run_id, owner_id, source, session, id AS pk FROM was.memory_episode
    UNION ALL SELECT c.created_at, c.run_id, r.owner_id, r.source, r.session, NULL
    FROM was.memory_segmentcheck c JOIN was.memory_rawitem r ON r.id = c.raw_item_id
) one JOIN public.memory_session s
    ON s.owner_id = one.owner_id AND s.source = one.source AND s.key = one.session
GROUP BY 1, 2, 3
"""

# Who distilled an episode is told by what came of it, else by the run that was under way, or, where
# that was let go, by any.
DISTILL = """
SELECT u.at, u.unit, coalesce(u.run_id,
    (SELECT run_id FROM was.memory_note n
     WHERE n.unit_key = u.unit AND n.created_at = u.at LIMIT 1),
    (SELECT run_id FROM was.memory_gaterejection g
     WHERE g.episode_id = u.episode AND g.created_at = u.at LIMIT 1),
    (SELECT id FROM public.memory_stagerun r WHERE r.stage = 'distill' AND r.started_at <= u.at
     ORDER BY r.started_at DESC, r.id DESC LIMIT 1),
    (SELECT id FROM public.memory_stagerun r WHERE r.stage = 'distill' ORDER BY r.id LIMIT 1)),
    u.starts, u.pk
FROM (
    SELECT distilled_at AS at, unit_key AS unit, NULL::bigint AS run_id, id AS episode,
        started_at AS starts, id AS pk
    FROM was.memory_episode WHERE distilled_at IS NOT NULL
    UNION ALL
    SELECT d.distilled_at, 'item:' || d.raw_item_id, d.run_id, NULL, r.occurred_at, r.id
    FROM was.memory_distilleditem d JOIN was.memory_rawitem r ON r.id = d.raw_item_id
    WHERE d.run_id IS NOT NULL
) u ORDER BY u.at, u.starts, u.pk
"""

# A vector that was made anew later was there before its note was judged.
EMBED = """
SELECT least(n.embedded_at, min(v.created_at)), n.id
FROM was.memory_note n LEFT JOIN was.memory_dedupverdict v
    ON v.note_id = n.id AND v.model_asked <> %(person)s AND v.created_at >= n.created_at
WHERE n.embedding IS NOT NULL AND n.embedded_at IS NOT NULL GROUP BY n.id, n.embedded_at
"""

# A hold that went over to a note in the place of another is as old as what it asks: older than one
# of its notes, and no judgement of its own.
DEDUP = """
SELECT v.created_at, v.note_id, v.run_id, v.id FROM was.memory_dedupverdict v
JOIN was.memory_note n ON n.id = v.note_id LEFT JOIN was.memory_note t ON t.id = v.target_id
WHERE v.model_asked <> %(person)s AND v.created_at >= n.created_at
    AND (t.id IS NULL OR v.created_at >= t.created_at)
ORDER BY v.id
"""

# A run of embed begins with the index. One that was let go is told by the vectors that it made.
INDEX = """
SELECT started_at, id FROM public.memory_stagerun WHERE stage = 'embed'
UNION SELECT DISTINCT n.embedded_at, 0 FROM was.memory_note n WHERE n.embedded_at IS NOT NULL
    AND NOT EXISTS (SELECT FROM public.memory_stagerun r WHERE r.stage IN ('embed', 'reembed')
        AND r.started_at <= n.embedded_at
        AND coalesce(r.finished_at, r.heartbeat_at) >= n.embedded_at)
"""

ACTS = """
SELECT a.created_at, a.id, a.kind, a.verb, a.reference, a.reason, a.detail, a.door, a.principal_id
FROM was.memory_act a WHERE a.verb <> %(carried)s ORDER BY a.id
"""

# Of what went nothing is done again; what was learned from it is forgotten. From old rows of a
# ledger nothing was learned.
PURGES = """
SELECT DISTINCT at, purge FROM was.purged
"""

# What is forbidden with no refusal to be read any more: nobody's act brings it back.
FACTS = """
SELECT created_at, id, 'said' FROM was.memory_rejectedfact WHERE rejection_id IS NULL
UNION ALL SELECT lifted_at, id, 'lifted' FROM was.memory_rejectedfact
WHERE rejection_id IS NULL AND lifted_at IS NOT NULL
"""

# Notes that no stage makes again: of files that were read, and those that stand though a purge made
# their unit another one. An act by which a note came does it again.
COME = """
SELECT DISTINCT n.created_at, n.unit_key FROM was.memory_note n
WHERE n.retired_reason <> 'rebuilt' AND (n.unit_key LIKE 'import:%' OR (
    n.created_at <= (SELECT max(p.at) FROM was.purged p WHERE p.owner = n.owner_id)
    AND NOT EXISTS (SELECT FROM was.memory_episode e
        WHERE e.unit_key = n.unit_key AND e.distilled_at = n.created_at)
    AND NOT EXISTS (SELECT FROM was.memory_distilleditem d
        WHERE 'item:' || d.raw_item_id = n.unit_key AND d.distilled_at = n.created_at
            AND d.run_id IS NOT NULL)
    AND NOT EXISTS (SELECT FROM was.memory_act a WHERE a.created_at = n.created_at)))
UNION SELECT g.created_at, 'import:' || g.raw_item_id FROM was.memory_gaterejection g
WHERE g.model_asked = 'import'
"""

# What happened to notes by a verdict or an act that a purge took: they ended, or got evidence.
LOST = """
SELECT DISTINCT one.at, one.note FROM (
    SELECT deleted_at AS at, id AS note, owner_id FROM was.memory_note WHERE deleted_at IS NOT NULL
    UNION SELECT e.created_at, e.note_id, n.owner_id FROM was.memory_evidence e
    JOIN was.memory_note n ON n.id = e.note_id WHERE e.created_at <> n.created_at
) one
WHERE one.at <= (SELECT max(p.at) FROM was.purged p WHERE p.owner = one.owner_id)
    AND NOT EXISTS (SELECT FROM was.memory_act a WHERE a.created_at = one.at)
    AND NOT EXISTS (SELECT FROM was.memory_dedupverdict v
        WHERE v.created_at = one.at AND one.note IN (v.note_id, v.target_id))
"""

# Notes about which people decided: where nothing makes one again it stays, and what they did with
# it is done again. Those that an earlier rebuild did not make again are there from the beginning.
STAYS = """
SELECT n.created_at, n.id, EXISTS (SELECT FROM was.memory_act a WHERE a.created_at = n.created_at)
FROM was.memory_note n WHERE NOT EXISTS (SELECT FROM was.unmade u WHERE u.note = n.id)
    AND n.id IN (
        SELECT it.id FROM was.memory_act a JOIN was.memory_note it ON it.id::text = a.reference
        WHERE a.kind = 'note' AND a.verb = ANY(%(notes)s)
        UNION SELECT unnest(ARRAY[v.note_id, v.target_id])
        FROM was.memory_act a JOIN was.memory_dedupverdict v ON v.id::text = a.reference
        WHERE a.kind = 'verdict' AND a.verb = ANY(%(verdicts)s))
"""

# Where all that is made is gone: the runs that made it, each as a whole.
RUNS = """
SELECT started_at, id, stage FROM public.memory_stagerun
WHERE stage IN ('segment', 'distill', 'embed', 'dedup') AND finished_at IS NOT NULL
"""


def read() -> list[Event]:
    """Everything that happened, in order."""
    return sorted(_all(), key=lambda event: event.place)


def _all() -> Iterator[Event]:
    for at, pk, what in ask(FACTS):
        yield Event(at, "fact", pk, str(pk), detail={"what": what})
    for at, pk in ask(PURGES):
        yield Event(at, "purge", pk, str(pk))
    for at, unit in ask(COME):
        yield Event(at, "come", 0, unit)
    for at, note in ask(LOST):
        yield Event(at, "lost", 0, str(note))
    said = {"notes": list(FOLLOWED["note"]), "verdicts": list(FOLLOWED["verdict"])}
    for at, note, by_act in ask(STAYS, **said):
        yield Event(at, STAY[by_act], 0, str(note))
    for at, session, run, first in ask(SEGMENT):
        yield Event(at, "segment", first or 0, str(session), run)
    for order, (at, unit, run, _, _) in enumerate(ask(DISTILL)):
        yield Event(at, "distill", order, unit, run)
    if nothing_is_left():
        for at, run, stage in ask(RUNS):
            yield Event(at, "run", run, stage, run)
    else:
        for at, run in ask(INDEX):
            yield Event(at, "index", run, str(run), run)
    for at, note in ask(EMBED, person=PERSON):
        yield Event(at, "embed", 0, str(note))
    for at, note, run, pk in ask(DEDUP, person=PERSON):
        yield Event(at, "dedup", pk, str(note), run, {"verdict": pk})
    yield from _acts()


def _acts() -> Iterator[Event]:
    """What people did. To undo a run is many acts at once: the one of the run does them all."""
    rows = ask(ACTS, carried=CARRIED)
    whole = {(at, by): pk for at, pk, kind, verb, *_, by in rows if (kind, verb) == ("run", "undo")}
    for at, pk, kind, verb, reference, reason, detail, door, by in rows:
        if verb in FOLLOWED.get(kind, ()) and whole.get((at, by), 0) <= pk:
            told = {"kind": kind, "verb": verb, "reason": reason, "door": door, "by": by}
            yield Event(at, "act", pk, reference, detail={**told, "detail": detail})
