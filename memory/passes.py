"""The pipeline in the background, when a person says so: start it, see how it goes, stop it.

Writes: stage_run, by the stages themselves and one row around them. Audits: act.
Knows nothing about what a stage does.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from memory import wording
from memory.audit import Clock, beat, close_run, open_run
from memory.errors import NotFound
from memory.models import Act, Principal, StageRun
from memory.pipeline import PENDING, PIPELINE, process
from memory.runs import (
    OPEN,
    Wait,
    ask_for,
    begun_by,
    open_runs,
    take,
    waits_of,
)

#: The row around the stages of one pass that a person asked for.
WHOLE = "process"

#: What a person may ask for: all stages in order, or one of them.
ASKABLE = (WHOLE, *(verb.__name__ for verb in PIPELINE))

#: Of a report what tells a person nothing: by what an export knows its vault, and what runs of an
#: older version kept beside it.
UNTOLD = frozenset({"place", "fingerprint"})


@dataclass(frozen=True)
class Step:
    """One stage of a pass: its own run, None while it is still to come; units that waited for it
    when it began, and units it tried so far. `error` is told as that of its `Look`."""

    stage: str
    run: StageRun | None
    pending: int
    units: int
    error: str = ""

    @property
    def counts(self) -> list[tuple[str, int]]:
        """What it did so far, by word."""
        told = self.run.progress if self.run else {}
        return [(wording.words(word), n) for word, n in told.items() if n and word != "units"]


@dataclass(frozen=True)
class Look:
    """A run as it is now: its stages, how it waits, and when it ended or for how long it goes.

    `error` is what there is to tell of it to whoever looks: an error may quote what was worked on.
    """

    run: StageRun
    steps: tuple[Step, ...]
    wait: Wait | None
    seconds: float
    error: str = ""

    @property
    def is_open(self) -> bool:
        return self.run.status in OPEN

    @property
    def asked(self) -> str:
        """What was asked for: a stage, or all of them."""
        return str(self.run.progress.get("asked", self.run.stage))

    @property
    def worker(self) -> str:
        """Who has it in hand, or had."""
        return self.run.worker or str(self.run.progress.get("worker", ""))

    @property
    def report(self) -> list[tuple[str, str]]:
        """The report line by line; what is empty, and what is for the machine alone, left out."""
        return [
            (wording.words(word), wording.value(value))
            for word, value in self.run.report.items()
            if word not in UNTOLD and not _empty(value)
        ]


def _empty(value: Any) -> bool:
    """Whether there is nothing to tell; that there was none of something is told."""
    return value is None or value is False or value in ("", [], (), {})


def start(stage: str, *, by: Principal, now: datetime, trigger: str = "page") -> StageRun:
    """Put a pass of all stages (`process`), or of one, into the queue.

    Raises NotFound for a stage that cannot be asked for. Asking again while it goes on gives the
    run that there is.
    """
    if stage not in ASKABLE:
        raise NotFound(f"no stage {stage}: there are {', '.join(ASKABLE)}")
    return ask_for(
        WHOLE,
        "memory.tasks.run_stages",
        by=by,
        now=now,
        trigger=trigger,
        progress={"asked": stage},
        detail={"asked": stage},
    )


def carry_out(run_id: int, *, clock: Clock = timezone.now) -> dict[str, Any]:
    """Do what was asked for, in the worker; the report of each stage by its name.

    Nothing when it was cancelled before. What takes longer than one pass is left to the next one.
    """
    run = take(run_id, now=clock())
    if run is None:
        return {}
    asked = run.progress["asked"]
    verbs = tuple(verb for verb in PIPELINE if asked in (WHOLE, verb.__name__))

    def opening(name: str) -> StageRun | None:
        return _open(run, name, now=clock())

    try:
        report = process(
            clock=clock,
            seconds=settings.PROCESS_SECONDS,
            trigger=run.trigger_source,
            verbs=verbs,
            opening=opening,
        )
    except BaseException as error:  # As in `audit.stage`: the row is closed whatever happened.
        message = f"{type(error).__name__}: {error}"
        close_run(run, status="failed", error=message, now=clock())
        raise
    stopped = StageRun.objects.filter(pk__in=begun_by(run), status="cancelled").exists()
    ended = "cancelled" if stopped or len(report.stages) < len(verbs) else "done"
    close_run(run, status=ended, report=report.stages, now=clock())
    return report.stages


def _open(run: StageRun, name: str, *, now: datetime) -> StageRun | None:
    """Open the run of one stage and enter it with the row around it; None when that was told to
    stop."""
    if beat(run):
        return None
    step = {"pending": PENDING[name](now)}
    begun = open_run(name, trigger=run.trigger_source, now=now)
    with transaction.atomic():
        # Locked as `cancel` locks it: either it finds this stage here, or we find its word.
        row = StageRun.objects.select_for_update().get(pk=run.pk)
        stages = {**run.progress.get("stages", {}), name: {**step, "run": begun.pk}}
        run.progress = {**run.progress, "stages": stages}
        StageRun.objects.filter(pk=run.pk).update(progress=run.progress)
        if row.cancel_asked_at:
            StageRun.objects.filter(pk=begun.pk).update(cancel_asked_at=row.cancel_asked_at)
    return begun


def look(run_id: int, *, now: datetime, reader: Principal | None) -> Look:
    """How a run goes, whoever began it; `reader` as for `looks`. Raises NotFound."""
    run = StageRun.objects.filter(pk=run_id).first()
    if run is None:
        raise NotFound(f"no run {run_id}")
    return looks([run], now=now, reader=reader)[0]


def running(*, now: datetime, reader: Principal | None) -> list[Look]:
    """The passes that people asked for and that have not ended, latest first; `reader` as for
    `looks`."""
    return looks(open_runs(WHOLE), now=now, reader=reader)


def looks(runs: list[StageRun], *, now: datetime, reader: Principal | None) -> list[Look]:
    """These runs as they are now, with what each began, in as many queries for one as for many.

    The words of an error are told to whoever asked for the run, and to operators (`reader` None);
    to others what kind of error it was.
    """
    begun = StageRun.objects.in_bulk([pk for run in runs for pk in begun_by(run)])
    asked = _asked_by(reader, runs) if reader else {run.pk for run in runs}
    waits = waits_of(runs, now=now)

    def told(run: StageRun) -> Look:
        words = run.pk in asked
        steps = _steps(run, begun, words=words)
        error = run.error if words else kind_of(run.error)
        return Look(run, steps, waits.get(run.pk), _seconds(run, now), error)

    return [told(run) for run in runs]


def kind_of(error: str) -> str:
    """The kind of an error, without its words. Pure."""
    name, colon, _ = error.partition(":")
    return name if colon and name.isidentifier() else ("an error" if error else "")


def _asked_by(reader: Principal, runs: list[StageRun]) -> set[int]:
    """Which of these runs the reader asked for."""
    named = [str(run.pk) for run in runs]
    acts = Act.objects.filter(kind="run", verb="start", principal=reader, reference__in=named)
    return {int(one) for one in acts.values_list("reference", flat=True)}


def _steps(run: StageRun, begun: dict[int, StageRun], *, words: bool) -> tuple[Step, ...]:
    asked = run.progress.get("asked")
    if asked is None:
        return ()
    entered = run.progress.get("stages", {})
    steps = []
    for verb in PIPELINE:
        if asked not in (WHOLE, verb.__name__):
            continue
        known = entered.get(verb.__name__, {})
        own = begun.get(known.get("run", 0))
        units = own.progress.get("units", 0) if own else 0
        error = own.error if own else ""
        pending = known.get("pending", 0)
        steps.append(Step(verb.__name__, own, pending, units, error if words else kind_of(error)))
    return tuple(steps)


def _seconds(run: StageRun, now: datetime) -> float:
    return ((run.finished_at or now) - run.started_at).total_seconds()
