"""Undo of a run: what it did is taken back by new rows; what was built on since is left."""

from __future__ import annotations

import json
from datetime import datetime

import pytest
from django.core.management import CommandError, call_command

from argus.undo import undo_run
from memory import verdicts
from memory.access import principal
from memory.edits import edit_note
from memory.errors import Conflict, RefusedError
from memory.keeping import restore_note
from memory.models import (
    Act,
    Decision,
    DedupVerdict,
    Evidence,
    Injection,
    Note,
    Principal,
    StageRun,
)
from memory.retire import retire
from review import holds
from tests.factories import at, fresh, note, three, verdict

pytestmark = pytest.mark.django_db

LATER = at(days=5)


def run_of(stage: str, **fields) -> StageRun:
    return StageRun.objects.create(stage=stage, **{"status": "done", **fields})


@pytest.fixture
def alice() -> Principal:
    return three()[0]


def judged(run: StageRun, new: Note, old: Note, kind: str = "supersede", **fields) -> DedupVerdict:
    """A verdict as dedup writes and applies it."""
    row = verdict(new, old, kind, status="applied", run=run, **fields)
    verdicts.apply(row, now=at(days=2))
    return row


def pair(who: Principal, **fields) -> tuple[Note, Note]:
    old = note(who, "The staging port is 5432 for everybody here.", **fields)
    new = note(who, "The staging port is 5433 for everybody here.", when=at(days=1), **fields)
    return old, new


def state(*notes: Note) -> list[str]:
    return [fresh(one).retired_reason or "live" for one in notes]


def test_it_takes_back_what_dedup_applied_and_held_and_nothing_a_second_time(
    alice: Principal,
) -> None:
    run = run_of("dedup")
    old, new = pair(alice)
    low, high = pair(alice)
    row = judged(run, new, old)
    held = verdict(high, low, run=run)
    verdict(high, old, "distinct", status="applied", run=run)
    rows = DedupVerdict.objects.as_pipeline().count()
    assert state(old, new) == ["superseded", "live"]

    told = undo_run(run.pk, by=alice, now=LATER, dry_run=True)
    assert (len(told.done), told.unchanged, told.dry_run) == (2, 1, True)
    assert state(old) == ["superseded"] and not Act.objects.filter(verb="undo").exists()

    report = undo_run(run.pk, by=alice, now=LATER, reason="The judge was wrong.")
    assert report.done == told.done and not report.partial
    assert state(old, new) == ["live", "live"] and fresh(old).valid_to is None
    for one in (row, held):
        one.refresh_from_db(from_queryset=DedupVerdict.objects.as_pipeline())
        assert one.status == "undone"
        assert (
            Decision.objects.get(verdict=one).reason == f"run {run.pk} undone: The judge was wrong."
        )
    act = Act.objects.get(verb="undo", kind="run")
    assert (act.reference, act.reason) == (str(run.pk), "The judge was wrong.")
    assert DedupVerdict.objects.as_pipeline().count() == rows, "nothing is deleted"

    before = Act.objects.count()
    again = undo_run(run.pk, by=alice, now=LATER)
    assert (again.done, again.left, again.already) == ([], [], 2)
    assert Act.objects.count() == before
    # Either may be approved after all.
    holds.approve(row.pk, by=alice, now=LATER)
    assert state(old) == ["superseded"]


def test_it_leaves_a_verdict_that_something_was_built_on(
    alice: Principal, capsys: pytest.CaptureFixture[str], settings
) -> None:
    run, next_run = run_of("dedup"), run_of("dedup")
    old, new = pair(alice)
    newest = note(alice, "The staging port is 5434 for everybody here.", when=at(days=2))
    first, second = judged(run, new, old), judged(next_run, newest, new)
    other_old, other_new = pair(alice)
    decided = verdict(other_new, other_old, run=run)
    holds.approve(decided.pk, by=alice, now=at(days=3))
    settings.ARGUS = settings.ARGUS.model_copy(update={"principal": "alice"})
    with pytest.raises(SystemExit) as left:
        call_command("undo", "--run", str(run.pk), "--json")
    assert left.value.code == 3
    told = json.loads(capsys.readouterr().out)
    why = {one["id"]: one["told"] for one in told["left"]}
    assert "was retired by a later verdict: undo that one first" in why[str(first.pk)]
    assert why[str(decided.pk)].startswith("approved by alice")
    assert not told["done"] and state(old, other_old) == ["superseded", "superseded"]
    # The later one first; then this one goes, too.
    call_command("undo", "--run", str(next_run.pk))
    assert f"verdict {second.pk}  supersede, applied" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        call_command("undo", "--run", str(run.pk))
    assert f"undid 1 verdict of run {run.pk}" in capsys.readouterr().out
    assert state(old, new, newest) == ["live", "live", "live"]


def test_it_retires_the_notes_of_a_distill_run_and_what_they_replaced_comes_back(
    alice: Principal,
) -> None:
    run, judge = run_of("distill"), run_of("dedup")
    old, new = pair(alice)
    made = note(alice, "The staging port is 5435 for everybody here.", when=at(days=2), run=run)
    before = note(alice, "The staging port was never told here.", unit_key=made.unit_key)
    retire([before.pk], reason="redistilled", now=made.created_at)
    judged(judge, made, new)
    Injection.objects.create(owner=alice, mode="prompt", outcome="injected", note_ids=[made.pk])
    assert state(made, new, before) == ["live", "superseded", "redistilled"]
    report = undo_run(run.pk, by=alice, now=LATER)
    assert state(made, new, before) == ["undone", "live", "live"]
    assert [(one.kind, one.told) for one in report.done][-1] == ("note", "is back")
    assert report.shown == 1 and not report.partial
    assert Evidence.objects.filter(note=made).exists(), "it can still be read"
    again = undo_run(run.pk, by=alice, now=LATER)
    assert (again.done, again.already, again.shown) == ([], 1, 0)
    restore_note(made.pk, by=alice, now=LATER)
    assert state(made) == ["live"]
    assert old.pk


def test_it_leaves_notes_that_people_or_later_stages_built_on(alice: Principal) -> None:
    run, judge = run_of("distill"), run_of("dedup")
    edited = note(alice, "The edited port is 5432 for everybody.", run=run)
    edit_note(edited.pk, title="Port", content="The edited port is 5433.", by=alice, now=LATER)
    merged = note(alice, "The merged port is 5432 for everybody.", run=run, when=at(days=1))
    into = note(alice, "The merged port is 5432 for all of us.")
    judged(judge, merged, into, "duplicate")
    parent = note(alice, "The parent port is 5432 for everybody.", run=run)
    child = note(alice, "Ports change often in this house.", level="L1")
    Evidence.objects.create(note=child, parent=parent, quote="", sha256="")
    kept = note(alice, "The kept port is 5432 for everybody.", run=run, when=at(days=1))
    gone = note(alice, "The kept port is 5431 for everybody.")
    holds.approve(verdict(kept, gone).pk, by=alice, now=LATER)
    free = note(alice, "The free port is 5432 for everybody.", run=run)
    report = undo_run(run.pk, by=alice, now=LATER)
    assert [one.id for one in report.done] == [str(free.pk)]
    why = {one.id: one.told for one in report.left}
    assert set(why) == {str(one.pk) for one in (edited, merged, parent, kept)}
    assert "was edited by alice" in why[str(edited.pk)]
    assert "retired as a duplicate by verdict" in why[str(merged.pk)]
    assert f"note {child.pk} was made of it" == why[str(parent.pk)]
    assert "approved by alice" in why[str(kept.pk)]
    assert report.partial and state(parent, kept, free) == ["live", "live", "undone"]


def test_it_leaves_none_behind_that_went_for_another_one_of_the_same_run(alice: Principal) -> None:
    run, judge = run_of("distill"), run_of("dedup")
    texts = [f"The port is 543{n} for everybody here, noted." for n in range(3)]
    one, two, three_ = (note(alice, text, when=at(days=n), run=run) for n, text in enumerate(texts))
    judged(judge, two, one)
    judged(judge, three_, two)
    assert state(one, two, three_) == ["superseded", "superseded", "live"]
    report = undo_run(run.pk, by=alice, now=LATER)
    assert state(one, two, three_) == ["undone"] * 3
    assert not report.partial and len(report.done) == 5


def test_it_undoes_a_whole_pass_from_its_end(alice: Principal) -> None:
    distilled, judge = run_of("distill"), run_of("dedup")
    stages = {"distill": {"run": distilled.pk}, "dedup": {"run": judge.pk}}
    whole = run_of("process", progress={"stages": stages})
    old = note(alice, "The staging port is 5432 for everybody here.")
    made = note(alice, "The staging port is 5433 for everybody.", when=at(days=1), run=distilled)
    judged(judge, made, old)
    report = undo_run(whole.pk, by=alice, now=LATER)
    assert [one.kind for one in report.done] == ["verdict", "note"]
    assert state(old, made) == ["live", "undone"] and not report.partial


def test_it_takes_back_nothing_of_others(alice: Principal) -> None:
    stranger = principal("charlie")
    run = run_of("distill")
    theirs = note(stranger, "The port of Charlie is 5432 for now.", run=run)
    report = undo_run(run.pk, by=alice, now=LATER)
    assert (report.foreign, report.done, report.partial) == (1, [], True)
    assert state(theirs) == ["live"] and str(theirs.pk) not in str(report)


def test_it_names_no_decision_of_others_and_brings_none_of_their_notes_back(
    alice: Principal,
) -> None:
    stranger = principal("charlie")
    run = run_of("dedup")
    old, new = pair(stranger)
    decided = verdict(new, old, run=run)
    holds.approve(decided.pk, by=stranger, now=at(days=3))
    report = undo_run(run.pk, by=alice, now=LATER)
    assert (report.foreign, report.left, report.done) == (1, [], [])
    assert "charlie" not in str(report)
    # Two people's notes of one unit, by a name that is not theirs alone.
    distilled = run_of("distill")
    made = note(alice, "The port of Alice is 5432 for now.", run=distilled)
    theirs = note(stranger, "The port of Charlie is 5432 for now.", unit_key=made.unit_key)
    retire([theirs.pk], reason="redistilled", now=made.created_at)
    undo_run(distilled.pk, by=alice, now=LATER)
    assert state(made, theirs) == ["undone", "redistilled"]


def test_it_asks_no_more_for_many_notes_than_for_a_few(
    alice: Principal, django_assert_max_num_queries
) -> None:
    run = run_of("distill")
    for number in range(40):
        note(alice, f"The port of {number} is 5432 for now.", run=run)
    with django_assert_max_num_queries(35):
        report = undo_run(run.pk, by=alice, now=LATER)
    assert len(report.done) == 40 and Act.objects.filter(verb="retire").count() == 40


def test_it_says_before_what_it_will_do_and_names_the_way_back(
    alice: Principal, settings, capsys: pytest.CaptureFixture[str]
) -> None:
    settings.ARGUS = settings.ARGUS.model_copy(update={"principal": alice.name})
    run = run_of("distill")
    made = note(alice, "The port of Alice is 5432 for now.", run=run)
    call_command("undo", "--run", str(run.pk), "--dry-run")
    printed = capsys.readouterr()
    assert printed.out.startswith(f"would undo 1 note of run {run.pk}") and not printed.err
    assert "manage.py note restore ID" in printed.out and "hold approve" not in printed.out
    assert state(made) == ["live"], "nothing was done"
    call_command("undo", "--run", str(run.pk), "--json")
    printed = capsys.readouterr()
    assert printed.err.startswith(f"would undo 1 note of run {run.pk}"), "it is said before"
    assert len(json.loads(printed.out)["done"]) == 1 and state(made) == ["undone"]
    call_command("note", "restore", str(made.pk))
    assert state(made) == ["live"]
    nothing = run_of("distill")
    call_command("undo", "--run", str(nothing.pk))
    printed = capsys.readouterr()
    assert (printed.err, "undid nothing" in printed.out) == ("", True), "nothing is about to be"


def test_it_refuses_runs_that_there_are_not_or_that_go_on(
    alice: Principal, now: datetime = LATER
) -> None:
    with pytest.raises(CommandError, match="no run 4711") as error:
        call_command("undo", "--run", "4711")
    assert error.value.returncode == 2
    with pytest.raises(RefusedError, match="is one of segment"):
        undo_run(run_of("segment").pk, by=alice, now=now)
    with pytest.raises(CommandError) as error:
        call_command("undo", "--run", str(run_of("embed").pk))
    assert error.value.returncode == 2
    with pytest.raises(Conflict, match="cancel it first"):
        undo_run(run_of("distill", status="running").pk, by=alice, now=now)
