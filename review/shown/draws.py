"""The ledger of what came up in the feed, as a list: one's own draws, by what, and how likely.

Reads: draw, note. Writes nothing. Whose draws is the principal's that is handed in.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.http import HttpRequest

from memory.models import Note, Principal
from memory.web.listing import Choice, Column, Day, Filter, Listed, Words, list_rows
from review.models import DRAWN_BY, Draw

#: What a draw was drawn by, in words.
BY: Mapping[str, str] = {
    "draw": "by chance",
    "due": "because it was due",
    "pinned": "because it is pinned",
}

assert set(BY) == set(DRAWN_BY)

COLUMNS = (
    Column("id", lambda row: row.pk),
    Column("note", lambda row: str(row.note_id)),
    Column("drawn_by", lambda row: row.drawn_by),
    Column("probability", lambda row: row.probability),
    Column("pool", lambda row: row.pool),
    Column("created_at", lambda row: row.created_at),
)


def list_draws(request: HttpRequest, principal: Principal) -> Listed:
    """A page of the principal's draws, latest first, each with the `title` of its note ("": not to
    be seen any more), its `odds` as one in so many, and what it came up `by`."""
    listed = list_rows(
        request,
        Draw.objects.filter(principal=principal),
        order=("-pk",),
        filters=_filters(),
        columns=COLUMNS,
        title="draws",
    )
    seen = Note.objects.visible_to(principal).filter(pk__in=[row.note_id for row in listed.rows])
    titles = dict(seen.values_list("pk", "title")) if listed.rows else {}
    for row in listed.rows:
        row.title = titles.get(row.note_id, "")
        row.odds = 1 / row.probability if row.probability else 0.0
        row.by = BY.get(row.drawn_by, row.drawn_by)
    return listed


def _filters() -> list[Filter]:
    return [
        Choice("drawn_by", "Came up", list(BY.items())),
        Words("note", "Note, by its id", _of_note),
        Day("since", "Since", "created_at__gte"),
        Day("until", "Until", "created_at__lt"),
    ]


def _of_note(rows: Any, text: str) -> Any:
    try:
        return rows.filter(note=UUID(text))
    except ValueError:
        return rows.none()
