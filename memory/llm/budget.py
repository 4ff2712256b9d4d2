"""The day's budget of tokens: reserved before a call, corrected after it, and how it stands.

Reads: token_day, llm_call, act. Writes: token_day. Knows nothing about models, and lifts nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import connection, transaction

from memory.errors import BudgetExhausted
from memory.models import Act, LlmCall, TokenDay

#: Stands for no limit in the books of a day.
TOKENS_A_DAY_MAX = 2**62

#: The noun under which acts of lifting stand on the list of acts.
KIND = "budget"


@dataclass(frozen=True)
class Refused:
    """A stage whose last call for a port was refused today, since `at`."""

    stage: str
    port: str
    at: datetime


@dataclass(frozen=True)
class Budget:
    """How the books of one day in UTC stand, in tokens. `limit` is the setting, `extra` what a
    person allowed beyond it for this day."""

    day: date
    tokens: int
    limit: int
    extra: int
    refused: tuple[Refused, ...] = ()

    @property
    def allowed(self) -> int:
        """Most tokens of this day. Of a setting of 0 none, whatever was lifted."""
        return self.limit + self.extra if self.limit else 0

    @property
    def left(self) -> int:
        return max(0, self.allowed - self.tokens)

    @property
    def share(self) -> float | None:
        """The share that is spent; None where nothing may be spent at all."""
        return self.tokens / self.allowed if self.allowed else None

    @property
    def stopped(self) -> bool:
        """Whether background work waits for tokens."""
        return bool(self.refused) or (bool(self.limit) and self.tokens >= self.allowed)

    @property
    def resumes_at(self) -> datetime | None:
        """When it goes on by itself: at midnight in UTC; never where nothing may be spent."""
        return midnight_after(self.day) if self.limit else None

    @property
    def sentence(self) -> str:
        """That background work is stopped, and what ends it."""
        if not self.limit:
            return "ARGUS_TOKENS_PER_DAY is 0: no model is called until it is set to more."
        return (
            f"The budget of {self.day} has no room for what waits ({self.tokens:,} of "
            f"{self.allowed:,} tokens spent): background work goes on at midnight UTC, or after "
            "`manage.py budget --lift TOKENS --reason WHY`."
        )

    def stops(self, stage: str) -> bool:
        """Whether this stage waits for tokens."""
        spent = bool(self.limit) and self.tokens >= self.allowed
        return spent or any(one.stage == stage for one in self.refused)


def midnight_after(day: date) -> datetime:
    """When the day is over, in UTC."""
    return datetime.combine(day + timedelta(days=1), datetime.min.time(), UTC)


# Why the second condition of the first row: a call larger than the setting fits a day that was
# lifted, and only the row of the day knows of that.
RESERVE_SQL = """
INSERT INTO {table} AS booked (day, tokens)
SELECT %(day)s, %(tokens)s
WHERE %(tokens)s <= %(most)s OR EXISTS (SELECT 1 FROM {table} WHERE day = %(day)s)
ON CONFLICT (day) DO UPDATE SET tokens = booked.tokens + excluded.tokens
WHERE booked.tokens + excluded.tokens <= %(most)s + booked.extra
RETURNING tokens
"""

CORRECT_SQL = "UPDATE {table} SET tokens = greatest(0, tokens + %s) WHERE day = %s"


def reserve(tokens: int, now: datetime, *, background: bool) -> date:
    """Reserve tokens on the row of today and give its day: one statement, so that no two can
    overspend. What is not in the background is counted and not stopped, but by a setting of 0.

    Raises BudgetExhausted where there is no room, RuntimeError inside a transaction.
    """
    now = now.astimezone(UTC)
    limit = settings.ARGUS.tokens_per_day
    most = limit if background or not limit else TOKENS_A_DAY_MAX
    values: dict[str, Any] = {"day": now.date(), "tokens": tokens, "most": most}
    # Durable: raises inside a transaction, where a model call would hold locks for a minute.
    with transaction.atomic(durable=True), connection.cursor() as cursor:
        granted = False
        if limit:
            cursor.execute(RESERVE_SQL.format(table=_table()), values)
            granted = cursor.fetchone() is not None
    if not granted:
        raise _exhausted(tokens, limit, now)
    return now.date()


def _exhausted(tokens: int, limit: int, now: datetime) -> BudgetExhausted:
    extra = TokenDay.objects.filter(day=now.date()).values_list("extra", flat=True).first() or 0
    allowed = Budget(now.date(), 0, limit, extra).allowed
    told = f"The budget of {allowed} tokens for {now.date()} has no room for {tokens} more"
    if tokens > allowed:
        told += f"; one call of this size needs ARGUS_TOKENS_PER_DAY of {tokens} or more"
    left = midnight_after(now.date()) - now
    return BudgetExhausted(told, left.total_seconds())


def correct(day: date, difference: int) -> None:
    """Put what a call really cost in the place of what was reserved for it."""
    with connection.cursor() as cursor:
        cursor.execute(CORRECT_SQL.format(table=_table()), [difference, day])


def standing(now: datetime) -> Budget:
    """How the budget stands now: three cheap questions."""
    day = now.astimezone(UTC).date()
    row = TokenDay.objects.filter(day=day).values_list("tokens", "extra").first()
    tokens, extra = row or (0, 0)
    return Budget(day, tokens, settings.ARGUS.tokens_per_day, extra, _refused(day))


# Each stage and port by itself: what others ask meanwhile, however often, hides no refusal.
REFUSED_SQL = """
SELECT stage, port, created_at FROM (
    SELECT DISTINCT ON (stage, port) id, stage, port, created_at FROM {table}
    WHERE created_at >= %(since)s AND created_at < %(until)s AND outcome = 'budget'
    ORDER BY stage, port, created_at DESC, id DESC) last
WHERE NOT EXISTS (SELECT FROM {table} later
    WHERE later.created_at >= last.created_at AND later.created_at < %(until)s
      AND later.stage = last.stage AND later.port = last.port AND later.outcome <> 'budget'
      AND (later.created_at, later.id) > (last.created_at, last.id))
ORDER BY 1, 2
"""


def _refused(day: date) -> tuple[Refused, ...]:
    """Whose last call of today was refused, and was not lifted since."""
    until = midnight_after(day)
    since = until - timedelta(days=1)
    values: dict[str, Any] = {"since": since, "until": until}
    table = connection.ops.quote_name(LlmCall._meta.db_table)
    with connection.cursor() as cursor:
        cursor.execute(REFUSED_SQL.format(table=table), values)
        found = [Refused(*row) for row in cursor.fetchall()]
    if not found:
        return ()
    lifts = Act.objects.filter(kind=KIND, verb="lift", reference=str(day)).order_by("-pk")
    lifted_at = lifts.values_list("created_at", flat=True).first()
    return tuple(one for one in found if lifted_at is None or one.at > lifted_at)


def stop_of(report: dict[str, Any], now: datetime) -> dict[str, str | None]:
    """What a report says of a stop by the budget: nothing where nothing was put off, or where it
    was for another reason."""
    stages = [report, *(one for one in report.values() if isinstance(one, dict))]
    if not any(one.get("transient_failures") for one in stages):
        return {}
    budget = standing(now)
    if not budget.stopped:
        return {}
    resumes = budget.resumes_at
    return {
        "stopped": "budget",
        "resumes_at": resumes.isoformat() if resumes else None,
        "detail": budget.sentence,
    }


def _table() -> str:
    return connection.ops.quote_name(TokenDay._meta.db_table)
