"""Proposals: floors by labelled questions, chosen on one half and judged on the other."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import pytest

from recall.floors import SOURCES, Evidence, Floors, Source, Weights
from recall.proposal import (
    QUESTIONS_MIN,
    Labelled,
    Seen,
    fit,
    floor_for,
    halves,
    outcome,
    propose,
    reading,
)

LOW = Floors(-1.0, 0.0, -99.0, 0.0, Weights(10.0, 5.0, 1.0, -4.0))
BASE: dict[Source, Floors] = dict.fromkeys(SOURCES, LOW)


def hit(above: float, coverage: float, right: bool = False, source: Source = "note") -> Seen:
    return Seen(source, Evidence(above, coverage / 2, coverage, 0.02), right)


def asked(*hits: Seen, answerable: bool = True) -> Labelled:
    return Labelled("q", answerable, hits)


def memory(count: int = 200, seed: int = 7) -> list[Labelled]:
    """Questions whose right hits are good in the sum of both numbers, the others' never."""
    chance = random.Random(seed)
    made = []
    for place in range(count):
        answerable = place % 2 == 0
        above = chance.uniform(-0.1, 0.3)
        strong = hit(above, 0.8 - above, right=answerable)
        weak = hit(chance.uniform(-0.2, 0.1), chance.uniform(0.0, 0.2))
        made.append(asked(*([strong, weak] if answerable else [weak]), answerable=answerable))
    return made


def test_it_proposes_a_floor_of_relevance_that_lets_the_allowed_share_by() -> None:
    proposal = propose(memory(), base=BASE)
    assert proposal.changes
    assert proposal.chosen_on.false <= 0.02
    assert proposal.held_out.right >= 0.95
    assert proposal.held_out.false <= 0.1
    assert proposal.before.false == 1.0


def test_it_says_what_the_floors_in_force_do_on_the_held_out_half() -> None:
    strict: dict[Source, Floors] = {source: replace(LOW, relevance=50.0) for source in SOURCES}
    proposal = propose(memory(), base=strict)
    assert proposal.before.right == 0.0
    assert proposal.held_out.right > 0.9


def test_it_keeps_the_floors_when_too_few_questions_have_no_answer() -> None:
    few = [one for one in memory() if one.answerable][:QUESTIONS_MIN]
    proposal = propose(few, base=BASE)
    assert not proposal.changes
    assert proposal.floors == BASE
    assert "0 without an answer" in proposal.kept[0]


def test_it_keeps_the_floors_of_a_source_of_which_nothing_right_was_seen() -> None:
    proposal = propose(memory(), base=BASE)
    assert proposal.floors["turn"] == LOW
    assert any(one.startswith("turn:") for one in proposal.kept)


def test_it_never_chooses_by_what_it_holds_out() -> None:
    chosen, held = halves(memory())
    assert len(chosen) == len(held) == 100
    changed = [replace(one, hits=()) if one in held else one for one in memory()]
    assert propose(changed, base=BASE).floors["note"].keyword == (
        propose(memory(), base=BASE).floors["note"].keyword
    )


def test_it_shows_precision_recall_and_false_hits_at_every_floor() -> None:
    rows = propose(memory(), base=BASE).rows
    assert {row.track for row in rows} == {"semantic", "keyword", "relevance", "score"}
    relevance = [row for row in rows if row.track == "relevance"]
    assert sum(row.proposed for row in relevance) == 1
    falls = [row.recall for row in sorted(relevance, key=lambda row: row.floor)]
    assert falls == sorted(falls, reverse=True)
    assert all(0 <= row.precision <= 1 for row in rows)


def test_it_puts_a_floor_just_above_what_it_must_refuse() -> None:
    off = [asked(hit(0.0, cover), answerable=False) for cover in (0.1, 0.3, 0.5, 0.9)]
    read = reading("keyword", LOW.weights)
    assert floor_for(off, "note", read, 0.0) == pytest.approx(0.451)
    assert floor_for(off, "note", read, 0.25) == pytest.approx(0.251)
    assert floor_for(off, "note", read, 0.5) == pytest.approx(0.151)


def test_it_counts_a_right_hit_only_among_the_first_five() -> None:
    crowd = [hit(0.2, 0.5) for _ in range(5)]
    assert outcome([asked(*crowd, hit(0.2, 0.5, right=True))], BASE).right == 0.0
    assert outcome([asked(*crowd[1:], hit(0.2, 0.5, right=True))], BASE).right == 1.0


def test_it_puts_notes_before_turns() -> None:
    notes: Sequence[Seen] = [hit(0.2, 0.5) for _ in range(5)]
    turn = hit(0.2, 0.9, right=True, source="turn")
    assert outcome([asked(turn, *notes)], BASE).right == 0.0


def test_it_fits_weights_that_tell_right_from_wrong() -> None:
    weights = fit(memory(), "note", LOW.weights)
    assert weights.cosine > 0 and weights.coverage > 0
    assert weights.cosine * 0.2 + weights.coverage * 0.6 + weights.intercept > 0
    assert weights.cosine * 0.0 + weights.coverage * 0.1 + weights.intercept < 0


def test_it_keeps_the_weights_when_fitted_ones_are_no_better_on_the_held_out_half() -> None:
    good = replace(LOW, weights=fit(memory(400), "note", LOW.weights))
    proposal = propose(memory(), base=dict.fromkeys(SOURCES, good))
    assert proposal.refitted == ()
    assert proposal.floors["note"].weights == good.weights


def test_it_replaces_weights_that_point_the_wrong_way() -> None:
    bad = replace(LOW, weights=Weights(-10.0, -5.0, 0.0, 4.0))
    assert propose(memory(), base=dict.fromkeys(SOURCES, bad)).refitted == ("note",)


def test_it_says_why_a_proposal_is_worse_than_what_is_in_force() -> None:
    proposal = propose(memory(), base=BASE)
    assert proposal.worse == ""
    turned = replace(proposal, held_out=replace(proposal.before, right=0.1))
    assert "right answers go from 100.0% to 10.0%" in turned.worse
