"""How: held verdicts by factories; two people at once in a database of their own."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection, transaction

from memory import retire
from memory.access import principal
from memory.edits import edit_note
from memory.errors import Conflict, NotFound, RefusedError
from memory.keeping import pin, unpin
from memory.models import Act, Decision, DedupVerdict, Evidence, Note, Principal
from memory.stages.dedup import dedup
from review import holds
from tests.factories import at, clock, fresh, note, three, verdict

OLD = "The staging server listens on port 8443."
NEW = "The staging server listens on port 9443."


def held(owner: Principal, *, visibility: str = "private", days: float = 0) -> DedupVerdict:
    """A supersession that waits for a person."""
    old = note(owner, OLD, confidence=0.755, visibility=visibility, when=at(days=days))
    new = note(owner, NEW, when=at(days=days + 1), visibility=visibility)
    return verdict(new, old)


def both(row: DedupVerdict) -> tuple[Note, Note]:
    assert row.target is not None
    return fresh(row.note), fresh(row.target)


@pytest.mark.django_db
class TestDeciding:
    @pytest.fixture(autouse=True)
    def people(self) -> None:
        self.alice, self.bob, self.charlie = three()

    def test_it_does_what_the_verdict_says_when_approved(self) -> None:
        row = held(self.alice)
        done = holds.approve(row.pk, by=self.alice, now=at(days=2), reason="seen in the config")
        assert (done.status, done.decided_by, done.decided_at) == (
            "approved",
            self.alice,
            at(days=2),
        )
        new, old = both(row)
        assert new.deleted_at is None
        assert (old.deleted_at, old.retired_reason) == (at(days=2), "superseded")
        assert (old.valid_to, old.invalidated_at) == (new.valid_from, at(days=2))
        decision = Decision.objects.get()
        assert (decision.action, decision.reason) == ("approve", "seen in the config")
        assert (decision.status_before, decision.status_after) == ("pending", "approved")

    def test_it_leaves_both_notes_when_rejected(self) -> None:
        row = held(self.alice)
        assert holds.reject(row.pk, by=self.alice, now=at(days=2)).status == "rejected"
        assert all(one.deleted_at is None for one in both(row))
        assert holds.pending(self.alice) == []

    def test_it_gives_back_what_an_approval_retired(self) -> None:
        row = held(self.alice)
        before = [
            Note.objects.as_pipeline().values().get(pk=pk) for pk in (row.note_id, row.target_id)
        ]
        holds.approve(row.pk, by=self.alice, now=at(days=2))
        assert holds.undo(row.pk, by=self.alice, now=at(days=3)).status == "undone"
        after = [
            Note.objects.as_pipeline().values().get(pk=pk) for pk in (row.note_id, row.target_id)
        ]
        assert [{**one, "embedding": None} for one in after] == [
            {**one, "embedding": None} for one in before
        ]
        actions = Decision.objects.order_by("pk").values_list("action", flat=True)
        assert list(actions) == ["approve", "undo"]

    def test_it_asks_again_when_a_rejection_is_undone(self) -> None:
        row = held(self.alice)
        holds.reject(row.pk, by=self.alice, now=at(days=2))
        assert holds.undo(row.pk, by=self.alice, now=at(days=3)).status == "pending"
        assert holds.pending(self.alice) == [row]
        assert holds.approve(row.pk, by=self.alice, now=at(days=4)).status == "approved"

    @pytest.mark.usefixtures("local")
    def test_it_undoes_what_dedup_decided_by_itself(self) -> None:
        note(self.alice, OLD)
        new = note(self.alice, OLD, when=at(days=1))
        dedup(clock=clock(at(days=2)))
        row = DedupVerdict.objects.as_pipeline().get(note=new)
        assert row.target is not None and fresh(row.target).confidence == pytest.approx(0.65)
        holds.undo(row.pk, by=self.alice, now=at(days=3))
        assert fresh(new).deleted_at is None and fresh(row.target).confidence == 0.5
        assert Evidence.objects.filter(note=row.target).count() == 2, "a true quote stays"
        dedup(clock=clock(at(days=4)))
        assert fresh(new).deleted_at is None, "what a person took back is not judged again"

    @pytest.mark.parametrize("again", [holds.approve, holds.reject])
    @pytest.mark.parametrize("first", [holds.approve, holds.reject])
    def test_it_decides_once_and_says_who_did_and_when(
        self, first: Callable[..., Any], again: Callable[..., Any]
    ) -> None:
        row = held(self.alice, visibility="team")
        first(row.pk, by=self.bob, now=at(days=2))
        with pytest.raises(Conflict, match=r"by bob at 2026-03-04 09:00:00Z"):
            again(row.pk, by=self.alice, now=at(days=3))
        assert Decision.objects.count() == 1

    def test_it_has_nothing_to_undo_in_what_waits_or_was_undone(self) -> None:
        row = held(self.alice)
        with pytest.raises(Conflict):
            holds.undo(row.pk, by=self.alice, now=at(days=2))
        holds.approve(row.pk, by=self.alice, now=at(days=2))
        holds.undo(row.pk, by=self.alice, now=at(days=3))
        with pytest.raises(Conflict):
            holds.undo(row.pk, by=self.alice, now=at(days=4))

    def test_it_may_be_decided_anew_when_it_was_undone(self) -> None:
        row = held(self.alice)
        holds.approve(row.pk, by=self.alice, now=at(days=2))
        holds.undo(row.pk, by=self.alice, now=at(days=3))
        assert [one.pk for one in holds.settled(self.alice)] == [row.pk]
        assert holds.approve(row.pk, by=self.alice, now=at(days=4)).status == "approved"
        assert [one.deleted_at is None for one in both(row)] == [True, False]

    def test_it_writes_nothing_when_the_old_note_went_meanwhile(self) -> None:
        row = held(self.alice)
        other = note(self.alice, "Port 7000 it is.", when=at(days=1.5))
        assert row.target is not None
        second = verdict(other, row.target)
        holds.approve(second.pk, by=self.alice, now=at(days=2))
        with pytest.raises(Conflict, match="no longer live"), transaction.atomic():
            holds.approve(row.pk, by=self.alice, now=at(days=3))
        row.refresh_from_db()
        assert (row.status, row.decided_by) == ("pending", None)
        assert Decision.objects.count() == 1
        assert holds.reject(row.pk, by=self.alice, now=at(days=4)).status == "rejected"

    @pytest.mark.parametrize("verb", [holds.approve, holds.reject, holds.undo])
    def test_it_knows_no_verdict_of_strangers(self, verb: Callable[..., Any]) -> None:
        team, private = held(self.alice, visibility="team"), held(self.alice, days=9)
        for row, person in ((team, self.charlie), (private, self.bob), (private, self.charlie)):
            with pytest.raises(NotFound):
                verb(row.pk, by=person, now=at(days=2))
        with pytest.raises(NotFound):
            verb(10**9, by=self.alice, now=at(days=2))
        assert not Decision.objects.exists()

    def test_it_knows_no_verdict_with_a_note_of_a_stranger_in_it(self) -> None:
        new = note(self.bob, NEW, visibility="team", when=at(days=1))
        row = verdict(new, note(self.alice, OLD, confidence=0.9))
        with pytest.raises(NotFound):
            holds.approve(row.pk, by=self.bob, now=at(days=2))

    def test_it_writes_nothing_when_the_new_note_went_meanwhile(self) -> None:
        row = held(self.alice)
        retire.retire([row.note.pk], reason="duplicate", now=at(days=2))
        with pytest.raises(Conflict, match="no longer live"), transaction.atomic():
            holds.approve(row.pk, by=self.alice, now=at(days=3))
        assert both(row)[1].deleted_at is None, "the fact would be in neither of the two"
        row.refresh_from_db()
        assert row.status == "pending" and not Decision.objects.exists()

    @pytest.mark.parametrize("verb", [holds.approve, holds.reject, holds.undo])
    def test_it_leaves_what_all_may_see_to_the_owner_and_its_group(
        self, verb: Callable[..., Any]
    ) -> None:
        row = held(self.alice, visibility="common")
        assert Note.objects.visible_to(self.charlie).filter(pk=row.note.pk).exists()
        assert holds.pending(self.charlie) == [] and holds.pending(self.bob) == [row]
        with pytest.raises(NotFound):
            verb(row.pk, by=self.charlie, now=at(days=2))
        assert holds.reject(row.pk, by=self.bob, now=at(days=3)).status == "rejected"

    def test_it_lists_what_waits_for_those_who_may_see_it_oldest_first(self) -> None:
        second, first = held(self.alice, days=5), held(self.alice, visibility="team")
        assert holds.pending(self.alice) == [first, second]
        assert holds.pending(self.bob) == [first]
        assert holds.pending(self.charlie) == []

    def test_it_puts_each_decision_on_the_list_of_acts(self) -> None:
        row = held(self.alice)
        holds.approve(row.pk, by=self.alice, now=at(days=2), reason="seen in the config")
        act = Act.objects.get()
        assert (act.principal, act.verb, act.kind, act.reference, act.reason, act.created_at) == (
            self.alice, "approve", "verdict", str(row.pk), "seen in the config", at(days=2),
        )  # fmt: skip
        assert act.detail == {
            "kind": "supersede", "before": "pending", "after": "approved",
            "note": str(row.note_id), "target": str(row.target_id),
        }  # fmt: skip

    def test_it_keeps_no_secret_in_a_reason(self) -> None:
        row = held(self.alice)
        secret = "ghp_" + "wWPw5k4aXcaT4fNP0UcnZwJUVFk6LO0pINUx"
        holds.reject(row.pk, by=self.alice, now=at(days=2), reason=f"\0it is {secret}")
        for kept in (Decision.objects.get().reason, Act.objects.get().reason):
            assert "it is" in kept and secret not in kept

    def test_it_decides_nothing_that_was_decided_since_it_was_seen(self) -> None:
        row = held(self.alice)
        holds.reject(row.pk, by=self.alice, now=at(days=2), seen=0)
        holds.undo(row.pk, by=self.alice, now=at(days=3))
        newest = Decision.objects.latest("pk")
        with pytest.raises(Conflict, match="undo by alice at 2026-03-05 09:00:00Z"):
            holds.approve(row.pk, by=self.alice, now=at(days=4), seen=0)
        assert holds.approve(row.pk, by=self.alice, now=at(days=4), seen=newest.pk)

    def test_it_does_what_it_can_of_many_and_says_what_it_could_not(self) -> None:
        rows = [held(self.alice, days=3 * number) for number in range(3)]
        holds.reject(rows[1].pk, by=self.alice, now=at(days=20))
        chosen = {row.pk: 0 for row in rows} | {10**9: None}
        outcome = holds.decide_many("approve", chosen, by=self.alice, now=at(days=21))
        assert outcome.done == (rows[0].pk, rows[2].pk)
        assert "rejected by alice" in outcome.failed[rows[1].pk]
        assert outcome.failed[10**9] == f"no verdict {10**9}"
        for verb, some in (("purge", chosen), ("approve", {}), ("undo", dict.fromkeys(range(101)))):
            with pytest.raises(RefusedError):
                holds.decide_many(verb, some, by=self.alice, now=at(days=22))

    def edited(self, row: DedupVerdict) -> Note:
        words = "Staging listens on port 9443 behind the new proxy."
        holds.edit_approve(
            row.pk, title="Port of staging", content=words, by=self.alice, now=at(days=2)
        )
        made: Note = Note.objects.as_pipeline().get(content=words)
        return made

    def test_it_approves_with_other_words_and_takes_both_back(self) -> None:
        row = held(self.alice)
        better = self.edited(row)
        assert [one.retired_reason for one in both(row)] == ["edited", "superseded"]
        assert holds.undo(row.pk, by=self.alice, now=at(days=3)).status == "undone"
        assert [one.deleted_at for one in both(row)] == [None, None]
        assert fresh(better).retired_reason == "undone"
        standing = DedupVerdict.objects.as_pipeline().filter(status="approved")
        assert not standing.exists(), "the edit is undone by name as well"

    def test_it_takes_the_approval_back_when_the_edit_was_taken_back_before(self) -> None:
        row = held(self.alice)
        self.edited(row)
        edit = DedupVerdict.objects.as_pipeline().exclude(pk=row.pk).get()
        holds.undo(edit.pk, by=self.alice, now=at(days=3))
        assert fresh(row.note).deleted_at is None
        assert holds.undo(row.pk, by=self.alice, now=at(days=4)).status == "undone"

    def test_it_says_what_to_undo_first_when_something_was_built_on_it(self) -> None:
        row = held(self.alice)
        holds.approve(row.pk, by=self.alice, now=at(days=2))
        edit_note(row.note.pk, title="Port", content=OLD, by=self.alice, now=at(days=3))
        with pytest.raises(Conflict, match="undo that one first"):
            holds.undo(row.pk, by=self.alice, now=at(days=4))

    def test_it_approves_nothing_when_the_words_are_refused(self) -> None:
        row = held(self.alice)
        with pytest.raises(RefusedError):
            holds.edit_approve(row.pk, title="", content="", by=self.alice, now=at(days=2))
        row.refresh_from_db()
        assert row.status == "pending" and not Decision.objects.exists()

    def test_it_knows_ones_last_decision_that_still_stands(self) -> None:
        first, second = held(self.alice, visibility="team"), held(self.alice)
        assert holds.latest(self.alice) is None
        holds.reject(first.pk, by=self.alice, now=at(days=1.5))
        self.edited(second)
        last = holds.latest(self.alice)
        assert last is not None and (last.pk, last.status) == (second.pk, "approved")
        assert last.newest == second.decisions.latest("pk").pk and holds.latest(self.bob) is None
        holds.undo(second.pk, by=self.alice, now=at(days=9))
        last = holds.latest(self.alice)
        assert last is not None and (last.pk, last.status) == (first.pk, "rejected")
        holds.undo(first.pk, by=self.bob, now=at(days=10))
        assert holds.latest(self.alice) is None

    def test_it_looks_for_ones_last_decision_among_ones_latest_acts_alone(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        row = held(self.alice)
        holds.reject(row.pk, by=self.alice, now=at(days=2))
        monkeypatch.setattr(holds, "ACTS_LOOKED_AT", 3)
        pin(row.note.pk, by=self.alice, now=at(days=3))
        unpin(row.note.pk, by=self.alice, now=at(days=3))
        assert holds.latest(self.alice) is not None
        pin(row.note.pk, by=self.alice, now=at(days=3))
        assert holds.latest(self.alice) is None, "acts of all kinds count for how far is looked"


def out(*arguments: object) -> str:
    stream = StringIO()
    call_command(*map(str, arguments), stdout=stream)
    return stream.getvalue()


@pytest.mark.django_db
class TestCommand:
    def test_it_lists_and_decides_in_a_terminal(self) -> None:
        assert "nothing is held" in out("hold", "list")
        row = held(principal())
        listed = out("hold", "list")
        assert OLD in listed and NEW in listed and "0.76" in listed
        report = json.loads(out("hold", "--json", "list"))
        assert [one["verdict"] for one in report["holds"]] == [row.pk]
        assert report["holds"][0]["old_confidence"] == 0.755
        assert "approved" in out("hold", "approve", row.pk, "--reason", "yes")
        assert "undone" in out("hold", "undo", row.pk)
        decided = Decision.objects.order_by("pk")
        assert [(one.action, one.reason) for one in decided] == [("approve", "yes"), ("undo", "")]

    def test_it_ends_with_one_sentence_when_it_cannot(self) -> None:
        stranger = held(three()[0])
        with pytest.raises(CommandError, match="no verdict") as caught:
            out("hold", "approve", stranger.pk)
        assert caught.value.returncode == 2
        mine = held(principal())
        out("hold", "reject", mine.pk)
        with pytest.raises(CommandError, match="rejected by me at"):
            out("hold", "approve", mine.pk)


@pytest.mark.parametrize("verbs", [(holds.approve, holds.reject), (holds.approve, holds.approve)])
def test_it_lets_one_of_two_people_decide_and_tells_the_other(
    clone_db: str, verbs: tuple[Callable[..., Any], Callable[..., Any]]
) -> None:
    alice, bob, _ = three()
    rows = [held(alice, visibility="team", days=10 * number) for number in range(5)]
    start = threading.Barrier(2)

    def decide(job: tuple[Callable[..., Any], Principal, DedupVerdict]) -> str:
        verb, person, row = job
        try:
            start.wait(timeout=10)
            verb(row.pk, by=person, now=at(days=99))
            return person.name
        except Conflict as conflict:
            return str(conflict)
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as pool:
        for row in rows:
            jobs = [(verbs[0], alice, row), (verbs[1], bob, row)]
            said = list(pool.map(decide, jobs))
            decided = Decision.objects.get(verdict=row)
            winner, loser = (0, 1) if said[0] == "alice" else (1, 0)
            assert said[winner] == decided.principal.name
            assert f"by {decided.principal.name} at 2026-06-09" in said[loser]


def test_it_retires_a_note_once_when_two_verdicts_about_it_are_approved_at_once(
    clone_db: str,
) -> None:
    alice, _, _ = three()
    first = held(alice)
    assert first.target is not None
    second = verdict(note(alice, "Port 7000 it is.", when=at(days=2)), first.target)
    start = threading.Barrier(2)

    def decide(row: DedupVerdict) -> str:
        try:
            start.wait(timeout=10)
            return holds.approve(row.pk, by=alice, now=at(days=9)).status
        except Conflict:
            return "conflict"
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as pool:
        said = sorted(pool.map(decide, [first, second]))
    assert said == ["approved", "conflict"]
    assert DedupVerdict.objects.as_pipeline().filter(status="approved").count() == 1
    assert DedupVerdict.objects.as_pipeline().filter(status="pending").count() == 1
