"""Distill: each closed episode, document, event or synthesis becomes notes with evidence.

Reads: episode, episode_turn, raw_item. Writes: note, evidence, episode, distilled_item.
Audits: gate_rejection, distill_failure, llm_call, claim, stage_run.
Verify: every live note's quote is the span of its raw item; a unit's notes are replaced at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction

from memory import claims
from memory.audit import Clock, stage
from memory.backlog import Backlog
from memory.llm.choice import distiller
from memory.llm.ports import Origin
from memory.making import (
    Unit,
    judge,
    load,
    make_note,
    replace_notes,
    write_rejections,
)
from memory.models import DistilledItem, Episode, RawItem, StageRun
from memory.models.waiting import DISTILLED

#: Units claimed at once.
# Why: small, so that two workers share a backlog evenly and a killed one holds little.
UNITS_A_CLAIM = 4

#: Units looked at for claiming at once.
UNITS_LOOKED_AT = 200


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


@stage
def distill(
    run: StageRun, *, clock: Clock, limit: int | None, until: datetime | None
) -> DistillReport:
    """Distill every unit that waits; each is tried once a run, and written in one transaction."""
    backlog = Backlog(run, clock=clock, limit=limit, until=until)
    rejected: Counter[str] = Counter()

    def work(held: list[claims.Held]) -> Counter[str]:
        done, refused = distill_unit(run, held[0], now=clock(), pulse=backlog.pulse)
        rejected.update(refused)
        return done

    counts = backlog.work_off(_waiting, work, at_once=UNITS_A_CLAIM)
    return DistillReport(**counts, rejected=dict(rejected), pending=pending(clock()))


def _waiting() -> list[str]:
    """Unit names to claim, in the order in which things happened."""
    parked = claims.parked("distill")
    episodes = Episode.objects.as_pipeline().filter(distilled_at__isnull=True)
    items = RawItem.objects.as_pipeline().filter(waits__lacks=DISTILLED)
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
    items = RawItem.objects.as_pipeline().filter(waits__lacks=DISTILLED)
    return episodes + items.count() - len(claims.parked("distill"))


def distill_unit(
    run: StageRun, held: claims.Held, *, now: datetime, pulse: Callable[[], None]
) -> tuple[Counter[str], Counter[str]]:
    """Ask the distiller, judge what it says, write it; no model call inside the transaction."""
    unit = load(held.unit, undistilled=True)
    if unit is None:
        claims.forget(held)
        return Counter(), Counter()
    confidentiality = unit.source.confidentiality
    origin = Origin("distill", unit.key, confidentiality, run.pk, pulse=pulse)
    draft = distiller(confidentiality).distill(unit.passages, origin=origin)
    judged = judge(draft, unit, origin)
    with transaction.atomic():
        # First the mark, which only one of two workers with this unit can set.
        if not _mark(run, unit, now=now):
            claims.forget(held)
            return Counter(), Counter()
        made = [
            make_note(unit, grounded, draft.usage, check=check, run=run, now=now)
            for grounded, check in judged.kept
        ]
        created = replace_notes(unit, made, now=now)
        write_rejections(unit, judged.refused, draft.usage, run=run, now=now)
        claims.finish(held)
    done = "episodes_distilled" if unit.episode else "items_distilled"
    return (
        Counter({done: 1, "notes_created": created}),
        Counter(refusal.reason for refusal in judged.refused),
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
