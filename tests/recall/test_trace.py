"""What a note replaced and influenced: followed both ways, bounded, and only what one may see."""

from __future__ import annotations

from datetime import timedelta

import pytest

from memory import verdicts
from memory.edits import edit_note
from memory.keeping import pin, retire_note
from memory.models import DedupVerdict, Evidence, Injection, Note, Principal
from recall.feedback import give_feedback
from recall.shown import trace as tracing
from recall.shown.trace import Trace, acts_on, history, trace
from review import holds
from tests.recall.making import NOW, note, people

pytestmark = pytest.mark.django_db


def replaced(new: Note, old: Note, kind: str = "supersede") -> DedupVerdict:
    row = DedupVerdict.objects.create(
        owner=new.owner, note=new, target=old, verdict=kind, status="applied", created_at=NOW
    )
    verdicts.apply(row, now=NOW)
    return row


def traced(one: Note, who: Principal) -> Trace:
    return trace(
        one, notes=Note.objects.visible_to(who), injections=Injection.objects.visible_to(who)
    )


def chain(alice: Principal) -> list[Note]:
    return [
        note(
            alice, f"The port is {n}000.", embedding=None,
            valid_from=NOW - timedelta(days=9 - n),
        )
        for n in range(3)
    ]  # fmt: skip


def test_it_follows_what_was_replaced_both_ways_with_what_differs() -> None:
    alice = people().alice
    a, b, c = chain(alice)
    rows = [replaced(b, a), replaced(c, b, "refine")]
    for one in (a, b, c):
        steps = history(one, notes=Note.objects.visible_to(alice))
        assert [step.row for step in steps] == rows
        assert [(step.old, step.new, step.kept) for step in steps] == [(a, b, b), (b, c, c)]
    old, new = ([p.text for p in side if p.kind] for side in (steps[0].before, steps[0].after))
    assert (old, new) == (["0000"], ["1000"])


def test_it_shows_an_edit_with_its_decision_and_what_people_did() -> None:
    alice = people().alice
    old = note(alice, "The port is 5432.", embedding=None)
    new = edit_note(
        old.pk, title="Port", content="The port is 5433.", by=alice, now=NOW, reason="Moved."
    )
    (step,) = history(new, notes=Note.objects.visible_to(alice))
    assert step.edit and [(one.action, one.reason) for one in step.decisions] == [
        ("edit", "Moved.")
    ]
    holds.undo(step.row.pk, by=alice, now=NOW)
    (step,) = history(old, notes=Note.objects.visible_to(alice))
    assert (step.row.status, len(step.decisions)) == ("undone", 2)
    verbs = [(act.verb, act.kind) for act in acts_on(old, [step], principal=alice)]
    assert ("edit", "note") in verbs


def test_it_tells_nobody_what_others_said_of_a_note_or_that_they_pinned_it() -> None:
    cast = people()
    one = note(cast.alice, "The port is 5432.", visibility="team", embedding=None)
    for who in (cast.alice, cast.bob):
        pin(one.pk, by=who, now=NOW)
        give_feedback(one.pk, "wrong", principal=who, now=NOW)
    retire_note(one.pk, by=cast.bob, now=NOW)
    acts = acts_on(one, [], principal=cast.alice)
    assert {act.verb for act in acts if act.principal == cast.bob} == {"retire"}
    assert "pin" in {act.verb for act in acts if act.principal == cast.alice}


def test_it_leaves_out_notes_of_others_and_verdicts_that_changed_nothing() -> None:
    cast = people()
    a, b, c = chain(cast.alice)
    shared = note(cast.alice, "The port is 3000.", visibility="team", embedding=None)
    replaced(shared, c, "distinct")
    DedupVerdict.objects.create(owner=cast.alice, note=shared, target=a, verdict="refine")
    assert history(shared, notes=Note.objects.visible_to(cast.bob)) == []
    assert len(history(shared, notes=Note.objects.visible_to(cast.alice))) == 1
    found = traced(shared, cast.alice)
    assert (found.apart, found.retired.total) == (1, "0")
    steps = history(shared, notes=Note.objects.visible_to(cast.alice))
    assert b.pk not in {step.old.pk for step in steps}


def test_it_ends_where_replacements_run_in_a_circle() -> None:
    alice = people().alice
    a, b, c = chain(alice)
    for new, old in ((b, a), (c, b), (a, c)):
        DedupVerdict.objects.create(owner=alice, note=new, target=old, verdict="refine")
    assert len(history(a, notes=Note.objects.visible_to(alice))) == 3


def test_it_counts_what_a_note_influenced() -> None:
    cast = people()
    a, b, _ = chain(cast.alice)
    replaced(b, a)
    child = note(cast.alice, "Ports change often.", level="L1", embedding=None)
    Evidence.objects.create(note=child, parent=b, quote="", sha256="")
    for n, session in enumerate(("one", "two", "two", "")):
        Injection.objects.create(
            owner=cast.alice, mode="prompt", outcome="injected", session=session,
            note_ids=[b.pk, a.pk], created_at=NOW + timedelta(minutes=n),
        )  # fmt: skip
    Injection.objects.create(
        owner=cast.bob, mode="prompt", outcome="injected", session="his", note_ids=[b.pk]
    )
    found = traced(b, cast.alice)
    assert (found.injections.total, len(found.injections.rows)) == ("4", 4)
    assert [(one.name, one.times) for one in found.sessions.rows] == [("two", 2), ("one", 1)]
    assert list(found.retired.rows) == [a] and list(found.children.rows) == [child]
    assert traced(a, cast.alice).retired.total == "0", "it was the one that went"
    retire_note(child.pk, by=cast.alice, now=NOW)
    assert traced(b, cast.alice).children.total == "1", "the trace shows what is gone, too"
    assert not traced(b, cast.bob).children


def test_it_shows_the_first_of_many_and_says_how_many_there_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    alice = people().alice
    one = note(alice, "The port is 5432.", embedding=None)
    Injection.objects.bulk_create(
        Injection(owner=alice, mode="prompt", outcome="injected", note_ids=[one.pk], session=f"{n}")
        for n in range(45)
    )
    found = traced(one, alice)
    assert (len(found.injections.rows), found.injections.total) == (20, "45")
    assert (len(found.sessions.rows), found.sessions.total) == (20, "20+")
    monkeypatch.setattr(tracing, "COUNTED_MAX", 30)
    assert traced(one, alice).injections.total == "30+"
