"""Lately: what the pages that tell of the last days share: days, sums that are kept, whose rows.

Reads: whatever it is told to. Knows nothing about what is counted, and nothing about pages.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar, cast

from django.core.cache import cache
from django.db import connection

from memory.models import Principal
from memory.querysets import OwnerQuerySet, condition

#: Days of a sparkline.
DAYS = 14

#: Seconds for which a process keeps what past days add up to.
# Why: they hardly change any more, and adding them up costs more than all the rest of the board.
PAST_SECONDS = 600

#: Seconds for which it keeps what the last 24 hours add up to.
# Why: thousands of posts and recalls of a busy day, asked for by every board that is left open.
# What ran last, what waits and what is parked is asked for each time.
DAY_SECONDS = 30

#: Share of a process's time that goes into adding up one of these, at most.
# Why: a flood of 100,000 rows a day takes a second to add up; in the minutes for which that is kept
# then, a thousandth of the day comes and goes.
ADDING_SHARE_MAX = 0.01

assert DAY_SECONDS < PAST_SECONDS

T = TypeVar("T")


def kept(name: str, make: Callable[[], T], seconds: float = PAST_SECONDS) -> T:
    """What `make` gave within so many seconds, kept by this process for this database."""
    key = f"lately:{connection.settings_dict['NAME']}:{name}"
    return cast(T, cache.get_or_set(key, make, seconds))


def kept_by_cost(name: str, make: Callable[[], T]) -> T:
    """The same for DAY_SECONDS, or for longer what took long to make: PAST_SECONDS at most."""
    key = f"lately:{connection.settings_dict['NAME']}:{name}"
    if (held := cache.get(key)) is not None:
        return cast(T, held)
    began = time.monotonic()
    made = make()
    cache.set(key, made, kept_seconds(time.monotonic() - began))
    return made


def kept_seconds(took: float) -> float:
    """For how long what took so many seconds is kept. Pure."""
    return min(max(took / ADDING_SHARE_MAX, DAY_SECONDS), PAST_SECONDS)


def day_names(now: datetime) -> list[str]:
    """The days of a sparkline, oldest first."""
    today = now.astimezone(UTC).date()
    return [f"{today - timedelta(days=back):%Y-%m-%d}" for back in range(DAYS - 1, -1, -1)]


def by_day(past: Mapping[str, int], today: int, now: datetime) -> tuple[int, ...]:
    """A number for each day of `day_names`: of the past ones, and of today."""
    return (*(past.get(name, 0) for name in day_names(now)[:-1]), today)


def midnight(now: datetime) -> datetime:
    """When today began, in UTC."""
    return datetime.combine(now.astimezone(UTC).date(), datetime.min.time(), UTC)


def first_day(now: datetime) -> datetime:
    """When the oldest day of a sparkline began, in UTC."""
    return midnight(now) - timedelta(days=DAYS - 1)


def owned(rows: OwnerQuerySet, owner: Principal | None) -> OwnerQuerySet:
    """An owner's rows; everybody's for None, which is a superuser who asked for them."""
    return rows.as_pipeline() if owner is None else rows.visible_to(owner)


def whose(owner: Principal | None) -> str:
    """A word for the owner, under which sums are kept."""
    return "all" if owner is None else str(owner.pk)


def ask(sql: str, values: Mapping[str, Any], **conditions: OwnerQuerySet) -> list[tuple[Any, ...]]:
    """The rows of a statement; `{name}` in it is the WHERE of the queryset of that name."""
    values = dict(values)
    for word, rows in conditions.items():
        told, params = condition(rows)
        for place, value in enumerate(params):
            told = told.replace("%s", f"%({word}{place})s", 1)
            values[f"{word}{place}"] = value
        sql = sql.replace(f"{{{word}}}", told)
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        found: list[tuple[Any, ...]] = cursor.fetchall()
    return found


def parsed(told: Any) -> Any:
    """JSON of a plain statement: Django's connection hands it over as text."""
    return json.loads(told) if isinstance(told, str) else told


def counted_to(units: int, most: int) -> str:
    """A number that was counted to a bound, in words: "41", or "1,000+"."""
    return f"{min(units, most):,}{'+' if units > most else ''}"


def most_first(counts: Mapping[str, int] | None) -> dict[str, int]:
    """Counts by word, the largest first."""
    return dict(sorted((counts or {}).items(), key=lambda one: (-one[1], one[0])))
