"""How: vectors that cannot be stored, and what the error says about them."""

from __future__ import annotations

import pytest

from memory.llm.vectors import BadVectors, accept, cosine, mean, unit

NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    "bad", [None, [], [1.0], [NAN, 1.0, 0.0], [INF, 0.0, 0.0], [0.0, 0.0, 0.0], ["1", 0, 0], "abc"]
)
def test_it_names_the_position_of_a_bad_vector_and_keeps_the_good_ones(bad: object) -> None:
    with pytest.raises(BadVectors) as caught:
        accept({0: [3.0, 0.0, 0.0], 1: bad, 2: [0.0, 4.0, 0.0]}, 3, 3)
    assert list(caught.value.bad) == [1]
    assert caught.value.good == {0: [1.0, 0.0, 0.0], 2: [0.0, 1.0, 0.0]}


def test_it_calls_a_vector_missing_that_was_not_sent() -> None:
    with pytest.raises(BadVectors) as caught:
        accept({0: [1.0], 7: [1.0]}, 2, 1)
    assert caught.value.bad == {1: "missing"}


def test_it_carries_no_numbers_of_a_vector_in_a_message() -> None:
    with pytest.raises(BadVectors) as caught:
        accept({0: [0.123456] * 1536}, 1, 768)
    assert "0.123456" not in str(caught.value) + str(caught.value.bad)
    assert "1536" in str(caught.value) and "768" in str(caught.value)


def test_it_measures_directions() -> None:
    assert cosine([2.0, 0.0], [0.0, 5.0]) == 0.0
    assert cosine([2.0, 2.0], [0.5, 0.5]) == pytest.approx(1.0)
    assert cosine([0.0, 0.0], [1.0, 0.0]) == 0.0, "what has no direction is like nothing"
    assert mean([[1.0, 0.0], [0.0, 1.0]]) == [0.5, 0.5]
    assert mean([]) is None
    with pytest.raises(ValueError, match="direction"):
        unit([0.0, 0.0])
