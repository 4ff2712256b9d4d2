"""Notes as a list: what it can be narrowed by, which come first, what an export holds of a note.

Words typed are searched for as recall searches, and leave no row on its ledger: a person who looks
is no agent that is told something. Notes that are retired are found by their words alone.
Knows nothing about who may see which rows; that comes with the queryset.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from django.db.models import Case, Exists, IntegerField, OuterRef, Value, When
from django.http import HttpRequest
from django.urls import reverse
from django.utils.dateparse import parse_date

from memory.lately import ask
from memory.lexical import hashed, query_terms
from memory.llm.choice import embedder
from memory.models import Note, Pin, Principal
from memory.models.note import CALLED_OFF, LEVELS, MEMORY_KINDS
from memory.querysets import NoteQuerySet, called
from memory.text.seen import visible
from memory.tracks import asked, heaviest, notes_of
from memory.web.listing import (
    SEARCH_CHARACTERS_MAX,
    Choice,
    Column,
    Day,
    Filter,
    Listed,
    Words,
    list_rows,
)
from memory.web.page import number
from memory.web.places import project_choice
from recall.calibration import in_force
from recall.scoring import weigh_all
from recall.search import Past, search
from recall.states import STATE_COLUMNS, state

#: Projects, and people, offered by a filter.
# Why: a select of more is no help; the search finds the others' notes.
OFFERED_MAX = 200

#: The other people who show notes to somebody: who shares a group, and who has a common one.
# Why SQL: the list asks this each time, and a queryset takes longer to put together than to ask.
OWNERS = """
SELECT p.id, p.name FROM memory_principal p
WHERE p.id <> %(me)s AND (%(everybody)s
    OR EXISTS (SELECT 1 FROM memory_principal_groups mine
        JOIN memory_principal_groups theirs ON theirs.group_id = mine.group_id
        WHERE mine.principal_id = %(me)s AND theirs.principal_id = p.id)
    OR EXISTS (SELECT 1 FROM memory_note WHERE memory_note.owner_id = p.id AND {common}))
ORDER BY p.name LIMIT %(most)s
"""

#: Notes that a search brings, before the other filters narrow them.
# Why: what recall itself keeps of one source; nobody reads on.
FOUND_MAX = 60

#: Characters of a note's content in a row of the list.
SHOWN_CHARACTERS_MAX = 200

#: Bands of confidence: from, below (None: to the end).
# Why 0.7: from there on nothing replaces a note without a person.
BANDS: dict[str, tuple[float, float | None, str]] = {
    "high": (0.7, None, "0.70 and more"),
    "middle": (0.500001, 0.7, "above 0.50"),
    "start": (0.0, 0.500001, "0.50 and less"),
}

#: What somebody may have called a note: as a filter has it, its words, and what it is labelled.
WORDS_OF = {
    "useful": (("useful",), "useful"),
    "wrong": (("wrong",), "wrong"),
    "outdated": (("outdated",), "outdated"),
    "never": (("never",), "never again"),
    # What the page of holds leads to.
    "off": (CALLED_OFF, " or ".join(CALLED_OFF)),
}

#: Whose words a note is made of.
SAID_BY = ("user", "assistant", "mixed", "document", "event", "synthesis")

#: The colour of a state; what is not named is a warning. And what a state is called on a page.
STATE_TAGS = {"live": "ok", "not_yet": "info", "retired": "off", "ended": "off"}
STATE_NAMES = {"not_yet": "not yet"}

#: What a row of the list reads; a vector is never among it.
READ = (
    "id", "title", "content", "level", "memory_kind", "confidence", "said_by", "visibility",
    "valid_from", "valid_to", "created_at", "deleted_at", "invalidated_at", "retired_reason",
    "project__name", "owner__name",
)  # fmt: skip

COLUMNS = (
    Column("note", lambda row: str(row.pk)),
    Column("title", lambda row: row.title),
    Column("content", lambda row: row.content),
    Column("project", lambda row: row.project.name if row.project else None),
    Column("level", lambda row: row.level),
    Column("kind", lambda row: row.memory_kind),
    Column("owner", lambda row: row.owner.name),
    Column("visibility", lambda row: row.visibility),
    Column("said_by", lambda row: row.said_by),
    Column("confidence", lambda row: row.confidence),
    Column("pinned", lambda row: row.pinned),
    Column("valid_from", lambda row: row.valid_from),
    Column("valid_to", lambda row: row.valid_to),
    Column("created_at", lambda row: row.created_at),
    Column("deleted_at", lambda row: row.deleted_at),
    Column("retired_reason", lambda row: row.retired_reason),
)


@dataclass(frozen=True)
class Found:
    """Ids of notes, best first, and why the search by meaning is missing, where it is."""

    ids: Sequence[UUID] = ()
    degraded: str = ""


@dataclass(frozen=True)
class NoteRow:
    """One row of the list, as the template writes it down."""

    url: str
    pin_url: str
    pinned: bool
    title: str
    more: str
    state: str
    tag: str
    project: str
    owner: str
    kind: str
    confidence: str
    said_by: str
    valid_from: datetime
    created_at: datetime


@dataclass(frozen=True)
class NoteList:
    """The page of the list; the words searched for, and what kept the search by meaning away."""

    listed: Listed
    words: str = ""
    degraded: str = ""
    past: Past | None = None


class Told(Day):
    """A date that the list as a whole was asked for: it has narrowed the rows already."""

    def narrow(self, rows: Any, given: str) -> Any:
        return rows


def list_notes(
    request: HttpRequest,
    notes: NoteQuerySet,
    *,
    principal: Principal,
    everybody: bool = False,
    now: datetime,
) -> NoteList:
    """A page of these notes as the request asks for it: latest first, or best first for words.

    Only what is live is listed unless a state, or a moment of the past, is asked for. `everybody`
    offers every owner; whatever is typed is searched for among what `principal` may see.
    """
    past = asked_past(request, now=now)
    if past is None and "state" not in request.GET:
        # In the address, so that every way on from here means the same.
        given = request.GET.copy()
        given["state"] = "live"
        request.GET = given  # type: ignore[assignment]  # Mutable or not: it is read alone.
    words = request.GET.get("q", "").replace("\0", "").strip()[:SEARCH_CHARACTERS_MAX]
    found = _find(request, words, principal=principal, past=past, now=now)
    rows = notes.believed(as_of=past.as_of, known_at=past.known_at) if past else notes
    pins = Pin.objects.filter(principal=principal, note=OuterRef("pk"))
    listed = list_rows(
        request,
        rows.select_related("project", "owner").only(*READ).annotate(pinned=Exists(pins)),
        order=("rank", "pk") if words else ("-created_at", "-pk"),
        filters=_filters(found, principal=principal, everybody=everybody, now=now),
        columns=COLUMNS,
        title="notes",
    )
    asked_for = [one for one in listed.filters if one.value]
    usual = [(one.name, one.value) for one in asked_for] == [("state", "live")]
    listed = replace(listed, filtered=bool(asked_for) and not usual)
    return NoteList(listed, words, found.degraded, past)


def told_rows(rows: Sequence[Note], *, principal: Principal, now: datetime) -> list[NoteRow]:
    """What the list says of each of these notes."""
    # Reversed once: row by row that alone would cost as much as the query.
    base = reverse("admin:notes")
    return [_row(one, f"{base}{one.pk}/", principal, now) for one in rows]


def _row(note: Note, url: str, principal: Principal, now: datetime) -> NoteRow:
    title, more = _words(note)
    name = state({column: getattr(note, column) for column in STATE_COLUMNS}, now)
    pinned: bool = note.pinned  # type: ignore[attr-defined]  # Annotated by `list_notes`.
    return NoteRow(
        url=url,
        pin_url=f"{url}unpin" if pinned else f"{url}pin",
        pinned=pinned,
        title=title,
        more=more,
        state=STATE_NAMES.get(name, name),
        tag=STATE_TAGS.get(name, "warn"),
        project=note.project.name if note.project else "",
        owner="" if note.owner_id == principal.pk else note.owner.name,
        kind=note.memory_kind if note.level == "note" else f"{note.memory_kind} {note.level}",
        confidence=f"{note.confidence:.2f}",
        said_by=note.said_by,
        valid_from=note.valid_from,
        created_at=note.created_at,
    )


def _words(note: Note) -> tuple[str, str]:
    """What a row says of a note: its title, and its content where that does not begin with it."""
    bare = note.title.rstrip(".… ")
    short = note.content[:SHOWN_CHARACTERS_MAX]
    more = "…" if len(note.content) > SHOWN_CHARACTERS_MAX else ""
    if not bare or note.content.startswith(bare):
        return f"{short}{more}", ""
    return note.title, f"{short}{more}"


def asked_past(request: HttpRequest, *, now: datetime) -> Past | None:
    """The past that `as_of` and `known_at` of the request mean: each the end of a day."""
    as_of, known_at = (_end_of(request.GET.get(name, "")) for name in ("as_of", "known_at"))
    return Past.asked(as_of=as_of, known_at=known_at, now=now)


def _end_of(given: str) -> datetime | None:
    try:
        day = parse_date(given.strip()) if len(given) <= 10 else None
        if day is None:
            return None
        return datetime(day.year, day.month, day.day, tzinfo=UTC) + timedelta(days=1)
    except (ValueError, OverflowError):
        return None


def _find(
    request: HttpRequest, words: str, *, principal: Principal, past: Past | None, now: datetime
) -> Found:
    if not words:
        return Found()
    if past is None and request.GET.get("state") != "live":
        return find_worded(words, principal=principal)
    given = request.GET.get("project", "")
    return find(words, principal=principal, project=number(given), past=past, now=now)


def find(
    words: str,
    *,
    principal: Principal,
    project: int | None = None,
    past: Past | None = None,
    now: datetime,
) -> Found:
    """The notes that recall finds for these words, in its order; nothing is written."""
    rules = in_force(embedder().name)
    searched = search(
        words,
        principal=principal,
        now=now,
        past=past,
        project=project,
        sources=("note",),
        ranker=rules.ranker,
    )
    hits = weigh_all(searched, rules.floors, project=None, now=now)
    ids = [hit.key for hit in hits if isinstance(hit.key, UUID)]
    return Found(ids[:FOUND_MAX], "; ".join(searched.degraded.values()))


def find_worded(words: str, *, principal: Principal) -> Found:
    """Notes by their words alone, retired ones among them; those of one's own and common ones."""
    known = asked(principal, [hashed(term) for term in query_terms(words)])[False]
    heavy = heaviest(principal, {False: known}, depth=FOUND_MAX, live=False)[False]
    keys = notes_of([text for text, _ in heavy])
    return Found([keys[text] for text, _ in heavy if text in keys])


def _filters(found: Found, *, principal: Principal, everybody: bool, now: datetime) -> list[Filter]:
    bands = [(key, label) for key, (_, _, label) in BANDS.items()]
    words = [(key, label) for key, (_, label) in WORDS_OF.items()]
    return [
        Words("q", "Search", _ranked(found)),
        project_choice(),
        Choice("state", "State", (("live", "live"), ("retired", "retired")), _state(now)),
        Choice("level", "Level", [(one, one) for one in LEVELS]),
        Choice("kind", "Kind", [(one, one) for one in MEMORY_KINDS], _equal("memory_kind")),
        Choice("owner", "Owner", _owners(principal, everybody), _equal("owner")),
        Choice("said_by", "Said by", [(one, one) for one in SAID_BY]),
        Choice("confidence", "Confidence", bands, _band),
        Choice("pinned", "Pinned", (("yes", "by me"), ("no", "not by me")), _pinned),
        Choice("called", "I called it", words, _called(principal)),
        Told("as_of", "As it held on", ""),
        Told("known_at", "As known on", ""),
        Day("since", "Made since", "created_at__gte"),
        Day("until", "Made until", "created_at__lt"),
    ]


def _ranked(found: Found) -> Callable[[Any, str], Any]:
    def narrow(rows: Any, words: str) -> Any:
        places = [When(pk=pk, then=Value(n)) for n, pk in enumerate(found.ids)]
        if not places:
            return rows.none().annotate(rank=Value(0))
        rank = Case(*places, default=Value(len(places)), output_field=IntegerField())
        return rows.filter(pk__in=found.ids).annotate(rank=rank)

    return narrow


def _state(now: datetime) -> Callable[[Any, str], Any]:
    def narrow(rows: Any, value: str) -> Any:
        return rows.live(now) if value == "live" else rows.exclude(deleted_at=None)

    return narrow


def _equal(column: str) -> Callable[[Any, str], Any]:
    return lambda rows, value: rows.filter(**{column: value})


def _band(rows: Any, value: str) -> Any:
    low, high, _ = BANDS[value]
    rows = rows.filter(confidence__gte=low)
    return rows if high is None else rows.filter(confidence__lt=high)


def _pinned(rows: Any, value: str) -> Any:
    return rows.filter(pinned=value == "yes")


def _called(principal: Principal) -> Callable[[Any, str], Any]:
    return lambda rows, value: rows.filter(pk__in=called(principal, WORDS_OF[value][0]))


def _owners(principal: Principal, everybody: bool) -> list[tuple[str, str]]:
    """Me, and people whose notes I may see; of everybody, everybody."""
    who = {"me": principal.pk, "everybody": everybody, "most": OFFERED_MAX}
    common = Note.objects.as_pipeline().filter(deleted_at=None, visibility="common")
    named = [(str(pk), visible(name)) for pk, name in ask(OWNERS, who, common=common)]
    return [(str(principal.pk), "me"), *named]
