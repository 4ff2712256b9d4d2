"""Context: the same notes in the same order for the same rows, and no model asked."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from memory.edits import edit_note
from memory.keeping import pin, retire_note, unpin
from memory.models import (
    DedupVerdict,
    Injection,
    LlmCall,
    PathRule,
    Principal,
    Project,
    ProjectAlias,
)
from recall.context import CONTEXT_NOTES_MAX, Context, recall_context
from recall.feedback import give_feedback
from tests.recall.making import NOW, note, people, turn

pytestmark = pytest.mark.django_db

HARBOR = "/home/dev/src/harbor"


def context(who: Principal, cwd: str = HARBOR, session: str = "s1") -> Context:
    return recall_context(principal=who, cwd=cwd, session=session, now=NOW)


def titles(got: Context) -> list[str]:
    return [row["title"] for row in got.notes]


def test_it_puts_the_own_project_first_then_global_by_importance_then_the_newest() -> None:
    alice = people().alice
    day = timedelta(days=1)
    note(alice, "global top", project="global", importance=1.0, embedding=None)
    note(alice, "own low", project="harbor", importance=0.1, embedding=None)
    note(
        alice, "own old", project="harbor", importance=0.9, valid_from=NOW - 9 * day, embedding=None
    )
    note(alice, "own new", project="harbor", importance=0.9, valid_from=NOW - day, embedding=None)
    note(alice, "other project", project="tidepool", importance=1.0, embedding=None)
    note(alice, "no project", importance=1.0, embedding=None)
    got = context(alice)
    assert titles(got) == ["own new", "own old", "own low", "global top"]
    lines = [line for line in got.text.splitlines() if line.startswith("- ")]
    assert [line.rpartition("] ")[2] for line in lines] == titles(got)


def test_it_is_the_same_every_time_also_among_equals() -> None:
    alice = people().alice
    for n in range(20):
        note(alice, f"equal {n}", project="harbor", embedding=None)
    first = context(alice)
    assert len(first.notes) == CONTEXT_NOTES_MAX == 12
    assert all(context(alice).text == first.text for _ in range(3))


def test_it_asks_no_model_and_needs_few_queries() -> None:
    alice = people().alice
    for n in range(5):
        note(alice, f"fact number {n} about the harbor", project="harbor", embedding=None)
    with CaptureQueriesContext(connection) as ran:
        context(alice)
    asked = [one["sql"] for one in ran if not one["sql"].startswith(("SAVEPOINT", "RELEASE"))]
    assert not any("<=>" in sql for sql in asked)
    assert len(asked) <= 7, asked
    assert not LlmCall.objects.exists()


def test_it_shows_only_what_is_live_and_visible() -> None:
    cast = people()
    for who in (cast.alice, cast.bob):
        note(who, f"private of {who}", project="harbor", embedding=None)
        note(who, f"shared by {who}", project="harbor", visibility="team", embedding=None)
    note(cast.alice, "retired", project="harbor", deleted_at=NOW, embedding=None)
    note(cast.alice, "ended", project="harbor", valid_to=NOW, embedding=None)
    note(cast.alice, "not yet", project="harbor", valid_from=NOW + timedelta(1), embedding=None)
    assert set(titles(context(cast.alice))) == {
        "private of alice", "shared by alice", "shared by bob",
    }  # fmt: skip
    assert set(titles(context(cast.bob))) == {"private of bob", "shared by alice", "shared by bob"}
    assert titles(context(cast.charlie)) == []


def test_it_names_the_project_as_capture_does() -> None:
    alice = people().alice
    note(alice, "of harbor", project="harbor", embedding=None)
    harbor = Project.objects.get(name="harbor")
    ProjectAlias.objects.create(name="harbour-wt", project=harbor)
    PathRule.objects.create(prefix="/srv/boats", project=harbor)
    for cwd in (HARBOR, HARBOR + "/", "C:\\Users\\me\\harbor", "/x/harbour-wt", "/srv/boats/a/b",
                HARBOR + "/.claude/worktrees/fix-1"):  # fmt: skip
        assert titles(context(alice, cwd)) == ["of harbor"], cwd
    for cwd in ("", "/", "/srv/boatswain", "/home/harbor", "C:\\", "/x/har%bor"):
        assert titles(context(alice, cwd)) == [], cwd


def test_it_writes_a_row_with_and_without_notes() -> None:
    alice = people().alice
    empty = Injection.objects.as_pipeline().get(pk=context(alice, session="s1").injection)
    assert (empty.mode, empty.outcome, empty.note_ids) == ("context", "no_hits", [])
    one = note(alice, "of harbor", project="harbor", embedding=None)
    got = context(alice, session="s2")
    row = Injection.objects.as_pipeline().get(pk=got.injection)
    assert (row.outcome, row.note_ids, row.session) == ("injected", [one.pk], "s2")
    assert row.characters == len(got.text) and row.project is not None


def test_it_takes_a_place_that_postgres_cannot_hold() -> None:
    got = context(people().alice, cwd="/src/\x00har\ud83dbor", session="\x00\ud83d")
    assert "\x00" not in Injection.objects.as_pipeline().get(pk=got.injection).cwd


def test_it_cuts_at_whole_notes_and_counts_the_rest() -> None:
    alice = people().alice
    for n in range(12):
        note(alice, f"{n} " + "🔴 deploy " * 150, title=str(n), project="harbor", embedding=None)
    got = context(alice)
    assert len(got.text) <= 8_000 and len(got.text.encode()) <= 9_500
    assert got.omitted == 12 - len(got.notes) > 0
    assert Injection.objects.as_pipeline().get(pk=got.injection).omitted == got.omitted


def test_it_leaves_out_at_once_what_was_never_to_be_seen_again() -> None:
    cast = people()
    mine = note(cast.alice, "of harbor", project="harbor", embedding=None, visibility="team")
    give_feedback(mine.pk, "never", principal=cast.bob, now=NOW)
    assert (titles(context(cast.bob)), titles(context(cast.alice))) == ([], ["of harbor"])
    Project.objects.create(name="tidepool")
    give_feedback(mine.pk, "never", principal=cast.alice, now=NOW, project="tidepool")
    assert titles(context(cast.alice)) == ["of harbor"], "silenced elsewhere"


def test_it_gives_notes_and_no_turns() -> None:
    alice = people().alice
    turn(alice, "Only said in harbor.", project=Project.objects.create(name="harbor"))
    assert context(alice).text == ""


def test_it_says_whose_a_note_is_and_that_a_person_has_to_decide() -> None:
    cast = people()
    old = note(cast.bob, "port 5432", project="harbor", visibility="team", embedding=None)
    new = note(cast.bob, "port 5433", project="harbor", visibility="team", embedding=None)
    DedupVerdict.objects.create(
        owner=cast.bob, note=new, target=old, verdict="supersede", status="pending"
    )
    got = context(cast.alice)
    assert got.text.count("shared by bob") == got.text.count("disputed") == 2
    assert all(row["shared_by"] == "bob" for row in got.as_json()["notes"])


def test_it_puts_first_what_its_principal_pinned() -> None:
    cast = people()
    note(cast.alice, "own top", project="harbor", importance=0.9, embedding=None)
    shared = {"embedding": None, "visibility": "team"}
    low = note(cast.alice, "own low", project="harbor", importance=0.1, **shared)
    everywhere = note(cast.alice, "global low", project="global", importance=0.0, **shared)
    elsewhere = note(cast.alice, "elsewhere", project="tidepool", **shared)
    for one in (low, everywhere, elsewhere):
        pin(one.pk, by=cast.alice, now=NOW)
    assert titles(context(cast.alice)) == ["own low", "global low", "own top"]
    assert titles(context(cast.bob)) == ["own low", "global low"], "hers are not his"
    hits = Injection.objects.as_pipeline().filter(owner=cast.alice).latest("pk").hits
    assert [hit.get("pinned", False) for hit in hits] == [True, True, False]
    unpin(low.pk, by=cast.alice, now=NOW)
    assert titles(context(cast.alice)) == ["global low", "own top", "own low"]


def test_it_keeps_a_pin_through_an_edit_and_shows_no_pinned_note_that_is_gone() -> None:
    alice = people().alice
    note(alice, "The pier is closed.", project="harbor", importance=1.0, embedding=None)
    one = note(alice, "The gate is open.", project="harbor", importance=0.1, embedding=None)
    pin(one.pk, by=alice, now=NOW)
    title, content = "Gate", "The gate is open at night."
    new = edit_note(one.pk, title=title, content=content, by=alice, now=NOW)
    assert titles(context(alice)) == ["Gate", "The pier is closed."]
    retire_note(new.pk, by=alice, now=NOW)
    assert titles(context(alice)) == ["The pier is closed."]
