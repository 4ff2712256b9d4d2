"""Candidates in numbers: rows in the order they were said, and counts under the right terms."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from memory.lexical import Statistics, hashed, lexemes, pack, query_terms, traits
from recall.pool import Row, build

WORDS = ("port", "staging", "harbor", "queue", "redis", "5433")
TEXTS = st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join)
#: A place (None: of no session), the second at which it was said, and what.
SAID = st.lists(
    st.tuples(st.sampled_from([None, 1, 2]), st.integers(0, 5), TEXTS), max_size=8
)  # fmt: skip


def row(number: int, place: int | None, at: float, body: str, head: str = "") -> Row:
    packed = pack(body, head)
    return Row(
        place, at, number, math.nan, packed.length, traits(body),
        packed.terms, packed.counts, packed.heads,
    )  # fmt: skip


@given(SAID, st.lists(st.sampled_from(WORDS), unique=True, max_size=4))
def test_it_counts_and_orders_as_a_plain_loop_would(
    said: list[tuple[int | None, int, str]], asked: list[str]
) -> None:
    rows = [row(n, place, at, body) for n, (place, at, body) in enumerate(said)]
    terms = [hashed(word) for text in asked for word in query_terms(text)]
    words = [word for text in asked for word in query_terms(text)]
    pool, order = build(rows, terms, Statistics(9, 3.0, (2,) * len(terms)))
    assert sorted(order) == list(range(len(rows)))
    for here, at in enumerate(order):
        stems = lexemes(said[at][2])
        assert pool.counts[here].tolist() == [stems.count(word) for word in words]
        assert pool.length[here] == len(stems)
        place = said[at][0]
        mates = [n for n, other in enumerate(order) if said[other][0] == place and place]
        spot = mates.index(here) if place else 0
        assert pool.before[here] == (mates[spot - 1] if place and spot else -1)
        assert pool.after[here] == (mates[spot + 1] if place and spot + 1 < len(mates) else -1)
    keys = [(said[at][0] or -1, said[at][1], at) for at in order]
    assert keys == sorted(keys)


def test_it_keeps_what_stands_over_a_text_apart_from_what_it_says() -> None:
    one = row(1, 1, 0.0, "the port is open", head="Port Melanie 5 May 2023")
    terms = [hashed(word) for word in ("port", "melani", "may")]
    pool, _ = build([one], terms, Statistics(1, 2.0, (1, 1, 1)))
    assert pool.counts[0].tolist() == [1, 0, 0]
    assert pool.heads[0].tolist() == [1, 1, 1]
    assert pool.length[0] == len(lexemes("the port is open"))


def test_it_tells_the_traits_of_each_text() -> None:
    rows = [row(1, 1, 0.0, "Did we move it last week?"), row(2, 1, 1.0, "It runs on 5433.")]
    pool, _ = build(rows, [], Statistics(2, 5.0, ()))
    assert (pool.asks.tolist(), pool.time.tolist()) == ([True, False], [True, False])
    assert (pool.digit.tolist(), pool.first_person.tolist()) == ([False, True], [True, False])


def test_it_takes_nothing_and_texts_without_words() -> None:
    for rows in ([], [row(1, None, 0.0, ""), row(2, None, 0.0, "🔴")]):
        pool, order = build(rows, [hashed("port")], Statistics(0, 1.0, (0,)))
        assert pool.counts.shape == (len(rows), 1) and not pool.counts.any()
        assert len(order) == len(rows) and np.isnan(pool.cosine).all()
