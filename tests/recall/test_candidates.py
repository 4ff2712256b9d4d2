"""Candidates out of the database: whose, with which neighbours, and what is known of each."""

from __future__ import annotations

import math
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from memory.llm.minilm import shared
from memory.models import Note, Principal, RawItem, SearchText
from memory.querysets import OwnedQuerySet, Unscoped
from memory.searchtexts import index_items
from memory.tracks import literal
from recall.candidates import AROUND_TURNS, NOTE_FACTS, TURN_FACTS, notes, turns
from tests.recall.making import NOW, note, people, said, turn, vector

pytestmark = pytest.mark.django_db

PORT = "The staging database listens on port 5433."
MODEL = shared().name


def raws(who: Principal) -> OwnedQuerySet:
    return SearchText.objects.visible_to(who).filter(raw=True)


def dialogue(owner: Principal, count: int, **fields: Any) -> list[RawItem]:
    at = NOW - timedelta(days=3)
    return [
        said(owner, f"Turn number {n}.", occurred_at=at + timedelta(minutes=n), **fields)
        for n in range(count)
    ]


def text_of(item: RawItem) -> int:
    found: int = SearchText.objects.as_pipeline().get(raw_item=item).pk
    return found


def test_it_brings_the_turns_around_a_candidate() -> None:
    alice = people().alice
    items = dialogue(alice, 9, session="s")
    said(alice, "Elsewhere.", session="other")
    got = turns(raws(alice), texts=[text_of(items[4])], vector="", model=MODEL)
    expected = {text_of(items[n]) for n in range(4 - AROUND_TURNS, 5 + AROUND_TURNS)}
    assert {row.text for row in got.rows} == expected == set(got.told)
    ends = turns(raws(alice), texts=[text_of(items[0]), text_of(items[8])], vector="", model=MODEL)
    expected = {text_of(items[n]) for n in range(9) if min(n, 8 - n) <= AROUND_TURNS}
    assert {row.text for row in ends.rows} == expected


def test_it_brings_no_neighbour_out_of_another_pool() -> None:
    cast = people()
    first, shown, last = dialogue(cast.alice, 3, session="s")
    seen = said(
        cast.alice, PORT, session="s", visibility="common",
        occurred_at=shown.occurred_at + timedelta(seconds=1),
    )  # fmt: skip
    got = turns(raws(cast.charlie), texts=[text_of(seen)], vector="", model=MODEL)
    assert [row.text for row in got.rows] == [text_of(seen)]
    hidden = turns(
        raws(cast.charlie), texts=[text_of(one) for one in (first, last)], vector="", model=MODEL
    )
    assert hidden.rows == []


def test_it_tells_the_cosine_of_the_same_model_alone() -> None:
    alice = people().alice
    item, bare = said(alice, PORT), turn(alice, "No vector yet.", session="s2")
    one, other = note(alice, PORT), note(alice, PORT, embedding_model="another")
    asked = literal(vector(PORT))
    index_items()
    got = turns(raws(alice), texts=[text_of(item), text_of(bare)], vector=asked, model=MODEL)
    cosines = {row.text: row.cosine for row in got.rows}
    assert cosines[text_of(item)] == pytest.approx(1.0, abs=1e-3)
    assert math.isnan(cosines[text_of(bare)])
    pool = Note.objects.visible_to(alice).live(NOW)
    found = notes(pool, keys=[one.pk, other.pk], texts=[], vector=asked, model=MODEL)
    by_note = {found.facts(row.text)["id"]: row.cosine for row in found.rows}
    assert by_note[one.pk] == pytest.approx(1.0, abs=1e-3) and math.isnan(by_note[other.pk])


def test_it_tells_of_each_what_a_hit_needs_in_one_statement() -> None:
    alice = people().alice
    one, item = note(alice, PORT, project="harbor"), said(alice, PORT, project="harbor")
    text, pool = text_of(item), Note.objects.visible_to(alice)
    with CaptureQueriesContext(connection) as ran:
        of_notes = notes(pool, keys=[one.pk], texts=[], vector="", model=MODEL)
        of_turns = turns(raws(alice), texts=[text], vector="", model=MODEL)
    assert len(ran) == 2
    (found,) = (of_notes.facts(row.text) for row in of_notes.rows)
    spoken = of_turns.facts(text)
    assert set(NOTE_FACTS) < set(found) and set(TURN_FACTS) < set(spoken)
    assert found["id"] == one.pk and spoken["raw_item_id"] == item.pk
    assert found["project__name"] == spoken["project__name"] == "harbor"
    assert (found["at"], spoken["at"]) == (one.valid_from, item.occurred_at)


def test_it_brings_a_note_once_that_both_tracks_name() -> None:
    alice = people().alice
    one = note(alice, PORT)
    text = SearchText.objects.as_pipeline().get(note=one).pk
    pool = Note.objects.visible_to(alice)
    got = notes(pool, keys=[one.pk], texts=[text], vector="", model=MODEL)
    assert [row.text for row in got.rows] == [text]


def test_it_brings_nothing_for_nothing_and_refuses_a_pool_of_nobody() -> None:
    alice = people().alice
    note(alice, PORT)
    assert (
        notes(Note.objects.visible_to(alice), keys=[], texts=[], vector="", model=MODEL).rows == []
    )
    assert turns(raws(alice), texts=[], vector="", model=MODEL).rows == []
    with pytest.raises(Unscoped):
        notes(Note.objects.all(), keys=[], texts=[], vector="", model=MODEL)
