"""Health: what recall did lately: how often it was asked, what came of it, how long it took.

Reads: injection, impact. Bounded by an index and a time or a number of rows. Knows nothing about
pages, and judges nothing.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from memory.lately import (
    DAY_SECONDS,
    DAYS,
    ask,
    by_day,
    first_day,
    kept,
    kept_by_cost,
    midnight,
    most_first,
    owned,
    parsed,
    whose,
)
from memory.measures import ROWS_LOOKED_AT, quantiles
from memory.models import Injection, Principal
from recall.impact import UsedRate, used_rate

#: Recalls of a day that are looked at, newest first.
# Calibrate: milliseconds of `health` on the busiest day.
RECALLS_LOOKED_AT = 2_000

#: Outcomes by which something was put before an agent or a person.
GIVEN = ("injected", "answered", "opened")

#: Outcomes that `GIVEN` is a share of: what a gate stopped, or never reached us, asked for nothing.
TRIED = (*GIVEN, "no_hits", "below_floor", "too_long")


@dataclass(frozen=True)
class Recalled:
    """Recalls of 24 hours by outcome, and what was not as it should be; then by day."""

    outcomes: dict[str, int] = field(default_factory=dict)
    # Why clients gave up; tracks that were missing.
    skipped: dict[str, int] = field(default_factory=dict)
    degraded: dict[str, int] = field(default_factory=dict)
    milliseconds_p50: float | None = None
    last_at: datetime | None = None
    days: tuple[int, ...] = ()
    used: UsedRate = field(default_factory=lambda: UsedRate(0, 0))

    @property
    def recalls(self) -> int:
        return sum(self.outcomes.values())

    @property
    def given_rate(self) -> float | None:
        """Share of the recalls that searched which put something before an agent."""
        tried = sum(self.outcomes.get(word, 0) for word in TRIED)
        return sum(self.outcomes.get(word, 0) for word in GIVEN) / tried if tried else None


RECALLED_SQL = """
WITH day AS MATERIALIZED (
    SELECT created_at, outcome, degraded, options->>'reason' AS why,
        (timings->>'total')::float AS took
    FROM memory_injection WHERE {mine} AND created_at >= %(day)s
    ORDER BY created_at DESC LIMIT %(recalls)s)
SELECT (SELECT jsonb_object_agg(outcome, n) FROM (
        SELECT outcome, count(*) AS n FROM day GROUP BY 1) o),
    (SELECT jsonb_object_agg(why, n) FROM (SELECT coalesce(why, '') AS why, count(*) AS n
        FROM day WHERE outcome = 'skipped' GROUP BY 1) s),
    (SELECT jsonb_object_agg(track, n) FROM (
        SELECT track, count(*) AS n FROM day, unnest(degraded) AS track GROUP BY 1) d),
    percentile_cont(0.5) WITHIN GROUP (ORDER BY took) FILTER (WHERE outcome <> 'skipped'),
    max(created_at), count(*) FILTER (WHERE created_at >= %(midnight)s)
FROM day
"""

PAST_SQL = """
SELECT to_char(created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD'), count(*) FROM memory_injection
WHERE {mine} AND created_at >= %(since)s AND created_at < %(midnight)s GROUP BY 1
"""

LAST_SQL = "SELECT created_at FROM memory_injection WHERE {mine} ORDER BY id DESC LIMIT 1"


def health(now: datetime, owner: Principal | None) -> Recalled:
    """What recall did for this principal; for everybody of None. Of a day with more than
    RECALLS_LOOKED_AT recalls the newest are told."""
    return kept(f"recalled:day:{whose(owner)}", lambda: _recalled(owner, now), DAY_SECONDS)


def _recalled(owner: Principal | None, now: datetime) -> Recalled:
    mine = owned(Injection.objects.all(), owner)
    past, last_at, used = kept(
        f"recalled:past:{whose(owner)}:{now:%Y-%m-%d}", lambda: _past(owner, now)
    )
    values = {"day": now - timedelta(days=1), "midnight": midnight(now)}
    row = ask(RECALLED_SQL, {**values, "recalls": RECALLS_LOOKED_AT}, mine=mine)[0]
    outcomes, skipped, degraded = (most_first(parsed(one) or {}) for one in row[:3])
    p50, newest, today = row[3:]
    return Recalled(
        outcomes=outcomes,
        skipped=skipped,
        degraded=degraded,
        milliseconds_p50=p50,
        last_at=newest or last_at,
        days=by_day(past, today, now),
        used=used,
    )


def _past(
    owner: Principal | None, now: datetime
) -> tuple[dict[str, int], datetime | None, UsedRate]:
    mine = owned(Injection.objects.all(), owner)
    days = ask(PAST_SQL, {"since": first_day(now), "midnight": midnight(now)}, mine=mine)
    last = ask(LAST_SQL, {}, mine=mine)
    used = used_rate(now - timedelta(days=DAYS), principal=owner)
    return dict(days), last[0][0] if last else None, used


@dataclass(frozen=True)
class Answered:
    """Recalls of 24 hours in one mode: how many ended how, seconds by quantile of those that were
    answered, and how many were answered by which server where there are two."""

    mode: str
    outcomes: dict[str, int]
    seconds: dict[str, float]
    servers: dict[str, int]


@dataclass(frozen=True)
class Modes:
    """What recall did for everybody in 24 hours, by mode; why clients gave up, which tracks were
    missing, and how much of what was injected in DAYS was used. `cut`: there were more than were
    looked at."""

    modes: tuple[Answered, ...]
    skipped: dict[str, int]
    degraded: dict[str, int]
    used: UsedRate
    cut: bool = False


BY_MODE_SQL = """
WITH day AS MATERIALIZED (
    SELECT mode, outcome, degraded, (timings->>'total')::float / 1000 AS took,
        options->'read'->>'server' AS server, options->>'reason' AS why
    FROM memory_injection WHERE {mine} AND created_at >= %(day)s
    ORDER BY created_at DESC LIMIT %(recalls)s)
SELECT m.mode,
    (SELECT jsonb_object_agg(outcome, n) FROM (
        SELECT outcome, count(*) AS n FROM day WHERE mode = m.mode GROUP BY 1) o),
    (SELECT percentile_cont(ARRAY[0.5, 0.95]) WITHIN GROUP (ORDER BY took) FROM day
        WHERE mode = m.mode AND outcome <> 'skipped'),
    (SELECT jsonb_object_agg(server, n) FROM (SELECT server, count(*) AS n FROM day
        WHERE mode = m.mode AND server IS NOT NULL GROUP BY 1) s),
    (SELECT jsonb_object_agg(why, n) FROM (SELECT coalesce(why, '') AS why, count(*) AS n
        FROM day WHERE mode = m.mode AND outcome = 'skipped' GROUP BY 1) s),
    (SELECT jsonb_object_agg(track, n) FROM (SELECT track, count(*) AS n
        FROM day, unnest(degraded) AS track WHERE mode = m.mode GROUP BY 1) d)
FROM (SELECT DISTINCT mode FROM day) m ORDER BY 1
"""


def by_mode(now: datetime) -> Modes:
    """What recall did for everybody, by mode."""
    return kept_by_cost("recalled:modes", lambda: _by_mode(now))


def _by_mode(now: datetime) -> Modes:
    values = {"day": now - timedelta(days=1), "recalls": ROWS_LOOKED_AT}
    rows = ask(BY_MODE_SQL, values, mine=owned(Injection.objects.all(), None))
    skipped: Counter[str] = Counter()
    degraded: Counter[str] = Counter()
    modes = []
    for mode, outcomes, took, servers, why, missing in rows:
        skipped.update(parsed(why) or {})
        degraded.update(parsed(missing) or {})
        modes.append(Answered(mode, parsed(outcomes), quantiles(took), parsed(servers) or {}))
    used = kept("recalled:used", lambda: used_rate(now - timedelta(days=DAYS)))
    looked_at = sum(sum(one.outcomes.values()) for one in modes)
    cut = looked_at >= ROWS_LOOKED_AT
    return Modes(tuple(modes), dict(skipped), dict(degraded), used, cut)
