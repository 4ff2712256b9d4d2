"""The linear ranker: sums that can be taken apart, and weights that are what they say."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest

from memory.errors import ContentError
from recall.features import FEATURES
from recall.ranker import SHIPPED, Ranker, parse, shipped


def given(**changed: Any) -> dict[str, Any]:
    return {"weights": dict.fromkeys(FEATURES, 0.5), "intercept": -2.0, **changed}


def test_it_ships_weights_for_every_feature_and_says_how_they_were_trained() -> None:
    ranker = shipped()
    assert len(ranker.weights) == len(FEATURES)
    told = ranker.trained
    assert told["questions"] > 600
    # What it promises was measured on dialogues it was not trained on.
    assert told["held_out"]["recall5"] >= 0.74
    assert told["held_out"]["recall10"] >= 0.82
    assert told["held_out"]["mrr10"] >= 0.66


def test_it_prefers_what_answers() -> None:
    """Signs that nobody may lose by retraining on something odd."""
    weights = dict(zip(FEATURES, shipped().weights, strict=True))
    for name in ("cosine", "coverage", "led", "named", "date_near", "time*when"):
        assert weights[name] > 0, name
    assert weights["asks"] < 0, "a question is no answer"


def test_a_sum_is_the_sum_of_its_parts() -> None:
    ranker = shipped()
    matrix = np.random.default_rng(3).normal(size=(2, len(FEATURES)))
    for told, whole in zip(ranker.contributions(matrix), ranker.sums(matrix), strict=True):
        assert set(told) == {"intercept", *FEATURES}
        assert sum(told.values()) == pytest.approx(whole)


def test_it_reads_what_it_writes() -> None:
    ranker = Ranker(tuple(n / 8 for n in range(len(FEATURES))), -1.5, {"on": "a test"})
    assert parse(json.loads(json.dumps(ranker.as_json()))) == ranker
    assert parse(json.loads(SHIPPED.read_text())) == shipped()


@pytest.mark.parametrize(
    "broken",
    [
        {"weights": None},
        {"weights": {}},
        {"weights": {**dict.fromkeys(FEATURES, 0.5), "luck": 1.0}},
        {"weights": {**dict.fromkeys(FEATURES, 0.5), "cosine": math.nan}},
        {"weights": {**dict.fromkeys(FEATURES, 0.5), "cosine": 1e9}},
        {"weights": {**dict.fromkeys(FEATURES, 0.5), "cosine": True}},
        {"weights": {**dict.fromkeys(FEATURES, 0.5), "cosine": "1"}},
        {"intercept": math.inf},
    ],
)
def test_it_refuses_what_is_no_ranker_for_these_features(broken: dict[str, Any]) -> None:
    with pytest.raises(ContentError):
        parse(given(**broken))
