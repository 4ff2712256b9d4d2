"""Dedup: what each new note is to older ones; duplicates and outdated notes are retired.

Reads: note, evidence, injection. Writes: note (by retire), evidence.
Audits: dedup_verdict, one row a note, distinct included; llm_call, stage_run.
Verify: every verdict's notes exist; a supersession of a confident note is pending, not applied.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db import transaction

from memory import claims, verdicts
from memory.attribution import family
from memory.audit import Clock, stage
from memory.backlog import Backlog
from memory.errors import Conflict
from memory.llm.choice import judge
from memory.llm.ports import Judgement, Origin, Statement, Usage
from memory.llm.thresholds import threshold
from memory.models import DedupVerdict, Note, StageRun
from memory.models.record import strictest
from memory.neighbours import Neighbour, comparable, older_neighbours

#: Notes claimed at once.
NOTES_A_CLAIM = 16

#: Notes looked at for claiming at once.
# Why: to find the oldest goes through all that wait; a page lasts for some thirty claims.
# Calibrate: milliseconds of dedup by note when 100,000 notes wait, by halving and doubling.
NOTES_LOOKED_AT = 1_000

#: Notes equal to a new one that are looked at; there is rarely more than one in each project.
TWINS_LOOKED_AT = 8

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
def dedup(run: StageRun, *, clock: Clock, limit: int | None, until: datetime | None) -> DedupReport:
    """Judge every embedded note once, oldest first."""
    backlog = Backlog(run, clock=clock, limit=limit, until=until)
    counts = backlog.work_off(
        Waiting(clock),
        # Conflict: another worker has or had one of the two notes; judged on what is there later.
        lambda held: judge_note(run, held[0], now=clock(), pulse=backlog.pulse),
        at_once=NOTES_A_CLAIM,
    )
    return DedupReport(**counts, pending=pending(clock()))


class Waiting:
    """The notes that wait, oldest first. To put them in order all that wait are gone through, so a
    page is read at once, and read anew when half of it is judged."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._page: list[UUID] = []

    def __call__(self) -> list[str]:
        rows = Note.objects.as_pipeline().live(self._clock()).undecided()
        parked = claims.parked("dedup")
        if len(self._page) > NOTES_LOOKED_AT // 2:
            left = set(rows.filter(pk__in=self._page).values_list("pk", flat=True))
            self._page = [pk for pk in self._page if pk in left]
        if len(self._page) <= NOTES_LOOKED_AT // 2:
            ids = rows.by_age().values_list("pk", flat=True)
            self._page = list(ids[: NOTES_LOOKED_AT + len(parked)])
        return [unit for pk in self._page if (unit := f"note:{pk}") not in parked]


def pending(now: datetime) -> int:
    """Notes that wait to be judged."""
    parked = [unit.partition(":")[2] for unit in claims.parked("dedup")]
    return Note.objects.as_pipeline().live(now).undecided().exclude(pk__in=parked).count()


def judge_note(
    run: StageRun, held: claims.Held, *, now: datetime, pulse: Callable[[], None]
) -> Counter[str]:
    """Find the neighbours of one note, judge, and write the verdict with its effect."""
    pk = UUID(held.unit.partition(":")[2])
    pool = Note.objects.as_pipeline().live(now).undecided().select_related("owner")
    note = pool.filter(pk=pk).first()
    if note is None:
        claims.forget(held)
        return Counter()
    found = _exact(note, now=now) or _ask(note, run, now=now, pulse=pulse)
    with transaction.atomic():
        row = _decide(note, found, run, now=now)
        claims.finish(held)
    counts = Counter({row.verdict: 1})
    if row.status == "pending":
        counts["held"] += 1
    return counts


def _exact(note: Note, *, now: datetime) -> Found | None:
    """Equality after normalisation needs no judge; a twin in the note's own project comes first."""
    twins = comparable(note, now=now).filter(content_key=note.content_key).by_age()
    found = list(twins[:TWINS_LOOKED_AT])
    if not found:
        return None
    merged = family(note.project_id)
    twin = min(
        found,
        key=lambda one: (one.project_id != note.project_id, one.project_id not in merged),
    )
    _after([twin], now=now)
    reason = "the same statement: equal after normalisation"
    return Found(Judgement("duplicate", str(twin.pk), reason), EXACT, (Neighbour(twin, 1.0, None),))


def _ask(note: Note, run: StageRun, *, now: datetime, pulse: Callable[[], None]) -> Found:
    """Show the judge the neighbours; without any there is nothing to judge."""
    judged_by = judge(note.confidentiality)
    floor = threshold(note.embedding_model, "dedup_floor")
    near = older_neighbours(note, now=now, floor=floor, limit=judged_by.candidates_max)
    if not near:
        nothing = Judgement("distinct", None, "no older note is near or shares rare words")
        return Found(nothing, Usage("none", "none"), ())
    _after([one.note for one in near], now=now)
    # The strictest note of those shown says whether they may leave for a model.
    level = strictest((note.confidentiality, *(n.note.confidentiality for n in near)))
    judged_by = judge(level)
    origin = Origin("dedup", f"note:{note.pk}", level, run.pk, pulse=pulse)
    older = [_statement(n.note) for n in near]
    judgement, usage = judged_by.judge(_statement(note), older, origin=origin)
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
    meant = target.note if target and verdict != "distinct" else None
    new, old = verdicts.lock(note, meant, now=now)
    result = verdicts.effect(verdict, new, old, family=family(new.project_id))
    step = verdicts.step(verdict, new, old)
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
        confidence_before=step.before,
        confidence_after=step.after,
        corroborates=step.corroborates,
        model_asked=found.usage.model_asked,
        model_real=found.usage.model_real,
        prompt_version=found.usage.prompt_version,
        run=run,
        created_at=now,
    )
    row.save(force_insert=True)
    if not result.held:
        verdicts.apply(row, now=now)
    return row


def _best(neighbours: Sequence[Neighbour]) -> float | None:
    return max((n.similarity for n in neighbours if n.similarity is not None), default=None)
