"""How: the pure consequences on notes in memory; applying and taking back on real rows."""

from __future__ import annotations

from datetime import datetime

import pytest

from memory import retire, verdicts
from memory.errors import Conflict
from memory.models import Evidence, Note, Principal
from memory.verdicts import CONFIDENCE_START, HOLD_CONFIDENCE_MIN, effect, raised
from tests.factories import T0, at, fresh, note, three, turns, verdict


def bare(when: datetime = T0, confidence: float = CONFIDENCE_START) -> Note:
    return Note(valid_from=when, confidence=confidence)


def test_it_reaches_the_hold_after_two_corroborations_and_never_certainty() -> None:
    steps = [CONFIDENCE_START]
    for _ in range(60):
        steps.append(raised(steps[-1]))
    assert steps[1:3] == [0.65, 0.755]
    assert steps[1] < HOLD_CONFIDENCE_MIN <= steps[2]
    assert all(before <= after <= 1 for before, after in zip(steps, steps[1:], strict=False))


@pytest.mark.parametrize(
    ("kind", "kept", "retired", "reason"),
    [
        ("distinct", "new", None, ""),
        ("duplicate", "old", "new", "duplicate"),
        ("refine", "new", "old", "refined"),
        ("supersede", "new", "old", "superseded"),
    ],
)
def test_it_says_who_stays_and_who_goes(
    kind: str, kept: str, retired: str | None, reason: str
) -> None:
    both = {"new": bare(at(5)), "old": bare(at(0))}
    found = effect(kind, both["new"], both["old"])
    assert found.kept is both[kept]
    assert found.retired is (both[retired] if retired else None)
    assert found.reason == reason
    assert found.valid_to == (at(5) if kind == "supersede" else None)


@pytest.mark.parametrize("kind", ["duplicate", "refine", "supersede", "distinct"])
def test_it_changes_nothing_without_an_older_note(kind: str) -> None:
    new = bare()
    assert effect(kind, new, None) == verdicts.Effect(kept=new)


def test_it_lets_the_later_statement_win_and_end_the_earlier_one() -> None:
    early, late = bare(at(0)), bare(at(5))
    for found in (effect("supersede", late, early), effect("supersede", early, late)):
        assert (found.kept, found.retired, found.valid_to) == (late, early, at(5))


@pytest.mark.parametrize(("confidence", "held"), [(0.5, False), (0.699, False), (0.70, True)])
def test_it_holds_the_retirement_of_what_is_confident(confidence: float, held: bool) -> None:
    found = effect("supersede", bare(at(5)), bare(at(0), confidence))
    assert found.held is held
    late = effect("supersede", bare(at(0), confidence), bare(at(5)))
    assert late.held is held, "it is the confidence of the one that goes"


def test_it_never_holds_a_duplicate_or_a_refinement() -> None:
    sure = bare(at(0), 0.99)
    assert not effect("duplicate", bare(at(5)), sure).held
    assert not effect("refine", bare(at(5)), sure).held


@pytest.fixture
def alice(db: None) -> Principal:
    return three()[0]


def test_it_hands_each_edge_over_once(alice: Principal) -> None:
    item = turns(alice, ["It is so. It is so indeed."], session="x")[0]
    old = note(alice, "It is so.", evidence=item)
    new = note(alice, "It is so indeed.", evidence=item)
    twin = note(alice, "It is so.", evidence=item)
    for gone in (new, twin, new):
        verdicts.hand_over(gone, old, origin="duplicate")
    spans = Evidence.objects.filter(note=old).order_by("start").values_list("quote", "origin")
    assert list(spans) == [("It is so.", "distill"), ("It is so indeed.", "duplicate")]


def test_it_refuses_to_retire_what_somebody_retired(alice: Principal) -> None:
    old, new = note(alice, "One."), note(alice, "Two.", when=at(5))
    row = verdict(new, old, status="applied")
    verdicts.apply(row, effect("supersede", new, old), now=at(60))
    with pytest.raises(Conflict):
        verdicts.apply(row, effect("supersede", new, old), now=at(61))
    assert fresh(old).deleted_at == at(60)


def test_it_takes_back_the_retirement_and_the_step_of_confidence(alice: Principal) -> None:
    old, new = note(alice, "One."), note(alice, "One.", when=at(5))
    row = verdict(
        new, old, "duplicate", status="applied", confidence_before=0.5, confidence_after=0.65
    )
    verdicts.apply(row, effect("duplicate", new, old), now=at(60))
    assert (fresh(old).confidence, fresh(new).deleted_at) == (0.65, at(60))
    verdicts.take_back(row)
    assert (fresh(old).confidence, fresh(new).deleted_at) == (0.5, None)
    with pytest.raises(Conflict):
        verdicts.take_back(row)


def test_it_keeps_a_later_step_of_confidence_when_an_earlier_one_is_taken_back(
    alice: Principal,
) -> None:
    old, new = note(alice, "One."), note(alice, "One.", when=at(5))
    row = verdict(
        new, old, "duplicate", status="applied", confidence_before=0.5, confidence_after=0.65
    )
    verdicts.apply(row, effect("duplicate", new, old), now=at(60))
    retire.set_confidence(old.pk, 0.755)
    verdicts.take_back(row)
    assert fresh(old).confidence == 0.755


def test_it_takes_back_only_what_no_later_verdict_built_on(alice: Principal) -> None:
    first, second, third = (note(alice, f"{n}.", when=at(n)) for n in (1, 2, 3))
    one, two = verdict(second, first), verdict(third, second)
    verdicts.apply(one, effect("supersede", second, first), now=at(60))
    verdicts.apply(two, effect("supersede", third, second), now=at(61))
    with pytest.raises(Conflict, match="later verdict"):
        verdicts.take_back(one)
    verdicts.take_back(two)
    verdicts.take_back(one)
    assert all(fresh(n).deleted_at is None for n in (first, second, third))


def test_it_cannot_take_back_what_changed_nothing(alice: Principal) -> None:
    old, new = note(alice, "One."), note(alice, "Two.", when=at(5))
    with pytest.raises(Conflict):
        verdicts.take_back(verdict(new, old, "distinct"))
