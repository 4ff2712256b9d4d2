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
from memory.audit import Clock, beat, stage
from memory.errors import Confidential, ContentError, InfraError
from memory.llm.choice import embedder
from memory.llm.ports import Embedder, Origin
from memory.llm.vectors import BadVectors
from memory.models import Claim, Note, RawItem, StageRun, TurnVector
from memory.models.record import CONFIDENTIALITIES
from memory.querysets import NoteQuerySet
from memory.turnvectors import turn_vectors

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
def embed(run: StageRun, *, clock: Clock, limit: int | None) -> EmbedReport:
    """Give every live note its vector; one bad note never keeps its batch from theirs."""
    return _embed_all(run, embedder(), clock=clock, limit=limit, anew=False)


@stage
def reembed(run: StageRun, *, clock: Clock, limit: int | None) -> EmbedReport:
    """After a change of model: every live note of another model gets a vector of this one.

    Resumable: what has the new vector is left alone.
    """
    report = _embed_all(run, embedder(), clock=clock, limit=limit, anew=True)
    return replace(report, turns=_embed_turns(run, embedder()))


def _embed_all(
    run: StageRun, model: Embedder, *, clock: Clock, limit: int | None, anew: bool
) -> EmbedReport:
    counts: Counter[str] = Counter()
    room = limit
    while room is None or room > 0:
        now = clock()
        waiting = [f"note:{pk}" for pk in _waiting(model, run.stage, now=now, anew=anew)]
        batch_max = NOTES_A_BATCH if room is None else min(NOTES_A_BATCH, room)
        held = claims.claim(run, waiting, now=now, limit=batch_max)
        if not held:
            break
        room = None if room is None else room - len(held)
        away = False
        for batch in _batches(held):
            if away or not all(claims.begin(one, now=clock()) for one in batch):
                _put_back(batch)
                continue
            beat(run)
            try:
                counts.update(_embed_batch(run, model, batch, now=clock(), anew=anew))
            except InfraError:
                _put_back(batch)
                counts["transient_failures"] += 1
                away = True
            except claims.ClaimLost:
                _put_back(batch)  # Another worker has one of them; what we wrote was rolled back.
        if away:
            break
    parked = [unit.partition(":")[2] for unit in claims.parked(run.stage)]
    counts["pending"] = _lacking(model, clock(), anew=anew).exclude(pk__in=parked).count()
    return EmbedReport(**counts)


def _batches(held: Sequence[claims.Held]) -> list[list[claims.Held]]:
    """What never failed goes together; each that did goes alone, so that it harms no other."""
    smooth = [one for one in held if not one.troubled]
    return [batch for batch in (smooth, *([one] for one in held if one.troubled)) if batch]


def _put_back(batch: Sequence[claims.Held]) -> None:
    for one in batch:
        claims.put_back(one)


def _embed_turns(run: StageRun, model: Embedder) -> int:
    """Vectors of this model for the turns that have one of another; how many were made."""
    made, last = 0, 0
    turns = RawItem.objects.as_pipeline().filter(kind="turn", vectors__isnull=False).distinct()
    while items := list(turns.filter(pk__gt=last).order_by("pk")[:NOTES_A_BATCH]):
        last = items[-1].pk
        lacking = TurnVector.objects.filter(model=model.name, raw_item__in=items).count()
        made += len(turn_vectors(items, model, Origin(run.stage, f"turns:{last}", run_id=run.pk)))
        made -= lacking
    return made


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
    run: StageRun, model: Embedder, held: Sequence[claims.Held], *, now: datetime, anew: bool
) -> Counter[str]:
    """Embed one claimed batch: good vectors are stored in one transaction, bad notes counted."""
    by_note = {UUID(one.unit.partition(":")[2]): one for one in held}
    rows = list(Note.objects.as_pipeline().filter(pk__in=by_note).order_by("created_at", "pk"))
    notes = [n for n in rows if n.deleted_at is None and (anew or n.embedding is None)]
    good, bad = _vectors(model, notes, run)
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
        counts["failed"] += 1
        counts["parked"] += int(claims.fail(run, by_note[pk], why, now=now))
    return counts


def _vectors(
    model: Embedder, notes: Sequence[Note], run: StageRun
) -> tuple[dict[UUID, list[float]], dict[UUID, ContentError]]:
    """Vectors by note, and errors by note; a batch whose bad note is not named is halved."""
    if not notes:
        return {}, {}
    strictest = max((n.confidentiality for n in notes), key=CONFIDENTIALITIES.index)
    origin = Origin(run.stage, f"note:{notes[0].pk}", strictest, run.pk)
    try:
        made = model.embed([text_of(note) for note in notes], origin=origin)
        return {n.pk: vector for n, vector in zip(notes, made, strict=True)}, {}
    except BadVectors as error:
        if error.bad:
            good = {notes[at].pk: list(vector) for at, vector in error.good.items()}
            return good, {notes[at].pk: ContentError(why) for at, why in error.bad.items()}
        if len(notes) == 1:
            return {}, {notes[0].pk: error}
    except ContentError as error:
        if len(notes) == 1:
            return {}, {notes[0].pk: error}
    except Confidential as error:
        if len(notes) == 1:
            return {}, {notes[0].pk: ContentError(str(error))}
    half = len(notes) // 2
    good, bad = _vectors(model, notes[:half], run)
    more_good, more_bad = _vectors(model, notes[half:], run)
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
