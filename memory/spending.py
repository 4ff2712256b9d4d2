"""Spending: what models cost, stage by stage, and a day's budget that a person widens.

Reads: llm_call, token_day. Writes: token_day. Audits: act, in the same transaction.
Knows nothing about what the calls were for.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.db import transaction
from django.db.models import F

from memory.acts import record_act, tidy_reason
from memory.errors import RefusedError
from memory.lately import ask, most_first
from memory.llm.budget import KIND, Budget, standing
from memory.models import Principal, TokenDay

#: Most tokens by which one act may widen a day.
# Why: as many as the setting may be; a slip of the finger should not be worth more than a day.
LIFT_TOKENS_MAX = 1_000_000_000


@dataclass(frozen=True)
class Spent:
    """Calls of one stage for one port to one model since some moment: tokens, milliseconds.
    `model_real` are the names by which the model answered, commas between."""

    stage: str
    port: str
    model_asked: str
    model_real: str
    calls: int
    tokens_in: int
    tokens_out: int
    milliseconds: int
    outcomes: dict[str, int]

    @property
    def tokens(self) -> int:
        return self.tokens_in + self.tokens_out


SPENT_SQL = """
SELECT stage, port, model_asked, model_real, outcome, count(*), sum(tokens_in), sum(tokens_out),
    sum(milliseconds)
FROM memory_llmcall WHERE created_at >= %(since)s GROUP BY 1, 2, 3, 4, 5
"""


def spent(since: datetime) -> list[Spent]:
    """What every stage asked of which model since then, the dearest first; local adapters, which
    cost no tokens, included."""
    found: dict[tuple[str, str, str], list[tuple[Any, ...]]] = {}
    for stage, port, asked, *told in ask(SPENT_SQL, {"since": since}):
        found.setdefault((stage, port, asked), []).append(tuple(told))
    rows = [_sum(named, told) for named, told in found.items()]
    return sorted(rows, key=lambda one: (-one.tokens, -one.calls, one.stage, one.port))


def _sum(named: tuple[str, str, str], told: list[tuple[Any, ...]]) -> Spent:
    """The rows of one stage, port and model asked as one: (real, outcome, calls, in, out, ms)."""
    outcomes: Counter[str] = Counter()
    for _, outcome, calls, *_ in told:
        outcomes[outcome] += calls
    calls, tokens_in, tokens_out, took = (
        int(sum(column)) for column in zip(*(row[2:] for row in told), strict=True)
    )
    answered = ", ".join(sorted({real for real, *_ in told if real}))
    return Spent(*named, answered, calls, tokens_in, tokens_out, took, most_first(outcomes))


def lift(tokens: int, *, by: Principal, reason: str, now: datetime) -> Budget:
    """Allow so many tokens more for today alone, and say why; how the budget stands then.

    Raises RefusedError for a number that makes no sense, without a reason, or where the setting
    allows no call at all.
    """
    if not 1 <= tokens <= LIFT_TOKENS_MAX:
        raise RefusedError(f"tokens to lift by are 1 to {LIFT_TOKENS_MAX:,}")
    if not tidy_reason(reason):
        raise RefusedError("say why: --reason")
    if not standing(now).limit:
        raise RefusedError("ARGUS_TOKENS_PER_DAY is 0, which allows no call at all: set it first")
    day = now.astimezone(UTC).date()
    with transaction.atomic():
        TokenDay.objects.get_or_create(day=day)
        TokenDay.objects.filter(day=day).update(extra=F("extra") + tokens)
        record_act(by, "lift", KIND, day, now=now, reason=reason, detail={"tokens": tokens})
    return standing(now)
