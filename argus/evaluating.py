"""Evaluate recall in a throwaway database: on a data set, or on a copy of one's own notes.

Reads: note, raw_item, evidence, into a copy; what is measured happens there alone. Knows nothing
about files or about how numbers are printed.
"""

from __future__ import annotations

from django.utils import timezone

from argus.scratch import scratch
from memory.access import principal
from recall.evaluation import ground, own
from recall.evaluation.copies import rows_seen_by
from recall.evaluation.dataset import Dataset
from recall.evaluation.run import Evaluation, evaluate


def run(dataset: Dataset | None, *, limit: int | None = None, progress: bool = False) -> Evaluation:
    """Evaluate a data set, or the notes of the principal that commands act for."""
    if dataset is None:
        return _own(limit, progress)
    chosen = dataset.first(limit)
    with scratch():
        who = principal()
        laid = ground.lay(chosen, principal=who, progress=progress)
        done = evaluate(
            chosen.questions, laid, principal=who, labels=chosen.labels, progress=progress
        )
    return _named(done, chosen.name, dict(chosen.left_out))


def _own(limit: int | None, progress: bool) -> Evaluation:
    who, now = principal(), timezone.now()
    with scratch(rows_seen_by(who)):
        known = own.read(who, now=now)
        asked = own.questions(known)
        laid = own.lay(who, known, now=now)
        done = evaluate(asked[:limit], laid, principal=who, labels={}, progress=progress)
    left = {"beyond the limit": len(asked) - limit} if limit and limit < len(asked) else {}
    return _named(done, f"the notes of {who.name}", left)


def _named(done: Evaluation, name: str, left_out: dict[str, int]) -> Evaluation:
    return Evaluation({"dataset": name, "left_out": left_out, **done.report}, done.predictions)
