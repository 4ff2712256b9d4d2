"""Stage runs: every run of a stage leaves a row, also the one that was killed or told to stop.

Reads and writes: stage_run. Knows nothing about what a stage does.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable, Mapping
from dataclasses import asdict, fields
from datetime import datetime, timedelta
from functools import wraps
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from django.db import connection, transaction
from django.utils import timezone

from memory import claims
from memory.errors import ArgusError, Conflict
from memory.models import StageRun

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Clock = Callable[[], datetime]

#: Marks a field of a report that is told to the caller and kept nowhere.
# Why: rows of runs are read by whoever may look and outlive a purge; names of what was worked on
# belong into rows that go with it.
TOLD_ALONE = {"kept": False}

#: Minutes without a heartbeat after which a running row counts as lost.
# Why: a worker beats before each unit and each model call; a long model timeout raises this.
# Calibrate: the longest time between beats of a run that ended well, times two.
RUN_LOST_MINUTES = 15

#: Characters of an error kept on the run.
ERROR_CHARACTERS_MAX = 2_000


R_co = TypeVar("R_co", bound="DataclassInstance", covariant=True)


class Verb(Protocol[R_co]):
    """A stage as it is written: the run comes first, the clock and the bounds are arguments."""

    __name__: str

    def __call__(
        self, run: StageRun, /, *, clock: Clock, limit: int | None, until: datetime | None
    ) -> R_co: ...


class Stage(Protocol[R_co]):
    """A stage as it is called: the run is made by the call; `trigger` says who called.

    `limit` bounds the units; after `until` no unit is begun. `run` is one that the caller opened.
    """

    __name__: str

    def __call__(
        self,
        *,
        clock: Clock = ...,
        limit: int | None = ...,
        until: datetime | None = ...,
        trigger: str = ...,
        run: StageRun | None = ...,
    ) -> R_co: ...


def worker_name() -> str:
    """host:pid of this process, as it stands on runs and claims."""
    return f"{socket.gethostname()}:{os.getpid()}"


def stage(verb: Verb[R_co]) -> Stage[R_co]:
    """Wrap a batch verb so that each run opens, closes and reports on its own row.

    The verb receives the run as its first argument; callers pass one only where they opened it.
    An error closes the run as failed, with the report it brings, and is raised again; one that
    stopped because somebody asked for it, or another was at it, is cancelled, with what it did so
    far. Callers may name the `trigger`.
    """

    @wraps(verb)
    def audited(
        *,
        clock: Clock = timezone.now,
        limit: int | None = None,
        until: datetime | None = None,
        trigger: str = "command",
        run: StageRun | None = None,
    ) -> R_co:
        run = run or open_run(verb.__name__, trigger=trigger, now=clock())
        try:
            report = verb(run, clock=clock, limit=limit, until=until)
            status = "cancelled" if run.cancel_asked_at else "done"
            close_run(run, status=status, report=kept(report), now=clock())
        except BaseException as error:  # KeyboardInterrupt and SystemExit close the row, too.
            # A database that died under the run may be back, and its old connection never is. One
            # with a transaction of the caller's open is theirs to end.
            if not connection.in_atomic_block:
                connection.close_if_unusable_or_obsolete()
            claims.let_go(run)
            message = f"{type(error).__name__}: {error}"
            done = error.report if isinstance(error, ArgusError) else None
            # Who came while another had it in hand is no failure of ours.
            status = "cancelled" if isinstance(error, Conflict) else "failed"
            close_run(
                run, status=status, report=kept(done) if done else None, error=message, now=clock()
            )
            raise
        return report

    return audited


def kept(report: DataclassInstance) -> dict[str, Any]:
    """What of a report may be kept: all of it but fields that are TOLD_ALONE."""
    told_alone = {one.name for one in fields(report) if not one.metadata.get("kept", True)}
    return {word: value for word, value in asdict(report).items() if word not in told_alone}


def open_run(name: str, *, trigger: str, now: datetime) -> StageRun:
    """Start the row of a run, after closing those whose worker died."""
    with transaction.atomic(durable=True):
        close_lost(name, now=now)
        return StageRun.objects.create(
            stage=name, trigger_source=trigger, worker=worker_name(), started_at=now
        )


def close_run(
    run: StageRun,
    *,
    status: str,
    now: datetime,
    report: dict[str, Any] | None = None,
    error: str = "",
) -> None:
    """Finish the row; the update names only what may change on it."""
    claims.sweep(run.stage)
    StageRun.objects.filter(pk=run.pk, status="running").update(
        status=status,
        report=report or {},
        progress=run.progress,
        error=error[:ERROR_CHARACTERS_MAX],
        finished_at=now,
    )


BEAT_SQL = """
UPDATE memory_stagerun SET heartbeat_at = %s, progress = %s WHERE id = %s RETURNING cancel_asked_at
"""


def beat(run: StageRun, progress: Mapping[str, int] | None = None) -> bool:
    """Say that the worker of this run is alive and what it did so far, by word. True when somebody
    asked it to stop: the run then has `cancel_asked_at`, and closes as cancelled.

    By the wall clock: a process lives in our time, also when its stage is told another one.
    """
    if progress is not None:
        run.progress = dict(progress)
    with connection.cursor() as cursor:
        cursor.execute(BEAT_SQL, [timezone.now(), json.dumps(run.progress), run.pk])
        row = cursor.fetchone()
    run.cancel_asked_at = row[0] if row else None
    return run.cancel_asked_at is not None


def close_lost(name: str, *, now: datetime) -> int:
    """Close running rows whose worker is gone: its process ended, or it fell silent."""
    silence = timedelta(seconds=claims.silence_seconds(RUN_LOST_MINUTES * 60))
    silent_since = timezone.now() - silence
    closed = 0
    for run in StageRun.objects.filter(stage=name, status="running"):
        # Of a run that was asked for, the worker is known only since it was taken.
        worker = run.worker or str(run.progress.get("worker", ""))
        if run.heartbeat_at < silent_since or not is_alive(worker):
            claims.let_go(run)
            error = "the worker ended without closing its run"
            close_run(run, status="lost", error=error, now=now)
            closed += 1
    return closed


def is_alive(worker: str) -> bool:
    """False only when the worker ran on this host and its process is gone."""
    host, _, pid = worker.rpartition(":")
    if host != socket.gethostname() or not pid.isdigit():
        return True
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
