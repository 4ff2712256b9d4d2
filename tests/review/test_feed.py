"""Resurfacing: what is due first, then by weight; rated, and every showing written down."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone
from random import Random
from uuid import UUID

import pytest
from django.db import connection, transaction
from django.db.utils import DatabaseError

from memory import keeping
from memory.errors import ArgusError, Conflict, NotFound, RefusedError
from memory.models import Act, Note, Principal
from recall.feedback import give_feedback
from review import feed, spaced
from review.draw import faded
from review.models import Card, Draw, Rating
from tests.factories import at, note, three

DAY = 10.0


def drawn(who: Principal, days: float = DAY, *, seed: int = 1, **how: bool | int) -> Draw:
    return feed.next_card(by=who, now=at(days=days), random=Random(seed), **how)  # type: ignore[arg-type]


def rated(who: Principal, shown: Draw, rating: int, days: float) -> Card:
    return feed.rate(shown.note_id, rating, drawn=shown.pk, by=who, now=at(days=days))


def shown_to(who: Principal, one: Note, when: datetime) -> Draw:
    return Draw.objects.create(
        principal=who, note=one, drawn_by="draw", probability=0.5, pool=2, created_at=when
    )


@pytest.fixture
def alice(db: None) -> Principal:
    return three()[0]


def odds(who: Principal, days: float = DAY) -> dict[UUID, float]:
    """The probability of every note that the dice can bring up."""
    found: dict[UUID, float] = {}
    for seed in range(300):
        one, _ = feed.by_weight(who, now=at(days=days), random=Random(seed))
        found[one.key] = one.probability
    return found


def test_it_says_the_exact_probability_of_what_it_draws(alice: Principal) -> None:
    long = [note(alice, f"A point of the report, number {n}.", unit_key="item:1") for n in range(4)]
    short = note(alice, "A line of another one.", unit_key="item:2")
    shown_to(alice, long[0], at(days=DAY))
    shown_to(alice, long[0], at(days=DAY - 30))
    shown_to(alice, short, at(days=DAY - 60))
    weight = {one.pk: 1 / 4 for one in long} | {short.pk: faded(0.25)}
    weight[long[0].pk] = faded(1.5) / 4
    whole = sum(weight.values())
    got = odds(alice)
    assert set(got) == set(weight), "every note comes up some time"
    for pk, one in weight.items():
        assert got[pk] == pytest.approx(one / whole)
    assert sum(got.values()) == pytest.approx(1.0)


def test_it_writes_down_what_it_showed_and_shows_it_again_without_drawing(
    alice: Principal,
) -> None:
    notes = [note(alice, f"What we know, number {n}.") for n in range(3)]
    assert feed.on_table(alice, now=at(days=DAY)) is None
    one = drawn(alice)
    assert (one.drawn_by, one.pool) == ("draw", 3)
    assert one.probability == pytest.approx(1 / 3)
    for _ in range(3):
        shown = feed.on_table(alice, now=at(days=DAY + 1))
        assert shown is not None and shown.draw == one
        assert shown.note.pk == one.note_id and len(shown.evidence) == 1
    assert Draw.objects.count() == 1 and one.note_id in {row.pk for row in notes}
    assert shown is not None
    why = shown.why
    assert (why.of_source, why.shown, why.weight, why.pool) == (1, 0.0, 1.0, 3)


def test_it_tells_how_often_a_note_had_been_shown_when_it_came_up(alice: Principal) -> None:
    one = note(alice, "The only note.")
    shown_to(alice, one, at(days=DAY - 30))
    drawn(alice)
    shown = feed.on_table(alice, now=at(days=DAY + 5))
    assert shown is not None
    assert shown.why.shown == pytest.approx(0.5)
    assert shown.why.weight == pytest.approx(faded(0.5))


def test_pressing_twice_burns_nothing(alice: Principal) -> None:
    for n in range(5):
        note(alice, f"What we know, number {n}.")
    first = drawn(alice)
    second = drawn(alice, after=first.pk)
    assert drawn(alice, after=first.pk) == second
    assert Draw.objects.count() == 2
    assert drawn(alice, after=second.pk) != second


def test_a_note_that_is_due_comes_first_and_longest_due_first(alice: Principal) -> None:
    for n in range(6):
        note(alice, f"What we know, number {n}.")
    first = drawn(alice)
    card = rated(alice, first, 3, DAY + 0.001)
    second = drawn(alice, DAY + 0.002, seed=5)
    assert second.note_id != first.note_id
    rated(alice, second, 1, DAY + 0.003)
    assert card.due_at < at(days=DAY + 1)
    due = drawn(alice, DAY + 1)
    assert (due.drawn_by, due.note_id, due.probability, due.pool) == ("due", second.note_id, 1.0, 1)


def test_a_due_card_that_is_passed_over_waits_for_some_hours(alice: Principal) -> None:
    for n in range(6):
        note(alice, f"What we know, number {n}.")
    rated(alice, drawn(alice), 1, DAY + 0.001)
    due = drawn(alice, DAY + 1)
    assert due.drawn_by == "due"
    assert drawn(alice, DAY + 1.01).drawn_by == "draw"
    again = drawn(alice, DAY + 1.01 + feed.SKIPPED_HOURS / 24)
    assert (again.drawn_by, again.note_id) == ("due", due.note_id)


def test_a_rating_moves_the_card_and_is_kept_with_what_it_did(alice: Principal) -> None:
    one = note(alice, "The only note.")
    card = rated(alice, drawn(alice), 3, DAY + 0.001)
    first = Rating.objects.get()
    assert (first.note_id, first.rating, first.before) == (one.pk, 3, {})
    assert first.after == card.state and spaced.reviewed(None, 3, now=first.created_at)[0]
    assert card.due_at == at(minutes=10, days=DAY + 0.001)
    assert feed.on_table(alice, now=at(days=DAY + 0.002)) is None, "it is rated"
    later = rated(alice, drawn(alice, DAY + 1), 3, DAY + 1.001)
    second = Rating.objects.last()
    assert second is not None and second.before == first.after and second.after == later.state
    assert later.due_at > at(days=DAY + 2), "known after a day: days"
    act = Act.objects.filter(verb="rate").last()
    assert act is not None
    assert (act.kind, act.reference, act.detail["rating"]) == ("feed", str(one.pk), 3)


def test_a_card_is_what_its_ratings_make_of_it(alice: Principal) -> None:
    note(alice, "The only note.")
    for n, rating in enumerate((3, 3, 1, 2, 4)):
        rated(alice, drawn(alice, DAY + 3 * n), rating, DAY + 3 * n + 0.001)
    state, due = None, None
    for row in Rating.objects.order_by("pk"):
        assert row.before == (state or {})
        state, due = spaced.reviewed(state, row.rating, now=row.created_at)
        assert row.after == state
    card = Card.objects.get()
    assert (card.state, card.due_at) == (state, due)


def test_it_takes_one_rating_of_a_card_and_none_of_another(alice: Principal) -> None:
    for n in range(2):
        note(alice, f"What we know, number {n}.")
    first = drawn(alice)
    rated(alice, first, 3, DAY + 0.001)
    with pytest.raises(Conflict, match="good 86 s ago"):
        rated(alice, first, 4, DAY + 0.002)
    second = drawn(alice, DAY + 0.01)
    with pytest.raises(Conflict, match="another card"):
        rated(alice, first, 4, DAY + 0.02)
    for odd in (0, 5, -1):
        with pytest.raises(RefusedError):
            rated(alice, second, odd, DAY + 0.02)
    assert Rating.objects.count() == 1


def test_two_who_rate_at_once_rate_once(clone_db: str) -> None:
    alice = three()[0]
    note(alice, "The only note.")
    one = drawn(alice)

    def go(rating: int) -> str:
        try:
            rated(alice, one, rating, DAY + 0.001 * rating)
        except ArgusError as refused:
            return type(refused).__name__
        finally:
            connection.close()
        return "done"

    with ThreadPoolExecutor(2) as pool:
        said = sorted(pool.map(go, (3, 4)))
    assert said == ["Conflict", "done"]
    assert Rating.objects.count() == Card.objects.count() == 1


def test_only_what_one_sees_and_what_is_live_comes_up(alice: Principal) -> None:
    _, bob, charlie = three()
    mine = note(alice, "Alice alone knows.")
    team = note(alice, "The pair knows.", visibility="team")
    gone = note(alice, "It was so.")
    keeping.retire_note(gone.pk, by=alice, now=at(days=1))
    assert set(odds(alice)) == {mine.pk, team.pk}
    assert set(odds(bob)) == {team.pk}
    with pytest.raises(NotFound):
        drawn(charlie)
    one = drawn(alice)
    for who in (bob, charlie):
        with pytest.raises(ArgusError):
            rated(who, one, 3, DAY + 1)
        assert feed.on_table(who, now=at(days=DAY)) is None
    shown_to(bob, team, at(days=DAY))
    shown = feed.on_table(bob, now=at(days=DAY))
    assert shown is not None and shown.evidence == (), "the turn it comes from is private"


def test_what_was_silenced_everywhere_does_not_come_up(alice: Principal) -> None:
    one, two = note(alice, "It rains."), note(alice, "It snows.")
    give_feedback(one.pk, "never", principal=alice, now=at(days=1))
    assert set(odds(alice)) == {two.pk}


def test_what_others_were_shown_changes_nothing(alice: Principal) -> None:
    bob = three()[1]
    one, two = (note(alice, text, visibility="team") for text in ("It rains.", "It snows."))
    for days in range(5):
        shown_to(bob, one, at(days=days))
    assert odds(alice) == pytest.approx({one.pk: 0.5, two.pk: 0.5})
    assert odds(bob)[one.pk] < 0.5


def test_a_pinned_note_comes_up_when_it_is_asked_for_least_shown_first(alice: Principal) -> None:
    notes = [note(alice, f"What we know, number {n}.") for n in range(6)]
    with pytest.raises(NotFound, match="pinned"):
        drawn(alice, pinned=True)
    for one in notes[:2]:
        keeping.pin(one.pk, by=alice, now=at(days=1))
    came = [drawn(alice, DAY + n / 100, pinned=True) for n in range(4)]
    assert {one.drawn_by for one in came} == {"pinned"}
    assert Counter(one.note_id for one in came) == {notes[0].pk: 2, notes[1].pk: 2}
    shown = feed.on_table(alice, now=at(days=DAY + 1))
    assert shown is not None and shown.pinned


def test_a_note_that_is_retired_leaves_the_table(alice: Principal) -> None:
    note(alice, "It snows.")
    one = drawn(alice)
    keeping.retire_note(one.note_id, by=alice, now=at(days=DAY))
    assert feed.on_table(alice, now=at(days=DAY + 1)) is None
    with pytest.raises(NotFound):
        drawn(alice, DAY + 1)


def test_repetition_can_be_ended(alice: Principal) -> None:
    note(alice, "It snows.")
    one = drawn(alice)
    rated(alice, one, 1, DAY + 0.001)
    feed.forget(one.note_id, by=alice, now=at(days=DAY + 0.002))
    assert drawn(alice, DAY + 5).drawn_by == "draw"
    with pytest.raises(NotFound):
        feed.forget(one.note_id, by=alice, now=at(days=DAY + 6))


def test_a_card_keeps_its_time_of_the_zone_it_was_rated_in(alice: Principal) -> None:
    berlin = at(days=DAY).astimezone(timezone(timedelta(hours=1)))
    assert spaced.reviewed(None, 2, now=berlin) == spaced.reviewed(None, 2, now=at(days=DAY))
    assert list(spaced.intervals(None, now=berlin)) == [1, 2, 3, 4]


def test_nobody_changes_what_was_shown_or_said(alice: Principal) -> None:
    note(alice, "It snows.")
    rated(alice, drawn(alice), 3, DAY + 1)
    for rows in (Draw.objects.all(), Rating.objects.all()):
        with pytest.raises(DatabaseError), transaction.atomic():
            rows.delete()
        with pytest.raises(DatabaseError), transaction.atomic():
            rows.update(created_at=at())
