"""Tasks: where each stands, and what a person says of it: confirm, deny, reopen.

Reads: task_item, task_event, raw_item (who may see it). Writes: task_event (append-only).
Audits: act, in the same transaction. Where a task stands follows from its events alone
(`memory.tracking.status`); the same is said here in SQL, so that a list can be filtered by it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.contrib.postgres.aggregates import StringAgg
from django.db import connection, transaction
from django.db.models import Case, CharField, OuterRef, Q, QuerySet, Subquery, Value, When
from django.db.models.functions import Coalesce

from memory.acts import record_act
from memory.errors import Conflict, NotFound
from memory.models import Principal, RawItem, TaskEvent, TaskItem
from memory.tracking.status import ASKED, STATUSES, Standing, Status, standing
from memory.web.viewer import Viewer

#: What a person can say, and the event that it becomes. Reopened is what failed.
VERBS = {"confirm": "confirmed", "deny": "denied", "reopen": "claim_failed"}

#: Events of a task that are shown, the latest ones.
EVENTS_SHOWN_MAX = 200

#: A letter for each happening; what counts alike has the same. The letters of a task's events, in
#: their order, are its tale.
LETTERS = {
    "claim_done": "d", "claim_failed": "f", "confirmed": "c", "test_passed": "w", "commit": "w",
    "denied": "n", "test_failed": "n",
}  # fmt: skip
_HAPPENING = {
    "d": "claim_done",
    "f": "claim_failed",
    "c": "confirmed",
    "w": "commit",
    "n": "denied",
}

#: The table of `memory.tracking.status` as patterns over a tale: of what was asked for, and of
#: promises. One fits and no other; after the last f all begins anew.
# Why patterns: Postgres filters by them without a fold of its own; a test holds both together.
PATTERNS: dict[Status, tuple[str, str]] = {
    "open": (r"(^|f)n*$", r"(^|f)[nw]*$"),
    "claimed": (r"(^|[fn])d+$", r"(^|f)[nw]*d+$|nd+$"),
    "verified": (r"[cw]d*$", r"cd*$|[dc][^f]*wd*$"),
    "disputed": (r"[dcw][^f]*n$", r"[dc][^f]*n$"),
}

#: A happening without which no task stands so.
# Why: what is rare is found by these few, without the tale of every task.
NEEDS: dict[Status, tuple[str, ...]] = {
    "claimed": ("claim_done",),
    "verified": ("confirmed", "test_passed", "commit"),
    "disputed": ("denied", "test_failed"),
}

#: What a happening says, for people.
SAID = {
    "claim_done": "said to be done",
    "claim_failed": "said to have failed",
    "confirmed": "confirmed by a person",
    "denied": "denied by a person",
    "test_passed": "a test run that passed was quoted",
    "test_failed": "a test run that failed was quoted",
    "commit": "a commit was quoted",
}


@dataclass(frozen=True)
class Line:
    """An event as it is shown: what it says, its quote where the viewer may see it, and whether it
    made the status what it is."""

    event: TaskEvent
    said: str
    seen: bool
    decides: bool


@dataclass(frozen=True)
class Told:
    """A task with what happened to it, oldest first; `left_out`: events before those."""

    item: TaskItem
    standing: Standing
    why: str
    lines: tuple[Line, ...]
    verbs: tuple[str, ...]
    newest: int
    left_out: bool = False

    @property
    def status(self) -> Status:
        return self.standing.status


def told_rows(rows: QuerySet[TaskItem]) -> Any:
    """Tasks with their `tale` and `last_at`, for a list."""
    latest = TaskEvent.objects.filter(item=OuterRef("pk")).order_by("-occurred_at", "-pk")
    return rows.select_related("project", "owner").annotate(
        tale=_tale(), last_at=Subquery(latest.values("occurred_at")[:1])
    )


def status_of(row: Any) -> Status:
    """Where a row of `told_rows` stands."""
    return standing(row.opening, (_HAPPENING[letter] for letter in row.tale)).status


def of_status(rows: Any, wanted: str) -> Any:
    """Those of these tasks (`told_rows`) that stand so."""
    if wanted not in STATUSES:
        return rows.none()
    asked, promised = PATTERNS[wanted]
    was_asked = Q(opening__in=sorted(ASKED))
    if wanted in NEEDS:
        needed = TaskEvent.objects.filter(happening__in=NEEDS[wanted])
        rows = rows.filter(pk__in=needed.values("item"))
    return rows.filter(was_asked & Q(tale__regex=asked) | ~was_asked & Q(tale__regex=promised))


def _tale() -> Coalesce:
    letter = Case(
        *(When(happening=word, then=Value(letter)) for word, letter in LETTERS.items()),
        output_field=CharField(),
    )
    events = TaskEvent.objects.filter(item=OuterRef("pk")).order_by().values("item")
    tale = events.annotate(tale=StringAgg(letter, delimiter="", order_by=("occurred_at", "pk")))
    return Coalesce(Subquery(tale.values("tale")), Value(""), output_field=CharField())


def find(viewer: Viewer, pk: int) -> Told:
    """One task as the viewer sees it. Raises NotFound."""
    rows = viewer.rows(TaskItem.objects.all()).select_related("project", "owner")
    item = rows.filter(pk=pk).first()
    if item is None:
        raise NotFound(f"no task {pk}")
    return _told(item, viewer)


def _told(item: TaskItem, viewer: Viewer) -> Told:
    events = _events(item)
    now = standing(item.opening, [event.happening for event in events])
    shown = events[-EVENTS_SHOWN_MAX:]
    quoted = {event.raw_item_id for event in shown if event.raw_item_id}
    # A task that is shown to a group may be spoken of in a turn that is not.
    rows = viewer.rows(RawItem.objects.all()).filter(pk__in=quoted)
    seen = set(rows.values_list("pk", flat=True))
    decisive = events[now.decided_by] if now.decided_by is not None else None
    return Told(
        item=item,
        standing=now,
        why=_why(now, decisive, events),
        lines=tuple(
            Line(one, SAID[one.happening], one.raw_item_id in seen, one is decisive)
            for one in shown
        ),
        verbs=tuple(verb for verb in VERBS if not _idle(verb, now, events)),
        newest=events[-1].pk if events else 0,
        left_out=len(events) > len(shown),
    )


def _events(item: TaskItem) -> list[TaskEvent]:
    rows = TaskEvent.objects.filter(item=item).select_related("principal")
    return list(rows.order_by("occurred_at", "pk"))


def _why(now: Standing, decisive: TaskEvent | None, events: Sequence[TaskEvent]) -> str:
    """Which event makes the status, in words."""
    if decisive is None:
        if events:
            return "Nothing that was said or shown since settles it."
        return "Nobody has said anything about it since."
    said = SAID[decisive.happening]
    if now.status == "claimed":
        return f"It was {said}, and nothing shows it yet: a claim alone never verifies."
    if decisive.principal_id:
        who = decisive.principal.name if decisive.principal else ""
        return f"{who} said so here." if now.status != "open" else f"{who} opened it again."
    if now.status == "open":
        return f"It was {said}."
    word = "It was" if said.startswith(("confirmed", "denied")) else "For it"
    return f"{word} {said}."


def confirm(pk: int, *, by: Principal, now: datetime, reason: str = "") -> Status:
    """A person says that it is done."""
    return decide(pk, "confirm", by=by, now=now, reason=reason)


def deny(pk: int, *, by: Principal, now: datetime, reason: str = "") -> Status:
    """A person says that it is not done, whatever was claimed."""
    return decide(pk, "deny", by=by, now=now, reason=reason)


def reopen(pk: int, *, by: Principal, now: datetime, reason: str = "") -> Status:
    """A person says that it is to be done again: what was claimed and shown counts no more."""
    return decide(pk, "reopen", by=by, now=now, reason=reason)


def decide(
    pk: int, verb: str, *, by: Principal, now: datetime, reason: str = "", seen: int | None = None
) -> Status:
    """Do one of VERBS to a task; where it stands after that.

    `seen` is the newest event that the person saw. Raises NotFound, or Conflict with who and when:
    somebody said something meanwhile, or there is nothing to do.
    """
    if verb not in VERBS:
        raise NotFound(f"nothing is called {verb}")
    with transaction.atomic():
        # Why not a row: the application may lock none that it may not change.
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [f"task:{pk}"])
        item = TaskItem.objects.decidable_by(by).filter(pk=pk).first()
        if item is None:
            raise NotFound(f"no task {pk}")
        events = _events(item)
        said = [event for event in events if event.principal_id]
        if seen is not None and said and said[-1].pk > seen:
            raise Conflict(_meanwhile(pk, said[-1]))
        before = standing(item.opening, [event.happening for event in events])
        if _idle(verb, before, events):
            told = f": {_meanwhile(pk, said[-1])}" if said else ""
            raise Conflict(f"task {pk} is {before.status}, there is nothing to {verb}{told}")
        TaskEvent.objects.create(
            item=item,
            happening=VERBS[verb],
            said_by=by.name,
            principal=by,
            occurred_at=now,
            created_at=now,
        )
        after = standing(item.opening, [*(e.happening for e in events), VERBS[verb]]).status
        record_act(
            by,
            verb,
            "task",
            pk,
            now=now,
            reason=reason,
            detail={"before": before.status, "after": after},
        )
    return after


def _idle(verb: str, now: Standing, events: Sequence[TaskEvent]) -> bool:
    """Whether the verb would say nothing new: it is open already, or a person just said so."""
    if verb != "confirm" and now.status == "open":
        return True
    last = events[-1] if events else None
    return bool(last and last.principal_id and last.happening == VERBS[verb])


def _meanwhile(pk: int, event: TaskEvent) -> str:
    word = {"confirmed": "confirmed", "denied": "denied"}.get(event.happening, "reopened")
    return f"task {pk} was {word} by {event.said_by} at {event.created_at:%Y-%m-%d %H:%M:%S}Z"
