"""Track: promises and requests in turns, and tasks that were posted, become tasks with events.

Reads: session, raw_item. Writes: task_item, task_event (append-only), session (tracked_*).
Audits: stage_run, claim; a posted task that holds an order to an agent is parked.
Verify: every quote is the span of its raw item; no sequence of claims alone verifies a task.
Outside the pipeline: no model is asked, and nothing that is distilled depends on it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import Exists, F, OuterRef, Prefetch, Q

from memory import claims
from memory.attribution import family
from memory.audit import Clock, stage
from memory.backlog import Backlog
from memory.errors import Conflict
from memory.models import RawItem, Session, StageRun, TaskEvent, TaskItem
from memory.querysets import OwnedQuerySet
from memory.text.identity import sha256
from memory.text.poison import instruction
from memory.tracking.cues import Cue, Read, about, read, title
from memory.tracking.match import Open, by_words
from memory.tracking.status import status
from memory.tracking.story import Story, Told

#: Units claimed at once, and looked at for claiming.
UNITS_A_CLAIM = 20
UNITS_LOOKED_AT = 200

#: Turns of one session that are read and written at once.
# Why: posts of the session wait while they are written; a chat of years is one session.
TURNS_AT_ONCE = 200

#: Bodies of turns that lie in memory at once.
BODIES_AT_ONCE = 20

#: Tasks of a session, and of its project, that a claim may be about; the latest ones.
TASKS_LOOKED_AT = 100

#: How far back a task of another session may be that a claim is about.
PROJECT_DAYS_MAX = 30

#: Seconds before the last reading in which a turn may have been captured that it did not see.
# Why: turns get their number before they are visible, so a lower one may come after a higher.
LATE_SECONDS = 60

#: The source of raw items that are tasks themselves.
POSTED = "task"

#: Characters of a posted task that are quoted; its title is the first line.
POSTED_QUOTE_CHARACTERS_MAX = 2_000

#: Sessions with turns that were not read. The index `session_untracked` has this condition.
UNREAD = Q(tracked_at=None) | Q(last_captured_at__gt=F("tracked_at"))


@dataclass(frozen=True)
class TrackReport:
    """Sessions and posted tasks done; turns read; tasks opened and what happened to them, by word.

    Not done: `unmatched` happenings that are about no task, `restated` ones that were open already,
    `skipped` turns (copies of others), `poisoned` ones, `left_out` cues above the bounds.
    """

    sessions: int = 0
    items: int = 0
    turns: int = 0
    opened: int = 0
    events: dict[str, int] | None = None
    unmatched: int = 0
    restated: int = 0
    skipped: int = 0
    poisoned: int = 0
    left_out: int = 0
    parked: int = 0
    pending: int = 0
    transient_failures: int = 0


@stage
def track(run: StageRun, *, clock: Clock, limit: int | None, until: datetime | None) -> TrackReport:
    """Open the tasks that were posted, then read every session on from where it was read to."""
    backlog = Backlog(run, clock=clock, limit=limit, until=until)
    looked: set[str] = set()
    events: Counter[str] = Counter()

    def waiting(units: Callable[[], list[str]]) -> Callable[[], list[str]]:
        return lambda: [unit for unit in units() if unit not in looked]

    def work_item(held: list[claims.Held]) -> Counter[str]:
        looked.add(held[0].unit)
        return _open_posted(run, held[0], now=clock())

    def work_session(held: list[claims.Held]) -> Counter[str]:
        looked.add(held[0].unit)
        more = True
        while more:
            backlog.pulse()
            done, happened, more = _read_on(run, held[0], now=clock())
            backlog.counts.update(done)
            events.update(happened)
        return Counter(sessions=1)

    backlog.work_off(waiting(_posted), work_item, at_once=UNITS_A_CLAIM)
    backlog.work_off(waiting(lambda: _sessions(looked)), work_session, at_once=UNITS_A_CLAIM)
    return TrackReport(**backlog.counts, events=dict(events), pending=pending(clock()))


def pending(now: datetime) -> int:
    """Sessions with turns that were not read, and posted tasks that were not opened."""
    sessions: int = _unread().count()
    return sessions + _unopened().count()


def _unread() -> Any:
    return Session.objects.filter(UNREAD).exclude(source=POSTED)


def _sessions(looked: set[str]) -> list[str]:
    done = [int(unit.partition(":")[2]) for unit in looked if unit.startswith("session:")]
    rows = _unread().exclude(pk__in=done).order_by("last_captured_at")
    return [f"session:{pk}" for pk in rows.values_list("pk", flat=True)[:UNITS_LOOKED_AT]]


def _unopened() -> OwnedQuerySet:
    """Posted tasks that are not opened; parked ones wait for a person."""
    aside = (unit.partition(":") for unit in claims.parked("track"))
    parked = [int(key) for kind, _, key in aside if kind == "item"]
    rows = RawItem.objects.as_pipeline().filter(source=POSTED, tasks__isnull=True)
    return rows.exclude(pk__in=parked)


def _posted() -> list[str]:
    ids = _unopened().order_by("pk").values_list("pk", flat=True)[:UNITS_LOOKED_AT]
    return [f"item:{pk}" for pk in ids]


def _open_posted(run: StageRun, held: claims.Held, *, now: datetime) -> Counter[str]:
    """One posted task: its first line is the title. An order to an agent is no task."""
    item = RawItem.objects.as_pipeline().get(pk=int(held.unit.partition(":")[2]))
    quote = item.body[:POSTED_QUOTE_CHARACTERS_MAX].rstrip()
    start = len(quote) - len(quote.lstrip())
    if what := instruction(quote):
        claims.park(run, held, reason=f"poison: {what}", now=now)
        return Counter(poisoned=1, parked=1)
    cue = Cue("posted", start, len(quote), quote[start:], about(title(quote)))
    with transaction.atomic():
        claims.finish(held)
        _task(run, item, cue, now=now).save(force_insert=True)
    return Counter(items=1, opened=1)


def _read_on(
    run: StageRun, held: claims.Held, *, now: datetime
) -> tuple[Counter[str], Counter[str], bool]:
    """Read the next turns of a session: counts, what happened by word, whether turns are left."""
    session = Session.objects.select_related("owner").get(pk=int(held.unit.partition(":")[2]))
    rows = list(_unread_turns(session)[: TURNS_AT_ONCE + 1])
    more, rows = len(rows) > TURNS_AT_ONCE, rows[:TURNS_AT_ONCE]
    counts: Counter[str] = Counter(turns=len(rows))
    heard = [
        (item, _kept(item, found, counts))
        for item, found in _bodies(sorted(rows, key=lambda row: (row.occurred_at, row.pk)))
    ]
    with transaction.atomic():
        locked = Session.objects.select_for_update().get(pk=session.pk)
        if locked.tracked_item != session.tracked_item:
            raise Conflict(f"session {session.pk} was read by another worker meanwhile")
        story = _story(session, heard[0][0]) if heard else None
        happened = Counter[str]()
        if story:
            before = session.tracked_item
            happened = _write(run, heard, story, counts, read_to=before, now=now)
        read_to = max([session.tracked_item, *(row.pk for row in rows)])
        values: dict[str, Any] = {"tracked_item": read_to}
        if not more:
            # As it was before we read: what was captured meanwhile is read next.
            values["tracked_at"] = session.last_captured_at or now
            claims.finish(held)
        Session.objects.filter(pk=session.pk).update(**values)
    return counts, happened, more


def _turns(session: Session) -> OwnedQuerySet:
    return RawItem.objects.as_pipeline().filter(
        owner=session.owner, source=session.source, session=session.key, kind="turn"
    )


def _unread_turns(session: Session) -> OwnedQuerySet:
    """Turns behind the last one read, and those that came in late before it; without bodies."""
    unread = Q(pk__gt=session.tracked_item)
    if session.tracked_at:
        since = session.tracked_at - timedelta(seconds=LATE_SECONDS)
        unread |= (
            Q(captured_at__gte=since)
            & ~Exists(TaskItem.objects.as_pipeline().filter(raw_item=OuterRef("pk")))
            & ~Exists(TaskEvent.objects.filter(raw_item=OuterRef("pk")))
        )
    return _turns(session).filter(unread).defer("body", "metadata", "locator").order_by("pk")


def _bodies(rows: Sequence[RawItem]) -> Iterator[tuple[RawItem, Read]]:
    """Each turn with what was found in it; few bodies lie in memory at once."""
    for start in range(0, len(rows), BODIES_AT_ONCE):
        some = rows[start : start + BODIES_AT_ONCE]
        wanted = [row.pk for row in some if row.near_duplicate_of_id is None]
        texts = RawItem.objects.as_pipeline().filter(pk__in=wanted).values_list("pk", "body")
        found = {pk: read(body, _role(some, pk)) for pk, body in texts}
        yield from ((row, found.get(row.pk, Read())) for row in some)


def _role(rows: Sequence[RawItem], pk: int) -> str:
    return next(row.role for row in rows if row.pk == pk)


def _kept(item: RawItem, found: Read, counts: Counter[str]) -> tuple[Cue, ...]:
    """The cues of a turn. What a copy of another turn says is no evidence of its own."""
    counts.update(
        skipped=int(item.near_duplicate_of_id is not None),
        poisoned=int(found.poisoned),
        left_out=found.left_out,
    )
    return found.cues


def _story(session: Session, first: RawItem) -> Story:
    """What was known of the session's tasks when its first turn here was said."""
    sources = [session.source, POSTED] if session.key else [session.source]
    rows = TaskItem.objects.as_pipeline().filter(
        owner=session.owner, source__in=sources, session=session.key
    )
    events = TaskEvent.objects.order_by("occurred_at", "pk")
    tasks = rows.prefetch_related(Prefetch("events", events)).order_by("-opened_at", "-pk")
    asked = _turns(session).filter(role="user", occurred_at__lt=first.occurred_at)
    before = asked.order_by("-occurred_at", "-pk").values_list("occurred_at", flat=True)[:2]
    known: dict[int | None, list[Open]] = {}

    def elsewhere(words: Sequence[str], at: datetime) -> Open | None:
        """A task of another session of the project."""
        if first.project_id not in known:
            known[first.project_id] = _of_project(session, first, sources)
        since = at - timedelta(days=PROJECT_DAYS_MAX)
        return by_words(words, [t for t in known[first.project_id] if since <= t.opened_at <= at])

    return Story(
        [_as_open(row) for row in tasks[:TASKS_LOOKED_AT]],
        sorted(before),
        elsewhere=elsewhere,
        # What was posted without a session are words of many: nothing there follows on anything.
        bare=bool(session.key),
    )


def _as_open(row: TaskItem) -> tuple[Open, list[str]]:
    events = list(row.events.all())
    happened = [event.happening for event in events]
    times = [event.occurred_at for event in events]
    claimed = [e.occurred_at for e in events if e.happening == "claim_done"]
    answered = [e.occurred_at for e in events if e.happening in ("confirmed", "denied")]
    last = max(claimed, default=None)
    open_claim = last if last and all(last >= at for at in answered) else None
    now = status(row.opening, happened)
    words = frozenset(row.words)
    spoken = max([row.opened_at, *times])
    return Open(row.pk, row.opening, words, now, row.opened_at, spoken, open_claim), happened


def _of_project(session: Session, first: RawItem, sources: Sequence[str]) -> list[Open]:
    if first.project_id is None:
        return []
    rows = TaskItem.objects.as_pipeline().filter(
        owner=session.owner,
        project__in=family(first.project_id),
        opened_at__gte=first.occurred_at - timedelta(days=PROJECT_DAYS_MAX),
    )
    if session.key:
        rows = rows.exclude(source__in=sources, session=session.key)
    return [
        Open(pk, opening, frozenset(words), "open", at, at, here=False)
        for pk, opening, words, at in rows.order_by("-opened_at", "-pk").values_list(
            "pk", "opening", "words", "opened_at"
        )[:TASKS_LOOKED_AT]
    ]


def _write(
    run: StageRun,
    heard: Sequence[tuple[RawItem, Sequence[Cue]]],
    story: Story,
    counts: Counter[str],
    *,
    read_to: int,
    now: datetime,
) -> Counter[str]:
    """Tell the session on and write what comes of it; a turn that was read before gives nothing
    new."""
    told: list[tuple[RawItem, Cue, Told]] = []
    for item, cues in heard:
        story.turn(item.role, item.occurred_at)
        again = item.pk <= read_to
        told += [(item, cue, story.hear(cue, item.occurred_at, again=again)) for cue in cues]
    opened = {one.task: _task(run, item, cue, now=now) for item, cue, one in told if one.opens}
    TaskItem.objects.bulk_create(opened.values())
    numbers = {number: row.pk for number, row in opened.items() if number is not None}
    events = [
        _event(run, item, cue, numbers.get(one.task, one.task), now=now)
        for item, cue, one in told
        if one.task is not None and not one.opens
    ]
    TaskEvent.objects.bulk_create(events, ignore_conflicts=True)
    counts.update(story.counts)
    counts["opened"] += len(opened)
    return Counter(event.happening for event in events)


def _task(run: StageRun, item: RawItem, cue: Cue, *, now: datetime) -> TaskItem:
    return TaskItem(
        owner_id=item.owner_id,
        visibility=item.visibility,
        confidentiality=item.confidentiality,
        opening=cue.kind,
        title=title(cue.quote),
        source=item.source,
        session=item.session,
        project_id=item.project_id,
        raw_item=item,
        start=cue.start,
        end=cue.end,
        quote=cue.quote,
        sha256=sha256(cue.quote),
        words=list(cue.words),
        opened_at=item.occurred_at,
        run=run,
        created_at=now,
    )


def _event(run: StageRun, item: RawItem, cue: Cue, task: int, *, now: datetime) -> TaskEvent:
    return TaskEvent(
        item_id=task,
        happening=cue.kind,
        said_by=item.role,
        raw_item=item,
        start=cue.start,
        end=cue.end,
        quote=cue.quote,
        sha256=sha256(cue.quote),
        detail={"commit": cue.commit} if cue.commit else {},
        occurred_at=item.occurred_at,
        run=run,
        created_at=now,
    )
