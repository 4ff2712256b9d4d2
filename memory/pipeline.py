"""The order of the stages: the only list of it.

Knows nothing about what a stage does; each leaves its own run and its report.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from django.utils import timezone

from memory.audit import Clock
from memory.stages.dedup import dedup
from memory.stages.distill import distill
from memory.stages.embed import embed
from memory.stages.segment import segment

PIPELINE = (segment, distill, embed, dedup)


@dataclass(frozen=True)
class ProcessReport:
    """Each stage's report by its name; ok when nothing was parked and nothing was away."""

    stages: dict[str, dict[str, Any]]
    ok: bool

    def as_json(self) -> dict[str, Any]:
        return {**self.stages, "ok": self.ok}


def process(
    *, clock: Clock = timezone.now, limit: int | None = None, trigger: str = "command"
) -> ProcessReport:
    """Run every stage once, in order; `limit` bounds the units of each."""
    stages = {
        verb.__name__: asdict(verb(clock=clock, limit=limit, trigger=trigger)) for verb in PIPELINE
    }
    troubles = ("parked", "transient_failures", "content_failures", "failed")
    ok = not any(report.get(name) for report in stages.values() for name in troubles)
    return ProcessReport(stages, ok)
