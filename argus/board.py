"""The board: what every stage did lately, and whether it works; put together from the apps' health.

Reads: what `health` of memory, review, recall and exporter and `memory.posted` read. Knows nothing
about requests. Runs, waiting units, model calls and the vault are the machine's, told to whoever
may look; receipts, recalls, holds and refusals are of the viewer's rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings

from argus.answers import (
    Answer,
    Facts,
    answer,
    capture_answer,
    export_answer,
    found_answer,
    recall_answer,
    together,
)
from argus.hookdoors import client_file
from exporter.health import Exported
from exporter.health import health as exporter_health
from memory import findings
from memory.health import Health, Models, Run, Runs, Waiting
from memory.health import health as memory_health
from memory.lately import DAY_SECONDS, day_names, kept
from memory.measures import here, restored_at
from memory.models import Principal
from memory.passes import kind_of
from memory.pipeline import PIPELINE
from memory.posted import Captured, Hook, captured
from memory.web.charts import Sparkline, sparkline
from memory.wording import counts
from recall.health import Recalled
from recall.health import health as recall_health
from review.health import Held
from review.health import health as review_health

#: Stages of the pipeline, in order.
STAGES = tuple(verb.__name__ for verb in PIPELINE)

#: Stages outside it, by the minutes between two of their runs; 0 where they only run when they are
#: told to, and nobody waits for the next one.
BESIDE: dict[str, int] = {
    "impact": settings.IMPACT_MINUTES,
    "track": settings.ARGUS.process_every_minutes,
    "export": settings.ARGUS.vault_every_minutes,
    "verify": settings.VERIFY_MINUTES,
    "reconcile": settings.ARGUS.reconcile_hours * 60,
}

#: What a stage makes, as its line is called.
MAKES = {
    "capture": "rows stored",
    "segment": "episodes closed",
    "distill": "notes made",
    "embed": "vectors made",
    "dedup": "notes judged",
    "recall": "recalls",
    "impact": "injections looked at",
    "track": "tasks opened",
    "export": "files written",
    "verify": "findings",
    "reconcile": "units replayed",
}

#: Of a report what a cell has no room for: the page of the run tells it.
UNTOLD = ("looked", "milliseconds")

#: Characters of a client's digest that a hook tells as its version.
VERSION_CHARACTERS = 12

#: What a hook that runs from its sources calls its version.
FROM_SOURCE = "source"


@dataclass(frozen=True)
class Cell:
    """One stage on the board. `figures` are (name, value) of the last day, `report` what its last
    run counted; `waiting` is None where nothing ever waits."""

    name: str
    answer: Answer
    last_at: datetime | None
    spark: Sparkline
    figures: tuple[tuple[str, str], ...] = ()
    run: Run | None = None
    report: tuple[tuple[str, str], ...] = ()
    failures: int = 0
    waiting: Waiting | None = None
    parked: int = 0

    @property
    def counted(self) -> str:
        """The report in words."""
        return ", ".join(f"{name} {value}" for name, value in self.report)


@dataclass(frozen=True)
class HeardHook:
    """A hook, and whether the server has another client than the one it runs."""

    hook: Hook
    outdated: bool


@dataclass(frozen=True)
class Board:
    """All of it."""

    answer: Answer
    cells: tuple[Cell, ...]
    held: Held
    hooks: tuple[HeardHook, ...]
    models: Models
    parked: int
    running: bool


def board(owner: Principal | None, now: datetime, *, errors: bool) -> Board:
    """The board for this owner's rows, or for everybody's of None. `errors`: tell what a failed
    stage said, which may quote what it worked on; else only what kind of error it was."""
    machine = memory_health(now, (*STAGES, *BESIDE))
    machine = machine if errors else replace(machine, runs=_without_words(machine.runs))
    posted, recalled, held = (
        captured(owner, now),
        recall_health(now, owner),
        review_health(owner),
    )
    cells = (
        _capture_cell(posted, recalled, now),
        *(_cell(stage, machine, now) for stage in STAGES),
        _recall_cell(recalled, now),
        *(
            _cell(stage, machine, now)
            for stage in BESIDE
            if stage in machine.runs and stage != "export"
        ),
        *_export_cell(machine, exporter_health(), now),
    )
    return Board(
        answer=together([(cell.name, cell.answer) for cell in cells]),
        cells=cells,
        held=held,
        hooks=tuple(HeardHook(hook, outdated(hook)) for hook in posted.hooks),
        models=machine.models,
        parked=sum(machine.parked.values()),
        running=any(
            runs.last is not None and runs.last.status == "running"
            for runs in machine.runs.values()
        ),
    )


def outdated(hook: Hook) -> bool:
    """Whether the server's client is another one than what this hook runs."""
    if not hook.version or hook.version == FROM_SOURCE:
        return False
    return hook.version != client_file()[1][:VERSION_CHARACTERS]


def _without_words(runs: Mapping[str, Runs]) -> dict[str, Runs]:
    """The same runs with the kind of each error alone."""
    found = {}
    for stage, one in runs.items():
        last = one.last and replace(one.last, error=kind_of(one.last.error))
        found[stage] = replace(one, last=last, error=kind_of(one.error))
    return found


def _short(report: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in report.items() if name not in UNTOLD}


def _found(stage: str) -> int:
    """What the last looks of this stage found; 0 of one that does not look for what is wrong."""
    last = findings.last(stage) if stage in findings.STAGES else None
    return last.total if last else 0


def _cell(stage: str, machine: Health, now: datetime) -> Cell:
    runs = machine.runs.get(stage, Runs())
    waiting = machine.waiting.get(stage, Waiting())
    minutes = BESIDE.get(stage, settings.ARGUS.process_every_minutes)
    facts = Facts(
        stage=stage,
        now=now,
        runs=runs,
        waiting=waiting,
        parked=machine.parked.get(stage, 0),
        resting=machine.models.resting,
        tokens_spent=machine.models.budget.stops(stage),
        every=timedelta(minutes=minutes),
        worker_at=_seen(machine.runs),
        counted=stage in machine.waiting,
        found=_found(stage),
    )
    return Cell(
        name=stage,
        answer=found_answer(answer(facts), facts),
        last_at=runs.last.started_at if runs.last else None,
        spark=_spark(stage, runs.days, now),
        figures=((MAKES[stage], f"{runs.day_work:,}"), ("runs", f"{runs.day_runs:,}")),
        run=runs.last,
        report=tuple(counts(_short(runs.last.report))) if runs.last else (),
        failures=runs.day_failures,
        waiting=waiting if stage in machine.waiting else None,
        parked=facts.parked,
    )


def _export_cell(machine: Health, exported: Exported, now: datetime) -> Iterable[Cell]:
    """The vault's cell; none where there is no vault."""
    if not exported.vault:
        return
    ran = _cell("export", machine, now)
    figures = [("files in the vault", f"{exported.files:,}"), *ran.figures]
    if exported.pending:
        figures.insert(1, ("files that wait", f"{exported.pending:,}"))
    answer = export_answer(ran.answer, exported)
    if exported.last_at is None and answer.state != "bad" and not ran.failures:
        # What ran filled another one: the demo's, or another principal's.
        answer = Answer("idle", "No export has filled this vault yet.", "`manage.py export` does.")
    yield replace(ran, answer=answer, figures=tuple(figures))


def _seen(runs: Mapping[str, Runs]) -> datetime | None:
    """When a worker was seen last, by whatever it did: one does every stage."""
    seen = max((one.last.started_at for one in runs.values() if one.last), default=None)
    return here(seen, kept("restored", restored_at, DAY_SECONDS))


def _capture_cell(posted: Captured, recalled: Recalled, now: datetime) -> Cell:
    figures = [
        ("rows stored", f"{posted.stored:,}"),
        ("rows per session", _number(posted.rows_per_session)),
        ("duplicates", f"{_share(posted.duplicate_rate)}"),
        ("duplicates in 14 days", f"{_share(posted.fortnight_duplicate_rate)}"),
        ("posts", f"{posted.posts:,}"),
        ("refused", _counted(posted.refused)),
        ("missed by hooks", _counted(posted.misses)),
    ]
    return Cell(
        name="capture",
        answer=capture_answer(posted, recalled, now),
        last_at=posted.last_at,
        spark=_spark("capture", posted.days, now),
        figures=tuple(figures),
    )


def _recall_cell(recalled: Recalled, now: datetime) -> Cell:
    used = recalled.used
    p50 = recalled.milliseconds_p50
    figures = [
        ("recalls", _counted(recalled.outcomes)),
        ("found something", _share(recalled.given_rate)),
        ("half took at most", "–" if p50 is None else f"{p50:,.0f} ms"),
        ("used, of those looked at", f"{_share(used.rate)} of {used.checked:,}"),
    ]
    return Cell(
        name="recall",
        answer=recall_answer(recalled, now),
        last_at=recalled.last_at,
        spark=_spark("recall", recalled.days, now),
        figures=tuple(figures),
    )


def _spark(stage: str, days: Sequence[int], now: datetime) -> Sparkline:
    label = f"{MAKES[stage].capitalize()} a day"
    return sparkline([float(one) for one in days], label=label, names=day_names(now))


def _share(rate: float | None) -> str:
    return "–" if rate is None else f"{rate:.0%}"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:,.1f}"


def _counted(counts: Mapping[str, int]) -> str:
    """A total, and what it is made of."""
    total = sum(counts.values())
    if not total:
        return "0"
    parts = ", ".join(f"{word.replace('_', ' ') or '?'} {n:,}" for word, n in counts.items())
    return f"{total:,} ({parts})"
