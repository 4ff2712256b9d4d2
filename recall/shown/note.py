"""What stands beside a note on its page: the words that bear it out, in the raw text around them;
and the live notes that are near it in meaning.

Reads: evidence, raw_item, note. Every raw item and note is one of the querysets that came in.
Bounded: of a raw text only the window around a span leaves the database.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.db import connection
from django.db.models import F, IntegerField, Value
from django.db.models.functions import Greatest, Least, Substr

from memory.llm.thresholds import threshold
from memory.models import Evidence, Note
from memory.querysets import NoteQuerySet, OwnedQuerySet
from memory.tracks import nearest
from memory.web.marks import Piece, quoted

#: Pieces of evidence shown of a note.
EVIDENCE_MAX = 20

#: Characters of the raw text shown before and after a span.
# Why: the sentence before and the one after; the raw item itself is a click away.
AROUND_CHARACTERS = 240

#: Characters of a span that are shown.
# Why: a quote is a sentence or two; one of a whole document would be the page.
SPAN_CHARACTERS_MAX = 2_000

#: Neighbours shown of a note.
NEIGHBOURS_MAX = 5


@dataclass(frozen=True)
class Quoted:
    """One piece of evidence, its words marked in the raw text around them. Without a raw item it
    points at a parent note."""

    edge: Evidence
    pieces: Sequence[Piece] = ()
    parent: Note | None = None


@dataclass(frozen=True)
class BorneOut:
    """What of a note's evidence is shown; `hidden` more pieces are of raw items, or of notes, that
    this reader may not see, or go beyond the bound."""

    quotes: Sequence[Quoted]
    hidden: int


@dataclass(frozen=True)
class Near:
    """A live note near this one: the cosine of both, and whether that counts as related."""

    note: Note
    similarity: float
    related: bool


@dataclass(frozen=True)
class Neighbourhood:
    """What is near a note; `numbers` of `size` are used in its vector. No model: no vector."""

    near: Sequence[Near] = ()
    model: str = ""
    numbers: int = 0
    size: int = 0


def borne_out(note: Note, *, items: OwnedQuerySet, notes: NoteQuerySet) -> BorneOut:
    """The words that bear a note out, oldest edge first."""
    edges = list(_edges(note))
    seen = items.filter(pk__in={edge.raw_item_id for edge in edges if edge.raw_item_id})
    visible = set(seen.values_list("pk", flat=True))
    wanted = {edge.parent_id for edge in edges if edge.parent_id}
    rows = notes.filter(pk__in=wanted).defer("embedding") if wanted else ()
    parents = {one.pk: one for one in rows}
    quotes: list[Quoted] = []
    for edge in edges[:EVIDENCE_MAX]:
        if edge.raw_item_id in visible:
            quotes.append(Quoted(edge, _marked(edge)))
        elif edge.parent_id in parents:
            quotes.append(Quoted(edge, parent=parents[edge.parent_id]))
    every = note.evidence.count() if len(edges) > EVIDENCE_MAX else len(edges)
    return BorneOut(quotes, every - len(quotes))


def _edges(note: Note) -> Sequence[Evidence]:
    first = Greatest(F("start") - AROUND_CHARACTERS + 1, Value(1), output_field=IntegerField())
    span = Least(F("end") - F("start"), Value(SPAN_CHARACTERS_MAX), output_field=IntegerField())
    # One more than is shown says whether the text goes on.
    window = Substr("raw_item__body", first, span + 2 * AROUND_CHARACTERS + 1)
    rows = note.evidence.annotate(window=window)
    columns = ("kind", "role", "source", "session", "occurred_at", "owner__name", "metadata")
    rows = rows.select_related("raw_item__owner").only(
        "quote", "start", "end", "origin", "parent_id", "created_at", "note_id",
        *(f"raw_item__{name}" for name in columns),
    )  # fmt: skip
    return list(rows.order_by("pk")[: EVIDENCE_MAX + 1])


def _marked(edge: Evidence) -> list[Piece]:
    """The window with the span marked, and a sign where text was left out."""
    assert edge.start is not None and edge.end is not None
    window: str = edge.window  # type: ignore[attr-defined]  # Annotated by `_edges`.
    offset = max(edge.start - AROUND_CHARACTERS, 0)
    end = min(edge.end, edge.start + SPAN_CHARACTERS_MAX)
    return quoted(window, edge.start, end, first=offset, around=AROUND_CHARACTERS)


def neighbourhood(note: Note, *, live: NoteQuerySet) -> Neighbourhood:
    """The live notes nearest to this one by its own vector, and what that vector is."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT embedding::text, embedding_model FROM memory_note WHERE id = %s", [note.pk]
        )
        vector, model = cursor.fetchone()
    if vector is None:
        return Neighbourhood()
    numbers = vector.strip("[]").split(",")
    used = max((at for at, one in enumerate(numbers, start=1) if float(one)), default=0)
    pool = live.exclude(pk=note.pk)
    found = nearest(pool, vector, model, depth=NEIGHBOURS_MAX)
    rows = pool.select_related("project").defer("embedding").in_bulk([key for key, _ in found])
    floor = threshold(model, "related")
    near = [Near(rows[key], like, like >= floor) for key, like in found if key in rows]
    return Neighbourhood(near, model, used, len(numbers))
