"""The engine: both sources, what each track finds, for whom; hostile queries are only words."""

from __future__ import annotations

import math
import random
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from memory.llm.minilm import shared
from memory.llm.ports import VECTOR_SIZE
from memory.llm.vectors import unit
from memory.models import Note, Principal, Project, Session
from memory.searchtexts import index_notes
from recall.found import Found
from recall.search import CANDIDATES_A_TRACK, Searched, search
from tests.recall.making import NOW, evidence, note, notes, people, said, turn, unsaved

pytestmark = pytest.mark.django_db

ASKED = "Which port does the staging database use?"
PORT = "The staging database listens on port 5433."


def searched(query: str, who: Principal, **more: Any) -> Searched:
    return search(query, principal=who, now=NOW, **more)


def found(query: str, who: Principal, track: str = "", **more: Any) -> list[Any]:
    """Keys in the order of a track, or as they stand in the result."""
    hits = searched(query, who, **more).found
    if not track:
        return [hit.key for hit in hits]
    placed = [(hit.tracks[track].rank, hit.key) for hit in hits if track in hit.tracks]
    return [key for _, key in sorted(placed, key=lambda one: one[0])]


def test_it_finds_by_meaning_and_by_words() -> None:
    alice = people().alice
    port = note(alice, PORT)
    note(alice, "Semicolons separate the columns of the export.")
    got = searched(ASKED, alice)
    best = got.found[0]
    assert best.key == port.pk and best.source == "note"
    assert best.tracks["semantic"].rank == best.tracks["keyword"].rank == 1
    assert 0.3 < best.tracks["semantic"].score <= 1.0
    assert 0.0 < best.tracks["keyword"].score < 1.0, "a share of what a text could reach"
    assert set(best.words) <= set(got.question.words) and best.words
    assert got.question.words and not got.degraded
    assert {"ask", "embed", "keyword", "note", "turn"} <= set(got.milliseconds)


def test_it_finds_a_turn_of_which_no_note_was_made() -> None:
    alice = people().alice
    note(alice, "Semicolons separate the columns of the export.")
    item = said(alice, f"By the way: {PORT}")
    (hit,) = [one for one in searched(ASKED, alice).found if one.source == "turn"]
    assert hit.key == item.pk and {"semantic", "keyword"} <= set(hit.tracks)
    assert found(ASKED, alice, sources=("turn",)) == [item.pk]
    assert item.pk not in found(ASKED, alice, sources=("note",))


def test_it_finds_a_turn_by_the_turn_that_it_answers() -> None:
    alice = people().alice
    asked = said(alice, "On which port does the staging database listen?", session="s")
    answer = said(
        alice, "5433, since May.", session="s", occurred_at=asked.occurred_at + timedelta(minutes=1)
    )
    for n in range(30):
        said(alice, f"Semicolons separate column {n} of the export.", session=f"other {n}")
    hits = {hit.key: hit for hit in searched(ASKED, alice, sources=("turn",)).found}
    assert hits[answer.pk].near == asked.pk
    assert "around" in hits[answer.pk].tracks
    assert found(ASKED, alice, sources=("turn",)).index(answer.pk) < 3


def test_it_tells_for_every_hit_a_sum_that_is_its_order() -> None:
    alice = people().alice
    notes(alice, [f"The staging database listens on port 54{n}." for n in range(10, 30)])
    said(alice, PORT)
    got = searched(ASKED, alice).found
    assert len(got) == 21
    for hit in got:
        assert math.fsum(hit.features.values()) == pytest.approx(hit.order, abs=1e-9)
    for source in ("note", "turn"):
        orders = [hit.order for hit in got if hit.source == source]
        assert orders == sorted(orders, reverse=True)


def test_it_asks_for_any_of_the_words_not_for_all() -> None:
    alice = people().alice
    one = note(alice, "Deploys of harbor are frozen from Friday noon.")
    assert found("deploys quarterly budget spreadsheet archive", alice, "keyword") == [one.pk]


def test_it_scores_no_words_that_only_ask() -> None:
    alice = people().alice
    note(alice, "Which of these, and what, when and how is it?")
    assert found("Which of these is it, and how?", alice, "keyword") == []


@pytest.mark.parametrize("query", ["適者生存", "設備", "生存等於正確嗎"])
def test_it_finds_words_of_a_script_without_spaces(query: str) -> None:
    alice = people().alice
    one, item = (
        note(alice, "設備清單…即適者生存，生存等於正確"),
        said(alice, "即適者生存，設備，生存等於正確"),
    )
    note(alice, "数据库端口是 5433")
    assert found(query, alice, "keyword", sources=("note",)) == [one.pk]
    assert found(query, alice, "keyword", sources=("turn",)) == [item.pk]


@pytest.mark.parametrize("query", ["Cafe Müller", "café mueller", "CAFÉ MULLER"])
def test_it_finds_words_with_and_without_their_accents(query: str) -> None:
    alice = people().alice
    one = note(alice, "Standup is in the Café Müller.")
    assert one.pk in found(query, alice, "keyword")


@pytest.mark.parametrize(
    "query",
    ["parse_config.load", "parse_config", "C:\\repo\\src\\main.py", "src/main.py", "--dry-run"],
)
def test_it_finds_identifiers_and_paths_whole_and_in_parts(query: str) -> None:
    alice = people().alice
    text = "parse_config.load() reads C:\\repo\\src\\main.py when --dry-run is given"
    one, item = note(alice, text), said(alice, f"Seen: {text}")
    note(alice, "The retrospective moved to Thursday.")
    assert found(query, alice, "keyword", sources=("note",)) == [one.pk]
    assert found(query, alice, "keyword", sources=("turn",)) == [item.pk]


def test_it_knows_the_time_that_a_question_speaks_of() -> None:
    alice = people().alice
    may = said(alice, "We shipped the importer.", occurred_at=datetime(2026, 5, 7, 9, tzinfo=UTC))
    said(alice, "We shipped the exporter.", occurred_at=datetime(2026, 2, 7, 9, tzinfo=UTC))
    hits = {hit.key: hit for hit in searched("What did we ship in May?", alice).found}
    assert [key for key, hit in hits.items() if "time" in hit.tracks] == [may.pk]


HOSTILE = [
    "ap-erp -foo", "C:\\repo\\src\\main.py", "some/path & !x | (y", "a:*b", "'''", "the of and",
    "'; DROP TABLE memory_note; --", "\\", "100% _wild_ %s %(x)s {0}", "<-> <2> !! && ||",
    '"', "$1 $$",
    "a\x01b", "🔴🔴", "", "'foo':1A,2B & 'bar'", "x" * 5_000, "\u202e\u202d", "E'\\''", "::tsquery",
    "between March and March of the year 99999", "0000-00-00 24:61",
]  # fmt: skip


@pytest.mark.parametrize("query", HOSTILE)
def test_it_takes_every_query_for_words(query: str) -> None:
    alice = people().alice
    one, item = note(alice, PORT), said(alice, f"Mind you: {PORT}")
    if not query:
        assert searched(query, alice).found == (), "nothing is asked"
        return
    assert found(query, alice, "semantic", sources=("note",)) == [one.pk]
    assert found(query, alice, "semantic", sources=("turn",)) == [item.pk]
    assert Note.objects.visible_to(alice).count() == 1


@pytest.mark.parametrize("text", HOSTILE)
def test_it_indexes_every_text_and_finds_it_by_itself(text: str) -> None:
    alice = people().alice
    one, item = note(alice, f"{text} harbor", title="t"), said(alice, f"harbor {text}")
    assert found("harbor", alice, "keyword", sources=("note",)) == [one.pk]
    assert found("harbor", alice, "keyword", sources=("turn",)) == [item.pk]


def test_it_finds_nothing_in_nothing() -> None:
    got = searched(ASKED, people().alice)
    assert (list(got.found), dict(got.degraded)) == ([], {})


def test_it_sees_only_what_is_live() -> None:
    alice = people().alice
    kept = note(alice, PORT)
    note(alice, PORT, deleted_at=NOW, retired_reason="duplicate")
    note(alice, PORT, valid_from=NOW + timedelta(days=1))
    note(alice, PORT, valid_to=NOW)
    until = note(alice, PORT, valid_to=NOW + timedelta(seconds=1))
    assert set(found(PORT, alice)) == {kept.pk, until.pk}


def test_it_compares_vectors_of_one_embedder_only() -> None:
    alice = people().alice
    other = note(alice, PORT, embedding_model="another-model")
    assert found(PORT, alice, "semantic") == []
    assert found(PORT, alice, "keyword") == [other.pk]


def test_it_shows_each_person_what_that_person_may_see() -> None:
    cast = people()
    kinds = ("private", "team", "common")
    mine = {one: note(cast.alice, f"{PORT} Kind {one}.", visibility=one) for one in kinds}
    spoken = {one: said(cast.alice, f"{PORT} Turn {one}.", visibility=one) for one in kinds}
    for who, seen in ((cast.alice, kinds), (cast.bob, kinds[1:]), (cast.charlie, kinds[2:])):
        keys = {mine[one].pk for one in seen} | {spoken[one].pk for one in seen}
        assert set(found(PORT, who)) == keys
        for track in ("semantic", "keyword"):
            assert set(found(PORT, who, track)) == keys, track


def test_it_shows_around_a_shared_turn_none_that_is_not() -> None:
    cast = people()
    shared_ = said(cast.alice, PORT, session="s", visibility="common")
    said(
        cast.alice, "And the password is under the mat.", session="s",
        occurred_at=shared_.occurred_at + timedelta(minutes=1),
    )  # fmt: skip
    assert found(ASKED, cast.charlie) == [shared_.pk]
    assert len(found(ASKED, cast.alice)) == 2


def test_it_tells_people_apart_whose_names_begin_alike() -> None:
    alice = people().alice
    longer = Principal.objects.create(name="alice1")
    note(alice, PORT)
    said(alice, PORT)
    assert found("staging database port", longer) == []


def test_it_neither_starves_nor_leaks_beside_a_hundred_better_notes_of_another() -> None:
    cast = people()
    notes(
        cast.alice, [f"The staging database listens on port 5433, check {n}." for n in range(100)]
    )
    his = notes(cast.bob, [f"Staging has {n} spare disks in the database rack." for n in range(3)])
    for track in ("", "semantic", "keyword"):
        seen = found("Which port does the staging database listen on?", cast.bob, track)
        assert set(seen) == {one.pk for one in his}


def test_it_is_moved_by_nothing_that_somebody_else_has() -> None:
    cast = people()
    notes(cast.alice, [f"The staging database number {n} has port 54{n}." for n in range(10, 20)])
    said(cast.alice, PORT)

    def numbers(got: list[Found]) -> list[Any]:
        return [(hit.key, hit.order, hit.fused, hit.coverage, dict(hit.tracks)) for hit in got]

    before = numbers(list(searched(ASKED, cast.alice).found))
    notes(cast.charlie, [f"The staging database of {n} uses a port." for n in range(80)])
    for n in range(20):
        said(cast.charlie, f"{PORT} Number {n}.")
    assert numbers(list(searched(ASKED, cast.alice).found)) == before


def test_it_keeps_to_the_project_that_was_asked_for() -> None:
    alice = people().alice
    notes(
        alice, [f"The staging database listens on port {n}." for n in range(120)], project="harbor"
    )
    for n in range(3):
        said(alice, f"{PORT} Seen {n} times.", project="harbor")
    own = note(alice, "Tidepool has a database, too.", project="tidepool")
    ours = said(alice, "Which database does tidepool take?", project="tidepool")
    tidepool = Project.objects.get(name="tidepool").pk
    for track in ("", "semantic", "keyword"):
        assert set(found(ASKED, alice, track, project=tidepool)) == {own.pk, ours.pk}, track


def test_it_takes_a_turn_for_one_of_its_own_project_only() -> None:
    alice = people().alice
    first = said(alice, "On which port does staging listen?", session="s", project="harbor")
    said(
        alice, "On 5433.", session="s", project="tidepool",
        occurred_at=first.occurred_at + timedelta(minutes=1),
    )  # fmt: skip
    harbor = Project.objects.get(name="harbor").pk
    assert found(ASKED, alice, project=harbor) == [first.pk]


def test_it_finds_what_was_said_before_anybody_cut_it_into_episodes() -> None:
    alice = people().alice
    item = said(alice, PORT)
    assert not Session.objects.filter(owner=alice, ended_at__isnull=False).exists()
    assert found(ASKED, alice) == [item.pk]


def test_it_shows_no_note_that_is_not_indexed_yet_and_finds_it_afterwards() -> None:
    alice = people().alice
    unsaved(alice, PORT).save(force_insert=True)
    assert found(ASKED, alice) == []
    index_notes()
    assert len(found(ASKED, alice)) == 1


def test_it_finds_by_the_index_what_an_exact_scan_finds_for_owners_of_every_size() -> None:
    random_ = np.random.default_rng(7)
    sizes = [700, 200, 60, 8, 3, 1]
    owners = [Principal.objects.create(name=f"owner{n}") for n in range(len(sizes))]
    rows: list[Note] = []
    held: dict[int, list[tuple[uuid.UUID, list[float]]]] = {}
    for owner, size in zip(owners, sizes, strict=True):
        vectors = [unit(list(map(float, random_.normal(size=VECTOR_SIZE)))) for _ in range(size)]
        made = [unsaved(owner, f"n{n}", embedding=one) for n, one in enumerate(vectors)]
        rows += made
        held[owner.pk] = [(row.pk, one) for row, one in zip(made, vectors, strict=True)]
    random.Random(7).shuffle(rows)
    Note.objects.bulk_create(rows)
    while index_notes():
        pass
    asked = np.array(shared().encode(ASKED))
    with transaction.atomic():
        for owner in owners:
            exact = sorted(held[owner.pk], key=lambda one: -float(asked @ np.array(one[1])))
            best = {pk for pk, _ in exact[:10]}
            seen = found(ASKED, owner, "semantic", sources=("note",))
            assert len(seen) == min(30, len(exact))
            assert len(best & set(seen[:10])) >= len(best) - 1


def test_it_puts_no_floor_into_the_search_of_the_nearest() -> None:
    alice = people().alice
    note(alice, "Semicolons separate the columns of the export.")
    said(alice, "Semicolons separate the columns of the export.")
    with CaptureQueriesContext(connection) as ran:
        searched(ASKED, alice)
    nearest = [one["sql"] for one in ran if "ORDER BY distance" in one["sql"]]
    assert len(nearest) == 2
    for sql in nearest:
        assert "<=>" not in sql.partition("WHERE")[2].partition("ORDER BY")[0]
        assert f"LIMIT {CANDIDATES_A_TRACK}" in sql


def test_it_gives_every_note_its_words_whichever_text_they_stand_in() -> None:
    alice = people().alice
    one = note(
        alice, "content says berths", title="title about harbors", keywords=["dock"],
        context="context moor",
    )  # fmt: skip
    for word in ("harbor", "berth", "dock", "moor"):
        assert found(word, alice, "keyword") == [one.pk]


def test_it_stands_by_a_turn_that_many_notes_quote() -> None:
    alice = people().alice
    item = said(alice, f"{PORT} Deploys are frozen on Friday.")
    for text in (PORT, "Deploys are frozen on Friday."):
        evidence(note(alice, text), item, text)
    assert found(ASKED, alice, sources=("turn",)) == [item.pk]
    turn(alice, "Nobody has looked at this yet.", session="s9")
    assert found("Has nobody looked at this yet?", alice, sources=("turn",)) == [item.pk]
