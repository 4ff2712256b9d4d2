"""What the queue runs for recall. Tasks carry no arguments but ids: payloads are signed pickles."""

from __future__ import annotations

from dataclasses import asdict
from datetime import timedelta

from django.conf import settings
from django.utils import timezone

from memory.management.base import ended_by_sigterm
from recall.impact import impact


def run_impact() -> dict[str, object]:
    """Look at a sample of what was injected; what is left waits for the next time."""
    until = timezone.now() + timedelta(seconds=settings.PROCESS_SECONDS)
    with ended_by_sigterm():
        return asdict(impact(trigger="schedule", until=until))
