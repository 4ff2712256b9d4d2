"""`manage.py segment`: close episodes."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from memory.management.base import StageCommand
from memory.stages.segment import segment


class Command(StageCommand):
    help = "Close every episode that can be closed."

    def run(self, limit: int | None) -> dict[str, Any]:
        return asdict(segment(limit=limit))
