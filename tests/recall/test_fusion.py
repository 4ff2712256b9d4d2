"""Reciprocal rank fusion against its definition."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recall.fusion import RRF_K, fuse

rankings = st.dictionaries(
    st.sampled_from(["semantic", "keyword", "third"]),
    st.lists(st.integers(0, 30), unique=True, max_size=20),
    max_size=3,
)


@given(rankings)
def test_it_scores_as_the_definition_says(tracks: dict[str, list[int]]) -> None:
    fused = fuse({name: [(key, 0.0) for key in keys] for name, keys in tracks.items()})
    expected: dict[int, float] = {}
    for keys in tracks.values():
        for key in keys:
            expected[key] = expected.get(key, 0.0) + 1 / (60 + keys.index(key) + 1)
    assert {one.key: one.score for one in fused} == pytest.approx(expected, abs=1e-12)
    assert [one.score for one in fused] == sorted(expected.values(), reverse=True)


def test_it_keeps_the_standard_constant() -> None:
    assert RRF_K == 60
    assert fuse({"semantic": [("a", 0.9)]})[0].score == 1 / 61


def test_it_keeps_each_tracks_rank_and_own_score() -> None:
    fused = fuse({"semantic": [("a", 0.9), ("b", 0.5)], "keyword": [("b", 0.06)]})
    b = next(one for one in fused if one.key == "b")
    assert {name: (at.rank, at.score) for name, at in b.tracks.items()} == {
        "semantic": (2, 0.5),
        "keyword": (1, 0.06),
    }


def test_it_puts_what_both_tracks_found_before_what_one_found() -> None:
    fused = fuse({"semantic": [("a", 1), ("b", 1)], "keyword": [("c", 1), ("b", 1)]})
    assert [one.key for one in fused] == ["b", "a", "c"]


def test_it_orders_ties_the_same_way_whatever_order_the_tracks_come_in() -> None:
    names = ["semantic", "keyword", "third"]
    ranked = {name: [(f"{name}{n}", 0.0) for n in range(9)] for name in names}
    orders = set()
    for seed in range(6):
        random.Random(seed).shuffle(names)
        orders.add(tuple(one.key for one in fuse({name: ranked[name] for name in names})))
    assert len(orders) == 1


def test_it_counts_a_key_that_a_track_names_twice_once() -> None:
    assert fuse({"keyword": [("a", 2.0), ("a", 1.0)]})[0].score == 1 / 61


def test_it_makes_nothing_of_nothing() -> None:
    assert fuse({}) == fuse({"semantic": []}) == []


@given(rankings, st.dictionaries(st.sampled_from(["semantic", "keyword", "third"]), st.just(0.5)))
def test_it_counts_a_track_as_much_as_it_weighs(
    tracks: dict[str, list[int]], weights: dict[str, float]
) -> None:
    fused = fuse(
        {name: [(key, 0.0) for key in keys] for name, keys in tracks.items()}, weights=weights
    )
    expected: dict[int, float] = {}
    for name, keys in tracks.items():
        for rank, key in enumerate(keys, start=1):
            expected[key] = expected.get(key, 0.0) + weights.get(name, 1.0) / (60 + rank)
    assert {one.key: one.score for one in fused} == pytest.approx(expected, abs=1e-12)
