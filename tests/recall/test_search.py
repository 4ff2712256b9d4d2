"""The two tracks: what they find, in which order, for whom; hostile queries are only words."""

from __future__ import annotations

import random
import uuid
from datetime import timedelta

import numpy as np
import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from memory.lexical import document
from memory.llm.minilm import shared
from memory.llm.ports import VECTOR_SIZE
from memory.llm.vectors import unit
from memory.models import Note, Principal
from recall.search import TRACK_DEPTH, search
from tests.recall.making import NOW, note, notes, people, unsaved

pytestmark = pytest.mark.django_db


def found(query: str, who: Principal, track: str) -> list[uuid.UUID]:
    return [pk for pk, _ in search(query, principal=who, now=NOW).ranked.get(track, [])]


def test_it_finds_by_meaning_and_by_words() -> None:
    alice = people().alice
    port = note(alice, "The staging database listens on port 5433.")
    note(alice, "Semicolons separate the columns of the export.")
    tracks = search("Which port does staging's database use?", principal=alice, now=NOW)
    assert tracks.ranked["semantic"][0][0] == tracks.ranked["keyword"][0][0] == port.pk
    assert 0.3 < tracks.ranked["semantic"][0][1] <= 1.0
    assert tracks.terms and not tracks.degraded
    assert set(tracks.milliseconds) == {"embed", "semantic", "keyword"}


def test_it_asks_for_any_of_the_words_not_for_all() -> None:
    alice = people().alice
    one = note(alice, "Deploys of harbor are frozen from Friday noon.")
    assert found("deploys quarterly budget spreadsheet archive", alice, "keyword") == [one.pk]


@pytest.mark.parametrize("query", ["適者生存", "設備", "生存等於正確嗎"])
def test_it_finds_words_of_a_script_without_spaces(query: str) -> None:
    alice = people().alice
    one = note(alice, "設備清單…即適者生存，生存等於正確")
    note(alice, "数据库端口是 5433")
    assert found(query, alice, "keyword") == [one.pk]


@pytest.mark.parametrize(
    "query",
    ["parse_config.load", "parse_config", "C:\\repo\\src\\main.py", "src/main.py", "--dry-run"],
)
def test_it_finds_identifiers_and_paths_whole_and_in_parts(query: str) -> None:
    alice = people().alice
    one = note(alice, "parse_config.load() reads C:\\repo\\src\\main.py when --dry-run is given")
    note(alice, "The retrospective moved to Thursday.")
    assert found(query, alice, "keyword") == [one.pk]


HOSTILE = [
    "ap-erp -foo", "C:\\repo\\src\\main.py", "some/path & !x | (y", "a:*b", "'''", "the of and",
    "'; DROP TABLE memory_note; --", "\\", "100% _wild_ %s %(x)s {0}", "<-> <2> !! && ||",
    '"', "$1 $$",
    "a\x01b", "🔴🔴", "", "'foo':1A,2B & 'bar'", "x" * 5_000, "\u202e\u202d", "E'\\''", "::tsquery",
]  # fmt: skip


@pytest.mark.parametrize("query", HOSTILE)
def test_it_takes_every_query_for_words(query: str) -> None:
    alice = people().alice
    one = note(alice, "The staging database listens on port 5433.")
    tracks = search(query, principal=alice, now=NOW)
    assert [pk for pk, _ in tracks.ranked["semantic"]] == [one.pk]
    assert Note.objects.visible_to(alice).count() == 1


@pytest.mark.parametrize("text", HOSTILE)
def test_it_indexes_every_text_and_finds_it_by_itself(text: str) -> None:
    alice = people().alice
    one = note(alice, f"{text} harbor", title="t")
    assert found("harbor", alice, "keyword") == [one.pk]


def test_it_sees_only_what_is_live() -> None:
    alice = people().alice
    text = "The staging database listens on port 5433."
    kept = note(alice, text)
    note(alice, text, deleted_at=NOW, retired_reason="duplicate")
    note(alice, text, valid_from=NOW + timedelta(days=1))
    note(alice, text, valid_to=NOW)
    until = note(alice, text, valid_to=NOW + timedelta(seconds=1))
    for track in ("semantic", "keyword"):
        assert set(found(text, alice, track)) == {kept.pk, until.pk}


def test_it_compares_vectors_of_one_embedder_only() -> None:
    alice = people().alice
    text = "The staging database listens on port 5433."
    other = note(alice, text, embedding_model="another-model")
    assert found(text, alice, "semantic") == []
    assert found(text, alice, "keyword") == [other.pk]


def test_it_shows_each_person_what_that_person_may_see() -> None:
    cast = people()
    text = "The staging database listens on port 5433."
    mine = note(cast.alice, text)
    ours = note(cast.alice, text, visibility="team")
    everyones = note(cast.alice, text, visibility="common")
    for track in ("semantic", "keyword"):
        assert set(found(text, cast.alice, track)) == {mine.pk, ours.pk, everyones.pk}
        assert set(found(text, cast.bob, track)) == {ours.pk, everyones.pk}
        assert set(found(text, cast.charlie, track)) == {everyones.pk}


def test_it_tells_people_apart_whose_names_begin_alike() -> None:
    alice = people().alice
    longer = Principal.objects.create(name="alice1")
    note(alice, "The staging database listens on port 5433.")
    assert found("staging database port", longer, "semantic") == []


def test_it_neither_starves_nor_leaks_beside_a_hundred_better_notes_of_another() -> None:
    cast = people()
    notes(
        cast.alice, [f"The staging database listens on port 5433, check {n}." for n in range(100)]
    )
    his = notes(cast.bob, [f"Staging has {n} spare disks in the database rack." for n in range(3)])
    for track in ("semantic", "keyword"):
        seen = found("Which port does the staging database listen on?", cast.bob, track)
        assert set(seen) == {one.pk for one in his}


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
    asked = np.array(shared().encode("which port does the staging database use"))
    with transaction.atomic(), connection.cursor() as cursor:
        # The planner would scan so small a table; this is about the index.
        cursor.execute("SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off")
        cursor.execute("SET LOCAL enable_sort = off")
        for owner in owners:
            exact = sorted(held[owner.pk], key=lambda one: -float(asked @ np.array(one[1])))
            best = {pk for pk, _ in exact[:10]}
            seen = found("which port does the staging database use", owner, "semantic")
            assert len(seen) == min(TRACK_DEPTH, len(exact))
            assert len(best & set(seen[:10])) >= len(best) - 1


def test_it_puts_no_floor_into_the_search_of_the_nearest() -> None:
    alice = people().alice
    note(alice, "Semicolons separate the columns of the export.")
    with CaptureQueriesContext(connection) as ran:
        search("Which port does staging's database use?", principal=alice, now=NOW)
    nearest = [one["sql"] for one in ran if "<=>" in one["sql"]]
    assert len(nearest) == 1
    where = nearest[0].partition("WHERE")[2].partition("ORDER BY")[0]
    assert "<=>" not in where
    assert f"LIMIT {TRACK_DEPTH}" in nearest[0]


def test_it_gives_every_note_its_words_whichever_text_they_stand_in() -> None:
    literal = document(
        ("title about harbors", "content says berths", "keyword dock", "context moor")
    )
    for word in ("harbor", "berth", "dock", "moor"):
        assert f"'{word}" in literal
