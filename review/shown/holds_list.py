"""Verdicts as a list: what it can be narrowed by, its order, and what an export holds of a row.

Pure but for the reads of `list_rows`. Knows nothing about who may see them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from django.db.models import Q, QuerySet
from django.http import HttpRequest

from memory.models import DedupVerdict
from memory.models.note import VERDICT_STATUSES
from memory.web.listing import Choice, Column, Day, Filter, Listed, Words, list_rows
from memory.web.page import number
from memory.web.places import project_choice
from review import holds

#: Up to how many verdicts are counted.
# Why: of each both notes are looked at, whether they are the viewer's to decide.
COUNTED_MAX = 200

#: Bands of a share: from, below (None: to the end).
BANDS: dict[str, tuple[float, float | None, str]] = {
    "90": (0.9, None, "0.90 and more"),
    "80": (0.8, 0.9, "0.80 to 0.90"),
    "70": (0.7, 0.8, "0.70 to 0.80"),
    "50": (0.5, 0.7, "0.50 to 0.70"),
    "0": (0.0, 0.5, "below 0.50"),
}

#: Statuses offered, and the one word for all that waits for nobody.
STATUSES = (
    ("settled", "all but pending"),
    *((one, one) for one in VERDICT_STATUSES),
    ("stranded", "pending, but a note is gone"),
)

KINDS = tuple((one, one) for one in ("duplicate", "refine", "supersede"))

#: What the list shows of a verdict.
# Why not the verdict with its notes: five objects a row take longer than what is written of them.
LISTED = (
    "pk", "verdict", "status", "similarity", "created_at", "decided_at", "newest",
    "note__content", "target__content", "target__confidence", "note__project__name",
    "decided_by__name",
)  # fmt: skip

COLUMNS = (
    Column("verdict", lambda row: row.pk),
    Column("kind", lambda row: row.verdict),
    Column("status", lambda row: row.status),
    Column("project", lambda row: row.note.project.name if row.note.project else None),
    Column("similarity", lambda row: row.similarity),
    Column("old_confidence", lambda row: row.target.confidence),
    Column("old_note", lambda row: str(row.target_id)),
    Column("old", lambda row: row.target.content),
    Column("new_note", lambda row: str(row.note_id)),
    Column("new", lambda row: row.note.content),
    Column("reasoning", lambda row: row.reasoning),
    Column("judge", lambda row: row.model_real),
    Column("created_at", lambda row: row.created_at),
    Column("decided_by", lambda row: row.decided_by.name if row.decided_by else None),
    Column("decided_at", lambda row: row.decided_at),
)


def list_holds(request: HttpRequest, rows: QuerySet[DedupVerdict]) -> Listed:
    """A page of verdicts as the request asks for it: what waits oldest first, else latest first."""
    waits = request.GET.get("status") == "pending"
    rows = rows.exclude(verdict="distinct")
    listed = list_rows(
        request,
        holds.told(rows) if request.GET.get("format") else rows.only("pk", "created_at"),
        order=("created_at", "pk") if waits else ("-pk",),
        filters=filters(),
        columns=COLUMNS,
        title="verdicts",
        keep=("view",),
        counted_rows=COUNTED_MAX,
        counted_in_order=True,
    )
    return replace(listed, rows=_lines([row.pk for row in listed.rows]))


def _lines(ids: list[int]) -> list[Any]:
    """What the list shows of these verdicts, in this order; in two steps as `holds.tell`."""
    told = holds.told(DedupVerdict.objects.as_pipeline().filter(pk__in=ids))
    rows: Any = told.values_list(*LISTED, named=True)
    found = {row.pk: row for row in rows}
    return [found[pk] for pk in ids if pk in found]


def filters() -> list[Filter]:
    """What the list of verdicts can be narrowed by."""
    bands = [(key, label) for key, (_, _, label) in BANDS.items()]
    return [
        Words("q", "Search", _search),
        Choice("status", "Status", STATUSES, _status),
        Choice("kind", "Verdict", KINDS, _kind),
        project_choice("note__project"),
        Choice("similarity", "Similarity", bands, _band("similarity")),
        Choice("confidence", "Old note's confidence", bands, _band("target__confidence")),
        Words("judge", "Judge", _judge),
        Day("since", "Since", "created_at__gte"),
        Day("until", "Until", "created_at__lt"),
    ]


def _search(rows: Any, text: str) -> Any:
    if (pk := number(text)) is not None:
        return rows.filter(pk=pk)
    wanted = Q(note__content__icontains=text) | Q(target__content__icontains=text)
    titles = Q(note__title__icontains=text) | Q(target__title__icontains=text)
    return rows.filter(wanted | titles | Q(reasoning__icontains=text))


def _status(rows: Any, value: str) -> Any:
    if value == "settled":
        return rows.exclude(status="pending")
    if value == "stranded":
        return holds.stranded(rows)
    # As the queue and its count have it.
    return holds.waiting(rows).order_by() if value == "pending" else rows.filter(status=value)


def _kind(rows: Any, value: str) -> Any:
    return rows.filter(verdict=value)


def _judge(rows: Any, text: str) -> Any:
    return rows.filter(model_real__icontains=text)


def _band(column: str) -> Any:
    def narrow(rows: Any, value: str) -> Any:
        low, high, _ = BANDS[value]
        rows = rows.filter(**{f"{column}__gte": low}) if low else rows
        return rows if high is None else rows.filter(**{f"{column}__lt": high})

    return narrow
