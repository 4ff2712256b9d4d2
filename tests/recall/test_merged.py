"""Two projects that a person merged are one to whoever recalls, and two again when it is undone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from memory import projects
from memory.models import Note, Principal, Project
from recall.context import recall_context
from recall.feedback import feedback_of, give_feedback, given
from recall.notes import Wanted, recall_notes
from recall.query import recall_query
from recall.reader import reader
from recall.where import where
from tests.factories import verdict
from tests.recall.making import NOW, note, people, said

PORT = "The staging database of the web shop listens on port 5433."
ASKED = "On which port does the staging database listen?"
HERE = "/home/alice/src/harbor"


@pytest.fixture
def alice(db: None) -> Principal:
    return people().alice


def id_of(name: str) -> int:
    return Project.objects.get_or_create(name=name)[0].pk


def merge(alice: Principal) -> Callable[[], Any]:
    """Merge `port` into `harbor`; what takes it back."""
    old, new = id_of("port"), id_of("harbor")
    projects.merge(old, new, by=alice, now=NOW)
    return lambda: projects.unmerge(old, by=alice, now=NOW)


def test_it_answers_a_query_for_the_project_with_what_is_of_either(alice: Principal) -> None:
    one, turn = note(alice, PORT, project="port"), said(alice, ASKED, project="port")
    id_of("harbor")

    def found(name: str) -> set[Any]:
        return {hit.key for hit in recall_query(ASKED, principal=alice, now=NOW, project=name).hits}

    assert found("harbor") == set()
    back = merge(alice)
    assert found("harbor") == found("port") == {one.pk, turn.pk}
    back()
    assert found("harbor") == set() and found("port") == {one.pk, turn.pk}


def test_it_counts_a_note_of_the_merged_project_as_one_of_here(alice: Principal) -> None:
    note(alice, PORT, project="port")
    id_of("harbor")

    def boost() -> float:
        return recall_notes(ASKED, principal=alice, now=NOW, cwd=HERE).weighed[0].boost

    assert boost() == 1.0
    back = merge(alice)
    assert boost() > 1.0
    back()
    assert boost() == 1.0


def test_it_keeps_a_prompt_to_the_project_and_what_was_merged_into_it(alice: Principal) -> None:
    one = note(alice, PORT, project="port")
    wanted = Wanted(project="harbor")
    merge(alice)
    got = recall_notes(ASKED, principal=alice, now=NOW, wanted=wanted)
    assert [hit.key for hit in got.weighed] == [one.pk]


def test_it_begins_a_session_with_what_is_known_of_either(alice: Principal) -> None:
    one = note(alice, PORT, project="port")
    other = note(alice, "Harbor is written in Rust.", project="harbor")
    note(alice, "Elsewhere it rains.", project="elsewhere")

    def told(cwd: str = HERE) -> set[Any]:
        return {note["id"] for note in recall_context(principal=alice, now=NOW, cwd=cwd).notes}

    assert told() == {other.pk}
    back = merge(alice)
    assert told() == told("/home/alice/src/port") == {one.pk, other.pk}
    back()
    assert told() == {other.pk} and told("/home/alice/src/port") == {one.pk}


def test_it_asks_from_the_project_that_stays_whichever_folder_it_is(alice: Principal) -> None:
    note(alice, PORT, project="port")
    back = merge(alice)
    place = where(principal=alice, cwd="/home/alice/src/port")
    assert (place.project, place.project_id) == ("harbor", id_of("harbor"))
    assert set(place.family) == {id_of("harbor"), id_of("port")}
    assert place.named("port") == id_of("harbor")
    assert place.named_alike("harbor") == {"harbor", "port"}
    assert {"harbor", "port"} <= place.names, "either name says nothing at home"
    back()
    assert where(principal=alice, cwd="/home/alice/src/port").project == "port"


def test_what_was_silenced_in_one_is_silent_in_both_and_can_be_wanted_back_from_either(
    alice: Principal,
) -> None:
    one = note(alice, PORT, project="port")
    give_feedback(one.pk, "never", principal=alice, now=NOW, project="port")

    def silent(project: str) -> bool:
        kept = Note.objects.visible_to(alice).wanted_by(alice, id_of(project))
        out = not kept.filter(pk=one.pk).exists()
        assert out == (one.pk in reader(alice, id_of(project)).notes_out)
        return out

    assert silent("port") and not silent("harbor")
    back = merge(alice)
    assert silent("port") and silent("harbor")
    said = give_feedback(one.pk, "withdrawn", principal=alice, now=NOW, project="harbor")
    assert said.fresh
    assert not silent("port") and not silent("harbor")
    assert feedback_of([one.pk], principal=alice) == {} and given(alice) == []
    back()
    assert silent("port"), "what was said there stands there again"
    assert [held.project for held, _ in given(alice)] == ["port"]


def test_a_heir_with_a_word_of_its_own_in_either_project_stands_by_it(alice: Principal) -> None:
    one, heir = note(alice, PORT, project="port"), note(alice, f"{PORT} Still.", project="harbor")
    verdict(heir, one, "refine", status="applied")
    give_feedback(one.pk, "never", principal=alice, now=NOW, project="port")
    merge(alice)
    assert heir.pk in reader(alice, id_of("harbor")).notes_out
    give_feedback(heir.pk, "useful", principal=alice, now=NOW, project="harbor")
    assert reader(alice, id_of("port")).notes_out == (one.pk,)
