"""Where a note came from and what a raw item was made into, as far as who asks may see it.

Reads: note, evidence, raw_item, task_item. Writes: nothing. Bounded; what is left out is counted.
Knows nothing about recalls, files or how it is shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from memory.errors import NotFound
from memory.models import Evidence, Note, Principal, RawItem, TaskItem

#: Rows of each list of a trace.
ROWS_MAX = 20

#: Up to how many rows are counted.
# Why: "1,000+" tells a person as much as the number does.
COUNTED_MAX = 1_000


@dataclass(frozen=True)
class Some:
    """The first rows of something, how many there are (up to COUNTED_MAX and one), and how many of
    them are others', of which nothing is told."""

    rows: Sequence[Any] = ()
    total: int = 0
    hidden: int = 0

    @property
    def left_out(self) -> int:
        return self.total - len(self.rows)


def note_of(note_id: UUID, *, by: Principal) -> Note:
    """The note, gone or not, if `by` may see it. Raises NotFound."""
    rows = Note.objects.visible_to(by).filter(pk=note_id).defer("embedding")
    found: Note | None = rows.select_related("project", "owner", "run").first()
    if found is None:
        raise NotFound(f"no note {note_id}")
    return found


def item_of(item_id: int, *, by: Principal) -> RawItem:
    """The raw item, if `by` may see it. Raises NotFound."""
    rows = RawItem.objects.visible_to(by).filter(pk=item_id)
    found: RawItem | None = rows.select_related("project", "owner").first()
    if found is None:
        raise NotFound(f"no raw item {item_id}")
    return found


def evidence_of(note: Note, *, by: Principal) -> Some:
    """The edges that bear the note out, in the order in which they came: to raw items and to parent
    notes that `by` may see."""
    edges = Evidence.objects.filter(note=note)
    items = RawItem.objects.visible_to(by).filter(cited__note=note).values("pk")
    parents = Note.objects.visible_to(by).filter(children__note=note).values("pk")
    told = edges.filter(raw_item__in=items) | edges.filter(parent__in=parents)
    rows = told.select_related("raw_item", "parent").defer("parent__embedding").order_by("pk")
    total = told.count()
    return Some(list(rows[:ROWS_MAX]), total, edges.count() - total)


def notes_of(item: RawItem, *, by: Principal) -> Some:
    """The notes that stand on this raw item, oldest first, gone ones among them."""
    edges = Evidence.objects.filter(raw_item=item).values("note")
    rows = Note.objects.visible_to(by).filter(pk__in=edges).defer("embedding")
    hidden = Note.objects.as_pipeline().filter(pk__in=edges).count()
    total = rows.count()
    first = rows.select_related("project", "owner", "run").order_by("created_at", "pk")
    return Some(list(first[:ROWS_MAX]), total, hidden - total)


def tasks_of(item: RawItem, *, by: Principal) -> Some:
    """The tasks that this raw item opened."""
    rows = TaskItem.objects.visible_to(by).filter(raw_item=item).order_by("pk")
    return Some(list(rows[:ROWS_MAX]), rows[: COUNTED_MAX + 1].count())
