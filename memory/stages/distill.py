"""Distill: each closed episode, document, event or synthesis becomes notes with evidence.

Reads: episode, episode_turn, raw_item. Writes: note, evidence, episode, distilled_item.
Audits: gate_rejection, distill_failure, llm_call, claim, stage_run.
Verify: every live note's quote is the span of its raw item; a unit's notes are replaced at once.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction

from memory import claims, gate
from memory.audit import Clock, stage
from memory.backlog import Backlog
from memory.errors import ContentError
from memory.llm.choice import distiller, verifier
from memory.llm.ports import Check, Draft, Origin, Passage
from memory.models import (
    DistilledItem,
    Episode,
    Evidence,
    GateRejection,
    Note,
    RawItem,
    StageRun,
)
from memory.retire import retire, revive
from memory.text.identity import sha256
from memory.text.words import normalise
from memory.verdicts import CONFIDENCE_START

#: Units claimed at once.
# Why: small, so that two workers share a backlog evenly and a killed one holds little.
UNITS_A_CLAIM = 4

#: Units looked at for claiming at once.
UNITS_LOOKED_AT = 200

#: Detail of a candidate whose check came to nothing.
UNREAD = "the verifier's answer could not be read"

#: Kinds of raw items that are units of their own. An image has no text to quote.
ITEM_KINDS = ("document", "event", "synthesis")

#: Characters of the raw text around a quote from which a verifier answers.
# Why: the answer stands near the quote; a whole item may have a million characters.
# Calibrate: share of true notes refused as unsupported, with the window doubled.
VERIFY_CHARACTERS_MAX = 8_000

#: Namespace of note ids, so that the same note has the same id after a rebuild.
NOTE_NAMESPACE = uuid.UUID("6f0b7f9e-6d0c-5b0f-9b0e-0a2d3c4e5f60")


@dataclass(frozen=True)
class DistillReport:
    """Units done, notes made, candidates refused by reason; parked, put off, still to do."""

    episodes_distilled: int = 0
    items_distilled: int = 0
    notes_created: int = 0
    rejected: dict[str, int] | None = None
    content_failures: int = 0
    parked: int = 0
    transient_failures: int = 0
    pending: int = 0


@dataclass(frozen=True)
class Unit:
    """What is distilled at once, with what its notes inherit."""

    key: str
    passages: tuple[Passage, ...]
    items: dict[int, RawItem]
    source: Episode | RawItem

    @property
    def episode(self) -> Episode | None:
        return self.source if isinstance(self.source, Episode) else None

    @property
    def raw_item(self) -> RawItem | None:
        return self.source if isinstance(self.source, RawItem) else None


@dataclass(frozen=True)
class Judged:
    """What came of one draft: grounded candidates with their check, and refusals."""

    kept: tuple[tuple[gate.Grounded, Check | None], ...]
    refused: tuple[gate.Rejection, ...]


@stage
def distill(
    run: StageRun, *, clock: Clock, limit: int | None, until: datetime | None
) -> DistillReport:
    """Distill every unit that waits; each is tried once a run, and written in one transaction."""
    backlog = Backlog(run, clock=clock, limit=limit, until=until)
    rejected: Counter[str] = Counter()

    def work(held: list[claims.Held]) -> Counter[str]:
        done, refused = _distill_unit(run, held[0], now=clock(), pulse=backlog.pulse)
        rejected.update(refused)
        return done

    counts = backlog.work_off(_waiting, work, at_once=UNITS_A_CLAIM)
    return DistillReport(**counts, rejected=dict(rejected), pending=pending(clock()))


def _waiting() -> list[str]:
    """Unit names to claim, in the order in which things happened."""
    parked = claims.parked("distill")
    episodes = Episode.objects.as_pipeline().filter(distilled_at__isnull=True)
    items = RawItem.objects.as_pipeline().filter(kind__in=ITEM_KINDS, distilled__isnull=True)
    ordered = sorted(
        [
            *episodes.order_by("started_at", "pk").values_list("started_at", "unit_key")[
                : UNITS_LOOKED_AT + len(parked)
            ],
            *(
                (at, f"item:{pk}")
                for at, pk in items.order_by("occurred_at", "pk").values_list("occurred_at", "pk")[
                    : UNITS_LOOKED_AT + len(parked)
                ]
            ),
        ]
    )
    return [unit for _, unit in ordered if unit not in parked]


def pending(now: datetime) -> int:
    """Units that wait to be distilled."""
    episodes = Episode.objects.as_pipeline().filter(distilled_at__isnull=True).count()
    items = RawItem.objects.as_pipeline().filter(kind__in=ITEM_KINDS, distilled__isnull=True)
    return episodes + items.count() - len(claims.parked("distill"))


def _load(name: str) -> Unit | None:
    """The unit as it stands now, or None when it was done meanwhile."""
    kind, _, key = name.partition(":")
    source: Episode | RawItem | None
    if kind == "episode":
        source = Episode.objects.as_pipeline().select_related("owner").filter(
            unit_key=name, distilled_at__isnull=True
        ).first()  # fmt: skip
        items = (
            [turn.raw_item for turn in source.turns.select_related("raw_item")] if source else []
        )
    else:
        source = RawItem.objects.as_pipeline().select_related("owner").filter(
            pk=int(key), distilled__isnull=True
        ).first()  # fmt: skip
        items = [source] if source else []
    if source is None:
        return None
    passages = tuple(Passage(i.pk, i.role, i.body, i.occurred_at, i.kind) for i in items)
    return Unit(name, passages, {item.pk: item for item in items}, source)


def _distill_unit(
    run: StageRun, held: claims.Held, *, now: datetime, pulse: Callable[[], None]
) -> tuple[Counter[str], Counter[str]]:
    """Ask the distiller, judge what it says, write it; no model call inside the transaction."""
    unit = _load(held.unit)
    if unit is None:
        claims.forget(held)
        return Counter(), Counter()
    confidentiality = unit.source.confidentiality
    origin = Origin("distill", unit.key, confidentiality, run.pk, pulse=pulse)
    draft = distiller(confidentiality).distill(unit.passages, origin=origin)
    judged = _judge(draft, unit, origin)
    with transaction.atomic():
        # First the mark, which only one of two workers with this unit can set.
        if not _mark(run, unit, now=now):
            claims.forget(held)
            return Counter(), Counter()
        created = _replace_notes(run, unit, draft, judged, now=now)
        _reject(run, unit, draft, judged.refused, now=now)
        claims.finish(held)
    done = "episodes_distilled" if unit.episode else "items_distilled"
    return (
        Counter({done: 1, "notes_created": created}),
        Counter(refusal.reason for refusal in judged.refused),
    )


def _judge(draft: Draft, unit: Unit, origin: Origin) -> Judged:
    """Every candidate through the gate, then through self-questioning where a model is set.

    One answer that cannot be read costs its candidate; raises ContentError when none could be.
    """
    kept: list[tuple[gate.Grounded, Check | None]] = []
    refused: list[gate.Rejection] = []
    unread: ContentError | None = None
    answered = False
    asks = verifier(origin.confidentiality)
    for candidate in draft.candidates:
        grounded = gate.judge(candidate, unit.passages)
        if isinstance(grounded, gate.Rejection):
            refused.append(grounded)
            continue
        try:
            check = asks.verify(candidate, _around(grounded), origin=origin) if asks else None
        except ContentError as error:
            unread = error
            refused.append(gate.Rejection(candidate, "unsupported", UNREAD))
            continue
        answered = True
        if check is not None and not check.supported:
            detail = f"asked: {check.question} - the text answers: {check.answer}"
            refused.append(gate.Rejection(candidate, "unsupported", detail))
            continue
        kept.append((grounded, check))
    if unread and not answered:
        raise unread
    return Judged(tuple(kept), tuple(refused))


def _around(grounded: gate.Grounded) -> str:
    """The raw text around the quote, as much of it as a verifier reads."""
    body = grounded.passage.body
    spare = max(0, VERIFY_CHARACTERS_MAX - (grounded.end - grounded.start))
    start = max(0, grounded.start - spare // 2)
    return body[start : max(grounded.end, start + VERIFY_CHARACTERS_MAX)]


def _replace_notes(
    run: StageRun, unit: Unit, draft: Draft, judged: Judged, *, now: datetime
) -> int:
    """Write the unit's notes and retire those it no longer has; how many are new.

    A distill that returns nothing leaves what was there before.
    """
    made: dict[uuid.UUID, tuple[Note, Evidence]] = {}
    for grounded, check in judged.kept:
        note, edge = _note(run, unit, draft, grounded, check, now=now)
        made.setdefault(note.pk, (note, edge))
    before = Note.objects.as_pipeline().filter(unit_key=unit.key)
    known = set(before.values_list("pk", flat=True))
    if made and (gone := known - set(made)):
        retire(gone, reason="redistilled", now=now)
    for back in before.filter(pk__in=made, retired_reason="redistilled"):
        revive(back.pk)
    fresh = [pair for pk, pair in made.items() if pk not in known]
    Note.objects.bulk_create([note for note, _ in fresh])
    Evidence.objects.bulk_create([edge for _, edge in fresh])
    return len(fresh)


def _note(
    run: StageRun,
    unit: Unit,
    draft: Draft,
    grounded: gate.Grounded,
    check: Check | None,
    *,
    now: datetime,
) -> tuple[Note, Evidence]:
    candidate, item = grounded.candidate, unit.items[grounded.passage.item_id]
    span = f"{item.dedup_key}:{grounded.start}:{grounded.end}"
    version = draft.usage.prompt_version
    note = Note(
        id=uuid.uuid5(NOTE_NAMESPACE, "|".join((unit.key, version, span, candidate.content))),
        owner=unit.source.owner,
        visibility=unit.source.visibility,
        confidentiality=unit.source.confidentiality,
        memory_kind=candidate.memory_kind,
        title=candidate.title.strip(),
        content=candidate.content,
        context=candidate.context,
        keywords=list(candidate.keywords),
        tags=list(candidate.tags),
        importance=min(max(candidate.importance, 0.0), 1.0),
        confidence=CONFIDENCE_START,
        said_by=item.role or item.kind if item.kind == "turn" else item.kind,
        locator=item.locator,
        project_id=unit.source.project_id,
        episode=unit.episode,
        raw_item=unit.raw_item,
        session=item.session,
        unit_key=unit.key,
        content_key=sha256(normalise(candidate.content)),
        question=check.question if check else "",
        answer=check.answer if check else "",
        model_asked=draft.usage.model_asked,
        model_real=draft.usage.model_real,
        prompt_version=version,
        valid_from=item.occurred_at,
        created_at=now,
        run=run,
    )
    edge = Evidence(
        note=note,
        raw_item=item,
        quote=grounded.quote,
        start=grounded.start,
        end=grounded.end,
        sha256=sha256(grounded.quote),
        created_at=now,
    )
    return note, edge


def _reject(
    run: StageRun, unit: Unit, draft: Draft, refused: Sequence[gate.Rejection], *, now: datetime
) -> None:
    GateRejection.objects.bulk_create(
        GateRejection(
            owner=unit.source.owner,
            episode=unit.episode,
            raw_item=unit.raw_item,
            reason=one.reason,
            detail=one.detail,
            candidate=one.as_json(),
            model_asked=draft.usage.model_asked,
            model_real=draft.usage.model_real,
            prompt_version=draft.usage.prompt_version,
            run=run,
            created_at=now,
        )
        for one in refused
    )


def _mark(run: StageRun, unit: Unit, *, now: datetime) -> bool:
    """Say that the unit is distilled; False when another worker said so before."""
    if unit.episode:
        waiting = Episode.objects.as_pipeline().filter(pk=unit.episode.pk, distilled_at=None)
        return waiting.update(distilled_at=now) == 1
    _, fresh = DistilledItem.objects.get_or_create(
        raw_item=unit.raw_item, defaults={"distilled_at": now, "run": run}
    )
    return fresh
