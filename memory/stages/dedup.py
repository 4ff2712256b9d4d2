"""Dedup: what each new note is to older ones; duplicates and outdated notes are retired.

Reads: note, evidence, injection. Writes: note (by retire), evidence.
Audits: dedup_verdict, one row a note, distinct included; llm_call, stage_run.
Verify: every verdict's notes exist; a supersession of a confident note is pending, not applied.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db import transaction

from memory import claims, verdicts
from memory.audit import Clock, beat, stage
from memory.errors import Conflict, ContentError, InfraError
from memory.llm.choice import embedder, judge
from memory.llm.ports import Judgement, Origin, Statement, Usage
from memory.llm.thresholds import threshold
from memory.models import DedupVerdict, Note, StageRun
from memory.models.record import CONFIDENTIALITIES
from memory.neighbours import Neighbour, older_neighbours

#: Notes claimed at once.
NOTES_A_CLAIM = 16

#: Notes looked at for claiming at once.
NOTES_LOOKED_AT = 400

#: What stands in the model columns when equality alone decided.
EXACT = Usage(model_asked="exact", model_real="exact")


@dataclass(frozen=True)
class DedupReport:
    """Verdicts by kind; those held for a person; notes parked, put off, still to judge."""

    duplicate: int = 0
    refine: int = 0
    supersede: int = 0
    distinct: int = 0
    held: int = 0
    content_failures: int = 0
    parked: int = 0
    transient_failures: int = 0
    pending: int = 0


@dataclass(frozen=True)
class Found:
    """A judgement about one note, with what the judge was shown."""

    judgement: Judgement
    usage: Usage
    neighbours: tuple[Neighbour, ...]


@stage
def dedup(run: StageRun, *, clock: Clock, limit: int | None) -> DedupReport:
    """Judge every embedded note once, oldest first."""
    counts: Counter[str] = Counter()
    seen: set[str] = set()
    away = False
    while not away and (limit is None or len(seen) < limit):
        waiting = [unit for unit in _waiting(clock()) if unit not in seen]
        room = NOTES_A_CLAIM if limit is None else min(NOTES_A_CLAIM, limit - len(seen))
        held = claims.claim(run, waiting, now=clock(), limit=room)
        if not held:
            break
        seen.update(one.unit for one in held)
        for one in held:
            if away:
                claims.put_back(one)
                continue
            beat(run)
            if not claims.begin(one, now=clock()):
                continue
            try:
                counts.update(_dedup_note(run, one, now=clock()))
            except ContentError as error:
                counts["content_failures"] += 1
                counts["parked"] += int(claims.fail(run, one, error, now=clock()))
            except InfraError:
                claims.put_back(one)
                counts["transient_failures"] += 1
                away = True
            except (Conflict, claims.ClaimLost):
                # Another worker has or had one of the two notes: judge again on what is there then.
                claims.put_back(one)
    return DedupReport(**counts, pending=_pending(clock()))


def _waiting(now: datetime) -> list[str]:
    parked = claims.parked("dedup")
    rows = Note.objects.as_pipeline().live(now).undecided().by_age()
    ids = rows.values_list("pk", flat=True)[: NOTES_LOOKED_AT + len(parked)]
    return [unit for pk in ids if (unit := f"note:{pk}") not in parked]


def _pending(now: datetime) -> int:
    parked = [unit.partition(":")[2] for unit in claims.parked("dedup")]
    return Note.objects.as_pipeline().live(now).undecided().exclude(pk__in=parked).count()


def _dedup_note(run: StageRun, held: claims.Held, *, now: datetime) -> Counter[str]:
    """Find the neighbours of one note, judge, and write the verdict with its effect."""
    pk = UUID(held.unit.partition(":")[2])
    pool = Note.objects.as_pipeline().live(now).undecided().select_related("owner")
    note = pool.filter(pk=pk).first()
    if note is None:
        claims.forget(held)
        return Counter()
    found = _exact(note, now=now) or _ask(note, run, now=now)
    with transaction.atomic():
        row = _decide(note, found, run, now=now)
        claims.finish(held)
    counts = Counter({row.verdict: 1})
    if row.status == "pending":
        counts["held"] += 1
    return counts


def _exact(note: Note, *, now: datetime) -> Found | None:
    """Equality after normalisation needs no judge."""
    twin = (
        Note.objects.visible_to(note.owner)
        .live(now)
        .filter(owner=note.owner, project=note.project, level=note.level)
        .filter(content_key=note.content_key)
        .met_by(note)
        .by_age()
        .first()
    )
    if twin is None:
        return None
    _after([twin], now=now)
    reason = "the same statement: equal after normalisation"
    return Found(Judgement("duplicate", str(twin.pk), reason), EXACT, (Neighbour(twin, 1.0, None),))


def _ask(note: Note, run: StageRun, *, now: datetime) -> Found:
    """Show the judge the neighbours; without any there is nothing to judge."""
    judged_by = judge(note.confidentiality)
    floor = threshold(embedder().name, "dedup_floor")
    near = older_neighbours(note, now=now, floor=floor, limit=judged_by.candidates_max)
    if not near:
        nothing = Judgement("distinct", None, "no older note is near or shares rare words")
        return Found(nothing, Usage("none", "none"), ())
    _after([one.note for one in near], now=now)
    # The strictest note of those shown says whether they may leave for a model.
    strictest = max(
        (note.confidentiality, *(n.note.confidentiality for n in near)), key=CONFIDENTIALITIES.index
    )
    judged_by = judge(strictest)
    origin = Origin("dedup", f"note:{note.pk}", strictest, run.pk)
    new = _statement(note)
    judgement, usage = judged_by.judge(new, [_statement(n.note) for n in near], origin=origin)
    if judgement.verdict == "distinct":
        # Read late, said early: what was said after it may have replaced it already.
        for one in (n.note for n in near if n.note.valid_from > note.valid_from):
            told, cost = judged_by.judge(_statement(one), [new], origin=origin)
            if told.verdict == "supersede":
                judgement = Judgement("supersede", str(one.pk), told.reasoning)
                return Found(judgement, cost, tuple(near))
    return Found(judgement, usage, tuple(near))


def _after(older: Sequence[Note], *, now: datetime) -> None:
    """Raises Conflict while one of these is still to be judged: a note that is retired or passed
    over unjudged would leave alive what it replaces itself."""
    names = [one.pk for one in older]
    waiting = Note.objects.as_pipeline().live(now).unjudged().filter(pk__in=names)
    units = {f"note:{pk}" for pk in waiting.values_list("pk", flat=True)}
    if units and units - claims.parked("dedup") - claims.parked("embed"):
        raise Conflict("an older note near this one is to be judged first")


def _statement(note: Note) -> Statement:
    return Statement(
        str(note.pk), note.content, note.title, note.context, note.said_by, note.valid_from
    )


def _decide(note: Note, found: Found, run: StageRun, *, now: datetime) -> DedupVerdict:
    """Write the verdict row and what it does, under locks on both notes."""
    judgement = found.judgement
    by_id = {str(one.note.pk): one for one in found.neighbours}
    target = by_id.get(judgement.target or "")
    verdict, reasoning = judgement.verdict, judgement.reasoning
    if verdict != "distinct" and target is None:
        reasoning = f"{verdict} of a note that was not a candidate, taken as distinct: {reasoning}"
        verdict = "distinct"
    new, old = _lock(note, target.note if target and verdict != "distinct" else None, now=now)
    result = verdicts.effect(verdict, new, old)
    before = after = None
    counts_for = False
    if old is not None and verdict in ("duplicate", "refine"):
        counts_for = verdicts.corroborates(new, old)
        before = old.confidence
        after = verdicts.raised(before) if counts_for else before
    row = DedupVerdict(
        owner=new.owner,
        note=new,
        target=old,
        verdict=verdict,
        status="pending" if result.held else "applied",
        similarity=target.similarity if target else _best(found.neighbours),
        lexical=target.lexical if target else None,
        candidates=[
            {"note": str(n.note.pk), "similarity": n.similarity, "lexical": n.lexical}
            for n in found.neighbours
        ],
        reasoning=reasoning,
        confidence_before=before,
        confidence_after=after,
        corroborates=counts_for,
        model_asked=found.usage.model_asked,
        model_real=found.usage.model_real,
        prompt_version=found.usage.prompt_version,
        run=run,
        created_at=now,
    )
    row.save(force_insert=True)
    if not result.held:
        verdicts.apply(row, result, now=now)
    return row


def _lock(new: Note, old: Note | None, *, now: datetime) -> tuple[Note, Note | None]:
    """Both notes as they stand, locked in one order. Raises Conflict when either is not live."""
    wanted = [new.pk] if old is None else sorted((new.pk, old.pk))
    rows = {
        row.pk: row
        for row in Note.objects.as_pipeline()
        .live(now)
        .filter(pk__in=wanted)
        .select_related("owner")
        .select_for_update(of=("self",), no_key=True)
        .order_by("pk")
    }
    if len(rows) != len(wanted):
        raise Conflict("one of the two notes was retired meanwhile")
    return rows[new.pk], rows[old.pk] if old is not None else None


def _best(neighbours: Sequence[Neighbour]) -> float | None:
    return max((n.similarity for n in neighbours if n.similarity is not None), default=None)
