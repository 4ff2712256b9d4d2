"""What the queue runs. Tasks carry no arguments but ids: payloads are signed pickles."""

from __future__ import annotations

from django.conf import settings

from memory.management.base import ended_by_sigterm
from memory.pipeline import process


def run_process() -> dict[str, object]:
    """One pass of the pipeline; many may run at once, units are claimed."""
    with ended_by_sigterm():
        return process(trigger="schedule", seconds=settings.PROCESS_SECONDS).as_json()
