"""The queue of holds as a page shows it: one hold with everything to decide it by, and its place.

Reads: dedup_verdict, note, evidence, raw_item, injection, decision. Writes nothing. Every part of a
card is bounded, so that a hold of two much-used notes costs what any other does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import F, Q, QuerySet

from memory import verdicts
from memory.lately import counted_to
from memory.models import Decision, DedupVerdict, Injection, Note, RawItem
from memory.models.note import CALLED_OFF
from memory.querysets import called, condition
from memory.web.marks import Piece, diff_words, quoted
from memory.web.viewer import Viewer
from review import holds

Verdicts = QuerySet[DedupVerdict]

#: Up to how many holds are counted.
# Why: "1,000+" tells a person as much as 10,113 does.
COUNTED_MAX = 1_000

#: Quotes shown of one note, and characters of the raw text around each.
# Why: enough to see who said it and about what; the whole turn is one click away.
QUOTES_MAX = 5
AROUND_CHARACTERS = 160

#: Quotes of both notes that are fetched together.
QUOTES_AT_ONCE = 4 * QUOTES_MAX

#: Quotes of some notes in the order in which they were found, each with its place, where the text
#: around it begins, and that text: nothing of a turn that `where` lets nobody see. Parameters: how
#: many characters behind the quote and before it, those of `where`, the notes, how many.
# Why SQL: every hold asks this, and a queryset with all of it takes longer to put together.
QUOTES = """
SELECT one.note_id, one.raw_item_id, one.start, one."end", cut.first,
       substr(memory_rawitem.body, cut.first + 1, one."end" - cut.first + %s),
       memory_rawitem.role, memory_rawitem.source, memory_rawitem.session,
       memory_rawitem.occurred_at
FROM memory_evidence one CROSS JOIN LATERAL (SELECT greatest(one.start - %s, 0) AS first) cut
LEFT JOIN memory_rawitem ON memory_rawitem.id = one.raw_item_id AND ({where})
WHERE one.note_id = ANY(%s) ORDER BY one.id LIMIT %s
"""

#: Up to how many notes are counted that the viewer called off and that are still live.
# Why so few: this stands on every page of holds, and "100+" is a day's work already.
CALLED_MAX = 100

#: Words about such notes that are looked at: one note may have a word of each project.
CALLED_WORDS_MAX = 5 * CALLED_MAX

#: Whether somebody said one of some words of any note. Parameters: the principal, the words.
ANY_CALLED = "SELECT 1 FROM memory_feedback WHERE principal_id = %s AND verdict = ANY(%s) LIMIT 1"

#: Injections of the two notes that are looked at, and sessions named of each note.
INJECTIONS_MAX = 200
SESSIONS_MAX = 4

#: Earlier decisions shown of one hold.
DECISIONS_MAX = 10

#: Days of verdicts that an empty queue tells of.
LATELY_DAYS = 7


@dataclass(frozen=True)
class Quote:
    """One evidence of a note: where it stands, and the raw text around it, marked.

    `seen`: the viewer may read the raw item; else there are no pieces.
    """

    pieces: tuple[Piece, ...]
    item: int | None
    start: int
    end: int
    role: str
    source: str
    session: str
    occurred_at: datetime | None
    seen: bool


@dataclass(frozen=True)
class Side:
    """One of the two notes of a hold."""

    name: str
    note: Note
    fate: str
    title: tuple[Piece, ...]
    content: tuple[Piece, ...]
    quotes: tuple[Quote, ...]
    quotes_more: bool
    injected: str
    sessions: tuple[str, ...]


@dataclass(frozen=True)
class Hold:
    """A verdict with all that a person decides it by."""

    verdict: DedupVerdict
    old: Side
    new: Side
    stays: Note
    decisions: tuple[Decision, ...]
    open: bool
    gone: tuple[Side, ...]
    undoable: bool
    may_decide: bool
    place: str = ""
    total: str = ""

    @property
    def seen(self) -> int:
        """The newest decision that this card shows; 0 when there is none."""
        return self.decisions[0].pk if self.decisions else 0

    @property
    def sides(self) -> tuple[Side, Side]:
        return self.old, self.new


@dataclass(frozen=True)
class Quiet:
    """What to say when nothing waits: the latest decision, and what needed no person."""

    last: Decision | None
    applied: str


@dataclass(frozen=True)
class Change:
    """One line of what an act on many would do: the verdict, and the notes that stay and go."""

    verdict: DedupVerdict
    seen: int | None
    ready: bool
    stays: Note
    goes: Note | None


def seen_by(viewer: Viewer) -> Verdicts:
    """The verdicts that a viewer sees: those it may decide; with all owners, everybody's."""
    if viewer.all_owners:
        return holds.held(Note.objects.as_pipeline())
    return holds.decidable(viewer.principal, mates=viewer.mates)


def called_off(viewer: Viewer, now: datetime) -> str:
    """How many live notes the viewer called wrong or outdated, in words; "" for none."""
    # First whether there is any word at all: of most people there is none.
    with connection.cursor() as cursor:
        cursor.execute(ANY_CALLED, [viewer.principal.pk, list(CALLED_OFF)])
        if cursor.fetchone() is None:
            return ""
    live = viewer.rows(Note.objects.all()).live(now)
    # Live ones first, then so many words: whoever retires what was wrong does not lose the others.
    ids = called(viewer.principal, CALLED_OFF, among=live, most=CALLED_WORDS_MAX)
    notes = Note.objects.as_pipeline().filter(pk__in=ids)
    count = notes.order_by().values("pk")[: CALLED_MAX + 1].count()
    return counted_to(count, CALLED_MAX) if count else ""


def waiting(rows: Verdicts) -> Verdicts:
    """Holds, oldest first, as far as both notes are there."""
    return holds.waiting(rows)


def next_hold(rows: Verdicts, after: DedupVerdict | None = None) -> DedupVerdict | None:
    """The oldest hold among these, or the one that follows this one."""
    rows = waiting(rows)
    return _first(rows if after is None else rows.filter(_beyond(after)))


def previous_hold(rows: Verdicts, before: DedupVerdict) -> DedupVerdict | None:
    """The hold among these that comes before this one."""
    rows = waiting(rows).filter(created_at__lte=before.created_at)
    earlier = rows.exclude(_beyond(before) | Q(pk=before.pk))
    return _first(earlier.order_by("-created_at", "-pk"))


def queue(rows: Verdicts) -> list[int]:
    """The ids of the holds among these, oldest first, as far as they are counted."""
    return list(waiting(rows).values_list("pk", flat=True)[: COUNTED_MAX + 1])


def _first(rows: Verdicts) -> DedupVerdict | None:
    return next(iter(holds.tell(list(rows.values_list("pk", flat=True)[:1]))), None)


def _beyond(row: DedupVerdict) -> Q:
    later = Q(created_at=row.created_at, pk__gt=row.pk) | Q(created_at__gt=row.created_at)
    # Said again for the index, which has the first column alone.
    return Q(created_at__gte=row.created_at) & later


def counted(rows: Verdicts) -> str:
    """How many there are, counted to a bound."""
    return counted_to(rows.order_by().values("pk")[: COUNTED_MAX + 1].count(), COUNTED_MAX)


def card(
    viewer: Viewer, row: DedupVerdict, rows: Verdicts, ids: Sequence[int] | None = None
) -> Hold:
    """The hold with its two sides, its history and its place in the queue of these (`ids`, where
    that was asked for already)."""
    assert row.target is not None
    place = total = ""
    if row.status == "pending" and not any(missing(row, one) for one in (row.note, row.target)):
        ids = queue(rows) if ids is None else ids
        total = counted_to(len(ids), COUNTED_MAX)
        at = ids.index(row.pk) + 1 if row.pk in ids else COUNTED_MAX + 1
        place = counted_to(at, COUNTED_MAX)
    told: list[Decision] = []
    if getattr(row, "newest", 0):
        told = list(row.decisions.select_related("principal").order_by("-pk")[:DECISIONS_MAX])
    old, new = _sides(viewer, row, row.target)
    return Hold(
        verdict=row,
        old=old,
        new=new,
        stays=holds.staying(row),
        decisions=tuple(told),
        open=row.status in holds.OPEN,
        gone=tuple(one for one in (old, new) if missing(row, one.note)),
        undoable=row.status in holds.DONE,
        may_decide=viewer.can_decide and _may_decide(viewer, row),
        place=place,
        total=total,
    )


def missing(row: DedupVerdict, note: Note) -> bool:
    """Whether an open verdict cannot be carried out because this note of it is gone. An edit that
    was taken back brings its own note along."""
    own = verdicts.edits(row) and note.pk == row.note_id and note.retired_reason == verdicts.UNDONE
    return row.status in holds.OPEN and note.deleted_at is not None and not own


def _may_decide(viewer: Viewer, row: DedupVerdict) -> bool:
    # Both of them: with all owners' rows in sight there are holds that their viewer cannot decide.
    return all(viewer.may_settle(note) for note in (row.note, row.target))


def find(rows: Verdicts, pk: int) -> DedupVerdict | None:
    """The verdict of this id, if it is among these."""
    return _first(rows.filter(pk=pk))


def find_all(rows: Verdicts, ids: Sequence[int]) -> list[DedupVerdict]:
    """The verdicts of these ids, as far as they are among these, in this order."""
    seen = set(rows.filter(pk__in=ids).values_list("pk", flat=True))
    return holds.tell([pk for pk in ids if pk in seen])


def change(row: DedupVerdict, verb: str, seen: int | None) -> Change:
    """What the verb would do to this verdict, and whether it still can."""
    allowed = holds.DONE if verb == "undo" else holds.OPEN
    result = verdicts.effect(row.verdict, row.note, row.target)
    notes = (row.note, row.target) if row.target else (row.note,)
    stuck = verb == "approve" and any(missing(row, one) for one in notes)
    return Change(row, seen, row.status in allowed and not stuck, result.kept, result.retired)


def quiet(rows: Verdicts, now: datetime) -> Quiet:
    """What an empty queue of these says."""
    last = (
        Decision.objects.filter(verdict__in=rows.order_by().values("pk"))
        .select_related("principal")
        .order_by("-pk")
        .first()
    )
    since = now - timedelta(days=LATELY_DAYS)
    applied = rows.filter(status="applied", created_at__gte=since).exclude(verdict="distinct")
    return Quiet(last, counted(applied))


def _sides(viewer: Viewer, row: DedupVerdict, target: Note) -> tuple[Side, Side]:
    result = verdicts.effect(row.verdict, row.note, target)
    titles = diff_words(target.title, row.note.title)
    contents = diff_words(target.content, row.note.content)
    quotes = _quotes(viewer, (target.pk, row.note.pk))
    injected = _injected(viewer, (target.pk, row.note.pk))
    sides = []
    for number, note in enumerate((target, row.note)):
        goes = result.retired is not None and result.retired.pk == note.pk
        found = quotes[note.pk]
        sides.append(
            Side(
                name=("old", "new")[number],
                note=note,
                fate="goes" if goes else "stays",
                title=tuple(titles[number]),
                content=tuple(contents[number]),
                quotes=tuple(found[:QUOTES_MAX]),
                quotes_more=len(found) > QUOTES_MAX,
                injected=injected[note.pk][0],
                sessions=injected[note.pk][1],
            )
        )
    return sides[0], sides[1]


def _quotes(viewer: Viewer, notes: Sequence[UUID]) -> dict[UUID, list[Quote]]:
    """The first quotes of each note; the database cuts the text around them out of the turn."""
    where, params = condition(viewer.rows(RawItem.objects.all()))
    # One character more than is shown says whether the text goes on.
    around = [AROUND_CHARACTERS + 1, AROUND_CHARACTERS]

    def first(some: Sequence[UUID], most: int) -> list[tuple[UUID, Quote]]:
        with connection.cursor() as cursor:
            cursor.execute(QUOTES.format(where=where), [*around, *params, list(some), most])
            return [(note, _quote(*row)) for note, *row in cursor.fetchall()]

    # Both at once, as most notes have a quote or two; else one could crowd the other out.
    found = first(notes, QUOTES_AT_ONCE)
    if len(found) == QUOTES_AT_ONCE:
        found = [row for one in notes for row in first([one], QUOTES_MAX + 1)]
    return {note: [quote for of, quote in found if of == note] for note in notes}


def _quote(
    item: int | None,
    start: int | None,
    end: int | None,
    cut: int,
    around: str | None,
    *told: Any,
) -> Quote:
    role, source, session, occurred_at = told
    start, end = start or 0, end or 0
    return Quote(
        pieces=tuple(
            quoted(around, start, end, first=cut, around=AROUND_CHARACTERS) if around else ()
        ),
        item=item,
        start=start,
        end=end,
        role=role or "",
        source=source or "",
        session=session or "",
        occurred_at=occurred_at,
        seen=around is not None,
    )


def _injected(viewer: Viewer, notes: Sequence[UUID]) -> dict[UUID, tuple[str, tuple[str, ...]]]:
    """How often each note was put before an agent, and into which sessions last."""
    rows = viewer.rows(Injection.objects.all()).filter(note_ids__overlap=list(notes))
    # Not by the bare key: its index would be walked back from the end for notes injected once.
    rows = rows.order_by((F("pk") + 0).desc())
    found = list(rows.values_list("session", "note_ids")[:INJECTIONS_MAX])
    more = "+" if len(found) == INJECTIONS_MAX else ""
    told = {}
    for note in notes:
        sessions = [session for session, ids in found if note in ids]
        named = tuple(dict.fromkeys(one for one in sessions if one))
        told[note] = (f"{len(sessions)}{more}", named[:SESSIONS_MAX])
    return told
