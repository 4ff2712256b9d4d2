"""Spaced repetition: when a note comes up again, by how well somebody knew it.

Thin around the `fsrs` library, whose own JSON is what a card keeps. Pure; the clock is an argument.
Knows nothing about notes.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from fsrs import Card, Rating, Scheduler
from fsrs.card import CardDict

from memory.errors import RefusedError

#: Ratings by their number, as the library has them.
RATINGS: Mapping[int, str] = {1: "again", 2: "hard", 3: "good", 4: "easy"}

#: Of one's notes, the share that one wants to know when they come up.
# Why: the library's own; .95 would ask nearly twice as often.
# Calibrate: share of ratings other than "again" among cards that came up when due.
WANTED_SHARE = 0.9

#: Who schedules. Without fuzz: the same ratings at the same times give the same card, so that what
#: the ledger of ratings says can be held against the card.
SCHEDULER = Scheduler(desired_retention=WANTED_SHARE, enable_fuzzing=False)

#: The number that the library wants a card to have; ours are known by note and principal.
CARD_NUMBER = 0


def reviewed(
    state: Mapping[str, Any] | None, rating: int, *, now: datetime
) -> tuple[dict[str, Any], datetime]:
    """The card after this rating (1 to 4), and when it is due; None stands for a new card.

    Raises RefusedError for another rating.
    """
    if rating not in RATINGS:
        raise RefusedError("a rating is 1 (again), 2 (hard), 3 (good) or 4 (easy)")
    moment = now.astimezone(UTC)
    card = (
        Card.from_dict(cast(CardDict, dict(state)))
        if state
        else Card(card_id=CARD_NUMBER, due=moment)
    )
    after, _ = SCHEDULER.review_card(card, Rating(rating), review_datetime=moment)
    return dict(after.to_dict()), after.due


def intervals(state: Mapping[str, Any] | None, *, now: datetime) -> dict[int, timedelta]:
    """After how long the card would come up again, by rating."""
    return {rating: reviewed(state, rating, now=now)[1] - now for rating in RATINGS}
