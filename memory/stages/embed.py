"""Embed: what is new gets its search text, then its vector, of the embedder in force.

Reads: note, raw_item. Writes: search_text, posting, term, collection (by `memory.searchtexts`);
note (embedding, embedding_model, embedded_at), turn_vector.
Audits: stage_run, llm_call; distill_failure for a note or raw item that gets no vector.
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
from memory.errors import Confidential, ContentError
from memory.llm.choice import embedder
from memory.llm.ports import Embedder, Origin
from memory.llm.vectors import BadVectors
from memory.models import Claim, Note, RawItem, StageRun, TurnVector
from memory.models.record import CONFIDENTIALITIES, strictest
from memory.models.waiting import VECTOR
from memory.querysets import NoteQuerySet
from memory.searchtexts import index_all
from memory.turnvectors import make, stored, unit_of

#: Notes of one call and of one transaction; also raw items of one call.
# Why: as many as an embedder at a URL takes at once; a killed worker's are made again.
# Calibrate: texts a second of the embedder in use, by halving and doubling.
NOTES_A_BATCH = 64

#: Notes, or raw items, looked at for claiming at once.
# Why: far above the batch, so that several workers find work beside each other.
# Calibrate: batches that come back empty while something is pending.
NOTES_LOOKED_AT = 1024

assert NOTES_A_BATCH < NOTES_LOOKED_AT


@dataclass(frozen=True)
class EmbedReport:
    """Notes that got a vector; attempts that gave none; parked; still without. `turns` are raw
    items that got a vector here, `indexed` notes and raw items that got a search text."""

    embedded: int = 0
    failed: int = 0
    parked: int = 0
    pending: int = 0
    transient_failures: int = 0
    turns: int = 0
    indexed: int = 0


@stage
def embed(run: StageRun, *, clock: Clock, limit: int | None, until: datetime | None) -> EmbedReport:
    """Index what is not, then give every live note its vector, then raw items that have none.

    The index needs no model: what is said can be found by its words while the embedder is away.
    One bad note never keeps its batch from theirs.

    A note is tried once a run, but for one whose vector is bad where others are good: that is its
    own fault, so it is parked by the end of the run.
    """
    backlog = Backlog(run, clock=clock, limit=limit, until=until)
    indexed = index_all(over=backlog.ask)
    return replace(_embed_all(backlog, embedder(), anew=False), indexed=indexed)


@stage
def reembed(
    run: StageRun, *, clock: Clock, limit: int | None, until: datetime | None
) -> EmbedReport:
    """After a change of model: every live note of another model gets a vector of this one.

    Then the turns. Resumable: what has the new vector is left alone.
    """
    backlog = Backlog(run, clock=clock, limit=limit, until=until)
    return _embed_all(backlog, embedder(), anew=True)


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
    """The notes, then the raw items: what is put before an agent first is made first."""
    run, clock = backlog.run, backlog.clock
    backlog.work_off(
        lambda: [f"note:{pk}" for pk in _waiting(model, run.stage, now=clock(), anew=anew)],
        lambda held: _embed_batch(backlog, model, held, now=clock(), anew=anew),
        at_once=NOTES_A_BATCH,
        batches=_batches,
    )
    barred: set[str] = set()
    backlog.work_off(
        lambda: [unit_of(pk) for pk in _bare(model, run.stage, barred, now=clock(), anew=anew)],
        lambda held: _embed_items(backlog, model, held, barred),
        at_once=NOTES_A_BATCH,
        batches=_batches,
    )
    return EmbedReport(**backlog.counts, pending=_pending(run.stage, model, clock(), anew=anew))


def _batches(held: Sequence[claims.Held]) -> list[list[claims.Held]]:
    """What never failed goes together; each that did goes alone, so that it harms no other."""
    smooth = [one for one in held if not one.troubled]
    return [batch for batch in (smooth, *([one] for one in held if one.troubled)) if batch]


def _embed_items(
    backlog: Backlog, model: Embedder, held: Sequence[claims.Held], barred: set[str]
) -> Counter[str]:
    """Vectors of one claimed batch of raw items, kept as they come. Which confidentialities may not
    leave is added to `barred`: nothing of them is asked about again in this run."""
    run, by_item = backlog.run, {int(one.unit.partition(":")[2]): one for one in held}
    rows = RawItem.objects.as_pipeline().filter(pk__in=by_item).order_by("pk")
    items = list(rows.only("pk", "confidentiality", "owner_id"))
    known = stored(items, model)
    bad: dict[int, ContentError] = {}
    for level in CONFIDENTIALITIES:
        alike = [i.pk for i in items if i.confidentiality == level and i.pk not in known]
        if not alike or level in barred:
            continue
        origin = Origin(run.stage, "turns", level, run.pk, backlog.renew)
        try:
            failed = make(alike, model, origin)
        except Confidential:
            barred.add(level)
            continue
        bad |= failed
        backlog.counts["turns"] += len(alike) - len(failed)
    for pk, error in bad.items():
        backlog.fail(by_item[pk], error, counted_as="failed")
    for pk, one in by_item.items():
        if pk not in bad:
            # Those that got a vector are gone already; the others wait for nothing here.
            claims.forget(one)
    return Counter()


def _bare(
    model: Embedder, stage_name: str, barred: set[str], *, now: datetime, anew: bool
) -> list[int]:
    """Raw items to embed, oldest first: those without any vector (a turn has one since it was
    segmented, if the embedder was there), or, `anew`, with none but of another model."""
    pool = RawItem.objects.as_pipeline().exclude(confidentiality__in=barred)
    if anew:
        others = TurnVector.objects.exclude(model=model.name).values("raw_item")
        pool = pool.filter(pk__in=others).exclude(vectors__model=model.name)
    else:
        pool = pool.filter(waits__lacks=VECTOR)
    busy = _busy(stage_name, "item", now=now)
    ids = pool.order_by("pk").values_list("pk", flat=True)
    return [pk for pk in ids[: NOTES_LOOKED_AT + len(busy)] if str(pk) not in busy]


def _busy(stage_name: str, kind: str, *, now: datetime) -> set[str]:
    """Keys of what is parked or in another worker's hand."""
    taken = Claim.objects.filter(stage=stage_name, unit__startswith=f"{kind}:")
    taken = taken.exclude(parked_at=None, lease_until=None)
    return {
        unit.partition(":")[2]
        for unit, parked_at, until in taken.values_list("unit", "parked_at", "lease_until")
        if parked_at or (until and until > now)
    }


def _waiting(model: Embedder, stage_name: str, *, now: datetime, anew: bool) -> list[UUID]:
    """Notes to embed that are neither parked nor in another worker's hand, oldest first."""
    busy = _busy(stage_name, "note", now=now)
    ids = _lacking(model, now, anew=anew).order_by("created_at", "pk").values_list("pk", flat=True)
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
