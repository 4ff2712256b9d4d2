"""`manage.py segment`: close episodes."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import Any

from memory.management.base import StageCommand
from memory.stages.segment import pending, segment


class Command(StageCommand):
    help = "Close every episode that can be closed."

    def run(self, limit: int | None) -> dict[str, Any]:
        return asdict(segment(limit=limit))

    def pending(self, now: datetime) -> dict[str, int]:
        return {"segment": pending(now)}
