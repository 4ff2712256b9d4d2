"""What is forbidden though nobody can read any more what it was: the refusal of it was purged.

Reads: rejected_fact. Writes nothing. Knows nothing about how one is lifted (`review.rejections`).
"""

from __future__ import annotations

from dataclasses import dataclass

from memory import rejected
from memory.models import RejectedFact
from memory.querysets import OwnerQuerySet

#: Rejected facts without their words that are listed.
# Why: of each there is only who said so and when; the others come up as these are lifted.
FACTS_MAX = 50


@dataclass(frozen=True)
class Facts:
    """The latest of them, and whether there are more."""

    shown: tuple[RejectedFact, ...]
    more: bool


def wordless_facts(facts: OwnerQuerySet) -> Facts:
    """Of these facts those that hold without their words: who said so and when, the latest."""
    rows = rejected.wordless(facts).select_related("owner", "principal").defer("shingles")
    found = list(rows[: FACTS_MAX + 1])
    return Facts(tuple(found[:FACTS_MAX]), len(found) > FACTS_MAX)
