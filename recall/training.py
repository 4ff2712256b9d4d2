"""Training the linear ranker, and judging it on questions that it did not see. Pure numpy.

The loss is listwise: how surely the candidates that are evidence are picked out of all candidates
of their question. Knows nothing about where labels come from or where weights are kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recall.ranker import WEIGHT_MAX, Ranker

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

#: Strengths of the pull towards the weights one starts from, tried in turn on held-out folds.
# Why: few labels must not move far from what ships, which the strongest holds to two digits; seven
# hundred questions took the weakest, and order alike up to 100.
RIDGES = (3.0, 30.0, 300.0, 3_000.0)

#: Folds when the labels come from one place only.
FOLDS = 5

#: Questions below which nothing is trained.
# Why: thirty weights from fewer are noise, whatever the folds say.
QUESTIONS_MIN = 30

#: Newton steps of one fit; it has converged long before.
STEPS_MAX = 30

#: Loss by which the last step must have bettered the fit, as a share of it.
CONVERGED_SHARE = 1e-7

#: How far from its own scale a ranker's best is looked for, and in how many steps.
# Why: the scale of log-odds and that of a choice among candidates lie within a factor of two on
# dialogues; steps of a seventh are nearer than a loss tells.
# Calibrate: the first and the last scale must not be the best one on labels of any size.
SCALE_MAX, SCALES = 4.0, 21


@dataclass(frozen=True)
class Example:
    """One question: its candidates' features [n, f], which of them are evidence [n], how much
    evidence there is in all (also what no candidate is), and the group it is held out with."""

    matrix: Floats
    labels: Bools
    evidence: int
    group: str


@dataclass(frozen=True)
class Measured:
    """Means over the questions; one without evidence among its candidates has found nothing. `loss`
    is in nats, over the others alone: where nothing can be picked out it is not defined."""

    questions: int
    loss: float
    recall5: float
    recall10: float
    mrr10: float


@dataclass(frozen=True)
class Comparison:
    """A new ranker beside the one in force, both on the same held-out questions."""

    new: Measured
    shipped: Measured
    ridge: float

    @property
    def better(self) -> bool:
        """Whether the new one orders better, and nothing that people feel got worse."""
        return (
            self.new.loss < self.shipped.loss
            and self.new.recall5 >= self.shipped.recall5
            and self.new.recall10 >= self.shipped.recall10
            and self.new.mrr10 >= self.shipped.mrr10
        )


def train(
    examples: Sequence[Example], shipped: Ranker, *, trained: Mapping[str, Any]
) -> tuple[Ranker, Comparison]:
    """A ranker from all examples, pulled towards the shipped one (towards nothing, by one that
    weighs nothing), and how rankers trained alike do on questions held out, beside it.

    The comparison is what decides: a ranker that is not `better` is to be refused. Raises
    ValueError below QUESTIONS_MIN questions with evidence.
    """
    usable = [one for one in examples if one.labels.any()]
    if len(usable) < QUESTIONS_MIN:
        raise ValueError(
            f"{len(usable)} labelled questions whose evidence was found, {QUESTIONS_MIN} needed"
        )
    start = np.array(shipped.weights)
    ridge = _ridge(examples, start)
    weights = fit(usable, ridge=ridge, start=start)
    scale, intercept = _odds(usable, weights)
    new = Ranker(
        tuple((weights * scale).tolist()),
        intercept,
        {**trained, "questions": len(usable), "ridge": ridge},
    )
    # Nested: the pull is chosen anew without the questions that judge it.
    judged = held_out(examples, start=start)
    return new, Comparison(judged, measure(examples, tempered(usable, start)), ridge)


def fit(
    examples: Sequence[Example], *, ridge: float, start: Floats, guess: Floats | None = None
) -> Floats:
    """Weights [f] of least listwise loss plus ridge / 2 times the squared distance from `start`,
    by Newton's method from a guess at them. Each question counts alike, whatever evidence it has;
    each needs some among its candidates."""
    matrix, target, starts, rows = _stacked(examples)
    weights = start if guess is None else guess
    value, share = _loss(matrix, target, starts, rows, weights, start, ridge)
    for _ in range(STEPS_MAX):
        slope = matrix.T @ (share - target) + ridge * (weights - start)
        weighed = matrix * share[:, None]
        means = np.add.reduceat(weighed, starts)
        bend = matrix.T @ weighed - means.T @ means + ridge * np.eye(len(weights))
        step = np.linalg.solve(bend, slope)
        length = 1.0
        while True:
            tried = weights - length * step
            found, moved = _loss(matrix, target, starts, rows, tried, start, ridge)
            if found <= value or length < 1e-3:
                break
            length /= 2
        if found > value:
            break
        done = value - found < CONVERGED_SHARE * abs(value)
        weights, value, share = tried, found, moved
        if done:
            break
    return weights


def _stacked(
    examples: Sequence[Example],
) -> tuple[Floats, Floats, NDArray[np.int64], NDArray[np.int64]]:
    """All candidates in one matrix, the target share of each, where each question starts, and the
    question of each row."""
    sizes = np.array([len(one.labels) for one in examples])
    starts = np.concatenate(([0], np.cumsum(sizes)[:-1]))
    rows = np.repeat(np.arange(len(examples)), sizes)
    target = np.concatenate([one.labels / one.labels.sum() for one in examples])
    return np.concatenate([one.matrix for one in examples]), target, starts, rows


def _loss(
    matrix: Floats,
    target: Floats,
    starts: NDArray[np.int64],
    rows: NDArray[np.int64],
    weights: Floats,
    start: Floats,
    ridge: float,
) -> tuple[float, Floats]:
    sums = matrix @ weights
    sums = sums - np.maximum.reduceat(sums, starts)[rows]
    odds = np.exp(sums)
    whole = np.add.reduceat(odds, starts)
    loss = float(target @ (np.log(whole)[rows] - sums))
    pull = float(np.sum((weights - start) ** 2))
    return loss + ridge / 2 * pull, odds / whole[rows]


def _odds(examples: Sequence[Example], weights: Floats) -> tuple[float, float]:
    """Scale and intercept that make the sums log-odds: a logistic regression on the sum alone."""
    sums = np.concatenate([one.matrix @ weights for one in examples])
    is_evidence = np.concatenate([one.labels for one in examples]).astype(np.float64)
    design = np.stack((sums, np.ones(len(sums))), axis=1)
    found = np.array([1.0, float(np.log(is_evidence.mean() / (1 - is_evidence.mean())))])
    for _ in range(STEPS_MAX):
        chance = 1.0 / (1.0 + np.exp(-np.clip(design @ found, -30, 30)))
        bend = (design * (chance * (1 - chance))[:, None]).T @ design + 1e-6 * np.eye(2)
        step = np.linalg.solve(bend, design.T @ (chance - is_evidence))
        found = found - np.clip(step, -1.0, 1.0)
        if np.abs(step).max() < 1e-6:
            break
    # Why: a scale below 0 would turn the order round; sums that say nothing are no reason to. And
    # what tells all evidence of few questions apart has no end, but a weight has.
    most = WEIGHT_MAX / max(float(np.abs(weights).max()), 1.0)
    scale = min(max(float(found[0]), 1e-3), most)
    return scale, float(np.clip(found[1], -WEIGHT_MAX, WEIGHT_MAX))


def tempered(examples: Sequence[Example], weights: Floats) -> Floats:
    """The same order at the scale of least loss on these examples, as far as it is tried: weights
    that ship are scaled for log-odds, and a loss compares orders only when each has its best."""
    scales = np.geomspace(1 / SCALE_MAX, SCALE_MAX, SCALES)
    losses = [measure(examples, weights * scale).loss for scale in scales]
    return np.asarray(weights * scales[int(np.argmin(losses))])


def held_out(examples: Sequence[Example], *, start: Floats) -> Measured:
    """How rankers do on the folds that they were not trained on, the pull chosen without them."""
    judged: list[Floats] = []
    for inside, outside in _folds(examples):
        usable = [one for one in inside if one.labels.any()]
        weights = start
        if usable:
            weights = fit(usable, ridge=_ridge(inside, start), start=start)
        judged.append(_judge(outside, weights))
    return _means(judged)


def _ridge(examples: Sequence[Example], start: Floats) -> float:
    """The pull with the least loss on folds held out."""
    judged: dict[float, list[Floats]] = {ridge: [] for ridge in RIDGES}
    for inside, outside in _folds(examples):
        usable = [one for one in inside if one.labels.any()]
        weights = start
        for ridge in sorted(RIDGES, reverse=True):
            if usable:
                weights = fit(usable, ridge=ridge, start=start, guess=weights)
            judged[ridge].append(_judge(outside, weights))
    return min(RIDGES, key=lambda ridge: _means(judged[ridge]).loss)


def _folds(
    examples: Sequence[Example],
) -> Iterable[tuple[list[Example], list[Example]]]:
    """Each group held out in turn; every FOLDS-th question where there is one group only."""
    groups = [one.group for one in examples]
    if len(set(groups)) < 2:
        groups = [str(at % FOLDS) for at in range(len(examples))]
    for held in sorted(set(groups)):
        inside = [one for one, group in zip(examples, groups, strict=True) if group != held]
        outside = [one for one, group in zip(examples, groups, strict=True) if group == held]
        yield inside, outside


def measure(examples: Sequence[Example], weights: Floats) -> Measured:
    """How these weights order these questions."""
    return _means([_judge(examples, weights)])


def _judge(examples: Sequence[Example], weights: Floats) -> Floats:
    """Loss (NaN where there is none), recall@5, recall@10 and reciprocal rank of each question:
    [questions, 4]."""
    judged = np.zeros((len(examples), 4))
    for row, one in zip(judged, examples, strict=True):
        sums = one.matrix @ weights
        order = np.argsort(-sums, kind="stable")
        hits = one.labels[order][:10]
        first = np.flatnonzero(hits)
        whole = max(one.evidence, 1)
        row[:] = (
            np.nan, hits[:5].sum() / whole, hits.sum() / whole,
            1 / (first[0] + 1) if len(first) else 0.0,
        )  # fmt: skip
        if one.labels.any():
            above = sums - sums.max()
            row[0] = np.log(np.exp(above).sum()) - above[one.labels].mean()
    return judged


def _means(folds: Sequence[Floats]) -> Measured:
    """The means over the questions of all folds, each counting alike."""
    judged = np.concatenate(folds)
    losses = judged[~np.isnan(judged[:, 0]), 0]
    loss = float(losses.mean()) if len(losses) else 0.0
    recall5, recall10, mrr10 = judged[:, 1:].mean(axis=0).tolist() if len(judged) else (0, 0, 0)
    return Measured(len(judged), loss, float(recall5), float(recall10), float(mrr10))
