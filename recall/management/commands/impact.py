"""`manage.py impact`: look at a sample of injections for having been used."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import Any

from memory.management.base import StageCommand
from recall.impact import impact, waiting


class Command(StageCommand):
    help = "Check a sample of answered injections: did what was injected change what was said?"

    def run(self, limit: int | None) -> dict[str, Any]:
        return asdict(impact(limit=limit))

    def pending(self, now: datetime) -> dict[str, int]:
        return {"impact": len(waiting(now).answered)}
