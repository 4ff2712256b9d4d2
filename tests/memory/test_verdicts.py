"""How: the pure consequences on notes in memory; applying and taking back on real rows."""

from __future__ import annotations

from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory import retire, verdicts
from memory.errors import Conflict
from memory.models import Evidence, Injection, Note, Principal
from memory.verdicts import CONFIDENCE_START, HOLD_CONFIDENCE_MIN, carried, effect, raised
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
        verdicts.hand_over(gone, old, origin="duplicate", now=at(60))
    edges = Evidence.objects.filter(note=old).order_by("start")
    assert list(edges.values_list("quote", "origin", "created_at")) == [
        ("It is so.", "distill", old.created_at),
        ("It is so indeed.", "duplicate", at(60)),
    ]


@pytest.mark.parametrize("gone", ["old", "new"])
@pytest.mark.parametrize("kind", ["duplicate", "refine", "supersede"])
def test_it_settles_nothing_once_somebody_retired_one_of_the_two(
    alice: Principal, kind: str, gone: str
) -> None:
    """The fact that stays must be there to stay."""
    both = {"old": note(alice, "One."), "new": note(alice, "Two.", when=at(5))}
    retire.retire([both[gone].pk], reason="refined", now=at(59))
    with pytest.raises(Conflict, match="no longer live"):
        verdicts.apply(verdict(both["new"], both["old"], kind), now=at(60))
    assert {name for name, one in both.items() if fresh(one).deleted_at} == {gone}


def test_it_settles_nothing_between_notes_of_which_one_has_run_out(alice: Principal) -> None:
    old, new = note(alice, "One."), note(alice, "Two.", when=at(5), valid_to=at(50))
    with pytest.raises(Conflict):
        verdicts.apply(verdict(new, old), now=at(60))
    assert fresh(old).deleted_at is None


def test_it_takes_back_the_retirement_and_the_step_of_confidence(alice: Principal) -> None:
    old, new = note(alice, "One."), note(alice, "One.", when=at(5))
    row = verdict(
        new, old, "duplicate", status="applied", confidence_before=0.5, confidence_after=0.65
    )
    verdicts.apply(row, now=at(60))
    assert (fresh(old).confidence, fresh(new).deleted_at) == (0.65, at(60))
    verdicts.take_back(row, now=at(90))
    assert (fresh(old).confidence, fresh(new).deleted_at) == (0.5, None)
    with pytest.raises(Conflict):
        verdicts.take_back(row, now=at(90))


def test_it_takes_back_one_step_of_confidence_of_several(alice: Principal) -> None:
    old, new, other = (note(alice, "One.", when=at(n)) for n in (0, 5, 6))
    rows = [
        verdict(new, old, "duplicate", confidence_before=0.5, confidence_after=0.65),
        verdict(other, old, "duplicate", confidence_before=0.65, confidence_after=0.755),
    ]
    for row in rows:
        verdicts.apply(row, now=at(60))
    assert fresh(old).confidence == 0.755
    for row, wanted in zip(rows, (0.65, 0.5), strict=True):
        verdicts.take_back(row, now=at(90))
        assert fresh(old).confidence == wanted


def test_it_gives_a_refinement_its_own_confidence_back(alice: Principal) -> None:
    old = note(alice, "One.", confidence=0.755)
    new = note(alice, "One and a half.", when=at(5))
    found = verdicts.step("refine", new, old)
    assert (found.before, found.after) == (CONFIDENCE_START, raised(0.755))
    row = verdict(new, old, "refine", confidence_before=found.before, confidence_after=found.after)
    verdicts.apply(row, now=at(60))
    assert fresh(new).confidence == raised(0.755)
    verdicts.take_back(row, now=at(90))
    assert (fresh(new).confidence, fresh(old).confidence) == (CONFIDENCE_START, 0.755)
    assert fresh(old).deleted_at is None


@given(st.floats(0, 0.99), st.lists(st.booleans(), max_size=6))
def test_it_takes_a_step_out_from_among_any_others(start: float, others: list[bool]) -> None:
    one = (start, raised(start))
    with_it, without = carried(start, before=one[0], after=one[1]), start
    for _ in others:
        with_it, without = raised(with_it), raised(without)
    back = carried(with_it, before=one[1], after=one[0])
    assert back == pytest.approx(without, abs=2e-5) and 0 <= back <= 1


@pytest.mark.parametrize("kind", ["duplicate", "refine", "supersede"])
def test_it_holds_whatever_is_said_of_a_note_of_another_project(kind: str) -> None:
    old, new = bare(at(0)), bare(at(5))
    assert not effect(kind, new, old).held
    new.project_id = 7
    assert effect(kind, new, old).held
    old.project_id = 7
    assert not effect(kind, new, old).held


ROLES = ("assistant", "user")


def shown(owner: Principal, *notes: Note, session: str, when: datetime) -> None:
    Injection.objects.create(
        owner=owner, mode="notes", session=session, outcome="injected",
        note_ids=[one.pk for one in notes], created_at=when,
    )  # fmt: skip


def test_it_hears_an_echo_through_what_the_shown_note_went_into(alice: Principal) -> None:
    """Shown first, merged later: what the session says again is still what it was told."""
    first, twin, third, fourth = (note(alice, f"{n}.", when=at(n)) for n in range(4))
    for kind, new, old in (("duplicate", twin, first), ("refine", third, first)):
        row = verdict(new, old, kind, status="applied")
        verdicts.apply(row, now=at(60))
    held = verdict(fourth, third, "refine", status="approved")
    verdicts.apply(held, now=at(61))
    assert verdicts.gone_into(fourth) == {one.pk for one in (first, twin, third, fourth)}
    for number, one in enumerate((first, twin, third, fourth)):
        echo = note(alice, "Fourth, again.", session=f"echo {number}", when=at(days=1))
        assert verdicts.corroborates(echo, fourth)
        shown(alice, one, session=f"echo {number}", when=at(days=2))
        assert not verdicts.corroborates(echo, fourth), one


def test_it_hears_an_echo_of_a_turn_that_bears_the_note_out(alice: Principal) -> None:
    """Who was shown the words that a note was made of was told what the note says."""
    old, other = note(alice, "One."), note(alice, "Other.", when=at(3))
    (mine,), (others,) = (one.evidence.values_list("raw_item", flat=True) for one in (old, other))
    for session, items in (("told", [mine]), ("told else", [others]), ("told nothing", [])):
        Injection.objects.create(
            owner=alice, mode="query", session=session, outcome="answered", turn_ids=items
        )
        echo = note(alice, "One, again.", session=session, when=at(days=1))
        assert verdicts.corroborates(echo, old) == (session != "told"), session
    # What went into a note was shown by its turn as well.
    row = verdict(other, old, "refine", status="applied")
    verdicts.apply(row, now=at(60))
    echo = note(alice, "Other, again.", session="told", when=at(days=2))
    assert not verdicts.corroborates(echo, other)


def test_it_hears_no_echo_of_what_was_replaced_undone_or_left_apart(alice: Principal) -> None:
    old, new = note(alice, "One."), note(alice, "Two.", when=at(5))
    verdict(new, old, "supersede", status="applied")
    verdict(new, old, "refine", status="undone")
    verdict(new, old, "refine", status="pending")
    assert verdicts.gone_into(new) == {new.pk}


def test_it_hears_an_echo_whatever_the_clocks_say(alice: Principal) -> None:
    """The client's clock runs behind ours: the echo seems to be older than what was shown."""
    old = note(alice, "One.")
    echo = note(alice, "One.", session="behind", when=at(5))
    shown(alice, old, session="behind", when=at(60))
    assert not verdicts.corroborates(echo, old)


def test_it_takes_back_only_what_no_later_verdict_built_on(alice: Principal) -> None:
    first, second, third = (note(alice, f"{n}.", when=at(n)) for n in (1, 2, 3))
    one, two = verdict(second, first), verdict(third, second)
    verdicts.apply(one, now=at(60))
    verdicts.apply(two, now=at(61))
    with pytest.raises(Conflict, match="later verdict"):
        verdicts.take_back(one, now=at(90))
    verdicts.take_back(two, now=at(90))
    verdicts.take_back(one, now=at(90))
    assert all(fresh(n).deleted_at is None for n in (first, second, third))


def test_it_cannot_take_back_what_changed_nothing(alice: Principal) -> None:
    old, new = note(alice, "One."), note(alice, "Two.", when=at(5))
    with pytest.raises(Conflict):
        verdicts.take_back(verdict(new, old, "distinct"), now=at(90))


@pytest.mark.parametrize("kind", ["duplicate", "refine", "supersede"])
def test_it_holds_what_would_take_a_shared_note_from_others(kind: str) -> None:
    new, old = bare(at(5)), bare(at(0))
    retired = new if kind == "duplicate" else old
    assert not effect(kind, new, old).held
    retired.visibility = "team"
    assert effect(kind, new, old).held


def test_it_hears_an_agents_echo_of_a_recall_that_named_no_session(alice: Principal) -> None:
    old = note(alice, "One.")
    shown(alice, old, session="", when=at(60))
    said = {who: note(alice, "One.", session=who, said_by=who, when=at(days=1)) for who in ROLES}
    assert not verdicts.corroborates(said["assistant"], old)
    assert verdicts.corroborates(said["user"], old), "a person who says it again means it"
