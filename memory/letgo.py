"""Letting go of old rows of a ledger, one row a day left of them.

Everything is kept for ever unless somebody says otherwise. Writes: by the function argus_let_go
alone. Audits: purge_ledger and ledger_day (by that function), act.
Verify: the sums of the days are those of the rows that went.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

from django.db import connection, transaction

from memory.acts import record_act, tidy_reason
from memory.errors import RefusedError
from memory.models import Principal
from memory.purge import patient

#: Ledger -> what goes with its rows, and what is lost.
LEDGERS: dict[str, str] = {
    "injection": "what each recall was asked and gave; what was said of a note holds without it",
    "receipt": "what each post to capture did, but for those that ended a session",
    "llm_call": "each call of a model",
    "segment_check": "each look for a border in a session that was cut by now",
    "stage_run": "runs that no row was made by, but the last of each stage",
}


@dataclass(frozen=True)
class LetGo:
    """Rows that went, by the name of their ledger and, of what hung on them, by table; how many
    days they were of; `ledger` is the row that says so, 0 when nothing went or it was a look."""

    name: str
    before: date
    counts: Mapping[str, int]
    days: int
    ledger: int = 0


def look_at(name: str, before: date, *, now: datetime) -> LetGo:
    """What would go; nothing is changed. Raises as `let_go` does."""
    _check(name, before, now)
    with patient():
        told = _call(name, before, "nobody", "a look")
        transaction.set_rollback(True)
    return _told(name, before, told)


def let_go(name: str, before: date, *, by: Principal, reason: str, now: datetime) -> LetGo:
    """Remove what a ledger says of the days before this one (UTC), and keep their sums.

    Where there is nothing to remove, it says so and writes nothing. Raises RefusedError for a
    ledger that is none of LEDGERS, a day that is to come, no reason; Conflict beside a purge that
    takes its time.
    """
    _check(name, before, now)
    reason = tidy_reason(reason)
    if not reason:
        raise RefusedError("a purge needs a reason: it is all that is left of it")
    with patient():
        told = _call(name, before, by.name, reason)
        if not told["tables"]:
            # What took nothing leaves no row that says so for ever.
            transaction.set_rollback(True)
            return _told(name, before, told)
        made = _told(name, before, told, told["ledger"])
        detail = {"before": before.isoformat(), "counts": dict(made.counts)}
        record_act(by, "let_go", "ledger", name, now=now, reason=reason, detail=detail)
    return made


def _check(name: str, before: date, now: datetime) -> None:
    if name not in LEDGERS:
        raise RefusedError(f"no ledger {name}: {', '.join(LEDGERS)} may be let go")
    if before > now.astimezone(UTC).date():
        raise RefusedError("a day that is not over has no sum: name today or a day before it")


def _told(name: str, before: date, told: Mapping[str, Any], ledger: int = 0) -> LetGo:
    return LetGo(name, before, told["tables"], len(told["days"]), ledger)


def _call(name: str, before: date, actor: str, reason: str) -> dict[str, Any]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT argus_let_go(%s, %s::date, %s, %s)", [name, before, actor, reason])
        answer: dict[str, Any] = json.loads(cursor.fetchone()[0])
    return answer
