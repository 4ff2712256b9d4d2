"""Claims: which worker has which unit in hand, how often it was tried, and what is parked.

Any number of workers on any number of hosts may run the same stage. A claim is a row with a
lease; Postgres arbitrates (SKIP LOCKED). The row goes in the transaction that writes the unit,
so a unit is written at most once; a killed worker's claim is free again when its lease ends.
Reads and writes: claim. Writes: distill_failure.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import connection, transaction

from memory.errors import ArgusError, ContentError
from memory.models import Claim, DistillFailure, StageRun

#: Seconds a worker may hold a unit.
# Why: above the model timeout and its fallback ladder; a killed worker's unit waits this long.
# Calibrate: the longest `milliseconds` of llm_call for one unit, times two.
LEASE_SECONDS = 600

#: Content failures after which a unit is parked.
CONTENT_FAILURES_MAX = 5

#: Claims without an answer (a worker that died holding it) after which a unit is parked.
# Why: a unit that kills its worker would otherwise be tried for ever.
UNANSWERED_CLAIMS_MAX = 5


class ClaimLost(ArgusError):
    """The lease of this unit ended and another worker has it; nothing was written."""


@dataclass(frozen=True)
class Held:
    """A unit in this worker's hand."""

    id: int
    stage: str
    unit: str
    worker: str
    attempts: int


CLAIM_SQL = """
WITH free AS (
    SELECT c.id FROM memory_claim c
    JOIN unnest(%(units)s::text[]) WITH ORDINALITY AS wanted(unit, place) USING (unit)
    WHERE c.stage = %(stage)s AND c.parked_at IS NULL
      AND (c.lease_until IS NULL OR c.lease_until <= %(now)s)
    ORDER BY wanted.place LIMIT %(limit)s FOR UPDATE OF c SKIP LOCKED)
UPDATE memory_claim c
SET worker = %(worker)s, lease_until = %(until)s, attempts = c.attempts + 1
FROM free WHERE c.id = free.id
RETURNING c.id, c.unit, c.attempts
"""


def claim(run: StageRun, units: Sequence[str], *, now: datetime, limit: int) -> list[Held]:
    """Take up to `limit` of these units, in the order given; those in other hands are left out.

    The attempt is counted here, before the work, so that a unit that kills its worker is counted.
    """
    if not units:
        return []
    worker = hand(run)
    values: dict[str, Any] = {
        "stage": run.stage,
        "units": list(units),
        "now": now,
        "until": now + timedelta(seconds=LEASE_SECONDS),
        "worker": worker,
        "limit": limit,
    }
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO memory_claim (stage, unit, worker, attempts, content_failures,"
            " parked_reason, created_at)"
            " SELECT %(stage)s, unit, '', 0, 0, '', %(now)s FROM unnest(%(units)s::text[]) AS unit"
            " ORDER BY unit ON CONFLICT (stage, unit) DO NOTHING",
            values,
        )
        cursor.execute(CLAIM_SQL, values)
        rows = cursor.fetchall()
    held = {unit: Held(id_, run.stage, unit, worker, attempts) for id_, unit, attempts in rows}
    tired = [one for one in held.values() if one.attempts > UNANSWERED_CLAIMS_MAX]
    for one in tired:
        park(run, one, reason=f"{UNANSWERED_CLAIMS_MAX} claims ended without an answer", now=now)
    return [held[unit] for unit in units if unit in held and held[unit] not in tired]


def hand(run: StageRun) -> str:
    """The name under which a run holds its claims."""
    return f"{run.worker}/{run.pk}"


def let_go(run: StageRun) -> int:
    """Free whatever a run that ended still holds; the attempts stay counted."""
    return Claim.objects.filter(stage=run.stage, worker=hand(run)).update(
        worker="", lease_until=None
    )


def parked(stage: str) -> set[str]:
    """Units of a stage that are set aside."""
    rows = Claim.objects.filter(stage=stage, parked_at__isnull=False)
    return set(rows.values_list("unit", flat=True))


def finish(held: Held) -> None:
    """The unit is done: call inside the transaction that writes it. ClaimLost undoes that."""
    gone, _ = Claim.objects.filter(pk=held.id, worker=held.worker).delete()
    if not gone:
        raise ClaimLost


def put_back(held: Held) -> None:
    """Nothing was decided (infrastructure, or nothing left to do): the attempt does not count."""
    Claim.objects.filter(pk=held.id, worker=held.worker).update(
        worker="", lease_until=None, attempts=max(held.attempts - 1, 0)
    )


def forget(held: Held) -> None:
    """The unit needs nothing any more (done by another worker meanwhile)."""
    Claim.objects.filter(pk=held.id, worker=held.worker).delete()


def fail(run: StageRun, held: Held, error: ContentError, *, now: datetime) -> bool:
    """Count a content failure, keep the raw reply, park at the limit. True when parked."""
    with transaction.atomic():
        row = Claim.objects.select_for_update().filter(pk=held.id, worker=held.worker).first()
        if row is None:
            return False
        row.content_failures += 1
        row.attempts = max(row.attempts - 1, 0)
        row.worker, row.lease_until = "", None
        parked = row.content_failures >= CONTENT_FAILURES_MAX
        if parked:
            row.parked_at, row.parked_reason = now, str(error)[:500]
        row.save()
        _record(run, held, error=error, attempt=row.content_failures, parked=parked)
    return parked


def park(run: StageRun, held: Held, *, reason: str, now: datetime) -> None:
    """Set the unit aside until a person looks at it."""
    with transaction.atomic():
        Claim.objects.filter(pk=held.id).update(
            parked_at=now, parked_reason=reason, worker="", lease_until=None
        )
        _record(run, held, error=ContentError(reason), attempt=held.attempts - 1, parked=True)


def _record(run: StageRun, held: Held, *, error: ContentError, attempt: int, parked: bool) -> None:
    DistillFailure.objects.create(
        stage=held.stage,
        unit=held.unit,
        kind="content",
        error=str(error)[:500],
        reply=zlib.compress(error.raw.encode()) if error.raw else b"",
        attempt=attempt,
        parked=parked,
        run=run,
    )
