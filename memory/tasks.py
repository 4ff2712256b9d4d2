"""What the queue runs. Tasks carry no arguments but ids: payloads are signed pickles."""

from __future__ import annotations

from dataclasses import asdict
from datetime import timedelta

from django.conf import settings
from django.utils import timezone

from memory.management.base import ended_by_sigterm
from memory.passes import carry_out
from memory.pipeline import process
from memory.redistill import propose
from memory.stages import reconcile as replay
from memory.stages.track import track
from memory.stages.verify import verify


def run_process() -> dict[str, object]:
    """One pass of the pipeline; many may run at once, units are claimed."""
    with ended_by_sigterm():
        return process(trigger="schedule", seconds=settings.PROCESS_SECONDS).as_json()


def run_stages(run_id: int) -> dict[str, object]:
    """The pass, or the one stage, that a person asked for."""
    with ended_by_sigterm():
        return carry_out(run_id)


def run_redistill(run_id: int, unit: str, principal_id: int) -> int | None:
    """Ask anew what a unit says; the id of the proposal, where there is one."""
    with ended_by_sigterm():
        return propose(run_id, unit, principal_id)


def run_track() -> dict[str, object]:
    """What was promised, asked for, claimed and shown since the last time."""
    with ended_by_sigterm():
        until = timezone.now() + timedelta(seconds=settings.PROCESS_SECONDS)
        return asdict(track(trigger="schedule", until=until))


def run_verify() -> dict[str, object]:
    """Whether the record still says what it said; what is found are rows."""
    with ended_by_sigterm():
        until = timezone.now() + timedelta(seconds=settings.PROCESS_SECONDS)
        return asdict(verify(trigger="schedule", until=until))


def run_reconcile() -> dict[str, object]:
    """A sample of the record replayed against its notes; what differs are rows."""
    with ended_by_sigterm():
        until = timezone.now() + timedelta(seconds=settings.PROCESS_SECONDS)
        run = replay.ask(trigger="schedule", now=timezone.now())
        return asdict(replay.reconcile(run=run, until=until))
