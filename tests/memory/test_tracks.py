"""The tracks: which way they take, what they find, and for whom."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import psycopg
import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from pytest_django import DjangoDbBlocker

from memory import tracks
from memory.access import principal
from memory.lexical import hashed
from memory.models import (
    Note,
    Principal,
    RawItem,
    SearchText,
    TurnVector,
)
from memory.retire import retire, revive
from memory.tracks import asked, few, nearest
from tests import cluster, factories
from tests.bench.load import Writing, add_notes, add_turns, analyze, without
from tests.factories import EMBED_MODEL, at, three
from tests.hashing_embedder import vector_of
from tests.memory.indexing import (
    by_words,
    indexed,
    made,
)
from tests.recall.making import NOW

#: More notes and turns than are compared one by one.
MANY = tracks.EXACT_ROWS_MAX + 500


# The ways


class Large(NamedTuple):
    """An owner of many notes and turns, and another of a few."""

    address: str
    alice: Principal
    bob: Principal
    writing: Writing


@pytest.fixture(scope="module")
def built(template_db: str, django_db_blocker: DjangoDbBlocker) -> Iterator[tuple[str, Large]]:
    """The name of a database with these two, and them; who asks leaves it as it was."""
    with django_db_blocker.unblock():
        name = cluster.clone(template_db)
        with cluster.using(name):
            made = build(cluster.address(name))
        yield name, made
        cluster.drop(name)


@pytest.fixture
def large(built: tuple[str, Large], django_db_blocker: DjangoDbBlocker) -> Iterator[Large]:
    with django_db_blocker.unblock(), cluster.using(built[0]):
        yield built[1]


def build(address: str) -> Large:
    alice, bob = principal("alice"), principal("bob")
    writing, owner = Writing(3), cluster.owner_address(address)
    with without(owner, "note_nearest", "turn_nearest"):
        add_notes(owner, alice.pk, EMBED_MODEL, writing.texts(MANY), writing.vectors(MANY))
        add_turns(owner, alice.pk, EMBED_MODEL, writing.texts(MANY), writing.vectors(MANY))
        add_notes(
            owner, bob.pk, EMBED_MODEL, writing.texts(20), writing.vectors(20), first=MANY, seed=5
        )
    indexed()
    analyze(owner, "memory_note", "memory_turnvector", "memory_searchtext", "memory_posting")
    return Large(address, alice, bob, writing)


def plan(address: str, work: Callable[[], object], mark: str) -> str:
    """How Postgres runs the statement that holds this mark, without the numbers of the vector."""
    with CaptureQueriesContext(connection) as seen:
        work()
    sql = next(query["sql"] for query in seen if mark in query["sql"])
    before, select, _ = re.split(
        r"(?s)((?:SELECT|WITH)\b.*?(?:LIMIT \d+|$))(?=;|\s*$)", sql, maxsplit=1
    )
    with psycopg.connect(address, autocommit=False) as asking:
        if before.strip():
            asking.execute(before.encode())
        rows = asking.execute(f"EXPLAIN {select}".encode()).fetchall()
    return "\n".join(re.sub(r"'\[[^']*'", "VECTOR", row[0]) for row in rows)


@pytest.mark.slow
def test_it_takes_the_graph_for_many_and_compares_few(large: Large) -> None:
    address, alice, bob, writing = large
    vector = writing.vectors(1)[0].tolist()

    def ask(who: Principal, rows: Any) -> Callable[[], object]:
        return lambda: nearest(rows.visible_to(who), vector, EMBED_MODEL, depth=20)

    notes, texts = Note.objects, SearchText.objects.filter(raw=True)
    live = notes.as_pipeline().live(NOW)
    assert not few(live.filter(owner=alice)) and few(live.filter(owner=bob))
    assert "note_nearest" in plan(address, ask(alice, live), "<=>")
    assert "turn_nearest" in plan(address, ask(alice, texts), "<=>")
    assert "note_nearest" not in plan(address, ask(bob, live), "<=>")
    assert "turn_nearest" not in plan(address, ask(bob, texts), "<=>")


@pytest.mark.slow
def test_it_looks_texts_up_by_their_keys_whatever_the_predicates_cost(large: Large) -> None:
    address, alice, _, writing = large
    vector = writing.vectors(1)[0].tolist()
    texts = SearchText.objects.visible_to(alice).filter(raw=True)
    # A predicate whose subquery the planner takes for dear, as recall's on silence is.
    dear = texts.exclude(
        raw_item__in=RawItem.objects.as_pipeline().filter(body="none").values("pk")
    )
    told = plan(address, lambda: nearest(dear, vector, EMBED_MODEL, depth=20), "<=>")
    assert "turn_nearest" in told and "memory_searchtext_raw_item_id" in told, told
    assert "Seq Scan on memory_searchtext" not in told, told


@pytest.mark.slow
def test_it_reads_postings_from_the_index_alone(large: Large) -> None:
    address, alice, _, writing = large
    word = writing.words[0]

    def ask() -> object:
        return by_words(alice, word)

    told = plan(address, ask, "memory_posting")
    assert "Index Only Scan using posting_own" in told, told
    assert "Index Only Scan using posting_common" in told, told


@pytest.mark.slow
def test_it_finds_by_the_graph_what_comparing_finds(large: Large) -> None:
    _, alice, bob, writing = large
    for rows in (Note.objects.visible_to(alice).live(NOW), SearchText.objects.visible_to(alice)):
        hits = 0
        for vector in writing.vectors(20).tolist():
            graph, exact = (
                [key for key, _ in nearest(rows, vector, EMBED_MODEL, depth=10, exact=way)]
                for way in (False, True)
            )
            hits += len(set(graph) & set(exact))
        assert hits >= 0.98 * 200
    few_of = Note.objects.visible_to(bob).live(NOW)
    vector = writing.vectors(1)[0].tolist()
    graph, exact = (
        nearest(few_of, vector, EMBED_MODEL, depth=30, exact=way) for way in (False, True)
    )
    assert len(graph) == 20 and graph == exact, "what the graph gives too few of is compared"


@pytest.mark.slow
def test_it_leaves_the_planner_as_it_was(large: Large) -> None:
    _, alice, _, writing = large
    names = ("enable_sort", "enable_hashjoin", "enable_mergejoin", "hnsw.ef_search",
             "hnsw.iterative_scan")  # fmt: skip

    def standing() -> list[str]:
        with connection.cursor() as cursor:
            return [cursor.execute(f"SHOW {name}").fetchone()[0] for name in names]

    notes, vector = Note.objects.visible_to(alice), writing.vectors(1)[0].tolist()
    # The settings of the graph are there when a connection has asked it for the first time.
    nearest(notes, vector, EMBED_MODEL, depth=5, exact=False)
    before = standing()
    nearest(notes, vector, EMBED_MODEL, depth=5, exact=False)
    assert standing() == before and before[:3] == ["on"] * 3
    with transaction.atomic():
        nearest(notes, vector, EMBED_MODEL, depth=5, exact=False)
        assert standing() == before, "inside somebody's transaction, too"


# What they find


@pytest.mark.django_db
@pytest.mark.parametrize("exact", [True, False])
def test_it_orders_equals_by_key(exact: bool) -> None:
    alice, _, _ = three()
    rows = [made(alice, "ports servers staging") for _ in range(9)]
    vector = vector_of("ports servers")
    found = nearest(Note.objects.visible_to(alice), vector, EMBED_MODEL, depth=5, exact=exact)
    assert [key for key, _ in found] == sorted(row.pk for row in rows)[:5]
    assert all(near == pytest.approx(found[0][1]) for _, near in found)


@pytest.mark.django_db
@pytest.mark.parametrize("exact", [True, False])
def test_it_compares_vectors_of_one_model_and_passes_who_has_none(exact: bool) -> None:
    alice, _, _ = three()
    row = made(alice, "ports servers")
    made(alice, "ports servers", embedding_model="another")
    made(alice, "ports servers", embedding=None, embedding_model="")
    rows = Note.objects.visible_to(alice)
    [(key, near)] = nearest(rows, vector_of("ports servers"), EMBED_MODEL, depth=5, exact=exact)
    assert key == row.pk and near == pytest.approx(1.0, abs=1e-3)
    items = factories.turns(alice, ["ports servers", "onions garlic", "thyme"])
    for item in items[:2]:
        TurnVector.objects.create(raw_item=item, model=EMBED_MODEL, embedding=vector_of(item.body))
    TurnVector.objects.create(raw_item=items[0], model="another", embedding=vector_of("thyme"))
    indexed()
    texts = SearchText.objects.visible_to(alice).filter(raw=True)
    found = nearest(texts, vector_of("ports servers"), EMBED_MODEL, depth=5, exact=exact)
    wanted = [SearchText.objects.as_pipeline().get(raw_item=item).pk for item in items[:2]]
    assert [key for key, _ in found] == wanted


@pytest.mark.django_db
def test_it_finds_what_others_show_but_counts_its_own_alone() -> None:
    alice, bob, charlie = three()
    mine = made(alice, "harbor ports")
    team = made(bob, "harbor cranes", visibility="team")
    made(bob, "harbor secrets")
    common = made(charlie, "harbor lights", visibility="common")
    made(charlie, "harbor crew", visibility="team")
    indexed()
    found = by_words(alice, "harbor", mates=[bob.pk])
    assert {row.pk for row in found} == {mine.pk, team.pk, common.pk}
    assert {row.pk for row in by_words(alice, "harbor")} == {mine.pk, common.pk}
    known = asked(alice, [hashed("harbor")])[False].known
    assert (known.texts, known.holding) == (1, (1,))
    assert by_words(principal("stranger"), "harbor") == [common]


@pytest.mark.django_db
def test_it_finds_what_is_retired_only_when_asked_about_the_past() -> None:
    alice, _, _ = three()
    old, new = made(alice, "harbor port 8080"), made(alice, "harbor port 8443")
    indexed()
    retire([old.pk], reason="superseded", now=at(days=1))
    assert by_words(alice, "harbor port") == [new]
    assert {row.pk for row in by_words(alice, "harbor port", live=False)} == {old.pk, new.pk}
    revive(old.pk)
    assert {row.pk for row in by_words(alice, "harbor port")} == {old.pk, new.pk}


@pytest.mark.django_db
def test_it_narrows_to_a_project() -> None:
    alice, _, _ = three()
    shop, dock = factories.project("shop"), factories.project("dock")
    made(alice, "harbor one", project=shop)
    wanted = made(alice, "harbor two", project=dock)
    indexed()
    assert by_words(alice, "harbor", projects=[dock.pk]) == [wanted]


@pytest.mark.django_db
def test_it_orders_by_bm25_and_reads_no_more_postings_than_it_may() -> None:
    alice, _, _ = three()
    made(alice, "harbor")
    best = made(alice, "harbor harbor berth")
    made(alice, "harbor " + "filler words about other things " * 20)
    rare = made(alice, "berth")
    indexed()
    assert by_words(alice, "harbor berth")[0] == best
    found = by_words(alice, "berth harbor", postings=1)
    assert len(found) <= 2 and (rare in found or best in found)
    assert by_words(alice, "the of and") == [] and by_words(alice, "nowhere") == []
