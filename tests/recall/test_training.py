"""Training the ranker: it finds what orders well, and refuses what orders worse."""

from __future__ import annotations

import numpy as np
import pytest

from recall.features import FEATURES
from recall.ranker import Ranker
from recall.training import QUESTIONS_MIN, Comparison, Example, Measured, fit, measure, train

COSINE, LENGTH = FEATURES.index("cosine"), FEATURES.index("length")
NOTHING = np.zeros(len(FEATURES))


def questions(
    count: int, *, by: int = COSINE, sure: float = 3.0, seed: int = 1, groups: int = 4
) -> list[Example]:
    """Questions whose one evidence among twenty candidates stands out by one feature."""
    random = np.random.default_rng(seed)
    made = []
    for number in range(count):
        matrix = random.normal(size=(20, len(FEATURES)))
        labels = np.zeros(20, dtype=bool)
        labels[number % 20] = True
        matrix[number % 20, by] += sure
        made.append(Example(matrix, labels, 1, str(number % groups)))
    return made


def weighing(**weights: float) -> Ranker:
    return Ranker(tuple(weights.get(name, 0.0) for name in FEATURES))


def test_it_finds_the_feature_that_tells_evidence() -> None:
    ranker, compared = train(questions(60), None, trained={"on": "a test"})
    assert compared is None
    assert np.argmax(ranker.weights) == COSINE
    assert ranker.trained["questions"] == 60
    assert ranker.trained["on"] == "a test"


def test_its_sums_are_log_odds() -> None:
    made = questions(200)
    ranker, _ = train(made, None, trained={})
    chances = np.concatenate([1 / (1 + np.exp(-ranker.sums(one.matrix))) for one in made])
    assert chances.sum() == pytest.approx(len(made), rel=0.02)


def test_it_takes_what_orders_better_on_questions_held_out() -> None:
    made = questions(80, by=LENGTH)
    ranker, compared = train(made, weighing(cosine=1.0), trained={})
    assert compared is not None and compared.better
    assert compared.new.recall5 > compared.shipped.recall5
    assert np.argmax(ranker.weights) == LENGTH


def test_it_refuses_what_only_learned_its_labels_by_heart() -> None:
    # Evidence by lot: nothing can be learned, and the shipped order is as good as any.
    random = np.random.default_rng(5)
    made = [
        Example(random.normal(size=(20, len(FEATURES))), np.arange(20) == n % 20, 1, str(n % 4))
        for n in range(60)
    ]
    _, compared = train(made, weighing(), trained={})
    assert compared is not None and not compared.better


def test_it_compares_on_questions_that_the_new_one_did_not_see() -> None:
    made = questions(60, sure=0.5)
    _, compared = train(made, weighing(), trained={})
    assert compared is not None
    seen = measure(made, fit(made, ridge=3.0, start=NOTHING))
    assert compared.new.loss > seen.loss


def test_few_labels_stay_near_what_ships() -> None:
    shipped = weighing(cosine=1.0)
    few, many = questions(QUESTIONS_MIN, by=LENGTH, sure=1.0), questions(300, by=LENGTH, sure=1.0)
    moved = [
        np.linalg.norm(fit(made, ridge=100.0, start=np.array(shipped.weights)) - shipped.weights)
        for made in (few, many)
    ]
    assert moved[0] < moved[1]


def test_it_trains_on_nothing_from_too_few_questions() -> None:
    with pytest.raises(ValueError, match=str(QUESTIONS_MIN)):
        train(questions(QUESTIONS_MIN - 1), None, trained={})


def test_it_holds_questions_out_when_all_are_of_one_group() -> None:
    _, compared = train(questions(60, by=LENGTH, groups=1), weighing(cosine=1.0), trained={})
    assert compared is not None and compared.better
    assert compared.new.questions == 60


def test_evidence_that_is_no_candidate_counts_as_missed() -> None:
    (one,) = questions(1)
    half = measure([Example(one.matrix, one.labels, 2, "")], np.array(weighing(cosine=9.0).weights))
    assert half.recall10 == 0.5
    none = measure([Example(one.matrix, one.labels & False, 1, "")], NOTHING)
    assert (none.recall10, none.mrr10, none.questions) == (0.0, 0.0, 1)


@pytest.mark.parametrize("worse", ["recall5", "recall10", "mrr10", "loss"])
def test_it_is_not_better_when_anything_that_people_feel_is_worse(worse: str) -> None:
    shipped = {"questions": 9, "loss": 2.0, "recall5": 0.5, "recall10": 0.6, "mrr10": 0.4}
    new = {**shipped, "loss": 1.5}
    assert Comparison(Measured(**new), Measured(**shipped), 3.0).better  # type: ignore[arg-type]
    new[worse] = 2.5 if worse == "loss" else 0.3
    assert not Comparison(Measured(**new), Measured(**shipped), 3.0).better  # type: ignore[arg-type]
