"""`manage.py impact`: look at a sample of injections for having been used, and tell the rate."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone

from memory.management.base import StageCommand
from recall.impact import DAYS_BACK_MAX, impact, used_rate, waiting


class Command(StageCommand):
    help = "Check a sample of answered injections: did what was injected change what was said?"

    def run(self, limit: int | None) -> dict[str, Any]:
        report = asdict(impact(limit=limit))
        rate = used_rate(timezone.now() - timedelta(days=DAYS_BACK_MAX))
        return report | {"used_rate": {"days": DAYS_BACK_MAX, **rate.as_json()}}

    def pending(self, now: datetime) -> dict[str, int]:
        return {"impact": len(waiting(now).answered)}
