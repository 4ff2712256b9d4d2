"""`manage.py reembed`: new vectors after a change of model."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import Any

from memory.management.base import StageCommand
from memory.stages.embed import outdated, reembed


class Command(StageCommand):
    help = "Give notes and turns vectors of the embedder now in force; resumable."

    def run(self, limit: int | None) -> dict[str, Any]:
        return asdict(reembed(limit=limit))

    def pending(self, now: datetime) -> dict[str, int]:
        return {"reembed": outdated(now)}
