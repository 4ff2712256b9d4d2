"""Measures: what the last 24 hours came to, for whoever watches from outside, by the books.

Reads: raw_item, capture_receipt, gate_rejection, note, llm_call, cooldown, stage_run, act. Every
question is bounded by an index, and by a time and a number of rows; what a bound cut off is said.
Numbers and words of ours alone; judges nothing and knows nothing about who asks.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from memory.lately import DAY_SECONDS, ask, kept, kept_by_cost, most_first, parsed
from memory.models import (
    Act,
    CaptureReceipt,
    Cooldown,
    GateRejection,
    LlmCall,
    Note,
    RawItem,
    StageRun,
)

#: Newest rows of a day that are looked at in one table; a table with more is named as `cut`.
# Why: many times the busiest day of a team, so that a sum is of the whole day; and the cost of a
# look does not grow with a flood.
# Calibrate: milliseconds of `measured` on the busiest day, against DAY_SECONDS.
ROWS_LOOKED_AT = 30_000

#: By what a worker, and no person or program beside it, began a run.
BY_WORKERS = ("schedule", "page")

#: Latest runs of a stage among which a worker's last sign of life is looked for.
# Why: several workers run a stage at once, and the one that began last need not be the last alive;
# and what cron or a person runs each minute must not hide what a worker did in the last hours.
# Calibrate: milliseconds of RAN_SQL; it reads so many rows of each stage.
RUNS_LOOKED_AT = 200

#: Newest posts among which the last one of a hook is looked for.
# Why: an import by hand posts a few hundred times, and hides no hook behind it.
POSTS_LOOKED_AT = 1_000

#: Words of clients that are told apart, and what such a word looks like; the others are one.
# Why: each word is a series that is kept for ever, and a client may say anything.
WORDS_MAX = 20
WORD = re.compile(r"[a-z][a-z0-9_-]{0,39}")
OTHERS = "others"


@dataclass(frozen=True)
class Posts:
    """Receipts of 24 hours: items by what became of them, those refused by reason, what hooks
    missed, lines of transcripts as the clients counted them, and seconds of a post by quantile;
    clients on machines that posted, and when anything, and any of these, posted last."""

    posts: int = 0
    hooks: int = 0
    items: dict[str, int] = field(default_factory=dict)
    refused: dict[str, int] = field(default_factory=dict)
    missed: dict[str, int] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)
    filtered: dict[str, int] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    last_at: datetime | None = None
    hook_at: datetime | None = None


@dataclass(frozen=True)
class Asked:
    """Calls of one stage for one port to one model that ended alike, in 24 hours."""

    stage: str
    port: str
    model: str
    outcome: str
    calls: int
    tokens_in: int
    tokens_out: int
    seconds: float


@dataclass(frozen=True)
class Ran:
    """The runs of one stage in 24 hours: how many ended how, how long they took by quantile, and
    when a worker of it was last alive."""

    stage: str
    statuses: dict[str, int]
    seconds: dict[str, float]
    alive_at: datetime | None


@dataclass(frozen=True)
class Measures:
    """All of it. `refused` are candidates that the gate refused, by reason; `made` the notes.
    `cut`: what there was more of than was looked at."""

    posts: Posts
    refused: dict[str, int]
    made: int
    asked: tuple[Asked, ...]
    ran: tuple[Ran, ...]
    bytes: int
    rows: dict[str, int]
    cut: frozenset[str] = frozenset()
    first_at: datetime | None = None
    restored_at: datetime | None = None

    @property
    def alive_at(self) -> datetime | None:
        """When any worker was last alive, in this house."""
        seen = max((one.alive_at for one in self.ran if one.alive_at), default=None)
        return here(seen, self.restored_at)

    @property
    def due_since(self) -> datetime | None:
        """Since when a worker has something to do in this house: since the first item, or since the
        restore that brought it."""
        return max(self.first_at, self.restored_at or self.first_at) if self.first_at else None


def _counted(told: str) -> str:
    """SQL of a count that a client told, 0 of what is none. What the door keeps today it may not
    have kept yesterday, and one row must not cost the page."""
    return (
        f"(CASE WHEN length({told}) < 16 AND {told} ~ '^[0-9]+$' THEN ({told})::bigint ELSE 0 END)"
    )


# Quantiles are of what was looked at, in the unit that the row has.

POSTS_SQL = f"""
WITH day AS MATERIALIZED (
    SELECT stored, duplicates, refused, misses, client_range AS r, milliseconds, client,
        CASE WHEN jsonb_typeof(client_range->'reasons') = 'object' THEN client_range->'reasons'
            ELSE '{{}}' END AS reasons
    FROM memory_capturereceipt
    WHERE created_at >= %(day)s ORDER BY created_at DESC LIMIT %(looked)s)
SELECT count(*), count(DISTINCT (client->>'machine', client->>'client'))
        FILTER (WHERE client->>'machine' <> ''),
    coalesce(sum(stored), 0), coalesce(sum(duplicates), 0),
    coalesce(sum({_counted("r->>'seen'")}), 0), coalesce(sum({_counted("r->>'posted'")}), 0),
    coalesce(sum({_counted("r->>'filtered'")}), 0),
    percentile_cont(ARRAY[0.5, 0.95]) WITHIN GROUP (ORDER BY milliseconds::float / 1000),
    (SELECT jsonb_object_agg(key, n) FROM (SELECT key, sum({_counted("value")}) AS n
        FROM day, jsonb_each_text(reasons) GROUP BY key) told),
    (SELECT jsonb_object_agg(key, n) FROM (SELECT key, sum({_counted("value")}) AS n
        FROM day, jsonb_each_text(refused) GROUP BY key) told),
    (SELECT jsonb_object_agg(key, n) FROM (
        SELECT coalesce(one->>'reason', '') AS key, count(*) AS n
        FROM day, jsonb_array_elements(misses) AS one GROUP BY 1) told)
FROM day
"""

LAST_POSTS_SQL = """
SELECT max(created_at), max(created_at) FILTER (WHERE client->>'machine' <> '') FROM (
    SELECT created_at, client FROM memory_capturereceipt
    ORDER BY created_at DESC LIMIT %(posts)s) t
"""

RESTORED_SQL = """
SELECT max(created_at) FROM memory_act
WHERE kind = 'database' AND reference = '' AND verb = 'restore'
"""

REFUSED_SQL = """
SELECT reason, count(*) FROM (
    SELECT reason FROM memory_gaterejection WHERE created_at >= %(day)s
    ORDER BY created_at DESC LIMIT %(looked)s) t GROUP BY 1
"""

MADE_SQL = """
SELECT count(*) FROM (SELECT 1 FROM memory_note WHERE created_at >= %(day)s
    ORDER BY created_at DESC, id DESC LIMIT %(looked)s) t
"""

ASKED_SQL = """
SELECT stage, port, model_asked, outcome, count(*), coalesce(sum(tokens_in), 0),
    coalesce(sum(tokens_out), 0), coalesce(sum(milliseconds), 0)::float / 1000
FROM (SELECT stage, port, model_asked, outcome, tokens_in, tokens_out, milliseconds
    FROM memory_llmcall WHERE created_at >= %(day)s
    ORDER BY created_at DESC LIMIT %(looked)s) t GROUP BY 1, 2, 3, 4
"""

RAN_SQL = """
SELECT s.stage, day.statuses, day.quantiles, last.heartbeat_at
FROM unnest(%(stages)s::text[]) AS s(stage)
CROSS JOIN LATERAL (
    SELECT max(heartbeat_at) FILTER (WHERE trigger_source = ANY(%(workers)s)) AS heartbeat_at FROM (
        SELECT heartbeat_at, trigger_source FROM memory_stagerun r
        WHERE r.stage = s.stage AND r.status <> 'waiting'
        ORDER BY r.started_at DESC LIMIT %(alive)s) latest) AS last
CROSS JOIN LATERAL (SELECT jsonb_object_agg(status, n) AS statuses,
    max(quantiles) FILTER (WHERE status = 'done') AS quantiles FROM (
        SELECT status, count(*) AS n, percentile_cont(ARRAY[0.5, 0.95]) WITHIN GROUP (
            ORDER BY extract(epoch FROM finished_at - started_at)) AS quantiles
        FROM memory_stagerun r WHERE r.stage = s.stage AND r.started_at >= %(day)s
        GROUP BY 1) told) AS day
"""

# What the planner thinks there is: counting 100,000 rows for each look would cost more than all
# the rest.
SIZES_SQL = """
SELECT pg_database_size(current_database()), (SELECT jsonb_object_agg(relname, reltuples)
    FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relname = ANY(%(tables)s)),
    (SELECT captured_at FROM memory_rawitem ORDER BY id LIMIT 1)
"""

#: Tables whose rows are told, as they are called there.
COUNTED = {
    "memory_rawitem": "raw_items",
    "memory_episode": "episodes",
    "memory_note": "notes",
    "memory_injection": "injections",
    "memory_llmcall": "model_calls",
}

#: What these statements read, by the names that stand in them.
# Why listed: a table that is renamed breaks this at import and not at somebody's scrape.
TABLES = (Act, CaptureReceipt, GateRejection, Note, LlmCall, RawItem, StageRun)

assert all(model._meta.db_table == f"memory_{model.__name__.lower()}" for model in TABLES)


def measured(now: datetime, stages: Sequence[str]) -> Measures:
    """What 24 hours came to, for everybody's rows and these stages. Sums of a flood are kept for
    some minutes; who was alive and posted last is not older than DAY_SECONDS."""
    day = kept_by_cost("measured:sums", lambda: _sums(now))
    lately = kept(f"measured:{','.join(stages)}", lambda: _lately(now, stages), DAY_SECONDS)
    last_at, hook_at = lately.last
    return Measures(
        posts=replace(day.posts, last_at=last_at, hook_at=hook_at),
        refused=day.refused,
        made=day.made,
        asked=day.asked,
        cut=day.cut,
        ran=lately.ran,
        bytes=lately.bytes,
        rows=lately.rows,
        first_at=lately.first_at,
        restored_at=lately.restored_at,
    )


def last_posts() -> tuple[datetime | None, datetime | None]:
    """When anybody, and when a hook posted last."""
    last_at, hook_at = ask(LAST_POSTS_SQL, {"posts": POSTS_LOOKED_AT})[0]
    return last_at, hook_at


def here(seen: datetime | None, restored: datetime | None) -> datetime | None:
    """When a worker was seen, unless a backup brought that along. Pure."""
    return None if seen and restored and seen <= restored else seen


def restored_at() -> datetime | None:
    """When a backup last became this database: an older sign of life is of another house's worker.

    By the act that the restore wrote, after all that it brought along."""
    found: datetime | None = ask(RESTORED_SQL, {})[0][0]
    return found


def resting(now: datetime) -> int:
    """Providers that everybody keeps away from now."""
    return Cooldown.objects.filter(until__gt=now).count()


@dataclass(frozen=True)
class _Sums:
    """What takes as long as there are rows in a day, ROWS_LOOKED_AT at most."""

    posts: Posts
    refused: dict[str, int]
    made: int
    asked: tuple[Asked, ...]
    cut: frozenset[str]


@dataclass(frozen=True)
class _Lately:
    """What takes as long whatever the day was."""

    last: tuple[datetime | None, datetime | None]
    ran: tuple[Ran, ...]
    bytes: int
    rows: dict[str, int]
    first_at: datetime | None
    restored_at: datetime | None


def _sums(now: datetime) -> _Sums:
    values = {"day": now - timedelta(days=1), "looked": ROWS_LOOKED_AT}
    posts = _posts(*ask(POSTS_SQL, values)[0])
    refused: dict[str, int] = dict(ask(REFUSED_SQL, values))
    made = int(ask(MADE_SQL, values)[0][0])
    asked = tuple(Asked(*row) for row in ask(ASKED_SQL, values))
    looked_at = {
        "posts": posts.posts,
        "rejections": sum(refused.values()),
        "notes": made,
        "model_calls": sum(one.calls for one in asked),
    }
    cut = frozenset(name for name, n in looked_at.items() if n >= ROWS_LOOKED_AT)
    return _Sums(posts, refused, made, asked, cut)


def _lately(now: datetime, stages: Sequence[str]) -> _Lately:
    values = {
        "day": now - timedelta(days=1), "stages": list(stages), "alive": RUNS_LOOKED_AT,
        "workers": list(BY_WORKERS),
    }  # fmt: skip
    ran = tuple(
        Ran(stage, parsed(statuses) or {}, quantiles(took), alive_at)
        for stage, statuses, took, alive_at in ask(RAN_SQL, values)
    )
    size, rows, first_at = ask(SIZES_SQL, {"tables": list(COUNTED)})[0]
    # Below zero: never analysed.
    counted = {COUNTED[name]: max(0, int(n)) for name, n in (parsed(rows) or {}).items()}
    return _Lately(last_posts(), ran, size, counted, first_at, restored_at())


def _posts(posts: int, hooks: int, stored: int, duplicates: int, *told: Any) -> Posts:
    seen, posted, filtered, took, reasons, refused, missed = told
    return Posts(
        posts=posts,
        hooks=hooks,
        items={"stored": int(stored), "duplicate": int(duplicates)},
        lines={"seen": int(seen), "posted": int(posted), "filtered": int(filtered)},
        filtered=told_apart(parsed(reasons) or {}),
        refused=told_apart(parsed(refused) or {}),
        missed=told_apart(parsed(missed) or {}),
        seconds=quantiles(took),
    )


def quantiles(told: Sequence[float | None] | None) -> dict[str, float]:
    """The median and the 95th of a hundred, by the names that they have outside. Pure."""
    pairs = zip(("0.5", "0.95"), told or (), strict=False)
    return {quantile: float(value) for quantile, value in pairs if value is not None}


def told_apart(counts: Mapping[str, int]) -> dict[str, int]:
    """Counts by words that others chose: the most frequent plain words, the rest as one. Pure."""
    found: Counter[str] = Counter()
    for place, (word, count) in enumerate(most_first(counts).items()):
        plain = place < WORDS_MAX and WORD.fullmatch(word) is not None
        found[word if plain else OTHERS] += count
    return dict(found)
