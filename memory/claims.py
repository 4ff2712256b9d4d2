"""Claims: which worker has which unit in hand, how often it was tried, and what is parked.

Any number of workers on any number of hosts may run the same stage. A claim is a row with a
lease; Postgres arbitrates (SKIP LOCKED). The row goes in the transaction that writes the unit,
so a unit is written at most once; a killed worker's claim is free again when its lease ends.
An attempt is counted when the work on the unit begins, so that a unit that kills its worker is
counted and those that the same worker merely held are not.
Reads and writes: claim. Writes: distill_failure.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import connection, transaction

from memory import units as names
from memory.errors import ArgusError, ContentError
from memory.models import Claim, DistillFailure, StageRun

#: Seconds a worker may hold a unit without a sign of life; it gives one before each model call.
# Why: a killed worker's unit waits this long; a slow machine must not lose what it works on.
# Calibrate: the longest `milliseconds` of llm_call, times two; longer timeouts raise it anyway.
LEASE_SECONDS = 600

#: Times the model timeout that a worker may be silent, where that is longer.
# Why: a call may be read slowly to its end, and what it said must be written, too.
TIMEOUTS_A_LEASE = 2

#: Content failures after which a unit is parked.
CONTENT_FAILURES_MAX = 5

#: Claims without an answer (a worker that died working on it) after which a unit is parked.
# Why: a unit that kills its worker would otherwise be tried for ever.
UNANSWERED_CLAIMS_MAX = 5

#: Times the limit of a claim that is entered in the book at once.
# Why: workers that come at the same moment find free rows behind those that the first one takes.
ENTERED_PER_CLAIM = 8


class ClaimLost(ArgusError):
    """The lease of this unit ended and another worker has it; nothing was written."""


@dataclass(frozen=True)
class Held:
    """A unit in this worker's hand; attempts and failures as they were before this claim."""

    id: int
    stage: str
    unit: str
    worker: str
    attempts: int
    content_failures: int

    @property
    def troubled(self) -> bool:
        """Whether it failed or cost a worker before; such a unit is best tried by itself."""
        return bool(self.attempts or self.content_failures)


# Units that nobody has are entered, at most so many, in one order: no two workers wait in a ring.
ENTER_SQL = """
INSERT INTO memory_claim (stage, unit, worker, attempts, content_failures, parked_reason,
                          created_at)
SELECT %(stage)s, unit, '', 0, 0, '', %(now)s FROM (
    SELECT w.unit FROM unnest(%(units)s::text[]) WITH ORDINALITY AS w(unit, place)
    WHERE NOT EXISTS (
        SELECT 1 FROM memory_claim c WHERE c.stage = %(stage)s AND c.unit = w.unit
          AND (c.parked_at IS NOT NULL OR c.lease_until > %(now)s))
    ORDER BY w.place LIMIT %(ahead)s) AS free
ORDER BY unit ON CONFLICT (stage, unit) DO NOTHING
"""

CLAIM_SQL = """
WITH free AS (
    SELECT c.id FROM unnest(%(units)s::text[]) WITH ORDINALITY AS w(unit, place)
    JOIN memory_claim c ON c.stage = %(stage)s AND c.unit = w.unit
    WHERE c.parked_at IS NULL AND (c.lease_until IS NULL OR c.lease_until <= %(now)s)
    ORDER BY w.place LIMIT %(limit)s FOR UPDATE OF c SKIP LOCKED)
UPDATE memory_claim c SET worker = %(worker)s, lease_until = %(until)s
FROM free WHERE c.id = free.id
RETURNING c.id, c.unit, c.attempts, c.content_failures
"""


def claim(run: StageRun, units: Sequence[str], *, now: datetime, limit: int) -> list[Held]:
    """Take the first `limit` of these units that nobody has, in the order given."""
    if not units:
        return []
    worker = hand(run)
    values: dict[str, Any] = {
        "stage": run.stage,
        "units": list(units),
        "now": now,
        "until": _lease(now),
        "worker": worker,
        "limit": limit,
        "ahead": limit * ENTERED_PER_CLAIM,
    }
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(ENTER_SQL, values)
        cursor.execute(CLAIM_SQL, values)
        rows = cursor.fetchall()
    held = {
        unit: Held(id_, run.stage, unit, worker, attempts, failures)
        for id_, unit, attempts, failures in rows
    }
    tired = [one for one in held.values() if one.attempts >= UNANSWERED_CLAIMS_MAX]
    for one in tired:
        park(run, one, reason=f"{UNANSWERED_CLAIMS_MAX} claims ended without an answer", now=now)
    return [held[unit] for unit in units if unit in held and held[unit] not in tired]


def renew(batch: Sequence[Held], *, now: datetime) -> None:
    """Renew the leases of what this worker still has of these."""
    mine = Claim.objects.filter(pk__in=[one.id for one in batch])
    mine.filter(worker__in={one.worker for one in batch}).update(lease_until=_lease(now))


def begin(held: Held, *, now: datetime) -> bool:
    """Count the attempt and renew the lease, before the work. False: another worker has it."""
    mine = Claim.objects.filter(pk=held.id, worker=held.worker)
    return bool(mine.update(attempts=held.attempts + 1, lease_until=_lease(now)))


def _lease(now: datetime) -> datetime:
    return now + timedelta(seconds=silence_seconds(LEASE_SECONDS))


def silence_seconds(least: float) -> float:
    """How long a living worker may say nothing: at least so long, and longer than a model call."""
    longest: float = settings.ARGUS.model_timeout_seconds
    return max(least, TIMEOUTS_A_LEASE * longest)


def hand(run: StageRun) -> str:
    """The name under which a run holds its claims."""
    return f"{run.worker}/{run.pk}"


# Entries that nobody has and that remember nothing. A worker enters units ahead of what it takes,
# from a list that may be older than another worker's work: nobody would come for those.
SWEEP_SQL = """
DELETE FROM memory_claim WHERE id IN (
    SELECT id FROM memory_claim WHERE stage = %s AND worker = '' AND parked_at IS NULL
      AND attempts = 0 AND content_failures = 0 FOR UPDATE SKIP LOCKED)
"""


def let_go(run: StageRun) -> int:
    """Free whatever a run that ended still holds; attempts that it began stay counted."""
    return Claim.objects.filter(stage=run.stage, worker=hand(run)).update(
        worker="", lease_until=None
    )


def sweep(stage: str) -> None:
    """Take out entries that nobody needs; a worker that does need one enters it again."""
    with connection.cursor() as cursor:
        cursor.execute(SWEEP_SQL, [stage])


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
        worker="", lease_until=None, attempts=held.attempts
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
        row.attempts = held.attempts
        row.worker, row.lease_until = "", None
        parked = row.content_failures >= CONTENT_FAILURES_MAX
        if parked:
            row.parked_at, row.parked_reason = now, str(error)[:500]
        row.save()
        _record(run, held, error=error, attempt=row.content_failures, parked=parked, now=now)
    return parked


def park(run: StageRun, held: Held, *, reason: str, now: datetime) -> None:
    """Set the unit aside until a person looks at it (`review.parked`)."""
    with transaction.atomic():
        Claim.objects.filter(pk=held.id).update(
            parked_at=now, parked_reason=reason, worker="", lease_until=None
        )
        error = ContentError(reason)
        _record(run, held, error=error, attempt=held.attempts, parked=True, now=now)


def _record(
    run: StageRun, held: Held, *, error: ContentError, attempt: int, parked: bool, now: datetime
) -> None:
    DistillFailure.objects.create(
        stage=held.stage,
        unit=held.unit,
        owner_id=names.owner_id(held.unit),
        kind="content",
        error=str(error)[:500],
        reply=zlib.compress(error.raw.encode(errors="backslashreplace")) if error.raw else b"",
        attempt=attempt,
        parked=parked,
        run=run,
        created_at=now,
    )
