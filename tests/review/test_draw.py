"""The draw: its odds are exactly those of the formula, whatever was shown."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from review.draw import HALF_LIFE_DAYS, draw, faded, showings, weights

#: Notes of a source: how often each was shown, by source.
MEMORIES = st.dictionaries(
    st.text("abcdef", min_size=1, max_size=3),
    st.lists(st.one_of(st.just(0.0), st.floats(0.01, 12.0)), min_size=1, max_size=6),
    min_size=1,
    max_size=6,
)


def two_steps(memory: dict[str, list[float]]) -> dict[tuple[str, int], float]:
    """The probability of each note as the feed comes to it."""
    sizes = {source: len(notes) for source, notes in memory.items()}
    shown = {source: [one for one in notes if one] for source, notes in memory.items()}
    weighed = weights(sizes, shown)
    whole = sum(weighed.values())
    found = {}
    for source, notes in memory.items():
        within = [faded(one) for one in notes]
        for place, weight in enumerate(within):
            found[source, place] = weighed[source] / whole * weight / sum(within)
    return found


@given(MEMORIES)
def test_it_draws_in_two_steps_with_the_odds_of_one(memory: dict[str, list[float]]) -> None:
    plain = {
        (source, place): faded(shown) / len(notes)
        for source, notes in memory.items()
        for place, shown in enumerate(notes)
    }
    whole = sum(plain.values())
    got = two_steps(memory)
    assert sum(got.values()) == pytest.approx(1.0)
    for key, weight in plain.items():
        assert got[key] == pytest.approx(weight / whole), key


def test_it_gives_a_long_document_no_more_than_a_short_one() -> None:
    got = two_steps({"long": [0.0] * 99, "short": [0.0]})
    assert got["short", 0] == pytest.approx(0.5)
    assert got["long", 7] == pytest.approx(0.5 / 99)


def test_it_halves_a_weight_by_each_showing_and_gives_it_back_by_the_month() -> None:
    assert faded(showings([])) == 1.0
    assert faded(showings([0.0])) == pytest.approx(0.5)
    assert faded(showings([0.0, 0.0])) == pytest.approx(0.25)
    assert showings([HALF_LIFE_DAYS]) == pytest.approx(0.5)
    assert showings([0.0, HALF_LIFE_DAYS, 2 * HALF_LIFE_DAYS]) == pytest.approx(1.75)
    assert showings([-1.0]) == 1.0, "a clock that went back makes nothing more than shown"
    assert faded(showings([3_650.0])) == pytest.approx(1.0)


def test_it_comes_up_as_often_as_it_says() -> None:
    weighed = {"a": 1.0, "b": 0.5, "c": 0.0, "d": 0.25}
    dice = Random(7)
    drawn = [draw(weighed, dice) for _ in range(20_000)]
    many = Counter(one.key for one in drawn)
    assert many["c"] == 0
    for one in {one.key: one for one in drawn}.values():
        assert many[one.key] / len(drawn) == pytest.approx(one.probability, abs=0.015)


def test_the_same_dice_draw_the_same() -> None:
    weighed = {n: 1.0 + n for n in range(50)}
    assert [draw(weighed, Random(n)) for n in range(9)] == [
        draw(weighed, Random(n)) for n in range(9)
    ]


class Highest(Random):
    """Dice that always fall on the last side."""

    def random(self) -> float:
        return 1.0


def test_it_never_falls_off_the_end_and_never_onto_what_weighs_nothing() -> None:
    assert draw({"a": 0.1, "b": 0.2, "c": 0.0}, Highest()).key == "b"
    for nothing in ({}, {"a": 0.0}):
        with pytest.raises(ValueError, match="nothing"):
            draw(nothing, Random(1))
