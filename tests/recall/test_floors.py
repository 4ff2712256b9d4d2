"""Floors: which numbers of a hit put it before an agent, and which keep silent."""

from __future__ import annotations

from dataclasses import replace

import pytest

from memory.llm.minilm import NAME
from recall.floors import Evidence, Floors, Weights, above, judge, relevance, shipped

FLOORS = Floors(0.0, 0.2, -1.0, 0.01, Weights(10.0, 5.0, 1.0, -4.0))
GOOD = Evidence(above=0.2, keyword=0.3, coverage=0.6, score=0.02)


def test_it_lets_a_hit_by_that_clears_everything() -> None:
    judged = judge(GOOD, FLOORS)
    assert judged.cleared == ("semantic", "keyword", "relevance", "score")
    assert judged.refused == ""
    assert judged.relevance == pytest.approx(1.0)


def test_it_is_enough_that_one_track_clears_its_floor() -> None:
    assert judge(replace(GOOD, keyword=0.0), FLOORS).refused == ""
    assert judge(replace(GOOD, above=-0.1, coverage=0.9), FLOORS).refused == ""


def test_it_refuses_what_clears_no_track() -> None:
    seen = replace(GOOD, above=-0.001, keyword=0.199)
    assert judge(seen, FLOORS).refused == "below every track's floor"


def test_it_refuses_a_hit_of_one_track_that_the_other_does_not_bear_out() -> None:
    judged = judge(Evidence(above=0.1, keyword=0.0, coverage=0.0, score=0.02), FLOORS)
    assert judged.cleared == ("semantic", "score")
    assert judged.refused == "below the floor of relevance"


def test_it_lets_a_hit_by_that_is_middling_in_both() -> None:
    judged = judge(Evidence(above=0.1, keyword=0.1, coverage=0.4, score=0.02), FLOORS)
    assert judged.refused == ""


def test_it_takes_a_value_equal_to_its_floor_as_above_it() -> None:
    seen = Evidence(above=0.0, keyword=0.0, coverage=0.6, score=0.01)
    assert judge(seen, FLOORS).refused == ""


def test_it_refuses_what_is_below_the_final_score() -> None:
    judged = judge(replace(GOOD, score=0.009), FLOORS)
    assert judged.refused == "below the floor of the final score"


def test_it_asks_more_words_of_a_hit_without_a_vector() -> None:
    floors = shipped(NAME, score=0.0)["note"]
    by_words = Evidence(above=None, keyword=0.9, coverage=0.9, score=0.1)
    assert judge(by_words, floors).refused == ""
    assert judge(replace(by_words, coverage=0.2), floors).refused


def test_it_reads_a_cosine_above_the_floor_of_its_tongue() -> None:
    english, other = above(0.6, NAME, "english"), above(0.6, NAME, "script")
    assert english is not None and other is not None
    assert english > 0 > other
    assert above(None, NAME, "english") is None


def test_it_lets_an_embedder_that_nobody_measured_say_nothing() -> None:
    weights = shipped("some-other-model", score=0.0)["note"].weights
    near, far = Evidence(0.2, 0.0, 0.3, 0.0), Evidence(-0.5, 0.0, 0.3, 0.0)
    assert relevance(near, weights) == relevance(far, weights)


def test_it_holds_a_turn_to_a_stricter_floor_than_a_note() -> None:
    floors = shipped(NAME, score=0.0)
    assert floors["turn"].relevance > floors["note"].relevance
    assert floors["turn"].keyword > floors["note"].keyword


def test_it_tells_the_semantic_floor_as_a_cosine() -> None:
    told = replace(FLOORS, semantic=0.05).as_json(own=0.36)
    assert told == {"semantic": 0.41, "keyword": 0.2, "relevance": -1.0, "score": 0.01}
