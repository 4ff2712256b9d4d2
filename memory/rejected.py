"""Rejected facts: what a person never wants to learn again, kept as hashes and known by the gate.

Reads and writes: rejected_fact. Audits: nothing by itself; whoever forbids or lifts writes the
decision and the act. Knows nothing about pages, or about how much alike is alike (`memory.gate`).
Verify: a candidate with the words of a rejected fact is refused for its owner, and for nobody else.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from django.db.models import Q

from memory.errors import Conflict, NotFound, RefusedError
from memory.gate import Unwanted, content_key, windows
from memory.models import GateRejection, Principal, RejectedFact
from memory.querysets import OwnerQuerySet


def forbid(
    content: str,
    *,
    owner: Principal,
    by: Principal,
    now: datetime,
    rejection: GateRejection | None = None,
) -> RejectedFact:
    """The gate refuses this content for its owner from now on. `rejection`: where its words stand.

    Call inside the transaction of the decision. Raises Conflict when that is forbidden already,
    RefusedError for a text without a word.
    """
    held = windows(content)
    if not held:
        raise RefusedError("there is nothing in it to be known by", reason="empty")
    if standing := said(content, owner=owner):
        raise Conflict(f"{standing}: there is nothing to forbid")
    row: RejectedFact = RejectedFact.objects.create(
        owner=owner,
        content_key=content_key(content),
        shingles=held,
        rejection=rejection,
        principal=by,
        created_at=now,
    )
    return row


def lift(rejection: GateRejection, *, now: datetime) -> int:
    """What was forbidden by this refusal may be learned again; 0 when nothing is."""
    standing = RejectedFact.objects.as_pipeline().filter(rejection=rejection, lifted_at=None)
    return standing.update(lifted_at=now)


def wordless(facts: OwnerQuerySet) -> OwnerQuerySet:
    """Of these, what holds though the refusal that it came of was purged, latest first: nobody can
    read any more what it was."""
    found: OwnerQuerySet = facts.filter(rejection=None, lifted_at=None).order_by("-pk")
    return found


def lift_wordless(fact_id: int, *, by: Principal, now: datetime) -> None:
    """One of `wordless` of this owner may be learned again. Call inside the transaction of the act.

    Raises NotFound, and Conflict when it was lifted before or still has its refusal to be undone.
    """
    rows = RejectedFact.objects.visible_to(by).select_for_update(no_key=True)
    row: RejectedFact | None = rows.filter(pk=fact_id).first()
    if row is None:
        raise NotFound(f"no rejected fact {fact_id}")
    if row.lifted_at:
        raise Conflict(f"rejected fact {fact_id} was lifted at {row.lifted_at:%Y-%m-%d %H:%M:%S}Z")
    if row.rejection_id:
        raise Conflict(f"rejected fact {fact_id} has its words: undo rejection {row.rejection_id}")
    row.lifted_at = now
    row.save(update_fields=["lifted_at"])


def said(content: str, *, owner: Principal) -> Unwanted | None:
    """The rejected fact of this owner with exactly this content."""
    key = content_key(content)
    return next((one for one in among(owner.pk, [content]) if one.key == key), None)


def among(owner_id: int, contents: Sequence[str]) -> tuple[Unwanted, ...]:
    """The owner's rejected facts that may be said again in these contents, for the gate to judge.

    One query, however many facts there are: by keys and by windows that they share.
    """
    if not contents:
        return ()
    shared = {window for content in contents for window in windows(content)}
    alike = Q(content_key__in={content_key(content) for content in contents})
    if shared:
        alike |= Q(shingles__overlap=list(shared))
    rows = RejectedFact.objects.as_pipeline().filter(alike, owner=owner_id, lifted_at=None)
    return tuple(
        Unwanted(row.content_key, frozenset(row.shingles), row.principal.name, row.created_at)
        for row in rows.select_related("principal").order_by("pk")
    )
