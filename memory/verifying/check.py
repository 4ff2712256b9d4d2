"""A check: its name, what it holds, and the function that looks. How one asks the database.

Knows nothing about which checks there are, or about runs.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from memory import claims
from memory.findings import Found
from memory.lately import ask, parsed
from memory.querysets import OwnerQuerySet

logger = logging.getLogger(__name__)


@dataclass
class Look:
    """One look of one check: the moment, how many findings are wanted, and what came of it.

    `looked` counts the things that were looked at, `beyond` what was found but not handed over.
    """

    now: datetime
    most: int
    looked: int = 0
    beyond: int = 0


@dataclass(frozen=True)
class Check:
    """`says` is what holds when it finds nothing, in a line for people."""

    name: str
    says: str
    look: Callable[[Look], Iterator[Found]]


def taken(check: Check, look: Look) -> list[Found]:
    """What a check finds, `look.most` at most; the others are counted in `look.beyond`.

    A check that falls over a row is a finding itself: the others have their turn, and nobody takes
    it for a clean one. Where the database is away, writing that down fails.
    """
    kept: list[Found] = []
    try:
        for one in check.look(look):
            if len(kept) < look.most:
                kept.append(one)
            else:
                look.beyond += 1
    except Exception as error:
        # Its words may be of the record: the kind alone is kept, and told.
        kind = type(error).__name__
        logger.error("check %s: %s", check.name, kind)
        fallen = Found("check", check.name, None, {"wrong": "it could not look", "error": kind})
        kept.insert(0, fallen)
    return kept


def slack() -> timedelta:
    """How far the time on a row may lie before the moment at which others saw it.

    Why: a worker reads the clock, asks a model, and then writes; whoever read meanwhile saw the row
    as it was. As long as a worker may be silent, so that no race is taken for a fault.
    """
    return timedelta(seconds=claims.silence_seconds(claims.LEASE_SECONDS))


def count(look: Look, sql: str, *, live: OwnerQuerySet | None = None, **values: Any) -> None:
    """Count what a check looks at."""
    conditions = {} if live is None else {"live": live}
    look.looked += int(ask(sql, values, **conditions)[0][0])


def rows(
    look: Look, sql: str, *, live: OwnerQuerySet | None = None, **values: Any
) -> Iterator[Found]:
    """Findings by one statement, which sees one moment: of what is being written it sees all or
    nothing. It gives (kind, reference, owner, detail as JSON); `{live}` in it is the predicate.

    At most `look.most` are fetched; the database counts the others.
    """
    conditions = {} if live is None else {"live": live}
    bounded = (
        f"WITH found (kind, reference, owner_id, detail) AS ({sql})"
        " SELECT kind, reference, owner_id, detail, count(*) OVER () FROM found"
        " ORDER BY reference LIMIT %(most)s"
    )
    found = ask(bounded, {**values, "most": look.most}, **conditions)
    if found:
        look.beyond += found[0][4] - len(found)
    for kind, reference, owner, detail, _ in found:
        yield Found(kind, reference, owner, parsed(detail) or {})
