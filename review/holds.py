"""Holds: a person decides the supersessions that were too risky to apply: approve, reject, undo.

Reads and writes: dedup_verdict (status, decided_*). Audits: decision and act, in the same
transaction. Verify: of two people who decide at once, one does and the other hears who and when.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from django.db import connection, transaction
from django.db.models import OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce

from memory import verdicts
from memory.acts import record_act, tidy_reason
from memory.carrying import bring_holds_back, carry_holds
from memory.edits import edit_note
from memory.errors import Conflict, NotFound, RefusedError
from memory.models import Decision, DedupVerdict, Note, Principal
from memory.querysets import NoteQuerySet, condition, mates_of

#: A verdict of these is open to a decision.
OPEN = ("pending", "undone")

#: A verdict of these can be taken back.
DONE = ("applied", "approved", "rejected")

#: Settled verdicts that are listed.
SETTLED_LISTED_MAX = 50

#: Verdicts that one act of many may name.
# Why: each is a transaction of its own while a person waits; a page of a list is thirty.
CHOSEN_MAX = 100

#: Of one's latest acts, so many are looked at for a decision that still stands.
# Why: undo is for slips of the last minutes; older ones are found in the list. Acts of all kinds,
# so that who pins and rates all day does not pay for it at every hold.
ACTS_LOOKED_AT = 500

#: The verdict that somebody decided last of those that stand as it decided them. {mine}: of these.
#: Parameters: the principal, ACTS_LOOKED_AT, those of {mine} for the newer note and the older.
# Why SQL: every page of a hold asks this, and acts name a verdict by a text.
STANDING = """
SELECT verdict.id, verdict.status, verdict.decided_at,
    coalesce((SELECT max(d.id) FROM memory_decision d WHERE d.verdict_id = verdict.id), 0)
FROM (
    SELECT id, principal_id, kind, verb, reference FROM memory_act
    WHERE principal_id = %s ORDER BY id DESC LIMIT %s
) said JOIN memory_dedupverdict verdict
    ON said.kind = 'verdict' AND said.verb IN ('approve', 'reject')
    AND verdict.id = CASE said.kind WHEN 'verdict' THEN said.reference::bigint END
WHERE verdict.decided_by_id = said.principal_id AND verdict.status IN ('approved', 'rejected')
  AND EXISTS (SELECT 1 FROM memory_note WHERE id = verdict.note_id AND {mine} OFFSET 0)
  AND EXISTS (SELECT 1 FROM memory_note WHERE id = verdict.target_id AND {mine} OFFSET 0)
ORDER BY said.id DESC LIMIT 1
"""


#: What of a note is read together with its verdict; a page or an export asks for the rest alone.
# Why: a note has three times as many columns, and a list has thirty times two notes.
READ = frozenset(
    (
        "id", "owner", "title", "content", "confidence", "said_by", "model_real", "project",
        "visibility", "valid_from", "created_at", "deleted_at", "retired_reason",
    )
)  # fmt: skip

_UNREAD = [
    f"{side}__{field.name}"
    for side in ("note", "target")
    for field in Note._meta.concrete_fields
    if field.name not in READ
]


def held(notes: NoteQuerySet) -> QuerySet[DedupVerdict]:
    """Verdicts between two of these notes. `told` brings what a person reads of them."""
    mine = notes.order_by().values("pk")
    rows: QuerySet[DedupVerdict] = DedupVerdict.objects.as_pipeline()
    return rows.filter(note__in=mine, target__in=mine)


def decidable(
    principal: Principal, *, mates: Collection[int] | None = None
) -> QuerySet[DedupVerdict]:
    """Verdicts that this principal may decide: both notes are its own, or shown to a group or to
    all by people who share a group with it. `mates` are their ids where they are known already."""
    known = mates_of(principal) if mates is None else mates
    return held(Note.objects.decidable_by(principal, mates=known))


def told(rows: QuerySet[DedupVerdict]) -> QuerySet[DedupVerdict]:
    """These verdicts with what is READ of their notes, their projects, and who decided. `newest` is
    the latest decision about it, 0 when there is none: what a later one says it has seen."""
    rows = _with_newest(rows).select_related("note__project", "target__project", "decided_by")
    return rows.defer(*_UNREAD)


def _with_newest(rows: QuerySet[DedupVerdict]) -> QuerySet[DedupVerdict]:
    newest = Decision.objects.filter(verdict=OuterRef("pk")).order_by("-pk").values("pk")[:1]
    return rows.annotate(newest=Coalesce(Subquery(newest), 0))


def tell(ids: Sequence[int]) -> list[DedupVerdict]:
    """The verdicts of these ids, in this order, as `told`: by ids that a lean query found.

    Why in two steps: whom a verdict concerns and what it says are ten tables together, and to plan
    that takes longer than to ask twice.
    """
    found = {row.pk: row for row in told(DedupVerdict.objects.as_pipeline().filter(pk__in=ids))}
    return [found[pk] for pk in ids if pk in found]


def waiting(rows: QuerySet[DedupVerdict]) -> QuerySet[DedupVerdict]:
    """Those of these that wait for a decision, oldest first. One of whose notes is gone is none:
    it asks again when that note comes back."""
    there = {"note__deleted_at__isnull": True, "target__deleted_at__isnull": True}
    return rows.filter(status="pending", **there).order_by("created_at", "pk")


def stranded(rows: QuerySet[DedupVerdict]) -> QuerySet[DedupVerdict]:
    """Those of these that would wait, but that one of their notes is gone."""
    gone = Q(note__deleted_at__isnull=False) | Q(target__deleted_at__isnull=False)
    return rows.filter(gone, status="pending")


def pending(principal: Principal) -> list[DedupVerdict]:
    """Verdicts that wait, oldest first, and that this principal may decide."""
    return list(told(waiting(decidable(principal))))


def settled(principal: Principal) -> list[DedupVerdict]:
    """What was applied, decided or undone, latest first: what `undo` can name."""
    rows = decidable(principal).exclude(status="pending").exclude(verdict="distinct")
    return list(told(rows.order_by("-created_at", "-pk"))[:SETTLED_LISTED_MAX])


def approve(
    verdict_id: int, *, by: Principal, now: datetime, reason: str = "", seen: int | None = None
) -> DedupVerdict:
    """Do what the verdict says: the newer note stays, the older one is retired."""

    def effect(row: DedupVerdict) -> str:
        verdicts.apply(row, now=now)
        if verdicts.edits(row) and row.target is not None:
            carry_holds(row.target, row.note, by=by, now=now)
        return "approved"

    return _decide(verdict_id, "approve", OPEN, effect, by=by, now=now, reason=reason, seen=seen)


def reject(
    verdict_id: int, *, by: Principal, now: datetime, reason: str = "", seen: int | None = None
) -> DedupVerdict:
    """Leave both notes as they are; the verdict is not brought up again."""

    def effect(row: DedupVerdict) -> str:
        return "rejected"

    return _decide(verdict_id, "reject", OPEN, effect, by=by, now=now, reason=reason, seen=seen)


def undo(
    verdict_id: int, *, by: Principal, now: datetime, reason: str = "", seen: int | None = None
) -> DedupVerdict:
    """Take back what was applied, approved or rejected; a new row says so, nothing is deleted.

    A rejected verdict is open as it was before; an applied or approved one gives back the note it
    retired, and may be decided anew. What was edited with the approval is taken back with it.
    """

    def effect(row: DedupVerdict) -> str:
        if row.status == "rejected":
            return _before_rejection(row)
        if (edit := _edited_with(row)) is not None:
            undo(edit, by=by, now=now, reason=reason)
        verdicts.take_back(row, now=now)
        if verdicts.edits(row) and row.target is not None:
            bring_holds_back(row.note, row.target, by=by, now=now)
        return "undone"

    return _decide(verdict_id, "undo", DONE, effect, by=by, now=now, reason=reason, seen=seen)


def withdraw(verdict_id: int, *, by: Principal, now: datetime, reason: str = "") -> DedupVerdict:
    """Take a hold back that nobody decided yet: the run that made it is undone. Both notes stay as
    they are; it may be approved after all."""

    def effect(row: DedupVerdict) -> str:
        return "undone"

    return _decide(
        verdict_id, "undo", ("pending",), effect, by=by, now=now, reason=reason, seen=None
    )


def edit_approve(
    verdict_id: int,
    *,
    title: str,
    content: str,
    by: Principal,
    now: datetime,
    reason: str = "",
    seen: int | None = None,
) -> DedupVerdict:
    """Approve, and put this text in the place of the note that stays: all of it or nothing.

    The text is a person's, and a note of its own; without a change this is `approve`. Raises what
    `approve` raises, and RefusedError when the write gate refuses the text.
    """
    with transaction.atomic():
        row = approve(verdict_id, by=by, now=now, reason=reason, seen=seen)
        stays = staying(row)
        words = (" ".join(title.split()), content.replace("\r\n", "\n").strip())
        if words != (stays.title, stays.content.strip()):
            edit_note(stays.pk, title=title, content=content, by=by, now=now, reason=reason)
    return row


def staying(row: DedupVerdict) -> Note:
    """The note that stays when the verdict is approved; of none that goes, the newer."""
    return verdicts.effect(row.verdict, row.note, row.target).kept


def _before_rejection(row: DedupVerdict) -> str:
    """What a verdict was before it was rejected: a hold, or undone already."""
    last = row.decisions.filter(action="reject").order_by("-pk").first()
    return last.status_before if last else "pending"


def _edited_with(row: DedupVerdict) -> int | None:
    """The verdict by which the note that stayed was edited in the act that approved this one."""
    rows = DedupVerdict.objects.as_pipeline().filter(
        target=staying(row),
        verdict="refine",
        model_real=verdicts.PERSON,
        status="approved",
        decided_by=row.decided_by_id,
        decided_at=row.decided_at,
    )
    found: int | None = rows.exclude(pk=row.pk).values_list("pk", flat=True).first()
    return found


@dataclass(frozen=True)
class Outcome:
    """What an act on many did: the verdicts decided, and why the others were not, by id."""

    done: tuple[int, ...] = ()
    failed: Mapping[int, str] = field(default_factory=dict)


#: What may be done to many at once.
VERBS: dict[str, Callable[..., DedupVerdict]] = {
    "approve": approve,
    "reject": reject,
    "undo": undo,
}


def decide_many(
    verb: str, chosen: Mapping[int, int | None], *, by: Principal, now: datetime, reason: str = ""
) -> Outcome:
    """Approve, reject or undo each of these verdicts (id -> newest decision seen), in a
    transaction of its own: one that somebody else decided meanwhile keeps no other from it.

    Raises what `check_many` raises.
    """
    check_many(verb, chosen)
    done: list[int] = []
    failed: dict[int, str] = {}
    for verdict_id, seen in chosen.items():
        try:
            VERBS[verb](verdict_id, by=by, now=now, reason=reason, seen=seen)
            done.append(verdict_id)
        except (Conflict, NotFound, RefusedError) as error:
            failed[verdict_id] = str(error)
    return Outcome(tuple(done), failed)


def check_many(verb: str, chosen: Collection[int]) -> None:
    """Raises RefusedError for another verb, for none chosen, and for more than CHOSEN_MAX."""
    if verb not in VERBS:
        raise RefusedError(f"unknown verb {verb}: allowed are {', '.join(VERBS)}")
    if not chosen:
        raise RefusedError("no verdict was chosen")
    if len(chosen) > CHOSEN_MAX:
        raise RefusedError(f"{len(chosen)} verdicts at once: {CHOSEN_MAX} are allowed")


@dataclass(frozen=True)
class Decided:
    """A verdict that somebody decided: its id, what it is since when, and the latest decision about
    it."""

    pk: int
    status: str
    decided_at: datetime
    newest: int


def latest(principal: Principal, *, mates: Collection[int] | None = None) -> Decided | None:
    """The verdict that the principal approved or rejected last and that nobody touched since.
    `mates` as for `decidable`."""
    known = mates_of(principal) if mates is None else mates
    where, given = condition(Note.objects.decidable_by(principal, mates=known))
    with connection.cursor() as cursor:
        cursor.execute(STANDING.format(mine=where), [principal.pk, ACTS_LOOKED_AT, *given, *given])
        found = cursor.fetchone()
    return Decided(*found) if found else None


def _decide(
    verdict_id: int,
    action: str,
    allowed: tuple[str, ...],
    effect: Callable[[DedupVerdict], str],
    *,
    by: Principal,
    now: datetime,
    reason: str,
    seen: int | None,
) -> DedupVerdict:
    """Change a verdict under its lock. Raises NotFound, or Conflict with who decided and when.

    `seen` is the newest decision about it that `by` knew of, 0 for none; None: not asked.
    """
    said = tidy_reason(reason)
    with transaction.atomic():
        mine = Note.objects.decidable_by(by).values("pk")
        row: DedupVerdict | None = (
            DedupVerdict.objects.as_pipeline()
            .select_for_update(of=("self",), no_key=True)
            .filter(Q(target__in=mine) | Q(target__isnull=True), pk=verdict_id, note__in=mine)
            # Not `decided_by`: after waiting for the lock it would be who it was before.
            .select_related("note__owner", "target__owner")
            .defer("note__embedding", "target__embedding")
            .first()
        )
        if row is None:
            raise NotFound(f"no verdict {verdict_id}")
        if row.status not in allowed:
            raise Conflict(_already(row, action))
        _check_seen(row, seen)
        before, row.status = row.status, effect(row)
        row.decided_by, row.decided_at = by, now
        row.save(update_fields=["status", "decided_by", "decided_at"])
        Decision.objects.create(
            verdict=row,
            principal=by,
            action=action,
            reason=said,
            status_before=before,
            status_after=row.status,
            created_at=now,
        )
        detail = {"kind": row.verdict, "before": before, "after": row.status}
        notes = {"note": str(row.note_id), "target": str(row.target_id)}
        record_act(by, action, "verdict", row.pk, now=now, reason=said, detail=detail | notes)
    return row


def _check_seen(row: DedupVerdict, seen: int | None) -> None:
    """Raises Conflict when it was decided since it was shown, though it is open again."""
    if seen is None:
        return
    # Its own statement, after the lock: it sees what was decided while this waited.
    newest = row.decisions.select_related("principal").order_by("-pk").first()
    if newest is not None and newest.pk != seen:
        raise Conflict(
            f"verdict {row.pk} was decided meanwhile: {newest.action} by {newest.principal}"
            f" at {newest.created_at:%Y-%m-%d %H:%M:%S}Z; look at it again"
        )


def _already(row: DedupVerdict, action: str) -> str:
    who = f" by {row.decided_by} at {row.decided_at:%Y-%m-%d %H:%M:%S}Z" if row.decided_by else ""
    return f"verdict {row.pk} is {row.status}{who}: there is nothing to {action}"
