"""Training the ranker: it finds what orders well, and refuses what orders worse."""

from __future__ import annotations

import numpy as np
import pytest

from recall.features import FEATURES
from recall.ranker import Ranker, parse
from recall.training import (
    QUESTIONS_MIN,
    Comparison,
    Example,
    Measured,
    fit,
    held_out,
    measure,
    train,
)

COSINE, LENGTH = FEATURES.index("cosine"), FEATURES.index("length")
NOTHING = np.zeros(len(FEATURES))
BLANK = Ranker((0.0,) * len(FEATURES))


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
    ranker, compared = train(questions(60), BLANK, trained={"on": "a test"})
    assert compared.better
    assert np.argmax(ranker.weights) == COSINE
    assert ranker.trained["questions"] == 60
    assert ranker.trained["on"] == "a test"


def test_its_sums_are_log_odds() -> None:
    made = questions(200)
    ranker, _ = train(made, BLANK, trained={})
    chances = np.concatenate([1 / (1 + np.exp(-ranker.sums(one.matrix))) for one in made])
    assert chances.sum() == pytest.approx(len(made), rel=0.02)


def test_it_takes_what_orders_better_on_questions_held_out() -> None:
    made = questions(80, by=LENGTH)
    ranker, compared = train(made, weighing(cosine=1.0), trained={})
    assert compared.better
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
    assert not compared.better


def test_it_compares_on_questions_that_the_new_one_did_not_see() -> None:
    made = questions(60, sure=0.5)
    _, compared = train(made, weighing(), trained={})
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
        train(questions(QUESTIONS_MIN - 1), BLANK, trained={})


def test_it_holds_questions_out_when_all_are_of_one_group() -> None:
    _, compared = train(questions(60, by=LENGTH, groups=1), weighing(cosine=1.0), trained={})
    assert compared.better
    assert compared.new.questions == 60


def test_evidence_that_is_no_candidate_counts_as_missed() -> None:
    (one,) = questions(1)
    half = measure([Example(one.matrix, one.labels, 2, "")], np.array(weighing(cosine=9.0).weights))
    assert half.recall10 == 0.5
    none = measure([Example(one.matrix, one.labels & False, 1, "")], NOTHING)
    assert (none.recall10, none.mrr10, none.questions) == (0.0, 0.0, 1)


def missed(one: Example) -> Example:
    return Example(one.matrix, one.labels & False, 1, one.group)


def test_questions_without_a_hit_count_against_both_rankers() -> None:
    made = questions(60, by=LENGTH)
    shipped = weighing(cosine=1.0)
    _, all_found = train(made, shipped, trained={})
    _, half_found = train([*made, *map(missed, made)], shipped, trained={})
    assert half_found.new.questions == half_found.shipped.questions == 120
    for few, many in (
        (half_found.new, all_found.new),
        (half_found.shipped, all_found.shipped),
    ):
        assert few.recall10 == pytest.approx(many.recall10 / 2, abs=0.02)
        assert few.loss == pytest.approx(many.loss, rel=0.1)


def test_it_weighs_each_loss_alike_however_many_of_its_fold_found_nothing() -> None:
    made = questions(60, groups=2)
    crowd = [missed(one) for one in made if one.group == "0"] * 3
    weights = np.array(weighing(cosine=1.0).weights)
    assert measure([*made, *crowd], weights).loss == pytest.approx(measure(made, weights).loss)
    start = np.array(weighing(cosine=1.0).weights)
    assert held_out([*made, *crowd], start=start).loss == pytest.approx(
        held_out(made, start=start).loss
    )


def test_a_question_without_candidates_is_a_miss() -> None:
    none = Example(np.zeros((0, len(FEATURES))), np.zeros(0, dtype=bool), 1, "0")
    assert measure([none], NOTHING).recall10 == 0.0
    assert train([*questions(60), none], BLANK, trained={})[1].new.questions == 61


def test_it_is_not_better_by_its_scale_alone() -> None:
    made = questions(60, sure=1.0)
    learned, _ = train(made, BLANK, trained={})
    flat = Ranker(tuple(weight / 3 for weight in learned.weights))
    steep = Ranker(tuple(weight * 3 for weight in learned.weights))
    for shipped in (flat, steep):
        assert not train(made, shipped, trained={})[1].better


def test_what_tells_all_evidence_apart_still_has_weights_that_a_recall_can_read() -> None:
    matrix = np.zeros((2, len(FEATURES)))
    matrix[:, COSINE] = 0.2, -0.2
    made = [Example(matrix, np.array([True, False]), 1, str(n % 4)) for n in range(40)]
    ranker, _ = train(made, weighing(cosine=1.0), trained={})
    assert parse(ranker.as_json()).weights[COSINE] > 1.0


@pytest.mark.parametrize("worse", ["recall5", "recall10", "mrr10", "loss"])
def test_it_is_not_better_when_anything_that_people_feel_is_worse(worse: str) -> None:
    shipped = {"questions": 9, "loss": 2.0, "recall5": 0.5, "recall10": 0.6, "mrr10": 0.4}
    new = {**shipped, "loss": 1.5}
    assert Comparison(Measured(**new), Measured(**shipped), 3.0).better  # type: ignore[arg-type]
    new[worse] = 2.5 if worse == "loss" else 0.3
    assert not Comparison(Measured(**new), Measured(**shipped), 3.0).better  # type: ignore[arg-type]
