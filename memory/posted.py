"""Posted: what capture did lately, by its receipts, and which hooks were heard of.

Reads: capture_receipt, raw_item. Bounded by an index and a time or a number of rows. Knows nothing
about pages, and judges nothing.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from memory.lately import (
    DAY_SECONDS,
    ask,
    by_day,
    first_day,
    kept,
    midnight,
    most_first,
    owned,
    parsed,
    whose,
)
from memory.models import CaptureReceipt, Principal, RawItem

#: Days in which a machine that was heard of is still told of.
# Why: a month, so that somebody's holiday is not the end of a machine.
HOOK_DAYS = 30

#: Posts of a day that are looked at, newest first.
# Calibrate: milliseconds of `captured` on the busiest day; posts above are told to be left out.
POSTS_LOOKED_AT = 2_000

#: Newest raw items by which the length of a session is told.
ROWS_LOOKED_AT = 1_000


@dataclass(frozen=True)
class Hook:
    """A client on a machine that posted within HOOK_DAYS; `version` as it said last."""

    machine: str
    client: str
    version: str
    seen_at: datetime


@dataclass(frozen=True)
class Captured:
    """What capture did for one owner, or for all, in 24 hours and by day."""

    posts: int = 0
    seen: int = 0
    stored: int = 0
    duplicates: int = 0
    refused: dict[str, int] = field(default_factory=dict)
    misses: dict[str, int] = field(default_factory=dict)
    last_at: datetime | None = None
    days: tuple[int, ...] = ()
    fortnight_seen: int = 0
    fortnight_duplicates: int = 0
    # Of the newest ROWS_LOOKED_AT raw items; None of none.
    rows_per_session: float | None = None
    hooks: tuple[Hook, ...] = ()

    @property
    def duplicate_rate(self) -> float | None:
        """Share of what was posted in 24 hours that was there already."""
        return self.duplicates / self.seen if self.seen else None

    @property
    def fortnight_duplicate_rate(self) -> float | None:
        return self.fortnight_duplicates / self.fortnight_seen if self.fortnight_seen else None


CAPTURED_SQL = """
WITH day AS MATERIALIZED (
    SELECT created_at, seen, stored, duplicates, refused, misses, client
    FROM memory_capturereceipt WHERE {mine} AND created_at >= %(day)s
    ORDER BY created_at DESC LIMIT %(posts)s)
SELECT count(*), coalesce(sum(seen), 0), coalesce(sum(stored), 0), coalesce(sum(duplicates), 0),
    coalesce(sum(stored) FILTER (WHERE created_at >= %(midnight)s), 0),
    coalesce(sum(seen) FILTER (WHERE created_at >= %(midnight)s), 0),
    coalesce(sum(duplicates) FILTER (WHERE created_at >= %(midnight)s), 0),
    max(created_at),
    (SELECT jsonb_object_agg(key, n) FROM (
        SELECT key, sum(value::bigint) AS n FROM day, jsonb_each_text(refused) GROUP BY key) r),
    (SELECT jsonb_object_agg(key, n) FROM (
        SELECT coalesce(one->>'reason', '') AS key, count(*) AS n
        FROM day, jsonb_array_elements(misses) AS one GROUP BY 1) m),
    (SELECT jsonb_agg(jsonb_build_array(machine, client, version, at)) FROM (
        SELECT DISTINCT ON (client->>'machine', client->>'client') client->>'machine' AS machine,
            client->>'client' AS client, client->>'version' AS version, created_at AS at
        FROM day WHERE client->>'machine' <> ''
        ORDER BY client->>'machine', client->>'client', created_at DESC) h)
FROM day
"""

LAST_POST_SQL = """
SELECT created_at FROM memory_capturereceipt WHERE {mine} ORDER BY created_at DESC LIMIT 1
"""

PAST_POSTS_SQL = """
SELECT to_char(created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD'), sum(stored), sum(seen),
    sum(duplicates) FROM memory_capturereceipt
WHERE {mine} AND created_at >= %(since)s AND created_at < %(midnight)s GROUP BY 1
"""

PAST_HOOKS_SQL = """
SELECT DISTINCT ON (client->>'machine', client->>'client') client->>'machine',
    client->>'client', client->>'version', created_at FROM memory_capturereceipt
WHERE {mine} AND created_at >= %(since)s AND client->>'machine' <> ''
ORDER BY client->>'machine', client->>'client', created_at DESC
"""

SESSIONS_SQL = """
SELECT count(*), count(DISTINCT (source, session)) FROM (
    SELECT id, owner_id, source, session, kind FROM memory_rawitem
    ORDER BY id DESC LIMIT %(looked)s) AS memory_rawitem WHERE {mine} AND kind = 'turn'
"""


@dataclass(frozen=True)
class _Past:
    """What of capture is kept for a while: sums by day, hooks, and how long sessions are."""

    stored: dict[str, int]
    seen: int
    duplicates: int
    last_at: datetime | None
    hooks: tuple[Hook, ...]
    rows_per_session: float | None


def captured(owner: Principal | None, now: datetime) -> Captured:
    """What capture did for this owner; for everybody of None. Of a day with more than
    POSTS_LOOKED_AT posts the newest are told."""
    return kept(f"captured:day:{whose(owner)}", lambda: _captured(owner, now), DAY_SECONDS)


def _captured(owner: Principal | None, now: datetime) -> Captured:
    past = kept(f"captured:past:{whose(owner)}:{now:%Y-%m-%d}", lambda: _past(owner, now))
    values = {"day": now - timedelta(days=1), "midnight": midnight(now), "posts": POSTS_LOOKED_AT}
    mine = owned(CaptureReceipt.objects.all(), owner)
    row = ask(CAPTURED_SQL, values, mine=mine)[0]
    posts, seen, stored, duplicates, today, today_seen, today_again, last_at, *told = row
    refused, misses, heard = (parsed(one) or {} for one in told)
    fresh = [Hook(a or "", b or "", c or "", datetime.fromisoformat(at)) for a, b, c, at in heard]
    return Captured(
        posts=posts,
        seen=seen,
        stored=stored,
        duplicates=duplicates,
        refused=most_first(refused),
        misses=most_first(misses),
        last_at=last_at or past.last_at,
        days=by_day(past.stored, today, now),
        fortnight_seen=past.seen + today_seen,
        fortnight_duplicates=past.duplicates + today_again,
        rows_per_session=past.rows_per_session,
        hooks=_latest([*past.hooks, *fresh]),
    )


def _past(owner: Principal | None, now: datetime) -> _Past:
    mine = owned(CaptureReceipt.objects.all(), owner)
    values = {"since": first_day(now), "midnight": midnight(now)}
    days = ask(PAST_POSTS_SQL, values, mine=mine)
    month = {"since": now - timedelta(days=HOOK_DAYS)}
    hooks = [
        Hook(machine or "", client or "", version or "", at)
        for machine, client, version, at in ask(PAST_HOOKS_SQL, month, mine=mine)
    ]
    last = ask(LAST_POST_SQL, {}, mine=mine)
    # Their own: how long other people's sessions are is not their capture's doing.
    items = RawItem.objects.as_pipeline()
    items = items if owner is None else items.filter(owner=owner)
    turns, sessions = ask(SESSIONS_SQL, {"looked": ROWS_LOOKED_AT}, mine=items)[0]
    return _Past(
        stored={day: int(stored) for day, stored, _, _ in days},
        seen=sum(int(seen) for _, _, seen, _ in days),
        duplicates=sum(int(again) for *_, again in days),
        last_at=last[0][0] if last else None,
        hooks=tuple(hooks),
        rows_per_session=turns / sessions if sessions else None,
    )


def _latest(hooks: Collection[Hook]) -> tuple[Hook, ...]:
    """Each client of each machine once, as it was heard of last; the latest first."""
    found: dict[tuple[str, str], Hook] = {}
    for hook in sorted(hooks, key=lambda one: one.seen_at):
        found[hook.machine, hook.client] = hook
    return tuple(sorted(found.values(), key=lambda one: one.seen_at, reverse=True))
