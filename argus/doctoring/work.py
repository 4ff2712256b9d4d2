"""The doctor at the work: worker, schedules, queue, what was set aside, found wrong or left behind,
backups.

Asks, changes nothing.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta

from django.conf import settings
from django.db import connection
from django.db.models import Max
from django.utils import timezone
from django_q.models import Schedule

from argus import schedules, scratch
from argus.answers import WORKER_FIX, away_after
from argus.doctoring.row import Row, bounded, few
from memory import checks, findings, units
from memory.health import parked
from memory.measures import BY_WORKERS, here, restored_at
from memory.models import Act, Claim, Finding, Principal, PurgeLedger, RawItem, StageRun
from memory.proof import unfinished
from memory.queued import queue as look_at_queue
from memory.templatetags.argus import age

#: Latest runs among which a worker's last sign of life is looked for.
RUNS_LOOKED_AT = 50

#: Minutes that a task may wait in the queue.
# Why: longer than the longest pass of the pipeline and an export together.
QUEUED_MINUTES_MAX = 30

#: What the database calls a worker's connections, and how it is asked for them: its own role's,
#: which it may see. A pool between may hide the name.
WORKER_PROGRAM = "argus qcluster"
CONNECTED_SQL = """
SELECT EXISTS (SELECT 1 FROM pg_stat_activity
    WHERE application_name = %s AND datname = current_database())
"""

#: Copies of the record, and purges, that are named.
COPIES_NAMED_MAX = 3
PURGES_NAMED_MAX = 5

#: People who are named, and units that were set aside of which it is looked up whose they are.
NAMED_MAX = 3
UNITS_LOOKED_AT = 1_000

#: How a page shows what is another's, to whoever may see it.
ALL_OWNERS = " with `See all owners`"

#: Days after which the record should have been verified again, and saved.
VERIFIED_DAYS_MAX = 3
SAVED_DAYS_MAX = 7


def worker() -> Iterator[Row]:
    """Whether a worker lives, by what it began and by tasks that nobody takes."""
    now = timezone.now()
    with bounded():
        latest = StageRun.objects.filter(trigger_source__in=BY_WORKERS).exclude(status="waiting")
        ids = list(latest.order_by("-pk").values_list("pk", flat=True)[:RUNS_LOOKED_AT])
        beat = StageRun.objects.filter(pk__in=ids).aggregate(at=Max("heartbeat_at"))["at"]
        seen = here(beat, restored_at())
        due = Schedule.objects.filter(name__in=settings.SCHEDULES).order_by("next_run")
        first_due = due.values_list("next_run", flat=True).first()
        with connection.cursor() as cursor:
            cursor.execute(CONNECTED_SQL, [WORKER_PROGRAM])
            connected = bool(cursor.fetchone()[0])
    yield judge_worker(seen, first_due, connected=connected, now=now)


def judge_worker(
    seen: datetime | None, first_due: datetime | None, *, connected: bool, now: datetime
) -> Row:
    """What it means that a worker was seen then, that the next schedule is due then, and whether
    one is connected. Pure."""
    patience = away_after(timedelta(minutes=settings.ARGUS.process_every_minutes))
    late = first_due is not None and now - first_due > patience
    if connected and not late and (seen is None or now - seen > patience):
        # It has just begun, and its first pass is still to come.
        return Row("worker", "ok", "one is connected, and did nothing yet")
    if seen is None:
        state = "No worker was ever seen: what is captured waits."
        return Row("worker", "warn", state, WORKER_FIX, away=True)
    told = age(max(0.0, (now - seen).total_seconds()))
    if now - seen > patience or late:
        what = f"No worker did anything for {told}."
        fix = "One is connected: see its log." if connected else WORKER_FIX
        return Row("worker", "fail", what, fix, away=True)
    return Row("worker", "ok", f"alive {told} ago")


def of_schedules() -> Iterator[Row]:
    """Whether what runs by the clock is what the settings say."""
    with bounded():
        amiss = schedules.differences()
    if amiss:
        yield Row("schedules", "warn", f"{'; '.join(amiss)}.", "Run manage.py schedules.")
    else:
        yield Row("schedules", "ok", f"{len(settings.SCHEDULES)}, as the settings say")


def queue() -> Iterator[Row]:
    """Whether the queue is set so that it loses and repeats nothing, and whether it moves."""
    wrong = checks.queue(None)
    for one in wrong:
        yield Row("queue", "fail", str(one.msg), str(one.hint or ""))
    now = timezone.now()
    with bounded():
        tasks = look_at_queue(now)
    if tasks.waiting is None:
        what = "Redis does not answer: no task comes to a worker."
        yield Row("queue", "fail", what, "Start it, or mend ARGUS_REDIS_URL.", away=True)
    elif (waits := tasks.oldest_seconds(now)) and waits > QUEUED_MINUTES_MAX * 60:
        what = f"{tasks.waiting:,} tasks wait, the oldest for {age(waits)}."
        yield Row("queue", "warn", what, "Workers are busy or away; see the row `worker`.")
    elif not wrong:
        cluster = settings.Q_CLUSTER
        set_so = f"retry {cluster['retry']} s, timeout {cluster['timeout']} s"
        told = f"{tasks.waiting:,} tasks wait; {set_so}, {cluster['workers']} processes"
        yield Row("queue", "ok", told)


def aside() -> Iterator[Row]:
    """Units that were set aside after failing again and again."""
    with bounded():
        counts = parked()
        whose, strays = _parked_of() if counts else ([], False)
    if counts:
        told = ", ".join(f"{stage} {count:,}" for stage, count in sorted(counts.items()))
        unseen = strays or sum(counts.values()) > UNITS_LOOKED_AT
        page = f"/ui/parked/{ALL_OWNERS if unseen or _others(whose) else ''}"
        ways = few([f"{_as(name)}manage.py parked list" for name in whose], NAMED_MAX)
        fix = f"See why: {f'{ways}, or {page}' if ways else page}."
        yield Row("parked", "warn", f"Units are set aside: {told}.", fix)
    else:
        yield Row("parked", "ok", "no unit is set aside")


def _parked_of() -> tuple[list[str], bool]:
    """As whom the units that were set aside are listed, the principal in force first; and whether
    some of them are of nobody who could."""
    waiting = Claim.objects.filter(parked_at__isnull=False, dismissed_at=None)
    named = set(
        waiting.order_by("parked_at", "pk").values_list("unit", flat=True)[:UNITS_LOOKED_AT]
    )
    me = Principal.objects.filter(name=settings.ARGUS.principal).first()
    seen = units.visible(named, me) if me else set()
    owned = units.owners(named - seen)
    names = Principal.objects.filter(pk__in=set(owned.values())).order_by("name")
    mine = [me.name] if me and seen else []
    return [*mine, *names.values_list("name", flat=True)], bool(named - seen - owned.keys())


def _others(names: Iterable[str]) -> list[str]:
    """Those who are not the principal in force, whose lists show nothing of theirs."""
    return [name for name in names if name != settings.ARGUS.principal]


def _as(name: str) -> str:
    """What stands before a command that is to show what is theirs."""
    return f"ARGUS_PRINCIPAL={shlex.quote(name)} " if _others([name]) else ""


def _found_of(stage: str) -> list[str]:
    """Others of whose things the last runs of a stage found something."""
    rows = Finding.objects.as_pipeline().filter(findings.standing(stage)).exclude(owner=None)
    names = Principal.objects.filter(pk__in=rows.values("owner")).order_by("name")
    return _others(names.values_list("name", flat=True))


def _findings_page(others: Sequence[str]) -> str:
    if not others:
        return "/ui/findings/"
    return f"/ui/findings/{ALL_OWNERS}, as some are of {few(others, NAMED_MAX)}"


def found() -> Iterator[Row]:
    """What verify and reconcile found at their last runs, and purges that are not finished."""
    now = timezone.now()
    with bounded():
        verified, reconciled = findings.last("verify"), findings.last("reconcile")
        verified_of = _found_of("verify") if verified and verified.total else []
        reconciled_of = _found_of("reconcile") if reconciled and reconciled.total else []
        open_purges = unfinished()
        by = dict(PurgeLedger.objects.filter(pk__in=open_purges).values_list("pk", "actor"))
        items = RawItem.objects.as_pipeline().order_by("pk").values_list("captured_at", flat=True)
        first_at = items.first()
    yield judge_verified(verified, first_at, now, verified_of)
    if reconciled is not None and reconciled.total:
        fix = f"Look at the proposals: {_findings_page(reconciled_of)}. Nothing was applied."
        yield Row("reconcile", "warn", f"{_counts(reconciled.counts)}.", fix)
    if open_purges:
        which = few(open_purges, PURGES_NAMED_MAX)
        what = f"Purge {which} left files to do, or words that stand somewhere without right."
        # One of each who purged: nobody else is told of theirs.
        first = {by[number]: number for number in reversed(open_purges)}
        ways = [
            f"{_as(name)}manage.py purge --finish {number}"
            for name, number in sorted(first.items(), key=lambda one: one[1])
        ]
        page = f"/ui/purge/{ALL_OWNERS if _others(first) else ''}"
        fix = f"See where: {few(ways, NAMED_MAX)}, or {page}."
        yield Row("purges", "fail", what, fix)


def judge_verified(
    verified: findings.Last | None,
    first_at: datetime | None,
    now: datetime,
    others: Sequence[str] = (),
) -> Row:
    """What it means that verify found that at its last runs, some of it of `others`, or never ran
    though there is something to look at since then. Asks nothing."""
    days = timedelta(days=VERIFIED_DAYS_MAX)
    late = "See the rows `worker` and `schedules`, or run manage.py verify."
    if verified is None:
        if first_at is not None and now - first_at > days:
            what = f"The record was never verified, and is {_ago(first_at, now)} old."
            return Row("verify", "warn", what, late)
        return Row("verify", "ok", "did not run yet: manage.py verify, or the worker once a day")
    if verified.total:
        fix = f"Look at them: {_findings_page(others)}. Nothing was repaired."
        told = _counts(verified.counts)
        return Row("verify", "fail", f"The record is not as it should be: {told}.", fix)
    if verified.left:
        what = f"The last runs had no time for {', '.join(verified.left)}."
        return Row("verify", "warn", what, "Run manage.py verify, which has all the time it needs.")
    ago = _ago(verified.at, now)
    if now - verified.at > days:
        what = f"All of the record was verified {ago} ago."
        return Row("verify", "warn", what, late)
    return Row("verify", "ok", f"nothing found {ago} ago")


def copies() -> Iterator[Row]:
    """Throwaway databases that hold a copy of the record and that nobody is in any more: a process
    that was killed left them."""
    with bounded():
        left = scratch.lying()
    if left:
        what = f"A killed process left copies: {few(left, COPIES_NAMED_MAX)}."
        fix = "The next rebuild, evaluation or purge drops them; or DROP DATABASE, as their owner."
        yield Row("copies", "warn", what, fix)
    else:
        yield Row("copies", "ok", "no copy of the record was left behind")


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{word} {count:,}" for word, count in sorted(counts.items()) if count)


def _ago(at: datetime, now: datetime) -> str:
    return age(max(0.0, (now - at).total_seconds()))


def backups() -> Iterator[Row]:
    """When the house was saved last, as far as Argus did it."""
    now = timezone.now()
    with bounded():
        acts = Act.objects.filter(kind="database", verb="back_up").order_by("-pk")
        at = acts.values_list("created_at", flat=True).first()
    if at is None:
        what = "no backup was made by Argus: manage.py backup FILE"
        yield Row("backup", "ok", what)
    elif now - at > timedelta(days=SAVED_DAYS_MAX):
        yield Row(
            "backup", "warn", f"The last one is {_ago(at, now)} old.", "Run manage.py backup."
        )
    else:
        yield Row("backup", "ok", f"made {_ago(at, now)} ago")
