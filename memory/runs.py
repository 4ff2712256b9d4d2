"""Runs that a person asked for: they wait in the queue as a row until a worker takes them.

The row is there before the work begins, so that a page can name it, show how it goes and stop it.
Reads and writes: stage_run, the queue. Audits: act. Knows nothing about what is run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import connection, transaction
from django.utils import timezone
from django_q.tasks import async_task

from memory.acts import record_act
from memory.audit import close_lost, close_run, worker_name
from memory.errors import Conflict, NotFound
from memory.models import Principal, StageRun
from memory.queued import queue

#: States of a run that has not ended.
OPEN = ("waiting", "running")

#: Seconds after which a run that nobody took is said to wait for a worker that is not there.
# Why: a worker looks into the queue every second; a few looks are not yet silence.
# Calibrate: the longest start of a worker (`make up` to its first task).
WORKER_SECONDS = 10

#: Open runs listed.
OPEN_LISTED_MAX = 20

# Why SQL: every board asks this, and a queryset takes longer to put together than to ask.
OPEN_RUNS = """
SELECT * FROM memory_stagerun WHERE stage = %s AND status = ANY(%s)
ORDER BY started_at DESC, id DESC LIMIT %s
"""


@dataclass(frozen=True)
class Wait:
    """How a run waits: since when, tasks that workers have in hand, and whether the queue still
    has anything to take."""

    since: datetime
    busy: int
    queued: bool
    long: bool


def ask_for(
    stage: str,
    task: str,
    *args: object,
    by: Principal,
    now: datetime,
    trigger: str,
    progress: Mapping[str, Any],
    detail: Mapping[str, Any] | None = None,
) -> StageRun:
    """Put a run of this stage into the queue; `task` gets its id and then `args`, ids alone.

    One that was asked for with the same `progress` and has not ended is given back instead.
    """
    with transaction.atomic():
        # Two who ask at once ask for the same run.
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [f"run {stage}"]
            )
        close_lost(stage, now=now)
        for open_run in open_runs(stage):
            if progress.items() <= open_run.progress.items():
                return open_run
        run = StageRun.objects.create(
            stage=stage,
            status="waiting",
            trigger_source=trigger,
            progress=dict(progress),
            started_at=now,
            heartbeat_at=timezone.now(),
        )
        async_task(task, run.pk, *args, task_name=f"{stage} {run.pk}")
        record_act(by, "start", "run", run.pk, now=now, detail={"stage": stage, **(detail or {})})
    return run


def open_runs(stage: str) -> list[StageRun]:
    """Runs of this stage that wait or go on, latest first; at most OPEN_LISTED_MAX."""
    return list(StageRun.objects.raw(OPEN_RUNS, [stage, list(OPEN), OPEN_LISTED_MAX]))


def take(run_id: int, *, now: datetime) -> StageRun | None:
    """The run for the worker that calls this; None when there is nothing to do for it.

    The queue gives a task twice only when the worker that had it is gone: such a run is lost.
    """
    with transaction.atomic():
        run = StageRun.objects.select_for_update().filter(pk=run_id).first()
        if run is None or run.status not in OPEN:
            return None
        if run.status == "running":
            error = "the worker ended without closing its run"
            close_run(run, status="lost", error=error, now=now)
            return None
        run.status, run.heartbeat_at = "running", timezone.now()
        run.progress = {**run.progress, "worker": worker_name()}
        run.save(update_fields=["status", "heartbeat_at", "progress"])
    return run


def cancel(run_id: int, *, by: Principal, now: datetime) -> StageRun:
    """Ask a run to stop before its next unit; one that still waits is cancelled at once.

    What it began for itself (`progress["stages"]`) is asked as well. Raises NotFound, and Conflict
    when it ended already.
    """
    with transaction.atomic():
        run = StageRun.objects.select_for_update().filter(pk=run_id).first()
        if run is None:
            raise NotFound(f"no run {run_id}")
        if run.status not in OPEN:
            when = f" since {run.finished_at:%Y-%m-%d %H:%M:%S}Z" if run.finished_at else ""
            raise Conflict(f"run {run_id} is {run.status}{when}: there is nothing to cancel")
        if run.cancel_asked_at is None:
            _ask_to_stop(run, now=now)
            record_act(by, "cancel", "run", run.pk, now=now, detail={"stage": run.stage})
    return run


def _ask_to_stop(run: StageRun, *, now: datetime) -> None:
    run.cancel_asked_at = now
    if run.status == "waiting":
        run.status, run.finished_at = "cancelled", now
    run.save(update_fields=["status", "finished_at", "cancel_asked_at"])
    begun = StageRun.objects.filter(pk__in=begun_by(run), status="running")
    begun.filter(cancel_asked_at=None).update(cancel_asked_at=now)


def begun_by(run: StageRun) -> list[int]:
    """Ids of the runs that this one began, in order."""
    return [stage["run"] for stage in run.progress.get("stages", {}).values()]


def waits_of(runs: Sequence[StageRun], *, now: datetime) -> dict[int, Wait]:
    """How those of these runs wait for a worker that do wait, by id; the queue is asked once."""
    waiting = [run for run in runs if run.status == "waiting"]
    if not waiting:
        return {}
    tasks = queue(now)
    # Of what is not known it is not said that it is gone.
    there = tasks.taken is None or bool(tasks.waiting or tasks.taken)
    return {
        run.pk: Wait(
            since=run.started_at,
            busy=tasks.taken or 0,
            queued=there,
            long=now - run.started_at > timedelta(seconds=WORKER_SECONDS),
        )
        for run in waiting
    }
