"""Feedback: whose word holds where, that it is said once, and that `never` silences at once."""

from __future__ import annotations

import json
import uuid
from datetime import timedelta
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import DatabaseError, connection, transaction
from django.test import Client
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pgvector.django import CosineDistance

from memory.access import principal
from memory.errors import Conflict, NotFound, RefusedError
from memory.models import (
    DedupVerdict,
    Evidence,
    Feedback,
    Injection,
    Note,
    Principal,
    Project,
    ProjectAlias,
)
from memory.models.note import FEEDBACKS
from memory.querysets import Unscoped
from memory.searchtexts import index_items
from memory.tracks import WIDE_SCAN, nearest
from recall.context import recall_context
from recall.feedback import Said, feedback_of, give_feedback
from recall.feedback import given as said_by
from recall.notes import recall_notes
from recall.reader import reader
from tests.recall.making import NOW, client, evidence, note, notes, people, turn, vector

pytestmark = pytest.mark.django_db

PORT = "The staging database listens on port 5433."
ASKED = "Which port does the staging database use?"


def say(one: Note, verdict: str, who: Principal, **more: Any) -> Said:
    return give_feedback(one.pk, verdict, principal=who, now=NOW, **more)


def heard(one: Note, who: Principal) -> dict[str | None, str]:
    """What holds of a note for somebody, by place."""
    words = feedback_of([one.pk], principal=who).get(one.pk, [])
    return {word.project: word.verdict for word in words}


def wanted(one: Note, who: Principal, project: int | None = None) -> bool:
    pool = Note.objects.visible_to(who)
    kept = bool(pool.wanted_by(who, project).filter(pk=one.pk).exists())
    assert kept == (one.pk not in reader(who, project).notes_out), "two spellings, one meaning"
    return kept


def merge(verdict: str, new: Note, old: Note, status: str = "applied") -> DedupVerdict:
    return DedupVerdict.objects.create(
        owner=new.owner, note=new, target=old, verdict=verdict, status=status
    )


def test_it_lets_the_newest_word_for_a_place_count() -> None:
    alice = people().alice
    one = note(alice, PORT, project="harbor", embedding=None)
    assert say(one, "useful", alice).fresh
    say(one, "wrong", alice, project="harbor")
    assert heard(one, alice) == {None: "useful", "harbor": "wrong"}
    say(one, "outdated", alice)
    say(one, "withdrawn", alice, project="harbor")
    assert heard(one, alice) == {None: "outdated"}
    assert Feedback.objects.filter(note=one).count() == 4


def test_it_writes_no_row_for_the_same_word_said_again() -> None:
    alice = people().alice
    one = note(alice, PORT, embedding=None)
    shown = Injection.objects.create(owner=alice, mode="prompt", outcome="x", note_ids=[one.pk])
    first = say(one, "useful", alice)
    assert not say(one, "useful", alice).fresh
    # A reason and a recall are news; the same ones told once more are not.
    told: list[dict[str, Any]] = [{"reason": "It saved an hour."}, {"injection": shown.pk}]
    for more in told:
        assert say(one, "useful", alice, **more).fresh
    for more in [{}, *told]:
        assert not say(one, "useful", alice, **more).fresh
    say(one, "wrong", alice)
    again = say(one, "useful", alice)
    assert again.fresh and first.fresh and Feedback.objects.count() == 5


def test_it_takes_back_what_was_said_and_nothing_else() -> None:
    alice = people().alice
    one = note(alice, PORT, project="harbor", embedding=None)
    with pytest.raises(Conflict, match="you said nothing of note"):
        say(one, "withdrawn", alice)
    say(one, "never", alice, project="harbor")
    with pytest.raises(Conflict, match="what you said holds in harbor"):
        say(one, "withdrawn", alice)
    assert heard(one, alice) == {"harbor": "never"}
    assert say(one, "withdrawn", alice, project="harbor").fresh
    assert not say(one, "withdrawn", alice, project="harbor").fresh
    assert heard(one, alice) == {}


def test_it_hears_of_a_note_only_from_who_can_see_it_and_for_him_alone() -> None:
    cast = people()
    private = note(cast.alice, PORT, embedding=None)
    team = note(cast.alice, f"{PORT} Shared.", embedding=None, visibility="team")
    for one, who in ((private, cast.bob), (private, cast.charlie), (team, cast.charlie)):
        with pytest.raises(NotFound):
            say(one, "never", who)
    say(team, "never", cast.bob)
    assert (wanted(team, cast.bob), wanted(team, cast.alice)) == (False, True)
    assert heard(team, cast.alice) == {}


def test_it_silences_a_note_where_it_was_asked_to_until_another_word_is_said() -> None:
    alice = people().alice
    one = note(alice, PORT, project="harbor", embedding=None)
    harbor = Project.objects.get(name="harbor").pk
    quay = Project.objects.create(name="quay").pk
    say(one, "never", alice, project="quay")
    assert [wanted(one, alice, place) for place in (None, harbor, quay)] == [True, True, False]
    say(one, "never", alice)
    assert [wanted(one, alice, place) for place in (None, harbor, quay)] == [False, False, False]
    # What holds in one place is not taken back by a word for another.
    say(one, "useful", alice)
    assert [wanted(one, alice, place) for place in (None, harbor, quay)] == [True, True, False]
    say(one, "withdrawn", alice, project="quay")
    assert wanted(one, alice, quay)


@pytest.mark.parametrize(
    ("verdict", "status", "follows"),
    [
        ("duplicate", "applied", True), ("refine", "approved", True), ("refine", "undone", False),
        ("duplicate", "pending", False), ("supersede", "applied", False),
        ("distinct", "applied", False),
    ],
)  # fmt: skip
def test_it_silences_what_a_note_was_merged_into(verdict: str, status: str, follows: bool) -> None:
    alice = people().alice
    first, second, third = (note(alice, f"{PORT} {n}", embedding=None) for n in range(3))
    say(first, "never", alice)
    # The note that stays is the older one of a duplicate and the newer one of a refinement.
    for gone, kept in ((first, second), (second, third)):
        new, old = (gone, kept) if verdict == "duplicate" else (kept, gone)
        merge(verdict, new, old, status)
    assert [wanted(one, alice) for one in (first, second, third)] == [False] + [not follows] * 2
    if follows:
        # A word of its own for the note it became stands.
        say(second, "useful", alice)
        assert [wanted(one, alice) for one in (first, second, third)] == [False, True, True]


def test_it_ends_when_merges_run_in_a_circle_and_minds_verdicts_without_a_target() -> None:
    alice = people().alice
    a, b, c = (note(alice, f"{PORT} {n}", embedding=None) for n in range(3))
    merge("refine", a, b)
    merge("refine", b, a)
    DedupVerdict.objects.create(owner=alice, note=a, target=None, verdict="duplicate")
    say(a, "never", alice)
    assert [wanted(one, alice) for one in (a, b, c)] == [False, False, True]


def test_it_silences_the_turns_that_bear_a_silenced_note_out() -> None:
    alice = people().alice
    said, other = turn(alice, PORT), turn(alice, "Deploys are frozen on Friday.", session="s2")
    for item in (said, other):
        evidence(note(alice, item.body, embedding=None), item, item.body)
    one = Note.objects.visible_to(alice).get(content=PORT)
    index_items()
    assert reader(alice, None).turns_out == ()
    say(one, "never", alice)
    who = reader(alice, None)
    assert who.turns_out == (said.pk,)
    assert {row.raw_item_id for row in who.turns()} == {row.pk for row in who.items()} == {other.pk}


PLACES = (None, "harbor", "quay")
WORDS = st.lists(st.tuples(st.sampled_from(FEEDBACKS), st.sampled_from(PLACES)), max_size=12)


def test_it_agrees_with_a_dictionary_of_the_last_words() -> None:
    alice = people().alice
    places = {name: Project.objects.create(name=name).pk if name else None for name in PLACES}

    @settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
    @given(words=WORDS)
    def agree(words: list[tuple[str, str | None]]) -> None:
        one = note(alice, f"{PORT} {uuid.uuid4()}", embedding=None)
        last: dict[str | None, str] = {}
        for verdict, place in words:
            if verdict == "withdrawn" and place not in last:
                with pytest.raises(Conflict):
                    say(one, verdict, alice, project=place)
                continue
            assert say(one, verdict, alice, project=place).fresh == (last.get(place) != verdict)
            last[place] = verdict
        holds = {place: word for place, word in last.items() if word != "withdrawn"}
        assert heard(one, alice) == holds
        for name, pk in places.items():
            silent = "never" in (holds.get(None), holds.get(name))
            assert wanted(one, alice, pk) != silent

    agree()


def test_it_changes_nothing_of_the_note() -> None:
    alice = people().alice
    one = note(alice, PORT, embedding=None)
    before = Note.objects.visible_to(alice).values().get(pk=one.pk)
    for verdict in FEEDBACKS:
        say(one, verdict, alice)
    assert Note.objects.visible_to(alice).values().get(pk=one.pk) == before


def test_it_keeps_a_word_for_ever_and_no_secret_in_it() -> None:
    alice = people().alice
    one = note(alice, PORT, embedding=None)
    key = "ghp_" + "a1B2" * 9
    said = say(one, "wrong", alice, reason=f" The key is {key}\x00, see there. ")
    row = Feedback.objects.get()
    assert key not in row.reason and row.reason == said.reason and said.reason.endswith("there.")
    for change in (
        lambda: Feedback.objects.update(verdict="useful"),
        lambda: Feedback.objects.all().delete(),
    ):
        with pytest.raises(DatabaseError), transaction.atomic():
            change()
    assert Feedback.objects.get().verdict == "wrong"


def test_it_refuses_what_makes_no_sense() -> None:
    cast = people()
    one = note(cast.alice, PORT, embedding=None)
    foreign = Injection.objects.create(owner=cast.bob, mode="prompt", outcome="x")
    other = Injection.objects.create(owner=cast.alice, mode="prompt", outcome="x")
    weighed = Injection.objects.create(
        owner=cast.alice, mode="prompt", outcome="x", hits=[{"note": str(one.pk)}, {"turn": 5}]
    )
    refused: list[tuple[type[Exception], dict[str, Any]]] = [
        (NotFound, {"injection": foreign.pk}), (RefusedError, {"injection": other.pk}),
        (NotFound, {"project": "nowhere"}), (RefusedError, {"cwd": "/home/alice"}),
        (RefusedError, {"reason": "r" * 1_001}),
    ]  # fmt: skip
    for error, more in refused:
        with pytest.raises(error):
            say(one, "wrong", cast.alice, **more)
    with pytest.raises(RefusedError, match="unknown verdict"):
        say(one, "great", cast.alice)
    assert not Feedback.objects.exists()
    assert say(one, "wrong", cast.alice, injection=weighed.pk).injection == weighed.pk
    with pytest.raises(Unscoped):
        Note.objects.visible_to(cast.alice).wanted_by(None, None)


def test_it_knows_the_project_by_its_alias_and_by_its_folder() -> None:
    alice = people().alice
    one = note(alice, PORT, project="harbor", embedding=None)
    ProjectAlias.objects.create(name="hafen", project=Project.objects.get(name="harbor"))
    assert say(one, "never", alice, project="hafen").project == "harbor"
    assert not say(one, "never", alice, cwd="/src/harbor").fresh
    # A folder that nothing was captured from yet.
    assert say(one, "never", alice, cwd="/src/fresh").project == "fresh"
    assert not wanted(one, alice, Project.objects.get(name="fresh").pk)


def test_it_stays_in_the_plan_of_the_vector_index() -> None:
    alice = people().alice
    rows = notes(alice, [f"Note number {n}." for n in range(40)])
    say(rows[7], "never", alice)
    pool = Note.objects.visible_to(alice).live(NOW).wanted_by(alice, None)
    for exact in (True, False):
        found = {key for key, _ in nearest(
            pool, vector(rows[7].content), rows[7].embedding_model, depth=40, exact=exact
        )}  # fmt: skip
        assert rows[7].pk not in found and len(found) >= 30
    ranked = pool.order_by(CosineDistance("embedding", vector(PORT)), "pk").values("pk")[:5]
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(WIDE_SCAN + "SET LOCAL enable_seqscan = off")
        plan = ranked.explain()
    assert "note_nearest" in plan and "hashed SubPlan" in plan, plan


@pytest.mark.parametrize("ask", ["prompt", "context"])
def test_it_honours_never_at_once(ask: str) -> None:
    alice = people().alice
    one = note(alice, PORT, project="harbor")
    item = turn(alice, PORT)
    evidence(one, item, PORT)

    def told(cwd: str) -> str:
        if ask == "context":
            return recall_context(principal=alice, cwd=cwd, now=NOW).text
        return recall_notes(ASKED, principal=alice, cwd=cwd, now=NOW).text

    assert PORT in told("/src/harbor")
    say(one, "never", alice, project="harbor")
    assert PORT not in told("/src/harbor")
    say(one, "withdrawn", alice, project="harbor")
    assert PORT in told("/src/harbor")
    say(one, "never", alice)
    assert PORT not in told("/src/harbor")


def test_it_silences_the_turn_of_a_silenced_note_as_well() -> None:
    alice = people().alice
    one = note(alice, PORT, project="harbor")
    item = turn(alice, f"Mind you: {PORT}")
    evidence(one, item, PORT)
    index_items()

    def weighed() -> set[Any]:
        recalled = recall_notes(ASKED, principal=alice, cwd="/src/harbor", now=NOW)
        return {hit.key for hit in recalled.weighed}

    assert {one.pk, item.pk} <= weighed()
    say(one, "never", alice)
    assert not {one.pk, item.pk} & weighed()


def post(who: Client, path: str, body: Any) -> Any:
    return who.post(path, json.dumps(body), content_type="application/json")


def test_it_takes_a_word_by_the_door_from_who_the_key_stands_for() -> None:
    cast = people()
    one = note(cast.alice, PORT, project="harbor", visibility="team", embedding=None)
    path = f"/recall/notes/{one.pk}/feedback"
    body = {"verdict": "never", "cwd": "/src/harbor", "reason": "Not mine.", "principal": "alice"}
    first, second = (post(client(cast.bob), path, body) for _ in range(2))
    assert (first.status_code, second.status_code) == (201, 200)
    assert first.json() | {"fresh": False} == second.json()
    assert (first.json()["project"], first.json()["note"]) == ("harbor", str(one.pk))
    assert "no-store" in first.headers["Cache-Control"]
    assert heard(one, cast.bob) == {"harbor": "never"} and heard(one, cast.alice) == {}
    stranger = post(client(cast.charlie), path, body)
    assert stranger.status_code == 404 and PORT not in stranger.content.decode()
    assert post(Client(), path, body).status_code == 401
    assert post(client(cast.alice, "capture", "operate"), path, body).status_code == 403
    assert client(cast.alice).get(path).status_code == 405
    taken = post(client(cast.alice), path, {"verdict": "withdrawn"})
    assert taken.status_code == 409 and taken.json()["code"] == "conflict"


@pytest.mark.parametrize(
    "body",
    [
        {}, [], {"verdict": "great"}, {"verdict": 5}, {"verdict": "wrong", "injection": "x"},
        {"verdict": "wrong", "injection": 2**70}, {"verdict": "wrong", "reason": "r" * 2_000},
        {"verdict": "wrong", "project": "p" * 5_000}, {"verdict": "wrong", "cwd": "c" * 9_000},
    ],
)  # fmt: skip
def test_it_says_what_is_wrong_with_a_word(body: Any) -> None:
    alice = people().alice
    one = note(alice, PORT, embedding=None)
    answer = post(client(alice), f"/recall/notes/{one.pk}/feedback", body)
    assert answer.status_code == 422 and answer.json()["errors"]
    assert not Feedback.objects.exists()


def run(capsys: pytest.CaptureFixture[str], *args: str) -> str:
    call_command("feedback", *args)
    return capsys.readouterr().out


def test_it_takes_and_lists_words_in_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    me = principal()
    one = note(me, PORT, title="Port\nof \x1b[31mstaging", project="harbor", embedding=None)
    assert "nothing was said" in run(capsys, "list")
    out = run(capsys, "never", str(one.pk), "--project", "harbor", "--reason", "noise")
    assert "never" in out and "harbor" in out and "(noise)" in out
    listed = run(capsys, "list")
    assert "Port of [31mstaging" in listed and "\x1b" not in listed
    assert json.loads(run(capsys, "list", "--json"))["feedback"][0]["verdict"] == "never"
    with pytest.raises(CommandError, match="what you said holds in harbor"):
        run(capsys, "withdrawn", str(one.pk))
    run(capsys, "withdrawn", str(one.pk), "--project", "harbor")
    assert "nothing was said" in run(capsys, "list")


def test_it_lists_the_latest_first_and_hides_a_title_that_is_no_longer_seen() -> None:
    cast = people()
    team = note(cast.alice, PORT, visibility="team", embedding=None)
    mine = note(cast.bob, "Deploys are frozen on Friday.", embedding=None)
    for minute, one in enumerate((team, mine)):
        give_feedback(one.pk, "useful", principal=cast.bob, now=NOW + timedelta(minutes=minute))
    assert [title for _, title in said_by(cast.bob)] == [mine.title, team.title]
    cast.bob.groups.clear()
    assert [title for _, title in said_by(cast.bob)] == [mine.title, ""]


def test_it_goes_with_the_note_when_that_is_purged() -> None:
    alice = people().alice
    item = turn(alice, PORT)
    one = note(alice, PORT, embedding=None)
    evidence(one, item, PORT)
    say(one, "wrong", alice, reason="Quotes what goes.")
    with connection.cursor() as cursor:
        cursor.execute("SELECT argus_purge(%s, 'alice', 'she asked')", [[item.pk]])
    assert not Feedback.objects.exists() and not Evidence.objects.filter(raw_item=item).exists()
