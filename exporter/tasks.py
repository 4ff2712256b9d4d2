"""What the queue runs for the vault."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta

from django.conf import settings
from django.utils import timezone

from exporter.export import export
from memory.audit import kept
from memory.errors import Conflict
from memory.management.base import ended_by_sigterm


def run_export() -> dict[str, object]:
    """Bring the vault up to date; what is left waits for the next time. The queue keeps what is
    answered here: counts, and no name of a file. Nothing while another export is at it."""
    until = timezone.now() + timedelta(seconds=settings.PROCESS_SECONDS)
    with ended_by_sigterm(), suppress(Conflict):
        return kept(export(trigger="schedule", until=until))
    return {}
