"""A run is told in the same words by a command, by its own page and by the board."""

from __future__ import annotations

from memory.management.base import summary
from memory.models import StageRun
from memory.passes import Look
from memory.wording import counts

REPORT = {
    "episodes": 1_200, "content_failures": 1, "reasons": {"session_end": 2, "gap": 0},
    "rejected": {}, "stopped": "budget", "dry": True,
}  # fmt: skip


def test_one_report_is_told_in_the_same_words_everywhere() -> None:
    told = summary(REPORT)
    assert told == (
        "episodes 1,200, unusable answers 1, stopped budget\nended by: the end of the session 2"
    )
    look = dict(Look(StageRun(report=REPORT), (), None, 0.0).report)
    assert look == {
        "episodes": "1,200", "unusable answers": "1", "ended by": "the end of the session 2",
        "stopped": "budget", "dry": "True",
    }  # fmt: skip
    assert dict(counts(REPORT)) == {
        "episodes": "1,200", "unusable answers": "1", "ended by": "(the end of the session 2)",
    }  # fmt: skip
