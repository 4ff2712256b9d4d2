"""`manage.py track`: read what people and agents promised, asked for, claimed and showed."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import Any

from memory.management.base import StageCommand
from memory.stages.track import pending, track


class Command(StageCommand):
    help = "Open tasks from turns and posts, and note what was claimed and shown of them."

    def run(self, limit: int | None) -> dict[str, Any]:
        return asdict(track(limit=limit))

    def pending(self, now: datetime) -> dict[str, int]:
        return {"track": pending(now)}
