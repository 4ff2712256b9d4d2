"""Where a task stands: a pure function of what was said and shown of it, in order.

    | event                  | open     | claimed  | verified | disputed |
    |------------------------|----------|----------|----------|----------|
    | claim_done             | claimed  | claimed  | verified | claimed  |
    | claim_failed           | open     | open     | open     | open     |
    | confirmed              | verified | verified | verified | verified |
    | test_passed, commit    | open (1) | verified | verified | verified |
    | denied, test_failed    | open     | disputed | disputed | disputed |

(1) verified, when somebody asked for the task: what was asked for and is shown needs no claim; a
promise alone is not yet something that could have been shown.

A claim alone never verifies: the only ways into `verified` are a person's word, a test that passed
and a commit. Knows nothing about rows; `review.tasks` says the same in SQL.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, get_args

Status = Literal["open", "claimed", "verified", "disputed"]
STATUSES: tuple[Status, ...] = get_args(Status)

#: Openings after which shown work counts without a claim.
ASKED = frozenset({"request", "posted"})

SHOWN = frozenset({"test_passed", "commit"})
AGAINST = frozenset({"denied", "test_failed"})


@dataclass(frozen=True)
class Standing:
    """A status, the index of the event that made it so (None: nothing did), and whether somebody
    said that it failed."""

    status: Status = "open"
    decided_by: int | None = None
    failed: bool = False


def standing(opening: str, happenings: Iterable[str]) -> Standing:
    """Where a task of this opening stands after these happenings, in the order they occurred."""
    now = Standing()
    for index, happening in enumerate(happenings):
        after = _after(opening, now.status, happening)
        failed = happening == "claim_failed"
        borne_out = after in ("verified", "disputed") and happening != "claim_done"
        if after != now.status or failed or borne_out:
            now = Standing(after, index, failed)
    return now


def status(opening: str, happenings: Iterable[str]) -> Status:
    """As `standing`, the word alone."""
    return standing(opening, happenings).status


def _after(opening: str, before: Status, happening: str) -> Status:
    if happening == "claim_failed":
        return "open"
    if happening == "claim_done":
        return "verified" if before == "verified" else "claimed"
    if happening == "confirmed":
        return "verified"
    if happening in SHOWN:
        return "open" if before == "open" and opening not in ASKED else "verified"
    if happening in AGAINST:
        return "open" if before == "open" else "disputed"
    raise ValueError(happening)
