"""A run of a stage done again as a whole: for a house in which nothing that was made is left.

Then the runs say when, and the ledger of calls which model; what came is the log's. Rows get the
time at which their run began. Reads: stage_run, the schema `was`. Writes: a throwaway database.
Knows nothing about what people decided.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from django.conf import settings

from argus.rebuilding.letgone import end_session
from argus.rebuilding.ports import Asked, LoggedDistiller, LoggedJudge, Recorded
from argus.rebuilding.record import ask
from memory.llm import choice
from memory.llm.ports import Distiller, Draft, Embedder, Judge, Origin, Passage
from memory.models import StageRun
from memory.stages.dedup import dedup
from memory.stages.dedup import pending as to_judge
from memory.stages.distill import distill
from memory.stages.distill import pending as to_distill
from memory.stages.embed import embed
from memory.stages.segment import segment

STAGES: dict[str, Callable[..., Any]] = {
    "segment": segment,
    "distill": distill,
    "embed": embed,
    "dedup": dedup,
}

# Which model answered about a unit in a run: the last one that was asked.
MODEL = """
SELECT model_asked, prompt_version FROM was.memory_llmcall
WHERE run_id = %(run)s AND port = %(port)s AND (%(unit)s = '' OR unit = %(unit)s)
ORDER BY id DESC LIMIT 1
"""

# A unit that met the reply to the same question was asked nobody, and has a reply of its own.
REPLIED = """
SELECT model, prompt_version FROM memory_modelreply
WHERE port = %(port)s AND %(unit)s <> '' AND units @> to_jsonb(ARRAY[%(unit)s])
ORDER BY id DESC LIMIT 1
"""

WAITING = """
UPDATE memory_session s SET pending = true WHERE EXISTS (
    SELECT FROM memory_rawitem r WHERE r.owner_id = s.owner_id AND r.source = s.source
    AND r.session = s.key AND r.kind = 'turn' AND NOT EXISTS (
        SELECT FROM memory_episodeturn t WHERE t.raw_item_id = r.id)) RETURNING s.id
"""


def again(run: StageRun) -> None:
    """Do all of it again, at the time at which it began. Raises what the stage raises."""
    at = run.started_at
    if run.stage == "segment":
        for (session,) in ask(WAITING):
            end_session(session, at)
    # The stage without its audit: the run is in the record. By name: its type tells of no such
    # attribute, which `wraps` puts there.
    verb = getattr(STAGES[run.stage], "__wrapped__")  # noqa: B009
    with choice.answering(Answering(run)):
        verb(run, clock=lambda: at, limit=None, until=None)


class Answering(Recorded):
    """The ports of a whole run: for each unit whoever answered about it."""

    def __init__(self, run: StageRun) -> None:
        super().__init__(distilled=asked(run, "distill"), verified=bool(asked(run, "verify")))
        self._run = run

    def distiller(self, _: str) -> Distiller:
        return ByUnit(self._run)

    def judge(self, _: str) -> Judge:
        said, local = asked(self._run, "judge"), choice.local_judge()
        return local if said is None or said.model == local.name else LoggedJudge(said)

    def embedder(self) -> Embedder:
        # A vector is no model's opinion: one that is made here is made again.
        remote = settings.ARGUS.embedder == "url"
        return super().embedder() if remote else choice.Configured.embedder(self)


class ByUnit:
    """A distiller that is for each unit the one that it had; the local one where nobody knows."""

    name = "as it was"
    prompt_version = ""

    def __init__(self, run: StageRun) -> None:
        self._run = run

    def distill(self, passages: Sequence[Passage], *, origin: Origin) -> Draft:
        """What it said. Raises NotKept."""
        said, local = asked(self._run, "distill", origin.unit), choice.local_distiller()
        if said is None or said.model == local.name:
            return local.distill(passages, origin=origin)
        return LoggedDistiller(said).distill(passages, origin=origin)


def asked(run: StageRun, port: str, unit: str = "") -> Asked | None:
    """Which model was asked in a run, about this unit or any."""
    values = {"run": run.pk, "port": port, "unit": unit}
    found = ask(MODEL, **values) or ask(REPLIED, **values)
    return Asked(*found[0]) if found else None


def left(now: datetime) -> list[str]:
    """What none of the runs could do again, told as troubles."""
    found = {"distilled": to_distill(now), "judged": to_judge(now)}
    return [f"{many} wait to be {word}" for word, many in found.items() if many]
