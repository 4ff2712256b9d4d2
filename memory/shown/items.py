"""One raw item as a person reads it: a part of its body, who cites which words of it, and what
stands before and after it.

Reads: raw_item, evidence, note, episode, gate_rejection. Writes nothing. Knows nothing about pages.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db.models.functions import Length, Substr

from memory.errors import NotFound
from memory.models import Evidence, GateRejection, Note, RawItem
from memory.shown.episodes import Sight

#: Characters of a body that are shown at once.
# Why: a page of a book has two thousand; an item may have a million.
WINDOW_CHARACTERS = 20_000

#: Characters shown before the words that somebody was sent to.
LEAD_CHARACTERS = 400

#: Citations, and refusals, that are shown.
CITED_SHOWN_MAX = 100


@dataclass(frozen=True)
class Reading:
    """The item; `text` is its body from character `start` on; `spans` are what is cited of it and
    what was asked for, as (start, end) in `text`."""

    item: RawItem
    text: str
    start: int
    length: int
    spans: tuple[tuple[int, int], ...]
    cited: tuple[Evidence, ...]
    rejections: tuple[GateRejection, ...]
    nearly: RawItem | None
    before: RawItem | None
    after: RawItem | None

    @property
    def end(self) -> int:
        return self.start + len(self.text)

    @property
    def earlier(self) -> int | None:
        """Where the part before this one begins."""
        return max(0, self.start - WINDOW_CHARACTERS) if self.start else None

    @property
    def later(self) -> int | None:
        return self.end if self.end < self.length else None


def read(
    pk: int, *, sight: Sight, start: int = 0, end: int | None = None, whole_from: int | None = None
) -> Reading:
    """The item around the characters `start` to `end`, or its part from `whole_from` on.

    Raises NotFound when there is none that may be seen.
    """
    from_here = max(0, start - LEAD_CHARACTERS) if whole_from is None else max(0, whole_from)
    item: Any = (
        sight(RawItem.objects.all())
        .select_related("owner", "project", "placed__episode")
        .annotate(part=Substr("body", from_here + 1, WINDOW_CHARACTERS), characters=Length("body"))
        .defer("body")
        .filter(pk=pk)
        .first()
    )
    if item is None:
        raise NotFound(f"no item {pk}")
    cited = tuple(
        Evidence.objects.filter(raw_item=item, note__in=sight(Note.objects.all()).values("pk"))
        .select_related("note")
        .defer("note__embedding")
        .order_by("start", "pk")[:CITED_SHOWN_MAX]
    )
    spans = [(one.start, one.end) for one in cited if one.start is not None and one.end is not None]
    spans += [(start, end)] if end is not None and end > start else []
    return Reading(
        item=item,
        text=item.part,
        start=from_here,
        length=item.characters,
        spans=tuple((first - from_here, last - from_here) for first, last in spans),
        cited=cited,
        rejections=tuple(
            sight(GateRejection.objects.all())
            .filter(raw_item=item)
            .order_by("-pk")[:CITED_SHOWN_MAX]
        ),
        nearly=_nearly(item, sight),
        before=_neighbour(item, sight, forward=False),
        after=_neighbour(item, sight, forward=True),
    )


def _nearly(item: RawItem, sight: Sight) -> RawItem | None:
    """The item that this one nearly repeats, where it is still there and may be seen."""
    if item.near_duplicate_of_id is None:
        return None
    rows = sight(RawItem.objects.all()).filter(pk=item.near_duplicate_of_id)
    return rows.only("pk", "source", "session", "occurred_at").first()


def _neighbour(item: RawItem, sight: Sight, *, forward: bool) -> RawItem | None:
    """The turn before or after this one in its session."""
    if item.kind != "turn" or not item.session:
        return None
    rows = sight(RawItem.objects.all()).filter(
        owner=item.owner, source=item.source, session=item.session, kind="turn"
    )
    step, order = ("gt", "") if forward else ("lt", "-")
    at_once = {"occurred_at": item.occurred_at, f"pk__{step}": item.pk}
    beyond = rows.filter(**{f"occurred_at__{step}": item.occurred_at}) | rows.filter(**at_once)
    ordered = beyond.order_by(f"{order}occurred_at", f"{order}pk")
    return ordered.only("pk", "role", "occurred_at").first()
