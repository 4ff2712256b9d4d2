"""A note's links: its evidence, siblings, chain and neighbours, each as far as one may see it."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from memory.errors import NotFound
from memory.models import DedupVerdict, Principal
from recall.links import open_note
from tests.recall.making import NOW, evidence, note, people, turn

pytestmark = pytest.mark.django_db


def opened(note_id: uuid.UUID, who: Principal) -> dict[str, list[dict[str, Any]]]:
    return open_note(note_id, principal=who, now=NOW)


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
