"""Which floors labelled questions speak for: precision, recall and false hits at each, per track.

Floors are chosen on every second question and judged on the others. Pure; knows nothing about
where the labels came from or what becomes of a proposal.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from recall.floors import NAMES, SOURCES, Evidence, Floors, Source, Weights, judge, relevance

#: Share of the questions without an answer for which something may be injected all the same.
# Why: one prompt in fifty is about one needless block in a day's work.
# Calibrate: `manage.py calibrate --target`; what people mark wrong, as a share of what they got.
FALSE_SHARE = 0.02

#: The same for a track's own floor, as a multiple.
# Why: relevance is what silences; a track that had to keep silent by itself would lose every hit
# that is middling in both.
TRACK_TIMES = 5.0

#: The same for raw turns.
# Why: a turn is put before an agent only where no note answers; it comes on top of the notes' own.
TURN_TIMES = 0.25

#: Questions of each sort, with and without an answer, below which nothing is proposed.
# Why: one in fifty cannot be told from none by fewer.
QUESTIONS_MIN = 50

#: Hits of a question that count: what an agent would be shown.
# Why: as many as a prompt gets when nothing else is asked for; with more every floor looks better
# than an agent finds it.
# Calibrate: with the notes that a prompt gets.
SHOWN_MAX = 5

#: Hits of a question that weights are fitted on.
# Why: as many as the ledger keeps; below them right hits are as rare as in any text, and the many
# wrong ones would drown the rest.
# Calibrate: right answers held out, by half as many and twice as many.
FITTED_MAX = 30

#: How much better fitted weights must be than those in force, on the half that they never saw.
# Why: three numbers that move every score are not moved for one question.
GAIN_MIN = 0.01

#: Steps of Newton's method.
# Why: six reach the end where the data has one; where they are told apart without fault there is
# none, and the pull ends it.
# Calibrate: do not.
FIT_STEPS = 30

#: Pulls fitted weights to zero.
# Why: as little as keeps hits that are told apart without fault from an endless slope; the number
# matters only where there is little to fit on.
# Calibrate: right answers held out, on the fewest questions that are taken.
RIDGE = 0.3

#: Floors shown for each track, between what off-topic questions reach and what right hits do.
ROWS_MAX = 9


@dataclass(frozen=True)
class Seen:
    """One hit of a question, in the order of recall: what floors read of it, and whether it is
    right."""

    source: Source
    evidence: Evidence
    right: bool


@dataclass(frozen=True)
class Labelled:
    """A question with what recall found before any floor; `answerable`: memory has an answer."""

    text: str
    answerable: bool
    hits: tuple[Seen, ...]


@dataclass(frozen=True)
class Outcome:
    """What becomes of questions under floors: shares, and of how many."""

    answerable: int = 0
    right: float = 0.0
    unanswerable: int = 0
    false: float = 0.0

    def as_json(self) -> dict[str, Any]:
        return {
            "answerable": self.answerable,
            "right": round(self.right, 4),
            "unanswerable": self.unanswerable,
            "false": round(self.false, 4),
        }


@dataclass(frozen=True)
class Row:
    """One floor of one track alone: share of its hits that are right, of the questions that find a
    right one among the first five, and of those without an answer that find anything."""

    source: Source
    track: str
    floor: float
    precision: float
    recall: float
    false: float
    proposed: bool


@dataclass(frozen=True)
class Proposal:
    """Proposed floors by source with what speaks for them; `kept` says what was not proposed.

    `before` is what the floors in force, `base`, do on the questions that were held out.
    """

    base: Mapping[Source, Floors]
    floors: Mapping[Source, Floors]
    rows: tuple[Row, ...] = ()
    chosen_on: Outcome = Outcome()
    held_out: Outcome = Outcome()
    before: Outcome = Outcome()
    kept: tuple[str, ...] = ()
    refitted: tuple[Source, ...] = ()
    evidence: Mapping[str, Any] = field(default_factory=dict)

    @property
    def changes(self) -> bool:
        """Whether there is anything to adopt."""
        return dict(self.floors) != dict(self.base)

    @property
    def worse(self) -> str:
        """Why the floors in force should stay, "" when they should not."""
        now, then = self.held_out, self.before
        if now.right - now.false >= then.right - then.false:
            return ""
        return (
            f"on the questions held out right answers go from {then.right:.1%} to {now.right:.1%} "
            f"and false injections from {then.false:.1%} to {now.false:.1%}"
        )


def propose(
    labelled: Sequence[Labelled], *, base: Mapping[Source, Floors], target: float = FALSE_SHARE
) -> Proposal:
    """Floors for at most `target` false injections, from these questions; `base` is in force.

    A source of which too little was seen keeps its floors, and it is said.
    """
    choosing, held = halves(labelled)
    with_, without = (sum(one.answerable is yes for one in labelled) for yes in (True, False))
    floors, rows, kept, refitted = dict(base), list[Row](), list[str](), list[Source]()
    if min(with_, without) < QUESTIONS_MIN:
        why = f"{with_} questions with and {without} without an answer: {QUESTIONS_MIN} needed"
        return Proposal(base, base, before=outcome(held, base), kept=(why,))
    for source in SOURCES:
        seen = any(hit.right and hit.source == source for one in choosing for hit in one.hits)
        if not seen:
            kept.append(f"{source}: no right hit was seen, its floors stay")
            continue
        share = target * (TURN_TIMES if source == "turn" else 1.0)
        old = of_source(choosing, base[source], source, target=share)
        fitted = replace(base[source], weights=fit(choosing, source, base[source].weights))
        new = of_source(choosing, fitted, source, target=share)
        if better := _better(held, {source: new}, {source: old}, source):
            refitted.append(source)
        floors[source] = new if better else old
        rows += table(choosing, floors[source], source)
    return Proposal(
        base,
        floors,
        tuple(rows),
        outcome(choosing, floors),
        outcome(held, floors),
        outcome(held, base),
        tuple(kept),
        tuple(refitted),
        {"with_answer": with_, "without_answer": without, "target": target},
    )


def halves(labelled: Sequence[Labelled]) -> tuple[list[Labelled], list[Labelled]]:
    """Every second question of each sort is held out."""
    parts: tuple[list[Labelled], list[Labelled]] = ([], [])
    for answerable in (True, False):
        sort = [one for one in labelled if one.answerable is answerable]
        parts[0].extend(sort[0::2])
        parts[1].extend(sort[1::2])
    return parts


def of_source(
    labelled: Sequence[Labelled], base: Floors, source: Source, *, target: float
) -> Floors:
    """The floors of one source for this share of false hits. The final score's stays: it is the
    operator's own, and says nothing but ranks."""

    def found(track: str, times: float) -> float:
        return floor_for(labelled, source, reading(track, base.weights), target * times)

    return replace(
        base,
        semantic=found("semantic", TRACK_TIMES),
        keyword=found("keyword", TRACK_TIMES),
        relevance=found("relevance", 1.0),
    )


Reading = Callable[[Evidence], float]


def reading(track: str, weights: Weights) -> Reading:
    """What the floor of a track reads of a hit; -inf where the track has no say."""
    if track == "relevance":
        return lambda seen: relevance(seen, weights)
    if track == "semantic":
        return lambda seen: -math.inf if seen.above is None else seen.above
    return lambda seen: float(getattr(seen, track))


def floor_for(labelled: Sequence[Labelled], source: Source, read: Reading, target: float) -> float:
    """The lowest floor that at most `target` of the questions without an answer get over."""
    highest = sorted(
        (
            max((read(hit.evidence) for hit in of(one, source)), default=-math.inf)
            for one in labelled
            if not one.answerable
        ),
        reverse=True,
    )
    refused = [one for one in highest[int(target * len(highest)) :] if one > -math.inf]
    right = [read(hit.evidence) for one in labelled for hit in of(one, source) if hit.right]
    lowest = min((one for one in right if one > -math.inf), default=0.0)
    over = refused[0] + 0.001 if refused else lowest
    return math.ceil(over * 1000) / 1000


def outcome(
    labelled: Sequence[Labelled],
    floors: Mapping[Source, Floors],
    sources: Sequence[Source] = SOURCES,
) -> Outcome:
    """What becomes of these questions under floors: notes first, then turns, five in all."""
    found: dict[bool, list[bool]] = {True: [], False: []}
    for one in labelled:
        shown = [
            hit
            for source in sources
            for hit in of(one, source)
            if not judge(hit.evidence, floors[source]).refused
        ][:SHOWN_MAX]
        good = any(hit.right for hit in shown) if one.answerable else bool(shown)
        found[one.answerable].append(good)
    return Outcome(len(found[True]), _share(found[True]), len(found[False]), _share(found[False]))


def table(labelled: Sequence[Labelled], floors: Floors, source: Source) -> list[Row]:
    """Every track of a source at some floors, the proposed one among them."""
    rows = []
    for track in NAMES:
        read = reading(track, floors.weights)
        proposed = getattr(floors, track)
        right = [read(hit.evidence) for one in labelled for hit in of(one, source) if hit.right]
        told = sorted({round(one, 3) for one in right if one > -math.inf})
        step = max(1, len(told) // ROWS_MAX)
        for floor in sorted({*told[::step], proposed}):
            rows.append(_row(labelled, source, track, floor, read, proposed == floor))
    return rows


def _row(
    labelled: Sequence[Labelled],
    source: Source,
    track: str,
    floor: float,
    read: Reading,
    proposed: bool,
) -> Row:
    right, false, hits = list[bool](), list[bool](), list[bool]()
    for one in labelled:
        shown = [hit for hit in of(one, source) if read(hit.evidence) >= floor][:SHOWN_MAX]
        hits += [hit.right for hit in shown]
        if one.answerable:
            right.append(any(hit.right for hit in shown))
        else:
            false.append(bool(shown))
    return Row(source, track, floor, _share(hits), _share(right), _share(false), proposed)


def fit(labelled: Sequence[Labelled], source: Source, base: Weights) -> Weights:
    """Logistic regression of "is right" on the numbers of relevance, lightly pulled to zero.

    Where no hit, or every hit, is of the project that asks, that weighs what it does in `base`.
    """
    hits = [hit for one in labelled for hit in of(one, source)[:FITTED_MAX]]
    seen = [hit.evidence for hit in hits]
    rows = np.array([[one.above or 0.0, one.coverage, one.here] for one in seen], dtype=np.float64)
    right = np.array([hit.right for hit in hits], dtype=np.float64)
    mean, spread = rows.mean(axis=0), rows.std(axis=0) + 1e-9
    given = np.column_stack([(rows - mean) / spread, np.ones(len(rows))])
    found = np.zeros(given.shape[1])
    for _ in range(FIT_STEPS):
        chance = 1 / (1 + np.exp(-np.clip(given @ found, -30, 30)))
        pull = given.T @ (right - chance) - RIDGE * found
        bend = (given * (chance * (1 - chance))[:, None]).T @ given + RIDGE * np.eye(len(found))
        found = found + np.linalg.solve(bend, pull)
    slopes = found[:-1] / spread
    here = float(slopes[2]) if 0 < mean[2] < 1 else base.here
    intercept = float(found[-1] - mean @ slopes)
    if mean[2] == 1:
        intercept -= here
    numbers = (float(slopes[0]), float(slopes[1]), here, intercept)
    return Weights(*(round(one, 3) for one in numbers))


def of(one: Labelled, source: Source) -> list[Seen]:
    """A question's hits of one source, in order."""
    return [hit for hit in one.hits if hit.source == source]


def _better(
    held: Sequence[Labelled],
    new: Mapping[Source, Floors],
    old: Mapping[Source, Floors],
    source: Source,
) -> bool:
    """Whether new weights clearly gain on questions that they never saw: right answers, less what
    is false more often."""
    after, before = outcome(held, new, [source]), outcome(held, old, [source])
    return after.right - before.right >= GAIN_MIN + after.false - before.false


def _share(found: Sequence[bool]) -> float:
    return sum(found) / len(found) if found else 0.0
