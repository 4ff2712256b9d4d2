"""Health: how stages fare, what waits for those of memory, what is parked, which models work.

Reads: stage_run, claim, session, episode, raw_item, note, what waits, llm_call, token_day,
cooldown. Every question is bounded by an index and a time or a number of rows, so that
none grows with the record. Numbers and times alone; judges nothing and knows nothing about pages.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from memory.borders import TIME_GAP_MINUTES
from memory.lately import DAY_SECONDS, ask, by_day, counted_to, first_day, kept, midnight, parsed
from memory.llm.budget import Budget, standing
from memory.models import (
    Claim,
    Cooldown,
    Episode,
    Note,
    RawItem,
    Session,
    WaitingItem,
    WaitingNote,
)

#: Up to how many waiting units are counted.
# Why: "1,000+" says as much as the number does, and costs the same at any size.
UNITS_COUNTED_MAX = 1_000

#: What of a stage's report is its work, as it is drawn.
WORK: dict[str, tuple[str, ...]] = {
    "segment": ("episodes",),
    "distill": ("notes_created",),
    "embed": ("embedded", "turns"),
    "dedup": ("duplicate", "refine", "supersede", "distinct"),
    "track": ("opened",),
    "impact": ("checked",),
    "export": ("written", "renamed", "retired", "removed"),
    "verify": ("findings",),
    "reconcile": ("units",),
}


@dataclass(frozen=True)
class Run:
    """One run of a stage, as its row stands."""

    id: int
    status: str
    started_at: datetime
    heartbeat_at: datetime
    finished_at: datetime | None
    report: dict[str, Any]
    error: str
    trigger: str


@dataclass(frozen=True)
class Runs:
    """The runs of one stage: the last one, those of 24 hours, and its work by day, oldest first."""

    last: Run | None = None
    day_runs: int = 0
    day_failures: int = 0
    day_work: int = 0
    failed_at: datetime | None = None
    error: str = ""
    days: tuple[int, ...] = ()


@dataclass(frozen=True)
class Waiting:
    """Units that wait for a stage, counted to a bound, and since when the oldest does.

    Of segment only those that nothing but the stage keeps waiting: an open session is no backlog.
    """

    units: int = 0
    since: datetime | None = None

    @property
    def told(self) -> str:
        """The number, as far as it was counted."""
        return counted_to(self.units, UNITS_COUNTED_MAX)


@dataclass(frozen=True)
class Calls:
    """Calls of one model for one port in 24 hours."""

    port: str
    model: str
    calls: int
    errors: int
    tokens: int


@dataclass(frozen=True)
class Models:
    """Who was called how often, the day's budget, and who asked for rest until when."""

    calls: tuple[Calls, ...]
    budget: Budget
    resting: tuple[tuple[str, datetime, str], ...]


@dataclass(frozen=True)
class Health:
    """How the machinery fares, by stage, and the models it asks."""

    runs: dict[str, Runs]
    waiting: dict[str, Waiting]
    parked: dict[str, int]
    models: Models


def health(now: datetime, stages: Sequence[str]) -> Health:
    """How these stages fare, whoever's units they work on: numbers, times and errors alone."""
    ran = runs(stages, now)
    last = {stage: one.last for stage, one in ran.items() if one.last}
    return Health(ran, left(now, last), parked(), models(now))


# Runs.

LAST_RUNS_SQL = """
SELECT s.stage, last.id, last.status, last.started_at, last.heartbeat_at, last.finished_at,
       last.report, last.error, last.trigger_source
FROM unnest(%(stages)s::text[]) AS s(stage)
CROSS JOIN LATERAL (SELECT * FROM memory_stagerun r WHERE r.stage = s.stage
    ORDER BY r.started_at DESC LIMIT 1) AS last
"""

DAY_RUNS_SQL = """
SELECT s.stage, day.runs, day.failures, day.work, day.today, fault.started_at, fault.error
FROM unnest(%(stages)s::text[]) AS s(stage)
CROSS JOIN LATERAL (SELECT count(*) AS runs,
    count(*) FILTER (WHERE r.status IN ('failed', 'lost')) AS failures,
    sum({work}) AS work, sum({work}) FILTER (WHERE r.started_at >= %(midnight)s) AS today
    FROM memory_stagerun r
    WHERE r.stage = s.stage AND r.started_at >= %(day)s) AS day
LEFT JOIN LATERAL (SELECT r.started_at, r.error FROM memory_stagerun r
    WHERE r.stage = s.stage AND r.started_at >= %(day)s AND r.status IN ('failed', 'lost')
    ORDER BY r.started_at DESC LIMIT 1) AS fault ON true
"""

PAST_RUNS_SQL = """
SELECT r.stage, to_char(r.started_at AT TIME ZONE 'UTC', 'YYYY-MM-DD') AS day, sum({work})
FROM memory_stagerun r
WHERE r.stage = ANY(%(stages)s) AND r.started_at >= %(since)s AND r.started_at < %(midnight)s
GROUP BY 1, 2
"""


def runs(stages: Sequence[str], now: datetime) -> dict[str, Runs]:
    """How these stages ran; a stage that never did has no last run."""
    named = f"{','.join(stages)}:{now:%Y-%m-%d}"
    past = kept(f"runs:past:{named}", lambda: _past_runs(stages, now))
    day = kept(f"runs:day:{named}", lambda: _day_runs(stages, now), DAY_SECONDS)
    last = last_runs(stages)
    found = {}
    for stage, count, failures, work, today, failed_at, error in day:
        found[stage] = Runs(
            last=last.get(stage),
            day_runs=count,
            day_failures=failures,
            day_work=int(work or 0),
            failed_at=failed_at,
            error=error or "",
            days=by_day(past.get(stage, {}), int(today or 0), now),
        )
    return found


def last_runs(stages: Sequence[str]) -> dict[str, Run]:
    """The run of each stage that began last."""
    return {stage: _run(*row) for stage, *row in ask(LAST_RUNS_SQL, {"stages": list(stages)})}


def _day_runs(stages: Sequence[str], now: datetime) -> list[tuple[Any, ...]]:
    values = {"stages": list(stages), "day": now - timedelta(days=1), "midnight": midnight(now)}
    return ask(DAY_RUNS_SQL.replace("{work}", _work(stages)), values)


def _run(pk: int, status: str, *columns: Any) -> Run:
    started_at, heartbeat_at, finished_at, report, error, trigger = columns
    told: dict[str, Any] = parsed(report)
    return Run(pk, status, started_at, heartbeat_at, finished_at, told, error, trigger)


def _past_runs(stages: Sequence[str], now: datetime) -> dict[str, dict[str, int]]:
    values = {"stages": list(stages), "since": first_day(now), "midnight": midnight(now)}
    found: dict[str, dict[str, int]] = {stage: {} for stage in stages}
    for stage, day, work in ask(PAST_RUNS_SQL.replace("{work}", _work(stages)), values):
        found[stage][day] = int(work or 0)
    return found


def _work(stages: Iterable[str]) -> str:
    """SQL for the work that a run reports. The words are this file's own, and nobody's input."""
    cases = [
        f"WHEN '{stage}' THEN "
        + " + ".join(f"coalesce((r.report->>'{word}')::bigint, 0)" for word in WORK[stage])
        for stage in stages
        if stage in WORK
    ]
    return f"CASE r.stage {' '.join(cases)} ELSE 0 END" if cases else "0"


# What waits.

# Where more wait than are counted, some note's age is told and not the oldest one's: to find that
# would go through all that wait.
WAITING_SQL = """
SELECT 'segment', count(*), min(at) FROM (
    SELECT last_captured_at AS at FROM memory_session WHERE pending AND last_captured_at < %(due)s
    ORDER BY last_captured_at LIMIT %(most)s) t
UNION ALL SELECT 'track', count(*), min(at) FROM (
    SELECT last_captured_at AS at FROM memory_session
    WHERE tracked_at IS NULL OR last_captured_at > tracked_at
    ORDER BY last_captured_at LIMIT %(most)s) t
UNION ALL SELECT 'distill', count(*), min(at) FROM (
    (SELECT e.created_at AS at FROM memory_episode e WHERE e.distilled_at IS NULL
        AND NOT EXISTS (SELECT 1 FROM memory_claim c WHERE c.stage = 'distill'
            AND c.unit = e.unit_key AND c.parked_at IS NOT NULL)
        ORDER BY e.started_at, e.id LIMIT %(most)s)
    UNION ALL (SELECT i.captured_at FROM (
        SELECT raw_item_id FROM memory_waitingitem w WHERE w.lacks = 'distilled'
            AND NOT EXISTS (SELECT 1 FROM memory_claim c WHERE c.stage = 'distill'
                AND c.unit = 'item:' || w.raw_item_id AND c.parked_at IS NOT NULL)
        ORDER BY w.raw_item_id LIMIT %(most)s) first
        JOIN memory_rawitem i ON i.id = first.raw_item_id)) t
UNION ALL SELECT 'embed', count(*), min(at) FROM (
    SELECT n.created_at AS at FROM memory_note n
    WHERE n.deleted_at IS NULL AND n.embedding IS NULL
        AND NOT EXISTS (SELECT 1 FROM memory_claim c WHERE c.stage = 'embed'
            AND c.unit = 'note:' || n.id AND c.parked_at IS NOT NULL)
    ORDER BY n.created_at LIMIT %(most)s) t
UNION ALL SELECT 'dedup', count(*), min(n.embedded_at) FROM (
    SELECT memory_note.embedded_at FROM memory_waitingnote w
    JOIN memory_note ON memory_note.id = w.note_id
    WHERE w.lacks = 'verdict' AND {live} AND memory_note.embedding IS NOT NULL
        AND NOT EXISTS (SELECT 1 FROM memory_claim c WHERE c.stage = 'dedup'
            AND c.unit = 'note:' || w.note_id AND c.parked_at IS NOT NULL)
    LIMIT %(most)s) n
"""

#: What WAITING_SQL reads, by the names that stand in it.
# Why listed: a table that is renamed breaks this at import and not on somebody's board.
WAITING_TABLES = (Session, Episode, RawItem, WaitingItem, Note, WaitingNote, Claim)

assert all(model._meta.db_table == f"memory_{model.__name__.lower()}" for model in WAITING_TABLES)


def waiting(now: datetime) -> dict[str, Waiting]:
    """What waits for each stage of memory that is not parked, UNITS_COUNTED_MAX and one of each at
    most: `behind` knows of the others."""
    values = {
        "due": now - timedelta(minutes=TIME_GAP_MINUTES),
        "most": UNITS_COUNTED_MAX + 1,
    }
    rows = ask(WAITING_SQL, values, live=Note.objects.as_pipeline().live(now))
    return {stage: Waiting(units, since) for stage, units, since in rows}


def left(now: datetime, last: Mapping[str, Run]) -> dict[str, Waiting]:
    """What waits for each stage of memory, by the rows and by what its last run said."""
    return {stage: behind(one, last.get(stage)) for stage, one in waiting(now).items()}


def behind(waiting: Waiting, last: Run | None) -> Waiting:
    """What waits, and what the stage said that it left where that is more. Pure."""
    left = last.report.get("pending") if last and last.status != "running" else 0
    if isinstance(left, int) and left > waiting.units:
        return replace(waiting, units=left)
    return waiting


def parked() -> dict[str, int]:
    """Parked units by stage, without those that a person dismissed."""
    sql = (
        "SELECT stage, count(*) FROM memory_claim"
        " WHERE parked_at IS NOT NULL AND dismissed_at IS NULL GROUP BY stage"
    )
    return dict(ask(sql, {}))


# Models.

CALLS_SQL = """
SELECT port, model_asked, count(*), count(*) FILTER (WHERE outcome <> 'ok'),
    coalesce(sum(tokens_in + tokens_out), 0)
FROM memory_llmcall WHERE created_at >= %(day)s GROUP BY 1, 2 ORDER BY 3 DESC, 1, 2 LIMIT 20
"""


def models(now: datetime) -> Models:
    """The calls of 24 hours by port and model, the budget of today, and who rests until when."""
    return kept("models", lambda: _models(now), DAY_SECONDS)


def _models(now: datetime) -> Models:
    resting = Cooldown.objects.filter(until__gt=now).order_by("provider")
    return Models(
        calls=tuple(Calls(*row) for row in ask(CALLS_SQL, {"day": now - timedelta(days=1)})),
        budget=standing(now),
        resting=tuple(resting.values_list("provider", "until", "reason")),
    )
