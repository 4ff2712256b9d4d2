"""Parked units: what was set aside after too many failures, shown to a person and set free again.

Reads: claim, distill_failure. Writes: claim. Audits: distill_failure (released), in the same
transaction. Verify: a released unit waits as if nobody had tried it.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction

from memory import units
from memory.errors import NotFound
from memory.models import Claim, DistillFailure, Principal

#: Characters of a raw reply that are shown.
# Why: enough to see what went wrong (prose, a cut-off, an apology); the whole is in the row.
REPLY_CHARACTERS_MAX = 400

#: Bytes of a raw reply that are unpacked for it.
REPLY_BYTES_MAX = 4 * REPLY_CHARACTERS_MAX


@dataclass(frozen=True)
class Parked:
    """A unit that a stage leaves alone, why, and the head of the last reply there was."""

    stage: str
    unit: str
    reason: str
    parked_at: datetime
    failures: int
    attempts: int
    reply: str


def waiting(principal: Principal) -> list[Parked]:
    """Parked units whose source the principal may see, oldest first."""
    rows = list(Claim.objects.filter(parked_at__isnull=False).order_by("parked_at", "pk"))
    seen = units.visible({row.unit for row in rows}, principal)
    rows = [row for row in rows if row.unit in seen]
    replies = _replies([row.unit for row in rows])
    return [_shown(row, replies.get((row.stage, row.unit), "")) for row in rows]


def release(unit: str, *, by: Principal, now: datetime, reason: str = "") -> list[Parked]:
    """Set the unit free in every stage that parked it: its failures and attempts start again.

    Raises NotFound when nothing of that name is parked that the principal may see.
    """
    if unit not in units.visible({unit}, by):
        raise NotFound(f"no unit {unit} is parked")
    with transaction.atomic():
        rows = Claim.objects.select_for_update().filter(unit=unit, parked_at__isnull=False)
        free = list(rows.order_by("pk"))
        if not free:
            raise NotFound(f"no unit {unit} is parked")
        replies = _replies([unit])
        for row in free:
            DistillFailure.objects.create(
                stage=row.stage,
                unit=unit,
                owner_id=units.owner_id(unit),
                kind="released",
                error=f"released by {by.name}: {reason}".rstrip(": ")[:500],
                attempt=row.content_failures,
                created_at=now,
            )
        Claim.objects.filter(pk__in=[row.pk for row in free]).update(
            parked_at=None, parked_reason="", content_failures=0, attempts=0
        )
    return [_shown(row, replies.get((row.stage, unit), "")) for row in free]


def _replies(named: Sequence[str]) -> dict[tuple[str, str], str]:
    """The head of each unit's last reply, by stage and unit."""
    rows = DistillFailure.objects.filter(unit__in=named, kind="content").exclude(reply=b"")
    latest = rows.order_by("stage", "unit", "-pk").distinct("stage", "unit")
    return {(row.stage, row.unit): _head(bytes(row.reply)) for row in latest}


def _head(reply: bytes) -> str:
    """The beginning of a packed reply; no more of it is unpacked than is shown."""
    text = zlib.decompressobj().decompress(reply, REPLY_BYTES_MAX).decode(errors="replace")
    return text[:REPLY_CHARACTERS_MAX]


def _shown(row: Claim, reply: str) -> Parked:
    assert row.parked_at is not None
    return Parked(
        stage=row.stage,
        unit=row.unit,
        reason=row.parked_reason,
        parked_at=row.parked_at,
        failures=row.content_failures,
        attempts=row.attempts,
        reply=reply,
    )
