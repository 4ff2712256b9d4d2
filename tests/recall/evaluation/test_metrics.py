"""The numbers of an evaluation, against what they are by definition."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recall.evaluation.metrics import Marks, average, mark, percentile, share


def hits(*names: str) -> list[frozenset[str]]:
    return [frozenset({name}) if name else frozenset() for name in names]


def test_it_is_all_ones_for_the_right_answer_first() -> None:
    assert mark(hits("a", "b"), hits("a")) == Marks(1, 1, 1, 1)


def test_it_is_all_zeros_for_nothing() -> None:
    assert mark([], hits("a")) == Marks(0, 0, 0, 0)
    assert mark(hits(*"xxxxxxxxxx", "a"), hits("a")) == Marks(0, 0, 0, 0)


def test_it_counts_by_rank() -> None:
    marks = mark(hits("x", "a", "x", "x", "x", "x", "b"), hits("a", "b", "c"))
    assert (marks.recall5, marks.recall10) == (1 / 3, 2 / 3)
    assert marks.mrr10 == 1 / 2
    ideal = 1 + 1 / math.log2(3) + 1 / 2
    assert marks.ndcg10 == pytest.approx((1 / math.log2(3) + 1 / math.log2(8)) / ideal)


def test_it_counts_a_fact_once_and_a_note_for_all_it_stands_for() -> None:
    note = frozenset({"a", "b"})
    assert mark([note], hits("a", "b")) == Marks(1, 1, 1, 1)
    again = mark([*hits("a", "a"), note], hits("a", "b"))
    assert again.recall5 == 1 and again.ndcg10 < 1


def test_it_takes_any_of_the_names_of_a_fact() -> None:
    assert mark(hits("x", "b"), [frozenset({"a", "b"})]).mrr10 == 1 / 2


NAMES = st.sampled_from("abcdefghijklmnop")


@given(st.lists(NAMES, unique=True), st.sets(NAMES, min_size=1))
def test_it_stays_between_zero_and_one_and_deeper_finds_no_less(
    ranked: list[str], gold: set[str]
) -> None:
    marks = mark(hits(*ranked), hits(*sorted(gold)))
    assert 0 <= marks.recall5 <= marks.recall10 <= 1
    assert 0 <= marks.ndcg10 <= 1 + 1e-9 and 0 <= marks.mrr10 <= 1
    assert (marks.mrr10 == 0) == (marks.recall10 == 0)
    best = mark(hits(*sorted(gold)), hits(*sorted(gold)))
    assert best.ndcg10 == pytest.approx(1) and best.mrr10 == 1


def test_it_averages_and_shares() -> None:
    assert average([Marks(1, 1, 1, 1), Marks(0, 1, 0, 0.5)]) == {
        "recall5": 0.5, "recall10": 1, "mrr10": 0.5, "ndcg10": 0.75
    }  # fmt: skip
    assert average([])["recall5"] == 0 and share(1, 0) == 0 and share(1, 3) == 0.3333


def test_it_takes_percentiles_that_are_among_the_values() -> None:
    assert percentile([5, 1, 2, 4, 3], 50) == 3 and percentile([1, 2], 95) == 2
    assert percentile([], 50) == 0 and percentile([7], 1) == 7
