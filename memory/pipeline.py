"""The order of the stages: the only list of it.

Knows nothing about what a stage does; each leaves its own run and its report.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone

from memory.audit import Clock, Stage
from memory.llm.budget import stop_of
from memory.models import StageRun
from memory.stages import dedup as _dedup
from memory.stages import distill as _distill
from memory.stages import embed as _embed
from memory.stages import segment as _segment

PIPELINE: tuple[Stage[Any], ...] = (_segment.segment, _distill.distill, _embed.embed, _dedup.dedup)

#: What counts the units that wait for each stage.
PENDING = {
    "segment": _segment.pending,
    "distill": _distill.pending,
    "embed": _embed.pending,
    "dedup": _dedup.pending,
}


@dataclass(frozen=True)
class ProcessReport:
    """Each stage's report by its name; ok when nothing was parked and nothing was away.

    `stop` says that the day's budget stopped a stage, and when it goes on; empty where none did.
    """

    stages: dict[str, dict[str, Any]]
    ok: bool
    stop: dict[str, str | None] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        return {**self.stages, "ok": self.ok, **self.stop}


def process(
    *,
    clock: Clock = timezone.now,
    limit: int | None = None,
    seconds: float | None = None,
    trigger: str = "command",
    verbs: tuple[Stage[Any], ...] = PIPELINE,
    opening: Callable[[str], StageRun | None] | None = None,
) -> ProcessReport:
    """Run every stage once, in order; `limit` bounds the units of each, `seconds` the whole.

    What is left of the time is shared alike by the stages still to come: none of them starves.
    `opening` opens the run of the stage of this name, or says by None that none is begun any more.
    """
    end = None if seconds is None else clock() + timedelta(seconds=seconds)
    stages: dict[str, dict[str, Any]] = {}
    for place, verb in enumerate(verbs):
        run = opening(verb.__name__) if opening else None
        if opening and run is None:
            break
        now = clock()
        until = None if end is None else now + (end - now) / (len(verbs) - place)
        report = verb(clock=clock, limit=limit, until=until, trigger=trigger, run=run)
        stages[verb.__name__] = asdict(report)
    troubles = ("parked", "transient_failures", "content_failures", "failed")
    ok = not any(report.get(name) for report in stages.values() for name in troubles)
    return ProcessReport(stages, ok, stop_of(stages, clock()))


def pending(now: datetime) -> dict[str, int]:
    """Units that wait for each stage as things stand; a stage makes work for the next ones."""
    return {verb.__name__: PENDING[verb.__name__](now) for verb in PIPELINE}
