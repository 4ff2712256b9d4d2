"""Embed: live notes without a vector get one, of the embedder in force, named on the row.

Reads: note. Writes: note (embedding, embedding_model, embedded_at), turn_vector (reembed).
Audits: stage_run, llm_call; distill_failure for a note that gets no vector.
Verify: vectors are finite, of 768 numbers, and compared within one model only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from django.db import connection, transaction

from memory import claims
from memory.audit import Clock, stage
from memory.backlog import Backlog
from memory.errors import Confidential, ContentError, InfraError
from memory.llm.choice import embedder
from memory.llm.ports import Embedder, Origin
from memory.llm.vectors import BadVectors
from memory.models import Claim, Note, RawItem, StageRun, TurnVector
from memory.models.record import strictest
from memory.querysets import NoteQuerySet
from memory.turnvectors import stored, turn_vectors

#: Notes of one call and one transaction.
NOTES_A_BATCH = 64

#: Notes looked at for claiming at once; above the batch, so that several workers find work.
NOTES_LOOKED_AT = 1024


@dataclass(frozen=True)
class EmbedReport:
    """Notes that got a vector; attempts that gave none; parked; still without."""

    embedded: int = 0
    failed: int = 0
    parked: int = 0
    pending: int = 0
    transient_failures: int = 0
    turns: int = 0


@stage
def embed(run: StageRun, *, clock: Clock, limit: int | None, until: datetime | None) -> EmbedReport:
    """Give every live note its vector; one bad note never keeps its batch from theirs.

    A note is tried once a run, but for one whose vector is bad where others are good: that is its
    own fault, so it is parked by the end of the run.
    """
    backlog = Backlog(run, clock=clock, limit=limit, until=until)
    return _embed_all(backlog, embedder(), anew=False)


@stage
def reembed(
    run: StageRun, *, clock: Clock, limit: int | None, until: datetime | None
) -> EmbedReport:
    """After a change of model: every live note of another model gets a vector of this one.

    Then the turns. Resumable: what has the new vector is left alone.
    """
    backlog, model = Backlog(run, clock=clock, limit=limit, until=until), embedder()
    report = _embed_all(backlog, model, anew=True)
    if backlog.over:
        return report
    turns, away = _embed_turns(backlog, model)
    return replace(report, turns=turns, transient_failures=report.transient_failures + int(away))


def pending(now: datetime) -> int:
    """Live notes without a vector that are not parked."""
    return _pending("embed", embedder(), now, anew=False)


def outdated(now: datetime) -> int:
    """Live notes whose vector is of another model, or that have none: what `reembed` would do."""
    return _pending("reembed", embedder(), now, anew=True)


def _pending(stage_name: str, model: Embedder, now: datetime, *, anew: bool) -> int:
    parked = [
        key
        for kind, _, key in (unit.partition(":") for unit in claims.parked(stage_name))
        if kind == "note"
    ]
    return _lacking(model, now, anew=anew).exclude(pk__in=parked).count()


def _embed_all(backlog: Backlog, model: Embedder, *, anew: bool) -> EmbedReport:
    run, clock = backlog.run, backlog.clock
    counts = backlog.work_off(
        lambda: [f"note:{pk}" for pk in _waiting(model, run.stage, now=clock(), anew=anew)],
        lambda held: _embed_batch(backlog, model, held, now=clock(), anew=anew),
        at_once=NOTES_A_BATCH,
        batches=_batches,
    )
    return EmbedReport(**counts, pending=_pending(run.stage, model, clock(), anew=anew))


def _batches(held: Sequence[claims.Held]) -> list[list[claims.Held]]:
    """What never failed goes together; each that did goes alone, so that it harms no other."""
    smooth = [one for one in held if not one.troubled]
    return [batch for batch in (smooth, *([one] for one in held if one.troubled)) if batch]


def _embed_turns(backlog: Backlog, model: Embedder) -> tuple[int, bool]:
    """Vectors of this model for the turns that have one of another: how many were made, and
    whether the embedder went away. The run's limit and time bound them, too."""
    run, made, last = backlog.run, 0, 0
    origin = Origin(run.stage, "turns", run_id=run.pk, pulse=backlog.renew)
    done = TurnVector.objects.filter(model=model.name).values("raw_item")
    others = TurnVector.objects.exclude(model=model.name).values("raw_item")
    lacking = RawItem.objects.as_pipeline().filter(pk__in=others).exclude(pk__in=done)
    while not backlog.late:
        room = NOTES_A_BATCH
        if backlog.limit is not None:
            room = min(room, backlog.limit - backlog.taken - made)
        rows = lacking.filter(pk__gt=last).order_by("pk").only("pk", "confidentiality", "owner_id")
        items = list(rows[: max(0, room)])
        if not items:
            break
        last = items[-1].pk
        try:
            made += len(turn_vectors(run, items, model, origin, now=backlog.clock()))
        except InfraError:
            return made + len(stored(items, model)), True
    return made, False


def _waiting(model: Embedder, stage_name: str, *, now: datetime, anew: bool) -> list[UUID]:
    """Notes to embed that are neither parked nor in another worker's hand, oldest first."""
    pool = _lacking(model, now, anew=anew)
    taken = Claim.objects.filter(stage=stage_name).exclude(parked_at=None, lease_until=None)
    busy = {
        unit.partition(":")[2]
        for unit, parked_at, until in taken.values_list("unit", "parked_at", "lease_until")
        if parked_at or (until and until > now)
    }
    ids = pool.order_by("created_at", "pk").values_list("pk", flat=True)
    return [pk for pk in ids[: NOTES_LOOKED_AT + len(busy)] if str(pk) not in busy]


def _lacking(model: Embedder, now: datetime, *, anew: bool) -> NoteQuerySet:
    """Live notes that need a vector."""
    live = Note.objects.as_pipeline().live(now)
    return live.exclude(embedding_model=model.name) if anew else live.unembedded()


def _embed_batch(
    backlog: Backlog, model: Embedder, held: Sequence[claims.Held], *, now: datetime, anew: bool
) -> Counter[str]:
    """Embed one claimed batch: good vectors are stored in one transaction, bad notes counted."""
    by_note = {UUID(one.unit.partition(":")[2]): one for one in held}
    rows = list(Note.objects.as_pipeline().filter(pk__in=by_note).order_by("created_at", "pk"))
    notes = [n for n in rows if n.deleted_at is None and (anew or n.embedding is None)]
    good, bad = _vectors(model, notes, backlog)
    counts: Counter[str] = Counter()
    with transaction.atomic():
        _write(good, model.name, now=now, anew=anew)
        for note in rows:
            if note.pk in bad:
                continue
            if note.pk in good:
                claims.finish(by_note[note.pk])
                counts["embedded"] += 1
            else:
                claims.forget(by_note[note.pk])
    for pk, why in bad.items():
        _settle(backlog, by_note[pk], why, works=bool(good), now=now)
    return counts


def _settle(
    backlog: Backlog,
    held: claims.Held,
    why: ContentError | Confidential,
    *,
    works: bool,
    now: datetime,
) -> None:
    """Count what became of a note without a vector. One whose vector is bad while others are good
    is tried again in this run, by itself; one that may not leave is parked at once."""
    if isinstance(why, Confidential):
        claims.park(backlog.run, held, reason=why.reason, now=now)
        backlog.counts.update(failed=1, parked=1)
        return
    parked = backlog.fail(held, why, counted_as="failed")
    # A model that gives nobody a good vector is broken: that is not the fault of these notes.
    works = works or backlog.counts["embedded"] > 0
    if isinstance(why, BadVectors) and works and not parked:
        backlog.again(held)


def _vectors(
    model: Embedder, notes: Sequence[Note], backlog: Backlog
) -> tuple[dict[UUID, list[float]], dict[UUID, ContentError | Confidential]]:
    """Vectors by note, and errors by note; a batch whose bad note is not named is halved."""
    if not notes:
        return {}, {}
    level = strictest(note.confidentiality for note in notes)
    run = backlog.run
    origin = Origin(run.stage, f"note:{notes[0].pk}", level, run.pk)
    backlog.renew()
    try:
        made = model.embed([text_of(note) for note in notes], origin=origin)
        return {n.pk: vector for n, vector in zip(notes, made, strict=True)}, {}
    except BadVectors as error:
        if error.bad:
            good = {notes[at].pk: list(vector) for at, vector in error.good.items()}
            named = {notes[at].pk: BadVectors(why) for at, why in error.bad.items()}
            return good, dict(named)
        if len(notes) == 1:
            return {}, {notes[0].pk: error}
    except ContentError as error:
        if len(notes) == 1:
            return {}, {notes[0].pk: error}
    except Confidential as error:
        barred = {n.pk: error for n in notes if n.confidentiality == level}
        good, bad = _vectors(model, [n for n in notes if n.pk not in barred], backlog)
        return good, {**bad, **barred}
    half = len(notes) // 2
    good, bad = _vectors(model, notes[:half], backlog)
    more_good, more_bad = _vectors(model, notes[half:], backlog)
    return good | more_good, bad | more_bad


def text_of(note: Note) -> str:
    """What a note's vector is made from: its content, and its title where that says more."""
    bare = note.title.rstrip(".… ")
    return note.content if bare in note.content else f"{note.title}\n{note.content}"


def _write(
    vectors: Mapping[UUID, Sequence[float]], model: str, *, now: datetime, anew: bool
) -> None:
    with connection.cursor() as cursor:
        cursor.executemany(
            "UPDATE memory_note SET embedding = %s::halfvec, embedding_model = %s, embedded_at = %s"
            " WHERE id = %s AND deleted_at IS NULL" + ("" if anew else " AND embedding IS NULL"),
            [(str(list(vector)), model, now, pk) for pk, vector in sorted(vectors.items())],
        )
