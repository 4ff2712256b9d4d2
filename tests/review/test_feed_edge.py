"""The feed at its edges: few notes shown very often, and cards of notes that are edited."""

from __future__ import annotations

from random import Random

import pytest

from memory.edits import edit_note
from memory.keeping import retire_note
from memory.models import DedupVerdict, Note, Principal
from review import feed, holds
from review.draw import draw, fades, weights
from review.models import Card, Draw, Rating
from tests.factories import at, note, three

#: Showings of each note, by source: as often as one may hold a key down.
WORN = [
    {"a": [54.0] * 3},
    {"a": [60.0]},
    {"a": [5_000.0], "b": [5_001.0, 5_003.0]},
    {"a": [2_000.0] * 2, "b": [90_000.0]},
]


@pytest.mark.parametrize("shown", WORN)
def test_it_always_draws_what_there_is(shown: dict[str, list[float]]) -> None:
    weighed = weights({source: len(times) for source, times in shown.items()}, shown)
    assert max(weighed.values()) > 0.1
    source = draw(weighed, Random(1)).key
    within = fades(dict(enumerate(shown[source])))
    assert max(within.values()) == 1.0
    assert 0 < draw(within, Random(1)).probability <= 1.0


def test_it_keeps_the_odds_when_all_was_shown_very_often() -> None:
    often = weights({"a": 1, "b": 2}, {"a": [3_000.0], "b": [3_001.0, 3_002.0]})
    once = weights({"a": 1, "b": 2}, {"a": [1.0], "b": [2.0, 3.0]})
    assert often["a"] / often["b"] == pytest.approx(once["a"] / once["b"])


def test_it_prefers_what_was_never_shown_to_what_was_shown_very_often() -> None:
    assert weights({"a": 1, "b": 2}, {"a": [3_000.0]}) == {"a": 0.0, "b": 1.0}


def test_it_has_no_less_than_no_fresh_notes() -> None:
    """Two readings of the database may not agree on how many notes there are."""
    assert weights({"a": 1}, {"a": [1.0, 1.0, 1.0]})["a"] > 0


@pytest.fixture
def alice(db: None) -> Principal:
    return three()[0]


def press(who: Principal, seconds: int) -> Draw:
    return feed.next_card(by=who, now=at(days=9, minutes=seconds / 60), random=Random(seconds))


@pytest.mark.parametrize("notes", [1, 2])
def test_it_draws_on_and_on_from_few_notes(alice: Principal, notes: int) -> None:
    known = [note(alice, f"What we know, number {n}.") for n in range(notes)]
    Draw.objects.bulk_create(
        Draw(
            principal=alice,
            note=one,
            drawn_by="draw",
            probability=1.0,
            pool=1,
            created_at=at(days=9),
        )
        for one in known
        for _ in range(1_200)
    )
    for second in range(5):
        assert press(alice, second).probability == pytest.approx(1 / notes, abs=0.49)


def test_a_rating_stands_beside_the_next_card_however_often_it_was_shown(alice: Principal) -> None:
    note(alice, "The only note.")
    for second in range(70):
        last = press(alice, second)
    feed.rate(last.note_id, 3, drawn=last.pk, by=alice, now=at(days=9, minutes=2))
    assert press(alice, 130).pk > last.pk
    assert Rating.objects.count() == 1


def learnt(who: Principal) -> tuple[Note, Card]:
    """A note under repetition, and its card."""
    one = note(who, "The staging server listens on port 8443.")
    shown = press(who, 0)
    return one, feed.rate(one.pk, 3, drawn=shown.pk, by=who, now=at(days=9, minutes=1))


def reworded(which: Note, by: Principal, day: float, words: str) -> Note:
    return edit_note(which.pk, title="Staging", content=words, by=by, now=at(days=day))


EDITS = [
    "The staging server of the harbor listens on port 8443.",
    "The harbor's staging server listens on port 8443 alone.",
]


@pytest.mark.parametrize("edits", [1, 2])
def test_a_card_follows_the_edit(alice: Principal, edits: int) -> None:
    one, card = learnt(alice)
    for n in range(edits):
        one = reworded(one, alice, 10 + n, EDITS[n])
    shown = feed.next_card(by=alice, now=at(days=60), random=Random(1))
    assert (shown.drawn_by, shown.note_id) == ("due", one.pk)
    (now,) = Card.objects.all()
    assert (now.pk, now.note_id, now.state, now.due_at) == (
        card.pk,
        one.pk,
        card.state,
        card.due_at,
    )
    again = feed.rate(one.pk, 3, drawn=shown.pk, by=alice, now=at(days=60, minutes=1))
    assert again.due_at > card.due_at
    assert Rating.objects.order_by("pk").last().before == card.state  # type: ignore[union-attr]


def test_a_card_comes_back_with_the_words_it_had(alice: Principal) -> None:
    one, _ = learnt(alice)
    reworded(one, alice, 10, EDITS[0])
    feed.next_card(by=alice, now=at(days=11), random=Random(1))
    holds.undo(DedupVerdict.objects.as_pipeline().get().pk, by=alice, now=at(days=12))
    shown = feed.next_card(by=alice, now=at(days=60), random=Random(1))
    assert (shown.drawn_by, shown.note_id) == ("due", one.pk)


def test_a_card_of_a_note_that_is_gone_for_good_stays_away(alice: Principal) -> None:
    one, card = learnt(alice)
    other = note(alice, "The queue lives in Postgres.")
    retire_note(one.pk, by=alice, now=at(days=10))
    shown = feed.next_card(by=alice, now=at(days=60), random=Random(1))
    assert (shown.drawn_by, shown.note_id) == ("draw", other.pk)
    card.refresh_from_db()
    assert card.note_id == one.pk


def test_what_was_taken_out_of_repetition_stays_out_after_an_edit(alice: Principal) -> None:
    one, _ = learnt(alice)
    new = reworded(one, alice, 10, EDITS[0])
    feed.next_card(by=alice, now=at(days=11), random=Random(1))
    feed.forget(new.pk, by=alice, now=at(days=11))
    assert feed.next_card(by=alice, now=at(days=60), random=Random(1)).drawn_by == "draw"
    assert not Card.objects.exists()
