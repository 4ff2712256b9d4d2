"""Every cosine threshold belongs to an embedder: one row per embedder, with how it was found.

Knows nothing about who compares what. An embedder without a row gets careful numbers and says so.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal

logger = logging.getLogger(__name__)

Purpose = Literal[
    "dedup_floor", "recall_floor", "topic_shift", "centroid_floor", "related", "linked", "clustered"
]


@dataclass(frozen=True)
class Row:
    """Cosines of one embedder, 0 to 1, and how they were found."""

    #: Below this, two notes are not shown to the judge as neighbours.
    dedup_floor: float
    #: Below this, the semantic track alone puts no note before an agent.
    recall_floor: float
    #: Below this, two windows of turns are two topics.
    topic_shift: float
    #: Below this, an episode is not given to the project whose centroid is nearest.
    centroid_floor: float
    #: From here on, two notes are shown as neighbours.
    related: float
    #: From here on, a note's page in the vault links to the other note.
    linked: float
    #: From here on, two notes that are near each other may share a hub page in the vault.
    clustered: float
    #: How, for the reader and for `doctor`.
    how: str
    calibrated: bool = True
    #: The recall floor for prompts in a tongue that the embedder knows badly: everything in it
    #: looks alike to it. Tongues that are not named have the floor above.
    recall_floors: Mapping[str, float] = field(default_factory=dict)


#: The rows, by the start of the embedder's name.
# Why these numbers: see `how`; each came from the data named there, not from the embedder's paper.
# Calibrate: `python -m tests.bench.topic_shift` and `python -m tests.bench.cosine_floors`.
ROWS: dict[str, Row] = {
    "minilm-l6-v2-int8-pad768": Row(
        dedup_floor=0.60,
        recall_floor=0.36,
        topic_shift=0.30,
        centroid_floor=0.82,
        related=0.50,
        linked=0.65,
        clustered=0.78,
        how=(
            "dedup: all 45 related of 60 hand-made pairs are at or above 0.60, 9 of 15 distinct "
            "ones, too; the judge tells them apart. recall: of questions and their LoCoMo evidence "
            "turns 54 % are above 0.30 (median .32), of questions and turns of another dialogue "
            "0.8 % (p99 .29); of 15 hand-made prompts and notes of coding work 13. Of 40 everyday "
            "prompts of coding on 44 notes of other work 11 found something above 0.30, 7 of them "
            "below 0.36; the right notes of 17 prompts stood at .44 or above. topic: glued "
            "LoCoMo sessions, at 0.30 precision .32 and recall .34, 0.8 cuts in 20 turns; 0.25 "
            "finds .12, 0.40 cuts twice as often for .53 at .23. centroid: sessions against their "
            "own dialogue p25 .82, against the best other one p99 .82. Other tongues, hand-made "
            "questions: German on their note .65 to .82, off every note up to .47; Chinese, "
            "Japanese, Russian .73 to .97, off up to .67. vault: of 45 related hand-made pairs 43 "
            "are linked at 0.65 and 35 at 0.78, of 1770 pairs of any two of the old statements 9 "
            "and 7; of 1417 LoCoMo turns 97 and 99 % of such pairs are of one dialogue. Clusters "
            "of those turns: 23 at 0.78, the largest of 18; 52 at 0.65, the largest of 54; at 0.50 "
            "a giant that no split makes small."
        ),
        recall_floors={"latin": 0.55, "script": 0.70},
    ),
    "nomic-embed": Row(
        dedup_floor=0.80,
        recall_floor=0.60,
        topic_shift=0.60,
        centroid_floor=0.85,
        related=0.70,
        linked=0.65,
        clustered=0.78,
        how=(
            "dedup, vault: the first operator's values for this model. The others: not measured "
            "here; its unrelated texts lie near 0.5, so they stand higher than MiniLM's by about "
            "that."
        ),
        calibrated=False,
    ),
}

#: For an embedder that nobody measured.
# Why: a low dedup floor only asks the judge more often; a high recall floor only keeps silent (the
# keyword track still speaks); a topic border that never fires leaves size and gap; a page with few
# links misleads nobody.
CAREFUL = Row(
    dedup_floor=0.60,
    recall_floor=0.70,
    topic_shift=0.10,
    centroid_floor=0.95,
    related=0.80,
    linked=0.90,
    clustered=0.95,
    how="This embedder was not calibrated; numbers that do no harm stand in.",
    calibrated=False,
)


def thresholds(embedder: str) -> Row:
    """The row of an embedder; CAREFUL, with a warning once, for one that has none."""
    row = next((row for name, row in ROWS.items() if embedder.startswith(name)), None)
    if row is None:
        _warn(embedder)
    return row or CAREFUL


def threshold(embedder: str, purpose: Purpose) -> float:
    """One number of that row."""
    value: float = getattr(thresholds(embedder), purpose)
    return value


def recall_floor(embedder: str, tongue: str) -> float:
    """The recall floor of an embedder for prompts in one of `memory.text.tongue`'s tongues."""
    row = thresholds(embedder)
    return row.recall_floors.get(tongue, row.recall_floor)


@lru_cache(maxsize=64)
def _warn(embedder: str) -> None:
    logger.warning("%s: %s", embedder, CAREFUL.how)
