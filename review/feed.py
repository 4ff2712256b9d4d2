"""Resurfacing: notes that come up again, one at a time, so that what is known stays known and what
is wrong is seen.

Reads: note, evidence, raw_item, pin, dedup_verdict. Writes: card. Audits: draw (what came up, how
likely that was), rating, act; each in the transaction of its effect. Verify: a card is what its
ratings make of it, those of the words it stood in before included; the probabilities of all notes
that may come up sum to 1. Everything is one principal's own: what others were shown or said changes
nothing here.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import takewhile
from random import Random
from uuid import UUID

from django.db import connection, transaction
from django.db.models import Exists, OuterRef, Q, QuerySet

from memory import verdicts
from memory.acts import record_act
from memory.errors import Conflict, NotFound
from memory.heirs import HEIRS_MAX, lines
from memory.keeping import undone_edit
from memory.models import DedupVerdict, Evidence, Note, Pin, Principal, RawItem
from memory.querysets import NoteQuerySet, condition
from memory.verdicts import PERSON, UNDONE
from review import spaced
from review.draw import HALF_LIFE_DAYS, Drawn, draw, faded, fades, weights
from review.models import Card, Draw, Rating

#: Hours for which a due card that was passed over stays away.
# Why: who skips it does not want it now, and would see nothing else as long as it is due.
# Calibrate: share of cards that are passed over again when they come back.
SKIPPED_HOURS = 8

#: Pieces of evidence that are shown with a card, the first ones.
EVIDENCE_SHOWN = 5

#: Cards that are counted as due; more is as good as many.
DUE_COUNTED_MAX = 100


@dataclass(frozen=True)
class Why:
    """The numbers of a draw: notes of the source of this note, how often it had been shown (each
    time counting half after a month), its weight, and its probability among `pool` notes."""

    drawn_by: str
    of_source: int
    shown: float
    weight: float
    probability: float
    pool: int


@dataclass(frozen=True)
class Shown:
    """The card on the table: the draw, its note, what bears it out, why it came up, and when it
    would come up again by rating."""

    draw: Draw
    note: Note
    evidence: tuple[Evidence, ...]
    pinned: bool
    card: Card | None
    why: Why
    intervals: Mapping[int, timedelta]

    @property
    def choices(self) -> list[tuple[int, str, float]]:
        """(rating, its name, seconds until the note would come up again)."""
        return [
            (rating, name, self.intervals[rating] / timedelta(seconds=1))
            for rating, name in spaced.RATINGS.items()
        ]


def pool(
    principal: Principal, *, now: datetime, mates: Collection[int] | None = None
) -> NoteQuerySet:
    """The notes that may come up: live, seen by the principal, and not silenced everywhere. `mates`
    are the ids of those who share a group with it, where they are known already."""
    rows: NoteQuerySet = Note.objects.visible_to(principal, mates=mates).live(now)
    return rows.wanted_by(principal, None)


def on_table(
    principal: Principal,
    *,
    now: datetime,
    up: NoteQuerySet | None = None,
    mates: Collection[int] | None = None,
) -> Shown | None:
    """What was drawn last, until it is rated or something else is drawn; reading it again changes
    nothing. None when there is nothing, or the note is not to come up any more. `up` is the
    principal's `pool`, where somebody has it already, and `mates` as for that."""
    up = pool(principal, now=now, mates=mates) if up is None else up
    last = next(iter(Draw.objects.raw(_TABLE, [principal.pk])), None)
    if last is None:
        return None
    rows = up.filter(pk=last.note_id)
    note = rows.select_related("project", "owner").defer("embedding").first()
    if note is None:
        return None
    card = Card.objects.filter(principal=principal, note=note).first()
    seen = RawItem.objects.visible_to(principal, mates=mates).values("pk")
    edges = Evidence.objects.filter(note=note, raw_item__in=seen).order_by("pk")
    why, pinned = _beside(last, note, up=up)
    return Shown(
        draw=last,
        note=note,
        evidence=tuple(edges[:EVIDENCE_SHOWN]),
        pinned=pinned,
        card=card,
        why=why,
        intervals=spaced.intervals(card.state if card else None, now=now),
    )


def due(principal: Principal, *, now: datetime, up: NoteQuerySet, most: int) -> list[UUID]:
    """The notes in `up`, the principal's `pool`, whose cards are due, longest first, at most so
    many; without those that were passed over a while ago."""
    where, params = condition(up)
    passed = now - timedelta(hours=SKIPPED_HOURS)
    with connection.cursor() as cursor:
        cursor.execute(
            _DUE.format(where=where), [principal.pk, now, principal.pk, passed, *params, most]
        )
        return [note for (note,) in cursor.fetchall()]


@transaction.atomic
def next_card(
    *,
    by: Principal,
    now: datetime,
    random: Random,
    after: int | None = None,
    pinned: bool = False,
) -> Draw:
    """Draw what comes up next: what is due, else by weight; with `pinned` the pinned note that was
    shown least.

    `after` is the draw that the asker saw last: when there is a later one already, that is the
    answer, so that pressing twice burns nothing. Raises NotFound when there is nothing to draw.
    """
    _one_at_a_time(by)
    _follow_edits(by)
    last = _last(by)
    if after is not None and last is not None and last.pk > after:
        return last
    if pinned:
        return _write(by, "pinned", *_least_shown(by, now=now), now=now)
    for note in due(by, now=now, up=pool(by, now=now), most=1):
        return _write(by, "due", Drawn(note, 1.0), 1, now=now)
    return _write(by, "draw", *by_weight(by, now=now, random=random), now=now)


@transaction.atomic
def rate(note_id: UUID, rating: int, *, drawn: int, by: Principal, now: datetime) -> Card:
    """Say how well one knew the note on the table (1 again to 4 easy); with the first rating it is
    put under repetition.

    Raises RefusedError for no such rating, NotFound when the note is not to be seen, Conflict when
    `drawn` is not the draw on the table any more, or was rated.
    """
    _one_at_a_time(by)
    if not pool(by, now=now).filter(pk=note_id).exists():
        raise NotFound(f"no note {note_id}")
    last = _last(by)
    if last is None or (last.pk, last.note_id) != (drawn, note_id):
        raise Conflict("another card came up since: look at that one")
    if (before := _rated(last)) is not None:
        seconds = (now - before.created_at).total_seconds()
        raise Conflict(f"{by} rated it {spaced.RATINGS[before.rating]} {seconds:.0f} s ago")
    card = Card.objects.filter(principal=by, note=note_id).first()
    state = card.state if card else {}
    after, due_at = spaced.reviewed(state, rating, now=now)
    kept, _ = Card.objects.update_or_create(
        principal=by,
        note_id=note_id,
        defaults={"state": after, "due_at": due_at},
        create_defaults={"state": after, "due_at": due_at, "created_at": now},
    )
    Rating.objects.create(
        principal=by, note_id=note_id, rating=rating, before=state, after=after, created_at=now
    )
    detail = {"draw": drawn, "rating": rating}
    record_act(by, "rate", "feed", note_id, now=now, detail=detail)
    return kept


@transaction.atomic
def forget(note_id: UUID, *, by: Principal, now: datetime) -> None:
    """Take a note out of repetition; it still comes up by weight. Raises NotFound."""
    gone, _ = Card.objects.filter(principal=by, note=note_id).delete()
    if not gone:
        raise NotFound("this note is not under repetition")
    record_act(by, "forget", "feed", note_id, now=now)


# Notes are counted by source, and none is fetched. Showings are by note, of those alone that may
# still come up.
# Why OFFSET 0: from what was shown to its notes, whatever the planner knows of either.
_SIZES = "SELECT unit_key, count(*) FROM memory_note WHERE {where} GROUP BY unit_key"
_SHOWINGS = """
WITH seen AS MATERIALIZED (
    SELECT note_id, sum(power(0.5, greatest(extract(epoch FROM %s - created_at), 0)::float8
                                   / (86400 * %s))) AS shown
    FROM review_draw WHERE principal_id = %s AND id < %s GROUP BY note_id
)
SELECT memory_note.id, memory_note.unit_key, seen.shown FROM seen CROSS JOIN LATERAL (
    SELECT * FROM memory_note n WHERE n.id = seen.note_id OFFSET 0
) memory_note WHERE {where}
"""
# What was drawn last and not rated since, as `_last` and `_rated` have it.
_TABLE = """
SELECT * FROM (SELECT * FROM review_draw WHERE principal_id = %s ORDER BY id DESC LIMIT 1) last
WHERE NOT EXISTS (
    SELECT 1 FROM review_rating rated WHERE rated.principal_id = last.principal_id
      AND rated.note_id = last.note_id AND rated.created_at > last.created_at)
"""
# Of a note on the table: notes of its source, how often it had been shown, whether it is pinned.
_BESIDE = """
SELECT (SELECT count(*) FROM memory_note WHERE {where} AND memory_note.unit_key = %s),
    (SELECT coalesce(sum(power(0.5, extract(epoch FROM %s - created_at)::float8
                                    / (86400 * %s))), 0)
     FROM review_draw WHERE principal_id = %s AND note_id = %s AND id < %s),
    EXISTS (SELECT 1 FROM memory_pin WHERE principal_id = %s AND note_id = %s)
"""
# Why OFFSET 0: as above; the planner would read every note for a few cards.
_DUE = """
SELECT card.note_id FROM review_card card CROSS JOIN LATERAL (
    SELECT * FROM memory_note n WHERE n.id = card.note_id OFFSET 0
) memory_note
WHERE card.principal_id = %s AND card.due_at <= %s AND NOT EXISTS (
    SELECT 1 FROM review_draw passed WHERE passed.principal_id = %s
      AND passed.note_id = card.note_id AND passed.created_at >= greatest(card.due_at, %s))
  AND ({where})
ORDER BY card.due_at, card.id LIMIT %s
"""

#: Above every id.
_ALL = 2**63 - 1


def by_weight(by: Principal, *, now: datetime, random: Random) -> tuple[Drawn[UUID], int]:
    """One of all notes that may come up, by weight, with its exact probability, and how many they
    are. Raises NotFound when there is none."""
    sizes, showings = _sizes(by, now=now), _showings(by, now=now)
    if not sizes:
        raise NotFound("there is nothing to draw: no note is live")
    shown: dict[str, list[float]] = {}
    for source, times in showings.values():
        shown.setdefault(source, []).append(times)
    # In an order that does not depend on the plan: the same dice give the same note.
    first = draw(weights(dict(sorted(sizes.items())), shown), random)
    rows = pool(by, now=now).filter(unit_key=first.key).order_by("pk")
    left = {
        pk: showings[pk][1] if pk in showings else 0.0 for pk in rows.values_list("pk", flat=True)
    }
    if not left:
        raise NotFound("what was to come up went away at this moment: draw again")
    second = draw(fades(left), random)
    return Drawn(second.key, first.probability * second.probability), sum(sizes.values())


def _sizes(by: Principal, *, now: datetime) -> dict[str, int]:
    where, params = condition(pool(by, now=now))
    with connection.cursor() as cursor:
        cursor.execute(_SIZES.format(where=where), params)
        return dict(cursor.fetchall())


def _showings(by: Principal, *, now: datetime, before: int = _ALL) -> dict[UUID, tuple[str, float]]:
    """Source and showings of each note that was shown, by the ledger of draws."""
    where, params = condition(pool(by, now=now))
    with connection.cursor() as cursor:
        given = [now, HALF_LIFE_DAYS, by.pk, before, *params]
        cursor.execute(_SHOWINGS.format(where=where), given)
        return {note: (source, shown) for note, source, shown in cursor.fetchall()}


def _least_shown(by: Principal, *, now: datetime) -> tuple[Drawn[UUID], int]:
    pins = Pin.objects.filter(principal=by, note__in=pool(by, now=now)).order_by("pk")
    notes = list(pins.values_list("note", flat=True))
    if not notes:
        raise NotFound("nothing is pinned: press p at a note to pin it")
    showings = _showings(by, now=now)
    least = min(notes, key=lambda pk: showings[pk][1] if pk in showings else 0.0)
    return Drawn(least, 1.0), 1


def _beside(last: Draw, note: Note, *, up: NoteQuerySet) -> tuple[Why, bool]:
    """The numbers as they were when it was drawn, but for notes that came or went since; and
    whether it is pinned."""
    where, params = condition(up)
    me = last.principal_id
    given = [*params, note.unit_key, last.created_at, HALF_LIFE_DAYS, me, note.pk, last.pk]
    with connection.cursor() as cursor:
        cursor.execute(_BESIDE.format(where=where), [*given, me, note.pk])
        of_source, shown, pinned = cursor.fetchone()
    weight = faded(shown) / max(of_source, 1)
    return Why(last.drawn_by, of_source, shown, weight, last.probability, last.pool), pinned


def _write(by: Principal, drawn_by: str, drawn: Drawn[UUID], size: int, *, now: datetime) -> Draw:
    return Draw.objects.create(
        principal=by,
        note_id=drawn.key,
        drawn_by=drawn_by,
        probability=drawn.probability,
        pool=size,
        created_at=now,
    )


def _last(principal: Principal) -> Draw | None:
    return Draw.objects.filter(principal=principal).last()


def _rated(drawn: Draw) -> Rating | None:
    """The rating of this draw: the first one of its note since. What is drawn at the moment of a
    rating comes after it."""
    rows = Rating.objects.filter(principal=drawn.principal_id, note=drawn.note_id)
    return rows.filter(created_at__gt=drawn.created_at).order_by("pk").first()


def _follow_edits(by: Principal) -> None:
    """Move the cards of notes that were put into other words to the notes in their place, and back
    where the edit was undone: what somebody learns is what it says, not how."""
    onward = _edits().filter(
        Q(target=OuterRef("note"), status="approved") | Q(note=OuterRef("note"), status="undone")
    )
    cards = Card.objects.filter(principal=by, note__deleted_at__isnull=False)
    for card in cards.filter(Exists(onward)).select_related("note").order_by("pk"):
        place = _in_place_of(card.note)
        if place == card.note_id:
            continue
        if Card.objects.filter(principal=by, note=place).exists():
            card.delete()  # Known by its new words already.
        else:
            card.note_id = place
            card.save(update_fields=["note"])


def _in_place_of(note: Note) -> UUID:
    """The note that says it now: that which an edit was made of that was taken back, or the last of
    the edits of it that stand."""
    for _ in range(HEIRS_MAX):
        back = undone_edit(note) if note.retired_reason == UNDONE else None
        if back is None or back.target is None:
            break
        note = back.target
    edits = list(takewhile(lambda heir: verdicts.edits(heir.verdict), lines([note.pk])[note.pk]))
    return edits[-1].kept.pk if edits else note.pk


def _edits() -> QuerySet[DedupVerdict]:
    """The verdicts that say that a person put a note into other words."""
    rows: QuerySet[DedupVerdict] = DedupVerdict.objects.as_pipeline().filter(
        verdict="refine", model_real=PERSON
    )
    return rows


def _one_at_a_time(by: Principal) -> None:
    Principal.objects.select_for_update(no_key=True).get(pk=by.pk)
