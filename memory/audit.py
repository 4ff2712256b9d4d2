"""Stage runs: every run of a stage leaves a row, also the one that was killed.

Reads and writes: stage_run. Knows nothing about what a stage does.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from dataclasses import asdict
from datetime import datetime, timedelta
from functools import wraps
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from django.db import transaction
from django.utils import timezone

from memory import claims
from memory.models import StageRun

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Clock = Callable[[], datetime]

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

    `limit` bounds the units; after `until` no unit is begun.
    """

    __name__: str

    def __call__(
        self,
        *,
        clock: Clock = ...,
        limit: int | None = ...,
        until: datetime | None = ...,
        trigger: str = ...,
    ) -> R_co: ...


def worker_name() -> str:
    """host:pid of this process, as it stands on runs and claims."""
    return f"{socket.gethostname()}:{os.getpid()}"


def stage(verb: Verb[R_co]) -> Stage[R_co]:
    """Wrap a batch verb so that each run opens, closes and reports on its own row.

    The verb receives the run as its first argument; callers never pass it. An error closes the
    run as failed and is raised again. Callers may name the `trigger`.
    """

    @wraps(verb)
    def audited(
        *,
        clock: Clock = timezone.now,
        limit: int | None = None,
        until: datetime | None = None,
        trigger: str = "command",
    ) -> R_co:
        run = open_run(verb.__name__, trigger=trigger, now=clock())
        try:
            report = verb(run, clock=clock, limit=limit, until=until)
            close_run(run, status="done", report=asdict(report), now=clock())
        except BaseException as error:  # KeyboardInterrupt and SystemExit close the row, too.
            claims.let_go(run)
            message = f"{type(error).__name__}: {error}"
            close_run(run, status="failed", error=message, now=clock())
            raise
        return report

    return audited


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
        error=error[:ERROR_CHARACTERS_MAX],
        finished_at=now,
    )


def beat(run: StageRun) -> None:
    """Say that the worker of this run is alive.

    By the wall clock: a process lives in our time, also when its stage is told another one.
    """
    StageRun.objects.filter(pk=run.pk).update(heartbeat_at=timezone.now())


def close_lost(name: str, *, now: datetime) -> int:
    """Close running rows whose worker is gone: its process ended, or it fell silent."""
    silence = timedelta(seconds=claims.silence_seconds(RUN_LOST_MINUTES * 60))
    silent_since = timezone.now() - silence
    closed = 0
    for run in StageRun.objects.filter(stage=name, status="running"):
        if run.heartbeat_at < silent_since or not is_alive(run.worker):
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
