"""An opened note: its evidence, links, state and surroundings, each as far as one may see it."""

from __future__ import annotations

import json
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from memory import retire, verdicts
from memory.errors import NotFound, RefusedError
from memory.models import DedupVerdict, Evidence, Note, Principal, RawItem
from recall.feedback import give_feedback
from recall.links import CHAIN_VERDICTS_MAX, EXPANSIONS, open_note
from recall.reader import reader
from recall.search import Past
from tests.recall.making import NOW, client, evidence, note, people, turn

pytestmark = pytest.mark.django_db


def opened(note_id: uuid.UUID, who: Principal, *expand: str, **more: Any) -> dict[str, Any]:
    return open_note(note_id, who=reader(who, None), now=NOW, expand=expand or ("all",), **more)


def session(owner: Principal, count: int, **fields: Any) -> list[RawItem]:
    """So many turns of one session, a minute apart."""
    return [
        turn(
            owner, f"Turn number {n}.", role=("user", "assistant")[n % 2],
            occurred_at=NOW - timedelta(days=1, minutes=count - n), **fields,
        )
        for n in range(count)
    ]  # fmt: skip


def shown(links: list[dict[str, Any]]) -> set[object]:
    return {link["id"] for link in links}


def test_it_shows_the_words_that_bear_a_note_out_and_who_said_them() -> None:
    alice = people().alice
    item = turn(alice, "So: the staging database listens on port 5433. Thanks!")
    one = note(alice, "the staging database listens on port 5433.")
    evidence(one, item, "the staging database listens on port 5433.")
    (edge,) = opened(one.pk, alice)["evidence"]
    assert item.body[edge["start"] : edge["end"]] == edge["quote"]
    assert (edge["role"], edge["source"], edge["session"]) == ("user", "claude-code", "s1")


def test_it_shows_notes_of_the_same_turn_and_notes_that_mean_nearly_the_same() -> None:
    alice = people().alice
    item = turn(alice, "The staging database listens on port 5433. Deploys are frozen on Friday.")
    one = note(alice, "The staging database listens on port 5433.")
    sibling = note(alice, "Deploys are frozen on Friday.")
    near = note(alice, "Staging's database listens on port 5433 now.")
    note(alice, "Semicolons separate the columns.")
    for each in (one, sibling):
        evidence(each, item, each.content)
    links = opened(one.pk, alice)
    assert shown(links["siblings"]) == {str(sibling.pk)}
    assert shown(links["neighbours"]) == {str(near.pk)}
    similarity = links["neighbours"][0]["similarity"]
    assert isinstance(similarity, float) and 0.5 <= similarity < 1


def test_it_follows_the_chain_both_ways_through_what_was_retired() -> None:
    alice = people().alice
    chain = [
        note(alice, f"Port is 543{n}.", deleted_at=None if n == 2 else NOW, embedding=None)
        for n in range(3)
    ]
    for old, new in zip(chain, chain[1:], strict=False):
        DedupVerdict.objects.create(owner=alice, note=new, target=old, verdict="supersede")
    for one in chain:
        links = opened(one.pk, alice)["chain"]
        assert [(step["old"]["content"], step["new"]["content"]) for step in links] == [
            ("Port is 5430.", "Port is 5431."),
            ("Port is 5431.", "Port is 5432."),
        ]


def test_it_ends_when_verdicts_run_in_a_circle() -> None:
    alice = people().alice
    a, b = note(alice, "a", embedding=None), note(alice, "b", embedding=None)
    for new, old in ((a, b), (b, a)):
        DedupVerdict.objects.create(owner=alice, note=new, target=old, verdict="refine")
    assert len(opened(a.pk, alice)["chain"]) == 2


def test_it_hides_every_link_that_the_reader_may_not_see() -> None:
    cast = people()
    text = "The staging database listens on port 5433."
    item = turn(cast.alice, f"{text} Secret plans.")
    common = note(cast.alice, text, visibility="common")
    hidden = note(cast.alice, f"{text} Really.")
    for each, quote in ((common, text), (hidden, "Secret plans.")):
        evidence(each, item, quote)
    DedupVerdict.objects.create(owner=cast.alice, note=hidden, target=common, verdict="refine")
    mine, theirs = opened(common.pk, cast.alice), opened(common.pk, cast.charlie)
    for link in ("evidence", "siblings", "chain", "neighbours"):
        assert mine[link], link
        assert theirs[link] == [], link


def test_it_knows_no_note_that_one_may_not_see() -> None:
    cast = people()
    private = note(cast.alice, "a", embedding=None)
    for who, note_id in (
        (cast.bob, private.pk),
        (cast.charlie, private.pk),
        (cast.alice, uuid.uuid4()),
    ):
        with pytest.raises(NotFound):
            opened(note_id, who)


def test_it_is_short_until_more_is_asked_for() -> None:
    alice = people().alice
    one = note(alice, "Turn number 3.", embedding=None)
    evidence(one, session(alice, 7)[3], "Turn number 3.")
    short = open_note(one.pk, who=reader(alice, None), now=NOW)
    assert short["expandable"] == list(EXPANSIONS) and not {*EXPANSIONS} & set(short)
    assert "before" not in short["evidence"][0]
    chain = opened(one.pk, alice, "chain")
    assert chain["chain"] == [] and "siblings" not in chain and "before" not in chain["evidence"][0]
    assert opened(one.pk, alice)["expandable"] == []
    with pytest.raises(RefusedError, match="cannot expand everything"):
        opened(one.pk, alice, "everything")


def test_it_shows_what_was_said_around_the_evidence_and_by_whom() -> None:
    alice = people().alice
    said = session(alice, 9)
    turn(alice, "Elsewhere.", session="s2", occurred_at=said[4].occurred_at)
    turn(alice, "A document.", kind="document", occurred_at=said[4].occurred_at)
    one = note(alice, "Turn number 4.", embedding=None)
    evidence(one, said[4], "Turn number 4.")
    (edge,) = opened(one.pk, alice, "surroundings")["evidence"]
    assert [near["id"] for near in edge["before"]] == [said[n].pk for n in (1, 2, 3)]
    assert [near["id"] for near in edge["after"]] == [said[n].pk for n in (5, 6, 7)]
    assert edge["after"][0] == {
        "id": said[5].pk, "role": "assistant", "body": "Turn number 5.",
        "occurred_at": said[5].occurred_at.isoformat(),
    }  # fmt: skip


def test_it_orders_turns_of_one_instant_as_they_came() -> None:
    alice = people().alice
    said = [turn(alice, f"At once {n}.", occurred_at=NOW - timedelta(days=1)) for n in range(3)]
    one = note(alice, "At once 1.", embedding=None)
    evidence(one, said[1], "At once 1.")
    (edge,) = opened(one.pk, alice, "surroundings")["evidence"]
    around = (edge["before"][0]["body"], edge["after"][0]["body"])
    assert around == ("At once 0.", "At once 2.")


def test_it_shows_of_a_session_no_turn_that_the_reader_may_not_see() -> None:
    cast = people()
    said = session(cast.alice, 5)
    shared = turn(
        cast.alice, "This one is shared.", visibility="common", occurred_at=said[2].occurred_at
    )
    seen = turn(
        cast.alice, "And this one.", visibility="common",
        occurred_at=said[4].occurred_at + timedelta(minutes=1),
    )  # fmt: skip
    # Somebody else's session of the same name is another session.
    turn(cast.charlie, "I was here.", occurred_at=said[3].occurred_at)
    one = note(cast.alice, "This one is shared.", visibility="common", embedding=None)
    evidence(one, shared, "This one is shared.")
    (edge,) = opened(one.pk, cast.charlie, "surroundings")["evidence"]
    assert (edge["before"], [near["id"] for near in edge["after"]]) == ([], [seen.pk])
    (edge,) = opened(one.pk, cast.alice, "surroundings")["evidence"]
    assert len(edge["before"]) == 3 and len(edge["after"]) == 3


@pytest.mark.parametrize("characters", [500, 1_000, 2_500, 8_000])
def test_it_keeps_to_the_characters_it_was_given(characters: int) -> None:
    alice = people().alice
    said = session(alice, 12)
    one = note(alice, "Turn number 6.", embedding=None)
    for each in said[3:10]:
        evidence(one, each, each.body)
    long = turn(
        alice, 'He said "\\ü🔴". ' * 5_000, occurred_at=said[6].occurred_at + timedelta(seconds=1)
    )
    for n in range(30):
        old = note(alice, f"Turn number 6, in other words {n}.", embedding=None, deleted_at=NOW)
        DedupVerdict.objects.create(owner=alice, note=one, target=old, verdict="refine")
    path = f"/recall/notes/{one.pk}?expand=all&characters={characters}"
    answer = client(alice).get(path)
    assert answer.status_code == 200, answer.content
    told, written = answer.json(), len(answer.content.decode())
    core = len(json.dumps(told | {"evidence": [], "chain": []}, separators=(",", ":")))
    assert written <= max(characters, core + 100)
    kept = len(told["evidence"]) + told["omitted"].get("evidence", 0)
    assert kept == 7 and told["omitted"]["chain"] == 30 - len(told["chain"])
    near = [one for edge in told["evidence"] for one in edge.get("after", [])]
    assert all(len(turn["body"]) <= 1_000 for turn in near)
    cut = [turn for turn in near if turn["id"] == long.pk]
    assert bool(cut) == (characters == 8_000) and all(t["cut"] == len(long.body) for t in cut)


def supersede(new: Note, old: Note, verdict: str = "supersede") -> None:
    """As dedup would; some of these change a confident note."""
    row = DedupVerdict.objects.create(owner=new.owner, note=new, target=old, verdict=verdict)
    verdicts.apply(row, now=NOW - timedelta(days=1))


def test_it_points_from_a_superseded_note_to_the_one_that_holds_now() -> None:
    alice = people().alice
    chain = [
        note(alice, f"Port is 543{n}.", embedding=None, valid_from=NOW - timedelta(days=30 - n))
        for n in range(3)
    ]
    supersede(chain[1], chain[0])
    supersede(chain[2], chain[1], "refine")
    first = opened(chain[0].pk, alice)
    assert first["state"] == "superseded"
    assert (first["replaced_by"]["id"], first["replaced_by"]["content"]) == (
        str(chain[2].pk), "Port is 5432.",
    )  # fmt: skip
    second = opened(chain[1].pk, alice)
    assert (second["state"], second["replaced_by"]["id"]) == ("refined", str(chain[2].pk))
    last = opened(chain[2].pk, alice)
    assert (last["state"], last["replaced_by"]) == ("live", None)


def test_it_says_what_a_note_was_taken_for_then() -> None:
    alice = people().alice
    day = timedelta(days=1)
    old, new = (
        note(alice, f"Port is {n}.", embedding=None, valid_from=NOW - n * day,
             created_at=NOW - n * day)
        for n in (20, 10)
    )  # fmt: skip
    supersede(new, old)

    def then(one: Note, **when: datetime) -> object:
        past = Past.asked(**{"as_of": None, "known_at": None} | when, now=NOW)
        return opened(one.pk, alice, past=past)["believed"]["state"]

    assert "believed" not in opened(old.pk, alice)
    assert then(old, as_of=NOW - 15 * day) == "live"
    assert then(old, as_of=NOW - 5 * day) == "superseded"
    # Argus heard of it a day ago: what it knew before was that the old one holds.
    assert then(old, known_at=NOW - 5 * day) == "live"
    assert then(new, as_of=NOW - 15 * day) == "not_yet"
    assert then(new, known_at=NOW - 15 * day) == "unknown"
    assert then(new, as_of=datetime(1, 1, 1, tzinfo=UTC)) == "not_yet"


def test_it_shows_the_reader_his_own_feedback_alone() -> None:
    cast = people()
    one = note(cast.alice, "Port is 5433.", visibility="team", embedding=None)
    give_feedback(one.pk, "outdated", principal=cast.alice, now=NOW, reason="moved")
    (said,) = opened(one.pk, cast.alice)["feedback"]
    assert (said["verdict"], said["reason"], said["project"]) == ("outdated", "moved", None)
    assert opened(one.pk, cast.bob)["feedback"] == []


def test_it_opens_a_note_by_the_door_as_of_a_day() -> None:
    alice = people().alice
    one = note(alice, "Port is 5433.", embedding=None)
    who = client(alice)
    path = f"/recall/notes/{one.pk}"
    got = who.get(path, {"as_of": "2026-07-01", "expand": "chain, siblings"}).json()
    assert got["believed"]["as_of"] == "2026-07-01T00:00:00+00:00"
    assert got["chain"] == got["siblings"] == [] and "neighbours" not in got
    far = who.get(path, {"as_of": "0001-01-01T00:00:00+14:00", "known_at": "9999-12-31T23:59:59Z"})
    assert far.status_code == 200 and far.json()["believed"]["state"] == "not_yet"
    bad: list[dict[str, Any]] = [
        {"as_of": "yesterday"},
        {"characters": 1},
        {"characters": 10**9},
        {"expand": "x"},
    ]
    for wrong in bad:
        assert who.get(path, wrong).status_code == 422, wrong


def test_it_shows_no_evidence_twice_when_two_quotes_are_of_one_turn() -> None:
    alice = people().alice
    said = session(alice, 3)
    one = note(alice, "Turn number 1.", embedding=None)
    for quote in ("Turn", "number 1."):
        evidence(one, said[1], quote)
    assert Evidence.objects.filter(note=one).count() == 2
    first, second = opened(one.pk, alice, "surroundings")["evidence"]
    assert len(first["before"]) == 1 and "before" not in second


def test_it_says_that_a_note_was_withdrawn_for_another_reason() -> None:
    alice = people().alice
    one = note(alice, "Port is 5433.", embedding=None)
    retire.retire([one.pk], reason="redistilled", now=NOW)
    got = opened(one.pk, alice)
    assert (got["state"], got["replaced_by"]) == ("retired", None)


def test_it_reads_no_more_than_it_could_show() -> None:
    alice = people().alice
    one = note(alice, "Turn.", embedding=None)
    items = [turn(alice, f"Turn. {n}", metadata={"much": "x" * 1_000}) for n in range(60)]
    Evidence.objects.bulk_create(
        Evidence(note=one, raw_item=item, quote="Turn.", start=0, end=5, sha256="0" * 64)
        for item in items
    )
    with CaptureQueriesContext(connection) as asked:
        got = open_note(one.pk, who=reader(alice, None), now=NOW, characters=2_000)
    assert 0 < len(got["evidence"]) < 20
    assert len(got["evidence"]) + got["omitted"]["evidence"] == 60
    edges = [query["sql"] for query in asked if 'FROM "memory_evidence"' in query["sql"]]
    assert any("LIMIT" in sql for sql in edges)
    items_read = [query["sql"] for query in asked if 'FROM "memory_rawitem"' in query["sql"]]
    assert items_read and not any('"metadata"' in sql for sql in items_read)


def test_it_tells_of_a_long_chain_what_is_next_to_the_note() -> None:
    alice = people().alice
    one = note(alice, "Port is 5433.", embedding=None)
    for number in range(CHAIN_VERDICTS_MAX + 5):
        DedupVerdict.objects.create(
            owner=alice, note=one, target=one, verdict="distinct", reasoning=f"{number}"
        )
    chain = opened(one.pk, alice, "chain", characters=100_000)["chain"]
    assert len(chain) == CHAIN_VERDICTS_MAX
