"""The list of findings: whose somebody sees, how it is narrowed, where the thing of one is shown.

Reads: finding, stage_run. Knows nothing about requests, nor about what a thing is: only the name
of its page.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import Q

from memory import findings
from memory.models import Finding, Principal
from memory.querysets import OwnerQuerySet
from memory.shown.acts import link
from memory.text.seen import visible
from memory.web.listing import Choice, Column, Day, Filter, Words
from memory.web.marks import CUT
from memory.web.page import number

#: Kind of thing -> (page of one, what its id is), or (list, parameter that finds one).
# Why not the things' own rows: what was found stays on the list when the thing is gone.
PLACES: dict[str, tuple[str, Any]] = {
    "note": ("note", UUID),
    "item": ("item", int),
    "episode": ("episode", int),
    "verdict": ("review-hold", int),
    "injection": ("injection", int),
    "unit": ("parked", "q"),
    "purge": ("purge", ""),
    "session": ("", ""),
    "trigger": ("", ""),
    "function": ("", ""),
    "index": ("", ""),
    "vector": ("", ""),
    "search text": ("", ""),
    "collection": ("", ""),
    "check": ("", ""),
}

#: Of which runs findings are listed: the last of each stage, or all.
LATEST, EVERY = "latest", "all"

#: Characters of a detail in a row; an export has all of them.
DETAIL_CHARACTERS_MAX = 400


@dataclass(frozen=True)
class Told:
    """A finding as a page shows it: `link` leads to its thing, "" where there is no such page."""

    finding: Finding
    link: str
    reference: str
    detail: str


def visible_findings(principal: Principal, *, everyones: bool = False) -> OwnerQuerySet:
    """What was found of somebody's things, and of the house itself, which is nobody's; everybody's
    for a superuser who asked."""
    rows: OwnerQuerySet = Finding.objects.as_pipeline().select_related("run", "owner")
    return rows if everyones else rows.filter(Q(owner=principal) | Q(owner=None))


def filters() -> tuple[Filter, ...]:
    """How the list is narrowed; without a word it is what the last runs found."""
    return (
        Words("q", "Id", apply=lambda rows, text: rows.filter(reference=text)),
        Choice(
            "of",
            "Found by",
            [(LATEST, "the last runs"), (EVERY, "all runs")],
            apply=lambda rows, given: _of_last_runs(rows) if given == LATEST else rows,
            default=LATEST,
        ),
        Choice(
            "stage",
            "Stage",
            [(stage, stage) for stage in findings.STAGES],
            apply=lambda rows, stage: rows.filter(run__stage=stage),
        ),
        Words("run", "Run", apply=_of_run),
        Words("check", "Check", apply=lambda rows, name: rows.filter(check_name=name)),
        Choice("kind", "Of a", [(kind, kind) for kind in PLACES]),
        Day("since", "Since", "created_at__gte"),
        Day("until", "Until", "created_at__lt"),
    )


def _of_run(rows: Any, given: str) -> Any:
    pk = number(given)
    return rows.none() if pk is None else rows.filter(run=pk)


def _of_last_runs(rows: Any) -> Any:
    wanted = Q(pk=None)
    for stage in findings.STAGES:
        wanted |= findings.standing(stage)
    return rows.filter(wanted)


COLUMNS = (
    Column("id", lambda one: one.pk),
    Column("at", lambda one: one.created_at),
    Column("run", lambda one: one.run_id),
    Column("stage", lambda one: one.run.stage),
    Column("check", lambda one: one.check_name),
    Column("kind", lambda one: one.kind),
    Column("reference", lambda one: one.reference),
    Column("owner", lambda one: one.owner.name if one.owner else ""),
    Column("detail", lambda one: one.detail),
)


def told(finding: Finding) -> Told:
    """The finding with the address of its thing, and its numbers in a line."""
    parts = [f"{word.replace('_', ' ')} {_value(one)}" for word, one in finding.detail.items()]
    line = ", ".join(parts)
    return Told(
        finding,
        place(finding),
        visible(finding.reference),
        visible(
            line if len(line) <= DETAIL_CHARACTERS_MAX else f"{line[:DETAIL_CHARACTERS_MAX]}{CUT}"
        ),
    )


def place(finding: Finding) -> str:
    """Where the thing is shown; of an episode with a proposal, where that is decided."""
    address = link(finding.kind, finding.reference, PLACES)
    return f"{address}#again" if address and finding.detail.get("proposal") else address


def _value(value: Any) -> str:
    if isinstance(value, list):
        return " ".join(map(str, value))
    if isinstance(value, dict):
        return " ".join(f"{name} {one}" for name, one in value.items())
    return str(value)
