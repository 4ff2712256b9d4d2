"""`manage.py process`: the whole pipeline, once."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from memory.management.base import StageCommand
from memory.pipeline import pending, process


class Command(StageCommand):
    help = "Run every stage once, in order: segment, distill, embed, dedup."

    def run(self, limit: int | None) -> dict[str, Any]:
        return process(limit=limit).as_json()

    def pending(self, now: datetime) -> dict[str, int]:
        return pending(now)
