"""How: holds by factories; edits, undone edits and retirements around them by the real verbs."""

from __future__ import annotations

import pytest

from memory.edits import edit_note
from memory.errors import Conflict
from memory.keeping import restore_note, retire_note
from memory.models import Act, Decision, DedupVerdict, Note, Principal
from review import holds
from review.health import health
from tests import web
from tests.factories import at, fresh, note, three, verdict

pytestmark = pytest.mark.django_db

OLD = "The staging server listens on port 8443."
NEW = "The staging server listens on port 9443."
EDITED = "The staging server of the harbor listens on port 8443."
THIRD = "The staging server listens on port 7443."


@pytest.fixture
def alice() -> Principal:
    return three()[0]


def held(owner: Principal) -> DedupVerdict:
    old = note(owner, OLD, confidence=0.755)
    return verdict(note(owner, NEW, when=at(days=1)), old)


def reworded(which: Note, by: Principal, *, hours: float = 0) -> Note:
    return edit_note(which.pk, title="Staging", content=EDITED, by=by, now=at(days=2, hours=hours))


def waits(owner: Principal) -> list[tuple[object, object]]:
    return [(row.note_id, row.target_id) for row in holds.pending(owner)]


@pytest.mark.parametrize("side", ["note", "target"])
def test_it_waits_about_the_edited_note_whichever_of_the_two_that_is(
    alice: Principal, side: str
) -> None:
    row = held(alice)
    assert row.target is not None
    made = reworded(getattr(row, side), alice)
    pair = (made.pk, row.target_id) if side == "note" else (row.note_id, made.pk)
    assert waits(alice) == [pair]
    (moved,) = holds.pending(alice)
    assert (moved.created_at, moved.verdict) == (row.created_at, row.verdict)
    row.refresh_from_db()
    assert (row.status, row.decided_by) == ("undone", alice)
    told = Decision.objects.get(verdict=row)
    assert (told.action, told.status_before, told.status_after) == ("carry", "pending", "undone")
    assert Act.objects.get(verb="carry").reference == str(row.pk)
    assert health(alice).holds == 1
    assert holds.approve(moved.pk, by=alice, now=at(days=3)).status == "approved"
    assert waits(alice) == []


def test_it_waits_about_the_old_note_again_when_the_edit_is_undone(alice: Principal) -> None:
    row = held(alice)
    assert row.target is not None
    made = reworded(row.target, alice)
    edit = DedupVerdict.objects.as_pipeline().get(note=made)
    holds.undo(edit.pk, by=alice, now=at(days=3))
    assert holds.pending(alice) == [row]
    holds.approve(edit.pk, by=alice, now=at(days=4))
    assert waits(alice) == [(row.note_id, made.pk)]
    assert DedupVerdict.objects.as_pipeline().count() == 3, "the two that there are take turns"
    holds.undo(edit.pk, by=alice, now=at(days=5))
    assert holds.approve(row.pk, by=alice, now=at(days=6)).status == "approved"


def test_it_says_nothing_of_the_old_words_by_what_came_up_about_the_new_ones(
    alice: Principal,
) -> None:
    old = note(alice, OLD)
    made = reworded(old, alice)
    later = verdict(note(alice, THIRD, when=at(days=2)), made)
    edit = DedupVerdict.objects.as_pipeline().get(note=made)
    holds.undo(edit.pk, by=alice, now=at(days=3))
    assert waits(alice) == [] and list(holds.stranded(holds.decidable(alice))) == [later]
    holds.approve(edit.pk, by=alice, now=at(days=4))
    assert holds.pending(alice) == [later]


def test_it_takes_along_what_else_waits_about_a_note_that_is_edited_with_an_approval(
    alice: Principal,
) -> None:
    row = held(alice)
    other = verdict(note(alice, THIRD, when=at(days=1)), row.note)
    holds.edit_approve(row.pk, title="Staging", content=EDITED, by=alice, now=at(days=2))
    made = Note.objects.as_pipeline().get(content=EDITED)
    assert waits(alice) == [(other.note_id, made.pk)]
    holds.undo(row.pk, by=alice, now=at(days=3))
    assert holds.pending(alice) == [other]


def test_it_asks_nobody_about_a_note_that_is_gone_until_it_comes_back(alice: Principal) -> None:
    row = held(alice)
    assert row.target is not None
    browser = web.staff("reviewer", who=alice)
    listed = "/ui/review/?view=list&status="
    assert health(alice).holds == 1
    assert f"/ui/review/{row.pk}/" in browser.get(f"{listed}pending").content.decode()

    retire_note(row.target.pk, by=alice, now=at(days=2))
    assert health(alice).holds == 0 and health(alice).oldest_hold_at is None
    assert holds.pending(alice) == []
    assert "Nothing is held." in browser.get("/ui/review/").content.decode()
    assert f"/ui/review/{row.pk}/" not in browser.get(f"{listed}pending").content.decode()
    assert f"/ui/review/{row.pk}/" in browser.get(f"{listed}stranded").content.decode()
    card = browser.get(f"/ui/review/{row.pk}/").content.decode()
    assert "The old note is gone (retired" in card
    assert "Set aside" in card and "Approve" not in card
    bulk = {"verb": "approve", "chosen": f"{row.pk}:0"}
    assert "There is nothing to approve" in browser.post("/ui/review/bulk", bulk).content.decode()

    restore_note(row.target.pk, by=alice, now=at(days=3))
    assert holds.pending(alice) == [row] and health(alice).holds == 1
    assert "Approve" in browser.get(f"/ui/review/{row.pk}/").content.decode()


def test_it_sets_a_hold_aside_whose_note_is_gone(alice: Principal) -> None:
    row = held(alice)
    retire_note(row.note_id, by=alice, now=at(days=2))
    with pytest.raises(Conflict, match="no longer live"):
        holds.approve(row.pk, by=alice, now=at(days=2))
    browser = web.staff("reviewer", who=alice)
    assert browser.post(f"/ui/review/{row.pk}/reject", {"seen": "0"}).status_code == 302
    row.refresh_from_db()
    assert row.status == "rejected"
    restore_note(row.note_id, by=alice, now=at(days=3))
    assert waits(alice) == []


def test_it_undoes_no_other_decision_of_the_same_moment(alice: Principal) -> None:
    first, second, third = (
        note(alice, text, when=at(days=day)) for day, text in enumerate((OLD, NEW, THIRD))
    )
    one, other = verdict(second, first), verdict(third, second, "refine")
    done = holds.decide_many("approve", {one.pk: None, other.pk: None}, by=alice, now=at(days=4))
    assert done.done == (one.pk, other.pk)
    with pytest.raises(Conflict, match="undo that one first"):
        holds.undo(one.pk, by=alice, now=at(days=5))
    other.refresh_from_db()
    assert other.status == "approved" and fresh(second).deleted_at is not None


def test_it_leaves_an_undone_verdict_undone_when_its_rejection_is_taken_back(
    alice: Principal,
) -> None:
    row = held(alice)
    holds.approve(row.pk, by=alice, now=at(days=2))
    holds.undo(row.pk, by=alice, now=at(days=3))
    holds.reject(row.pk, by=alice, now=at(days=4))
    assert holds.undo(row.pk, by=alice, now=at(days=5)).status == "undone"
    assert waits(alice) == []
