"""Holds: a person decides the supersessions that were too risky to apply: approve, reject, undo.

Reads and writes: dedup_verdict (status, decided_*). Audits: decision, in the same transaction.
Verify: of two people who decide at once, one does and the other hears who and when.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from django.db import transaction
from django.db.models import Q, QuerySet

from memory import verdicts
from memory.errors import Conflict, NotFound
from memory.models import Decision, DedupVerdict, Note, Principal

#: A verdict of these is open to a decision.
OPEN = ("pending", "undone")

#: Settled verdicts that are listed.
SETTLED_LISTED_MAX = 50


def pending(principal: Principal) -> list[DedupVerdict]:
    """Verdicts that wait, oldest first, and that this principal may decide: both notes are its own,
    or shown to a group or to all by people who share a group with it."""
    return list(_decidable(principal).filter(status="pending").order_by("created_at", "pk"))


def settled(principal: Principal) -> list[DedupVerdict]:
    """What was applied, decided or undone, latest first: what `undo` can name."""
    rows = _decidable(principal).exclude(status="pending").exclude(verdict="distinct")
    return list(rows.order_by("-created_at", "-pk")[:SETTLED_LISTED_MAX])


def _decidable(principal: Principal) -> QuerySet[DedupVerdict]:
    mine = Note.objects.decidable_by(principal).values("pk")
    rows: QuerySet[DedupVerdict] = DedupVerdict.objects.as_pipeline().filter(
        note__in=mine, target__in=mine
    )
    return rows.select_related("note", "target", "note__project", "decided_by")


def approve(verdict_id: int, *, by: Principal, now: datetime, reason: str = "") -> DedupVerdict:
    """Do what the verdict says: the newer note stays, the older one is retired."""

    def effect(row: DedupVerdict) -> str:
        verdicts.apply(row, now=now)
        return "approved"

    return _decide(verdict_id, "approve", OPEN, effect, by=by, now=now, reason=reason)


def reject(verdict_id: int, *, by: Principal, now: datetime, reason: str = "") -> DedupVerdict:
    """Leave both notes as they are; the verdict is not brought up again."""
    return _decide(
        verdict_id, "reject", OPEN, lambda row: "rejected", by=by, now=now, reason=reason
    )


def undo(verdict_id: int, *, by: Principal, now: datetime, reason: str = "") -> DedupVerdict:
    """Take back what was applied, approved or rejected; a new row says so, nothing is deleted.

    A rejected verdict waits again; an applied or approved one gives back the note it retired, and
    may be decided anew.
    """

    def effect(row: DedupVerdict) -> str:
        if row.status == "rejected":
            return "pending"
        verdicts.take_back(row)
        return "undone"

    before = ("applied", "approved", "rejected")
    return _decide(verdict_id, "undo", before, effect, by=by, now=now, reason=reason)


def _decide(
    verdict_id: int,
    action: str,
    allowed: tuple[str, ...],
    effect: Callable[[DedupVerdict], str],
    *,
    by: Principal,
    now: datetime,
    reason: str,
) -> DedupVerdict:
    """Change a verdict under its lock. Raises NotFound, or Conflict with who decided and when."""
    with transaction.atomic():
        mine = Note.objects.decidable_by(by).values("pk")
        row: DedupVerdict | None = (
            DedupVerdict.objects.as_pipeline()
            .select_for_update(of=("self",), no_key=True)
            .filter(Q(target__in=mine) | Q(target__isnull=True), pk=verdict_id, note__in=mine)
            # Not `decided_by`: after waiting for the lock it would be who it was before.
            .select_related("note__owner", "target__owner")
            .first()
        )
        if row is None:
            raise NotFound(f"no verdict {verdict_id}")
        if row.status not in allowed:
            raise Conflict(_already(row, action))
        before, row.status = row.status, effect(row)
        row.decided_by, row.decided_at = by, now
        row.save(update_fields=["status", "decided_by", "decided_at"])
        Decision.objects.create(
            verdict=row,
            principal=by,
            action=action,
            reason=reason,
            status_before=before,
            status_after=row.status,
            created_at=now,
        )
    return row


def _already(row: DedupVerdict, action: str) -> str:
    who = f" by {row.decided_by} at {row.decided_at:%Y-%m-%d %H:%M:%S}Z" if row.decided_by else ""
    return f"verdict {row.pk} is {row.status}{who}: there is nothing to {action}"
