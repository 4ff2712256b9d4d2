"""The record played back: each event done again by the verb that did it, by the clock of its time.

Reads: the schema `was`. Writes: the tables of a throwaway database, never the house's. Verify: rows
that come out as they were have the number that they had. Knows nothing about what is compared.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from django.db import transaction

from argus.rebuilding.chronicle import STAY, Event
from argus.rebuilding.earlier import is_kept, is_kept_verdict, keep_unmade
from argus.rebuilding.letgone import end_session, forget_looks, shown_again
from argus.rebuilding.people import act, disband, told, undo_registry
from argus.rebuilding.ports import Asked, Recorded, said_by
from argus.rebuilding.record import FRESH_FROM, arrived, ask
from argus.rebuilding.unmade import (
    COUNTED,
    attribute_as_it_was,
    borders_as_they_were,
    come_as_they_were,
    forget_centroids,
    happen_as_it_did,
    hurt,
    is_gone,
    judged_as_it_was,
    keep_confidence,
    keep_parked,
    note_as_it_was,
    purged_since,
    unit_as_it_was,
    verdict_as_it_was,
)
from argus.rebuilding.wholeruns import again, left
from memory import claims
from memory.errors import ArgusError, Conflict, NotFound
from memory.llm.choice import answering
from memory.llm.kept import NotKept, from_the_log
from memory.models import Note, StageRun
from memory.neighbours import comparable
from memory.searchtexts import index_notes
from memory.stages.dedup import judge_note
from memory.stages.distill import distill_unit
from memory.stages.segment import segment_session
from memory.tracks import few
from memory.verifying.judged import UNMADE

#: When a refusal is the one that it was.
REFUSED = (
    "it.candidate = was.candidate AND it.created_at = was.created_at"
    " AND it.episode_id IS NOT DISTINCT FROM was.episode_id"
    " AND it.raw_item_id IS NOT DISTINCT FROM was.raw_item_id"
)


@dataclass
class Played:
    """What was done: events by kind; what nothing makes again and stays as it was (units whose
    reply is not in the log, notes about which people decided); what could not be done, and why."""

    events: Counter[str] = field(default_factory=Counter)
    not_kept: list[str] = field(default_factory=list)
    troubles: list[str] = field(default_factory=list)


def play(events: Sequence[Event], *, over: Callable[[Event], object]) -> Played:
    """Do all of it again, in order; `over` is called after each event."""
    done = Played()
    runs = {run.pk: run for run in StageRun.objects.all()}
    edited = _edited(events)
    undo_registry(events)
    disband()
    keep_unmade()
    keep_parked()
    before: datetime | None = None
    with from_the_log():
        for event in events:
            if event.at != before:
                arrived(before=before, until=event.at, but=edited)
                before = event.at
            try:
                _do(event, runs.get(event.run or 0), done)
            except ArgusError as error:
                done.troubles.append(f"{event.kind} {event.subject}: {error}")
            done.events[event.kind] += event.kind not in STAY
            over(event)
    forget_looks()
    if done.events["run"] and before:
        done.not_kept += left(before)
    return done


def _do(event: Event, run: StageRun | None, done: Played) -> None:
    if event.kind in ("segment", "distill", "dedup"):
        if run is None:
            raise NotFound("the run that did it is not in the record")
        _stage(event, run, done)
    elif event.kind == "run":
        again(StageRun.objects.get(pk=event.order))
    elif event.kind == "index":
        while index_notes():
            pass
    elif event.kind == "embed":
        _embed(event)
    elif event.kind == "fact":
        _fact(event)
    elif event.kind == "purge":
        forget_centroids(event.order, event.at)
        keep_confidence(event.order, event.at)
    elif event.kind in STAY:
        if note_as_it_was(event.subject):
            done.not_kept.append(f"note {event.subject}")
    elif event.kind == "lost":
        happen_as_it_did(event.subject, event.at)
    elif event.kind == "come":
        come_as_they_were(event.subject, event.at)
    elif event.kind == "act":
        kind = event.detail["kind"]
        if is_gone(kind, event.subject, event.at) or is_kept(kind, event.subject, event.order):
            return
        act(event)
        _renumber_judged()


def _stage(event: Event, run: StageRun, done: Played) -> None:
    if event.kind == "segment":
        _segment(event, run)
    elif event.kind == "distill":
        _distill(event, run, done)
    else:
        _dedup(event, run)


def _edited(events: Sequence[Event]) -> list[int]:
    """Raw items that an edit wrote: it writes them again."""
    found = []
    for event in events:
        if event.kind == "act" and event.detail["verb"] == "edit":
            found.append(int(told(event).get("raw_item", 0)))
    return found


def _held(run: StageRun, unit: str, at: datetime) -> claims.Held:
    held = claims.claim(run, [unit], now=at, limit=1)
    if not held:
        raise Conflict(f"{unit} cannot be taken in hand")
    return held[0]


def _segment(event: Event, run: StageRun) -> None:
    session = int(event.subject)
    end_session(session, event.at)
    if hurt(session, event.at):
        borders_as_they_were(session, event.at)
        return
    late = _hide_late_vectors(run, session)
    ports = Recorded(embedder_name=_embedder_of(event, session))
    held = _held(run, f"session:{session}", event.at)
    with answering(ports):
        segment_session(run, held, now=event.at, pulse=_nothing)
    claims.forget(held)
    if late:
        ask("INSERT INTO memory_turnvector SELECT * FROM was.late; DROP TABLE was.late")
    _number(
        "memory_episode",
        "it.unit_key = was.unit_key",
        moved=(
            ("memory_episodeturn", "episode_id"),
            ("memory_attribution", "episode_id"),
        ),
    )
    if purged_since(event.at, session=session):
        attribute_as_it_was(session, event.at)


def _hide_late_vectors(run: StageRun, session: int) -> bool:
    """Where the embedder was away, the vectors that came later are not there yet."""
    if not run.report.get("not_checked") or run.finished_at is None:
        return False
    ask(
        "CREATE TABLE was.late AS WITH late AS (DELETE FROM memory_turnvector v"
        " USING memory_rawitem r, memory_session s WHERE r.id = v.raw_item_id AND s.id = %(id)s"
        " AND r.owner_id = s.owner_id AND r.source = s.source AND r.session = s.key"
        " AND v.created_at > %(at)s RETURNING v.*) SELECT * FROM late",
        id=session,
        at=run.finished_at,
    )
    return True


def _embedder_of(event: Event, session: int) -> str:
    """Whose vectors were compared: the checks say so, else the vectors that the turns have."""
    found = ask(
        "SELECT model FROM was.memory_segmentcheck WHERE model <> '' AND run_id = %(run)s"
        " UNION ALL (SELECT v.model FROM memory_turnvector v JOIN memory_rawitem r"
        " ON r.id = v.raw_item_id JOIN memory_session s ON r.owner_id = s.owner_id"
        " AND r.source = s.source AND r.session = s.key WHERE s.id = %(id)s LIMIT 1) LIMIT 1",
        run=event.run,
        id=session,
    )
    return str(found[0][0]) if found else ""


def _distill(event: Event, run: StageRun, done: Played) -> None:
    unit = event.subject
    asked = ask(
        "SELECT model_asked, prompt_version, bool_or(checked) FROM ("
        "  SELECT model_asked, prompt_version, question <> '' AS checked FROM was.memory_note"
        "  WHERE unit_key = %(unit)s AND created_at = %(at)s"
        "  UNION ALL SELECT g.model_asked, g.prompt_version, g.reason = 'unsupported'"
        "  FROM was.memory_gaterejection g LEFT JOIN was.memory_episode e ON e.id = g.episode_id"
        "  WHERE coalesce(e.unit_key, 'item:' || g.raw_item_id) = %(unit)s"
        "  AND g.created_at = %(at)s) said GROUP BY 1, 2 LIMIT 1",
        unit=unit,
        at=event.at,
    ) or ask(
        # A unit of which nothing came: by its last reply.
        "SELECT model, prompt_version, false FROM memory_modelreply WHERE port = 'distill'"
        " AND units @> to_jsonb(ARRAY[%(unit)s]) ORDER BY id LIMIT 1",
        unit=unit,
    )
    ports = Recorded()
    if asked:
        model, version, checked = asked[0]
        ports = Recorded(distilled=Asked(model, version), verified=bool(checked))
    held = _held(run, unit, event.at)
    try:
        with answering(ports):
            distill_unit(run, held, now=event.at, pulse=_nothing)
    except NotKept:
        done.not_kept.append(unit)
        claims.forget(held)
        unit_as_it_was(unit, event.at)
    _number(
        "memory_gaterejection",
        REFUSED,
    )


def _embed(event: Event) -> None:
    ask(
        "UPDATE memory_note n SET embedding = w.embedding, embedding_model = w.embedding_model,"
        " embedded_at = w.embedded_at FROM was.memory_note w WHERE w.id = n.id AND n.id = %(id)s",
        id=event.subject,
    )


def _dedup(event: Event, run: StageRun) -> None:
    verdict, target, reasoning, asked, real, version, owner = ask(
        "SELECT verdict, target_id::text, reasoning, model_asked, model_real, prompt_version,"
        " owner_id"
        " FROM was.memory_dedupverdict WHERE id = %(id)s",
        id=event.detail["verdict"],
    )[0]
    said = said_by(
        verdict, target, reasoning, model_asked=asked, model_real=real, prompt_version=version
    )
    number = int(event.detail["verdict"])
    if is_kept_verdict(number):
        return
    # What a purge took since, and what the graph found of many notes, is not found again.
    otherwise = purged_since(event.at, owner=owner)
    try:
        with transaction.atomic(), answering(Recorded(judged=said)), shown_again(number):
            _judge_in_turn(event, run)
            ask(
                "UPDATE memory_dedupverdict SET id = %(id)s WHERE note_id = %(note)s"
                " AND id >= %(fresh)s",
                id=number,
                note=event.subject,
                fresh=FRESH_FROM,
            )
            if not judged_as_it_was(number) and (
                otherwise
                or (
                    judged_as_it_was(number, but=COUNTED)
                    and (purged_since(owner=owner) or not _compared_all(event))
                )
            ):
                otherwise = True
                raise Conflict("it was judged beside what is not there, or not found, any more")
    except Conflict:
        if not otherwise:
            raise
        verdict_as_it_was(number, event.at)


def _compared_all(event: Event) -> bool:
    """Whether the notes that this one was held against were few enough to be compared one by one,
    as all are here; the graph of a large house misses some of the twenty nearest."""
    note = Note.objects.as_pipeline().get(pk=event.subject)
    return few(comparable(note, now=event.at))


def _judge_in_turn(event: Event, run: StageRun) -> None:
    try:
        _judge(event, run)
    except Conflict:
        # An older one was set aside then, or is judged later here: the record says that this one
        # was judged all the same.
        _set_aside(event.at, but=event.subject)
        try:
            _judge(event, run)
        finally:
            ask("DELETE FROM memory_claim WHERE parked_reason = %(why)s", why=UNMADE)


def _judge(event: Event, run: StageRun) -> None:
    held = _held(run, f"note:{UUID(event.subject)}", event.at)
    try:
        judge_note(run, held, now=event.at, pulse=_nothing)
    finally:
        claims.forget(held)


def _set_aside(at: datetime, *, but: str) -> None:
    ask(
        "INSERT INTO memory_claim (stage, unit, worker, attempts, content_failures, parked_at,"
        " parked_reason, created_at) SELECT 'dedup', 'note:' || n.id, '', 0, 0, %(at)s, %(why)s,"
        " %(at)s FROM memory_note n WHERE n.id <> %(but)s::uuid AND NOT EXISTS"
        " (SELECT FROM memory_dedupverdict v WHERE v.note_id = n.id) ON CONFLICT DO NOTHING",
        at=at,
        why=UNMADE,
        but=but,
    )


def _renumber_judged() -> None:
    _number(
        "memory_dedupverdict",
        "it.note_id = was.note_id AND it.target_id IS NOT DISTINCT FROM was.target_id"
        " AND it.verdict = was.verdict AND it.created_at = was.created_at",
        moved=(("memory_decision", "verdict_id"),),
    )
    _number(
        "memory_gaterejection",
        REFUSED,
    )
    _number(
        "memory_rejectedfact",
        "it.content_key = was.content_key AND it.owner_id = was.owner_id"
        " AND it.created_at = was.created_at",
    )


def _fact(event: Event) -> None:
    if event.detail["what"] == "said":
        ask(
            "INSERT INTO memory_rejectedfact SELECT * FROM was.memory_rejectedfact"
            " WHERE id = %(id)s ON CONFLICT DO NOTHING",
            id=int(event.subject),
        )
        ask(
            "UPDATE memory_rejectedfact SET lifted_at = NULL WHERE id = %(id)s",
            id=int(event.subject),
        )
    else:
        ask(
            "UPDATE memory_rejectedfact SET lifted_at = %(at)s WHERE id = %(id)s",
            at=event.at,
            id=int(event.subject),
        )


def _number(table: str, same: str, *, moved: Iterable[tuple[str, str]] = ()) -> None:
    """Give rows that have a number of this database the one that the same row had."""
    pairs = ask(
        f"SELECT DISTINCT ON (it.id) it.id, was.id FROM public.{table} it"
        f" JOIN was.{table} was ON {same} WHERE it.id >= %(fresh)s"
        f" AND NOT EXISTS (SELECT FROM public.{table} known WHERE known.id = was.id)"
        " ORDER BY it.id, was.id",
        fresh=FRESH_FROM,
    )
    taken: set[int] = set()
    for new, old in pairs:
        if old in taken:
            continue
        taken.add(old)
        ask(f"UPDATE {table} SET id = %(old)s WHERE id = %(new)s", old=old, new=new)
        for child, column in moved:
            ask(f"UPDATE {child} SET {column} = %(old)s WHERE {column} = %(new)s", old=old, new=new)


def _nothing() -> None:
    """Nobody waits for a sign of life."""
