"""How: the cutter on values alone; hypothesis decides when turns arrive."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from memory.borders import (
    EPISODE_TURNS_MAX,
    TIME_GAP_MINUTES,
    TOPIC_TURNS_MIN,
    Cut,
    Done,
    Turn,
    cut,
)
from tests.factories import T0, at

NORTH, EAST, NORTH_EAST = (1.0, 0.0), (0.0, 1.0), (1.0, 1.0)
SHIFT = 0.5


def said(minutes: Sequence[float], vectors: Sequence[Sequence[float] | None] = ()) -> list[Turn]:
    """Turns at these minutes, numbered from 0, stored the moment they were said."""
    given = [*vectors, *[NORTH] * (len(minutes) - len(vectors))]
    return [
        Turn(number, at(minute), at(minute), vector)
        for number, (minute, vector) in enumerate(zip(minutes, given, strict=True))
    ]


def asked(turns: Sequence[Turn], *, now: datetime, **fields: object) -> Done:
    arguments = {"ended_at": None, "topic_shift": SHIFT} | fields
    return cut(turns, now=now, **arguments)  # type: ignore[arg-type]


def shape(cuts: Sequence[Cut]) -> list[tuple[int, int, str]]:
    return [(one.turns[0].item, one.turns[-1].item, one.reason) for one in cuts]


def test_it_cuts_after_twenty_turns_and_leaves_the_tail_open() -> None:
    done = asked(said(range(24)), now=at(24))
    assert shape(done.cuts) == [(0, EPISODE_TURNS_MAX - 1, "size")]
    assert [turn.item for turn in done.tail] == [20, 21, 22, 23]
    assert [(b.item, b.score) for b in done.borders if b.kind == "size" and b.fired] == [(20, 20)]


def test_it_waits_with_the_size_until_the_topic_before_it_is_known() -> None:
    turns = said(range(25), [NORTH] * 18 + [EAST] * 7)
    assert asked(turns[:21], now=at(21)).cuts == ()
    assert shape(asked(turns, now=at(25)).cuts) == [(0, 17, "topic")]


def test_it_cuts_at_a_pause_of_more_than_thirty_minutes() -> None:
    edge = TIME_GAP_MINUTES
    done = asked(said([0, edge, 2 * edge + 1]), now=at(2 * edge + 2))
    assert shape(done.cuts) == [(0, 1, "gap")]
    looks = [(b.item, b.score, b.fired) for b in done.borders if b.kind == "gap"]
    assert looks == [(1, 30.0, False), (2, 31.0, True)]


def test_it_looks_at_the_pause_since_what_is_closed_already() -> None:
    done = asked(said([40, 41]), now=at(42), closed_until=at(0))
    looks = [(b.item, b.score, b.fired) for b in done.borders if b.kind == "gap"]
    assert looks == [(0, 40.0, True), (1, 1.0, False)]


def test_it_closes_the_tail_when_the_pause_passes_or_the_session_ends() -> None:
    turns = said([0, 1, 2])
    assert asked(turns, now=at(32)).cuts == ()
    assert shape(asked(turns, now=at(32.5)).cuts) == [(0, 2, "gap")]
    assert shape(asked(turns, now=at(3), ended_at=at(2.5)).cuts) == [(0, 2, "session_end")]


def test_it_keeps_open_what_was_stored_after_the_session_had_ended() -> None:
    done = asked(said([0, 1, 2]), now=at(3), ended_at=at(1.5))
    assert done.cuts == () and len(done.tail) == 3


def test_it_cuts_where_the_topic_shifts_and_says_how_far() -> None:
    done = asked(said(range(10), [NORTH] * 5 + [EAST] * 5), now=at(60))
    assert shape(done.cuts) == [(0, 4, "topic"), (5, 9, "gap")]
    fired = next(b for b in done.borders if b.kind == "topic" and b.fired)
    assert (fired.item, fired.score, fired.threshold) == (5, 0.0, SHIFT)


def test_it_cuts_at_the_lowest_point_of_a_slow_shift() -> None:
    vectors = [*[NORTH] * 5, NORTH_EAST, *[EAST] * 6]
    done = asked(said(range(12), vectors), now=at(60))
    assert shape(done.cuts)[0] in [(0, 4, "topic"), (0, 5, "topic")]
    assert len([one for one in done.cuts if one.reason == "topic"]) == 1


def test_it_never_cuts_a_topic_of_fewer_than_four_turns() -> None:
    vectors = [NORTH, NORTH, NORTH, *[EAST] * 6]
    done = asked(said(range(9), vectors), now=at(60))
    assert all(len(one.turns) >= TOPIC_TURNS_MIN for one in done.cuts)


def test_it_says_not_checked_without_vectors_and_cuts_by_size_and_gap() -> None:
    done = asked(said(range(30), [None] * 30), now=at(90))
    assert shape(done.cuts) == [(0, 19, "size"), (20, 29, "gap")]
    topics = [b for b in done.borders if b.kind == "topic"]
    assert topics and all(b.outcome == "not_checked" and not b.fired for b in topics)


def test_it_cuts_nothing_of_nothing() -> None:
    assert asked([], now=T0) == Done((), (), ())


@given(
    st.lists(
        st.tuples(
            st.sampled_from([0.0, 1.0, 5.0, 29.0, 31.0, 90.0]),
            st.sampled_from([NORTH, EAST, NORTH_EAST, None]),
        ),
        min_size=1,
        max_size=60,
    ),
    st.data(),
)
def test_it_cuts_alike_however_the_turns_arrive(
    steps: list[tuple[float, Sequence[float] | None]], data: st.DataObject
) -> None:
    """Turns arrive when they are said; segment may run after any of them, or not."""
    minute, minutes = 0.0, []
    for pause, _ in steps:
        minute += pause
        minutes.append(minute)
    turns = said(minutes, [vector for _, vector in steps])
    end = turns[-1].occurred_at + timedelta(hours=2)
    whole = asked(turns, now=end)

    cuts: list[Cut] = []
    looks: dict[tuple[int, str], tuple[float | None, bool]] = {}
    placed = 0
    moments = data.draw(st.sets(st.integers(1, len(turns))))
    for arrived in [*sorted(moments), len(turns)]:
        now = end if arrived == len(turns) else turns[arrived - 1].occurred_at
        before = turns[placed - 1].occurred_at if placed else None
        done = asked(turns[placed:arrived], now=now, closed_until=before)
        cuts += done.cuts
        placed += sum(len(one.turns) for one in done.cuts)
        for border in done.borders:
            key, seen = (border.item, border.kind), (border.score, border.fired)
            assert looks.setdefault(key, seen) == seen, "a border was judged twice, differently"
    assert shape(cuts) == shape(whole.cuts)
    assert looks == {(b.item, b.kind): (b.score, b.fired) for b in whole.borders}
    assert placed == len(turns)
