"""A turn by its id: what it says, what was said around it, and for whom it is there at all."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client

from memory.errors import NotFound
from recall.reader import reader
from recall.surroundings import open_turn
from tests.recall.making import NOW, client, evidence, note, people, turn

pytestmark = pytest.mark.django_db

PORT = "The staging database listens on port 5433."


def test_it_opens_a_turn_with_its_surroundings_and_the_notes_it_bears_out() -> None:
    alice = people().alice
    said = [
        turn(alice, f"{PORT} {n}", occurred_at=NOW - timedelta(minutes=60 - n)) for n in range(5)
    ]
    live = note(alice, PORT, embedding=None)
    gone = note(alice, f"{PORT} 2", embedding=None, deleted_at=NOW)
    for each in (live, gone):
        evidence(each, said[2], each.content)
    got = open_turn(said[2].pk, who=reader(alice, None), now=NOW)
    assert (got["id"], got["body"], got["role"]) == (said[2].pk, f"{PORT} 2", "user")
    assert [near["id"] for near in got["before"]] == [said[0].pk, said[1].pk]
    assert [near["id"] for near in got["after"]] == [said[3].pk, said[4].pk]
    assert got["notes"] == [{"id": str(live.pk), "title": live.title}]
    assert got["omitted"] == {} and "cut" not in got


def test_it_knows_no_turn_that_one_may_not_see() -> None:
    cast = people()
    private = turn(cast.alice, PORT)
    team = turn(cast.alice, f"{PORT} Shared.", visibility="team")
    assert open_turn(team.pk, who=reader(cast.bob, None), now=NOW)["before"] == []
    for who, item in ((cast.bob, private.pk), (cast.charlie, team.pk), (cast.alice, 10**9)):
        with pytest.raises(NotFound):
            open_turn(item, who=reader(who, None), now=NOW)


def test_it_shows_no_note_of_a_shared_turn_that_is_not_shared() -> None:
    cast = people()
    item = turn(cast.alice, PORT, visibility="common")
    evidence(note(cast.alice, PORT, embedding=None), item, PORT)
    assert open_turn(item.pk, who=reader(cast.alice, None), now=NOW)["notes"]
    assert open_turn(item.pk, who=reader(cast.charlie, None), now=NOW)["notes"] == []


@pytest.mark.parametrize("body", ["x" * 200_000, 'é"\\\n🔴' * 20_000])
@pytest.mark.parametrize("characters", [700, 8_000])
def test_it_reads_a_long_turn_page_by_page_within_its_characters(
    body: str, characters: int
) -> None:
    alice = people().alice
    item = turn(alice, body)
    after = turn(alice, "And then?", occurred_at=item.occurred_at + timedelta(seconds=1))
    who = client(alice)
    read = 0
    for _ in range(3):
        answer = who.get(f"/recall/turns/{item.pk}", {"offset": read, "characters": characters})
        told = answer.json()
        assert len(answer.content.decode()) <= characters
        assert told["body"] and body.startswith(told["body"], read)
        assert told["cut"] == told["characters"] == len(body)
        read += len(told["body"])
    assert [near["id"] for near in told["after"]] == [after.pk]
    last = who.get(f"/recall/turns/{item.pk}", {"offset": len(body) - 3}).json()
    assert last["body"] == body[-3:] and "cut" in last


def test_it_answers_404_by_the_door_for_what_is_not_there_and_for_what_is_not_ones_own() -> None:
    cast = people()
    item = turn(cast.alice, PORT)
    path = f"/recall/turns/{item.pk}"
    assert client(cast.alice).get(path).status_code == 200
    for who in (cast.bob, cast.charlie):
        answer = client(who).get(path)
        assert answer.status_code == 404 and PORT not in answer.content.decode()
    for number in ("0", str(2**63), "9" * 40):
        assert client(cast.alice).get(f"/recall/turns/{number}").status_code == 404
    assert Client().get(path).status_code == 401
    assert client(cast.alice, "capture").get(path).status_code == 403
    for wrong in ({"offset": -1}, {"offset": 2**40}, {"characters": 3}):
        assert client(cast.alice).get(path, wrong).status_code == 422
