"""`manage.py distill`: make notes."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import Any

from memory.management.base import StageCommand
from memory.stages.distill import distill, pending


class Command(StageCommand):
    help = "Make notes of closed episodes, documents, events and syntheses."

    def run(self, limit: int | None) -> dict[str, Any]:
        return asdict(distill(limit=limit))

    def pending(self, now: datetime) -> dict[str, int]:
        return {"distill": pending(now)}
