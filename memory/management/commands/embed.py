"""`manage.py embed`: give notes their vectors."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import Any

from memory.management.base import StageCommand
from memory.stages.embed import embed, pending


class Command(StageCommand):
    help = "Give every live note without a vector one."

    def run(self, limit: int | None) -> dict[str, Any]:
        return asdict(embed(limit=limit))

    def pending(self, now: datetime) -> dict[str, int]:
        return {"embed": pending(now)}
