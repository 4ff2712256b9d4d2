"""What stands beside a note on its page: the words that bear it out, in the raw text around them;
and the live notes that are near it in meaning.

Reads: evidence, raw_item, note. Every raw item and note is one of the querysets that came in.
Bounded: of a raw text only the window around a span leaves the database.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from django.db import connection

from memory.llm.thresholds import threshold
from memory.models import Evidence, Note, Principal, RawItem
from memory.querysets import NoteQuerySet, OwnedQuerySet, read
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

#: What is read of a note: all but its vector.
COLUMNS = ", ".join(one.attname for one in Note._meta.concrete_fields if one.name != "embedding")

# Why SQL: a queryset of any of these takes longer to put together than to ask, at every note.

#: A note, whose it is (`whose`), the name of its project (`place`), and whether a principal pinned
#: it (`pinned`). Parameters: the note, the principal.
NOTE = f"""
SELECT note.*, owner.name AS whose, project.name AS place, pin.note_id IS NOT NULL AS pinned
FROM (SELECT {COLUMNS} FROM memory_note WHERE {{seen}} AND id = %s) note
JOIN memory_principal owner ON owner.id = note.owner_id
LEFT JOIN memory_project project ON project.id = note.project_id
LEFT JOIN memory_pin pin ON pin.note_id = note.id AND pin.principal_id = %s
"""

#: The evidence of a note with the window of the raw text around each span (`passage`): one
#: character more than is shown says whether the text goes on. Parameters: the note, how many.
EDGES = f"""
SELECT e.id, e.quote, e.start, e."end", e.origin, e.parent_id, e.raw_item_id,
    substr(i.body, greatest(e.start - {AROUND_CHARACTERS} + 1, 1),
        least(e."end" - e.start, {SPAN_CHARACTERS_MAX}) + {2 * AROUND_CHARACTERS + 1}) AS passage
FROM memory_evidence e LEFT JOIN memory_rawitem i ON i.id = e.raw_item_id
WHERE e.note_id = %s ORDER BY e.id LIMIT %s
"""

#: What is told of raw items beside their words, and whose they are (`whose`). Parameter: which.
ITEMS = """
SELECT id, kind, role, source, occurred_at, owner_id, metadata,
    (SELECT p.name FROM memory_principal p WHERE p.id = owner_id) AS whose
FROM memory_rawitem WHERE {seen} AND id = ANY(%s)
"""


@dataclass(frozen=True)
class Quoted:
    """One piece of evidence, its words marked in the text of its raw item around them; or it points
    at a parent note."""

    edge: Evidence
    item: RawItem | None = None
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


def found(pk: UUID, notes: NoteQuerySet, *, by: Principal) -> Note | None:
    """The note of this id, if it is one of these, with what NOTE tells beside it."""
    return next(iter(read(notes, NOTE, pk, by.pk)), None)


def borne_out(note: Note, *, items: OwnedQuerySet, notes: NoteQuerySet) -> BorneOut:
    """The words that bear a note out, oldest edge first."""
    edges = list(Evidence.objects.raw(EDGES, [note.pk, EVIDENCE_MAX + 1]))
    cited = list({edge.raw_item_id for edge in edges if edge.raw_item_id})
    visible = {one.pk: one for one in read(items, ITEMS, cited)} if cited else {}
    wanted = {edge.parent_id for edge in edges if edge.parent_id}
    rows = notes.filter(pk__in=wanted).defer("embedding") if wanted else ()
    parents = {one.pk: one for one in rows}
    quotes: list[Quoted] = []
    for edge in edges[:EVIDENCE_MAX]:
        if edge.raw_item_id in visible:
            quotes.append(Quoted(edge, visible[edge.raw_item_id], _marked(edge)))
        elif edge.parent_id in parents:
            quotes.append(Quoted(edge, parent=parents[edge.parent_id]))
    every = note.evidence.count() if len(edges) > EVIDENCE_MAX else len(edges)
    return BorneOut(quotes, every - len(quotes))


def _marked(edge: Evidence) -> list[Piece]:
    """The window with the span marked, and a sign where text was left out."""
    assert edge.start is not None and edge.end is not None
    window: str = edge.passage  # type: ignore[attr-defined]  # Read by EDGES.
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
