"""Which note stands in the place of a retired one: the one walk along the verdicts that stand.

Reads: dedup_verdict, note. One statement a step, for however many notes, and so many steps at most.
Knows nothing about who may see what, or about verdicts that somebody took back.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from uuid import UUID

from django.db.models import Q

from memory import verdicts
from memory.models import DedupVerdict, Note

#: Replacements followed from a note.
# Why: a fact that changed more often has a page of its own; what runs in a circle ends, too.
HEIRS_MAX = 50

#: Verdicts that may retire the new note, and the old one.
# Why: a note that many others went into is the one that stays in each of their verdicts; none of
# them is read to learn that.
NEW_GOES, OLD_GOES = ("duplicate", "supersede"), ("refine", "supersede")

#: What is read of the two notes of a verdict: what its effect depends on, and what they are called.
READ = (
    "project", "visibility", "confidence", "valid_from", "deleted_at", "retired_reason", "title",
)  # fmt: skip


@dataclass(frozen=True)
class Heir:
    """The verdict that retired a note, and the note that it kept in its place. Of both notes only
    READ is there."""

    verdict: DedupVerdict
    retired: Note
    kept: Note


def heirs(notes: Collection[UUID]) -> dict[UUID, Heir]:
    """Who stands in the place of each of these notes, one step on; of several verdicts that retired
    it the latest counts. A note that is not retired has none, whatever was decided of it."""
    rows = (
        DedupVerdict.objects.as_pipeline()
        .filter(
            Q(note__in=notes, verdict__in=NEW_GOES, note__deleted_at__isnull=False)
            | Q(target__in=notes, verdict__in=OLD_GOES, target__deleted_at__isnull=False),
            status__in=("applied", "approved"),
        )
        .select_related("note", "target")
        .only(
            "verdict", "model_real", "decided_by",
            *(f"{side}__{name}" for side in ("note", "target") for name in READ),
        )
        .order_by("pk")
    )  # fmt: skip
    found: dict[UUID, Heir] = {}
    for row in rows:
        did = verdicts.effect(row.verdict, row.note, row.target)
        if did.retired is not None and did.retired.deleted_at is not None:
            found[did.retired.pk] = Heir(row, did.retired, did.kept)
    return {pk: heir for pk, heir in found.items() if pk in notes}


def lines(notes: Collection[UUID]) -> dict[UUID, list[Heir]]:
    """The line of heirs of each of these notes, the next one first: to one that is live, or that
    nobody replaced, and never through a note twice."""
    found: dict[UUID, list[Heir]] = {pk: [] for pk in notes}
    edge = set(notes)
    for _ in range(HEIRS_MAX):
        steps = heirs(edge) if edge else {}
        edge = set()
        for start, line in found.items():
            step = steps.get(line[-1].kept.pk if line else start)
            known = {start, *(one.kept.pk for one in line)}
            if step is not None and step.kept.pk not in known:
                line.append(step)
                edge.add(step.kept.pk)
    return found
