"""The doctor at the work: worker, schedules, queue, what was set aside, found wrong or left behind,
backups.

Asks, changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from django.conf import settings
from django.db import connection
from django.db.models import Max
from django.utils import timezone
from django_q.models import Schedule

from argus import schedules, scratch
from argus.answers import WORKER_FIX, away_after
from argus.doctoring.row import Row, bounded
from memory import checks, findings
from memory.health import parked
from memory.measures import BY_WORKERS, here, restored_at
from memory.models import Act, RawItem, StageRun
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
    if counts:
        told = ", ".join(f"{stage} {count:,}" for stage, count in sorted(counts.items()))
        fix = "See why: manage.py parked list, or /ui/parked/."
        yield Row("parked", "warn", f"Units are set aside: {told}.", fix)
    else:
        yield Row("parked", "ok", "no unit is set aside")


def found() -> Iterator[Row]:
    """What verify and reconcile found at their last runs, and purges that are not finished."""
    now = timezone.now()
    with bounded():
        verified, reconciled = findings.last("verify"), findings.last("reconcile")
        open_purges = unfinished()
        items = RawItem.objects.as_pipeline().order_by("pk").values_list("captured_at", flat=True)
        first_at = items.first()
    yield judge_verified(verified, first_at, now)
    if reconciled is not None and reconciled.total:
        fix = "Look at the proposals: /ui/findings/. Nothing was applied."
        yield Row("reconcile", "warn", f"{_counts(reconciled.counts)}.", fix)
    if open_purges:
        named = ", ".join(map(str, open_purges[:PURGES_NAMED_MAX]))
        more = len(open_purges) - PURGES_NAMED_MAX
        which = f"Purge {named}" + (f" and {more} more" if more > 0 else "")
        what = f"{which} left files to do, or words that stand somewhere without right."
        one = f"manage.py purge --finish {open_purges[0]}"
        fix = f"See where: {one} (--all-owners, where it is another's), or /ui/purge/."
        yield Row("purges", "fail", what, fix)


def judge_verified(verified: findings.Last | None, first_at: datetime | None, now: datetime) -> Row:
    """What it means that verify found that at its last runs, or never ran though there is something
    to look at since then. Pure."""
    days = timedelta(days=VERIFIED_DAYS_MAX)
    late = "See the rows `worker` and `schedules`, or run manage.py verify."
    if verified is None:
        if first_at is not None and now - first_at > days:
            what = f"The record was never verified, and is {_ago(first_at, now)} old."
            return Row("verify", "warn", what, late)
        return Row("verify", "ok", "did not run yet: manage.py verify, or the worker once a day")
    if verified.total:
        fix = "Look at them: /ui/findings/. Nothing was repaired."
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
        more = f" and {len(left) - COPIES_NAMED_MAX} more" if len(left) > COPIES_NAMED_MAX else ""
        what = f"A killed process left copies: {', '.join(left[:COPIES_NAMED_MAX])}{more}."
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
