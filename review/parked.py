"""Parked units: what was set aside after too many failures; a person sets it free or dismisses it.

Reads: claim, distill_failure. Writes: claim. Audits: act, and distill_failure (released), in the
same transaction. What a page shows of a parked unit is in `review.shown.parked`.
Verify: a released unit waits as if nobody had tried it; a dismissed one stays parked; nobody does
either to what a stranger shows to everybody.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import QuerySet

from memory import units
from memory.acts import record_act, tidy_reason
from memory.errors import Conflict, NotFound
from memory.models import Act, Claim, DistillFailure, Principal

#: Parked units that are listed in a terminal.
LISTED_MAX = 200

#: Units set free in one transaction.
# Why: their claims are locked while it lasts, and workers pass them by.
RELEASED_AT_ONCE = 100

#: Units set free by one press of a button.
# Why: a request ends within seconds; what is left is said, and the button is still there.
# Calibrate: seconds that it takes at this bound.
RELEASED_MAX = 1_000

assert RELEASED_AT_ONCE < RELEASED_MAX

#: What a person did, as a later one is told.
PAST = {"release": "released", "dismiss": "dismissed", "bring back": "brought back"}


@dataclass(frozen=True)
class Freed:
    """How many units of a kind were set free, and how many of it are still parked."""

    released: int
    left: int


def rows(
    principal: Principal | None, *, deciding: bool = False, mates: units.Mates | None = None
) -> QuerySet[Claim]:
    """Claims of parked units whose source the principal may see (None: all of them), or, with
    `deciding`, settle. `mates` as for `units.seen_by`."""
    parked = Claim.objects.filter(parked_at__isnull=False)
    if principal is None:
        return parked
    return units.seen_by(parked, principal, deciding=deciding, mates=mates)


def waiting(principal: Principal, *, dismissed: bool = False) -> list[Claim]:
    """Claims of parked units whose source the principal may see, oldest first, up to a bound; those
    that were dismissed are on a list of their own."""
    listed = rows(principal).filter(dismissed_at__isnull=not dismissed)
    return list(listed.order_by("parked_at", "pk")[:LISTED_MAX])


def like(claim: Claim, principal: Principal, *, whole_stage: bool = False) -> QuerySet[Claim]:
    """What is parked, and not dismissed, for the same reason in the same stage, or for any, as far
    as the principal may settle it."""
    same = rows(principal, deciding=True).filter(stage=claim.stage, dismissed_at=None)
    return same if whole_stage else same.filter(parked_reason=claim.parked_reason)


def find(claim_id: int, principal: Principal | None, *, deciding: bool = False) -> Claim:
    """The parked claim with this id that the principal may see (None: any), or, with `deciding`,
    settle. Raises NotFound, and Conflict with who set it free."""
    allowed = units.decidable if deciding else units.visible
    row = Claim.objects.filter(pk=claim_id).first()
    if row is None or (principal and row.unit not in allowed({row.unit}, principal)):
        raise NotFound(f"no parked unit {claim_id}")
    if row.parked_at is None:
        raise Conflict(f"{row.unit} is not parked any more{_by_whom(row.unit)}")
    return row


def release(named: str | int, *, by: Principal, now: datetime, reason: str = "") -> list[Claim]:
    """Set a unit free: its failures and attempts start again. By its name in every stage that
    parked it, by the id of a claim in that stage. Gives its claims as they were before.

    Raises NotFound when nothing of that name is parked that the principal may settle (seeing it is
    not enough), and Conflict with who and when for a claim that was set free meanwhile.
    """
    with transaction.atomic():
        free = _locked(named, by=by)
        _free(free, by=by, now=now, reason=tidy_reason(reason))
    return free


def release_all(
    claim_id: int, *, by: Principal, now: datetime, reason: str = "", whole_stage: bool = False
) -> Freed:
    """Set free what is parked for the same reason in the same stage as this one, or all that its
    stage parked: oldest first, some at once, up to a bound. Raises as `release`."""
    wanted = like(find(claim_id, by, deciding=True), by, whole_stage=whole_stage)
    ids = list(wanted.order_by("parked_at", "pk").values_list("pk", flat=True)[:RELEASED_MAX])
    said, released = tidy_reason(reason), 0
    for start in range(0, len(ids), RELEASED_AT_ONCE):
        with transaction.atomic():
            # Asked again under the lock: a unit may have been dismissed, or parked for another
            # reason, since it was found.
            free = _lock(wanted.filter(pk__in=ids[start : start + RELEASED_AT_ONCE]))
            _free(free, by=by, now=now, reason=said)
        released += len(free)
    return Freed(released, wanted.count())


def dismiss(named: str | int, *, by: Principal, now: datetime, reason: str = "") -> list[Claim]:
    """Leave a unit parked, and off the list of what waits for somebody. Raises as `release`, and
    Conflict when somebody dismissed it before."""
    return _set_aside(named, "dismiss", by=by, now=now, reason=reason)


def bring_back(named: str | int, *, by: Principal, now: datetime, reason: str = "") -> list[Claim]:
    """Take a dismissal back. Raises as `release`, and Conflict when it is not dismissed."""
    return _set_aside(named, "bring back", by=by, now=now, reason=reason)


def _set_aside(
    named: str | int, verb: str, *, by: Principal, now: datetime, reason: str
) -> list[Claim]:
    away = verb == "dismiss"
    with transaction.atomic():
        found = _locked(named, by=by)
        todo = [row for row in found if (row.dismissed_at is None) == away]
        if not todo:
            unit = found[0].unit
            told = f"dismissed already{_by_whom(unit)}" if away else "not dismissed"
            raise Conflict(f"{unit} is {told}")
        for row in todo:
            row.dismissed_at = now if away else None
        Claim.objects.bulk_update(todo, ["dismissed_at"])
        _record(todo, verb, by=by, now=now, reason=tidy_reason(reason))
    return todo


def _locked(named: str | int, *, by: Principal) -> list[Claim]:
    """The parked claims of that name, or the one with that id, locked."""
    if isinstance(named, int):
        # Locked first: who waited for the lock sees what the other one did.
        Claim.objects.select_for_update(no_key=True).filter(pk=named).first()
        return [find(named, by, deciding=True)]
    found = _lock(Claim.objects.filter(unit=named))
    if not found or named not in units.decidable({named}, by):
        raise NotFound(f"no unit {named} is parked")
    return found


def _lock(claims: QuerySet[Claim]) -> list[Claim]:
    parked = claims.filter(parked_at__isnull=False).order_by("pk")
    return list(parked.select_for_update(no_key=True))


def _free(free: Sequence[Claim], *, by: Principal, now: datetime, reason: str) -> None:
    owners = units.owners({row.unit for row in free})
    DistillFailure.objects.bulk_create(
        DistillFailure(
            stage=row.stage,
            unit=row.unit,
            owner_id=owners.get(row.unit),
            kind="released",
            error=f"released by {by.name}: {reason}".rstrip(": ")[:500],
            attempt=row.content_failures,
            created_at=now,
        )
        for row in free
    )
    fresh: dict[str, Any] = {"content_failures": 0, "attempts": 0, "parked_reason": ""}
    ids = [row.pk for row in free]
    Claim.objects.filter(pk__in=ids).update(parked_at=None, dismissed_at=None, **fresh)
    _record(free, "release", by=by, now=now, reason=reason)


def _record(
    claims: Sequence[Claim], verb: str, *, by: Principal, now: datetime, reason: str
) -> None:
    for row in claims:
        detail = {"stage": row.stage, "failures": row.content_failures}
        record_act(by, verb, "unit", row.unit, now=now, reason=reason, detail=detail)


def _by_whom(unit: str) -> str:
    """Who did the last thing to a unit, and when."""
    acts = Act.objects.filter(kind="unit", reference=unit, verb__in=PAST)
    act = acts.select_related("principal").order_by("-pk").first()
    if act is None:
        return ""
    return f": {PAST[act.verb]} by {act.principal} at {act.created_at:%Y-%m-%d %H:%M:%S}Z"
