"""`manage.py dedup`: judge new notes against older ones."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import Any

from memory.management.base import StageCommand
from memory.stages.dedup import dedup, pending


class Command(StageCommand):
    help = "Judge every new note against older ones."

    def run(self, limit: int | None) -> dict[str, Any]:
        return asdict(dedup(limit=limit))

    def pending(self, now: datetime) -> dict[str, int]:
        return {"dedup": pending(now)}
