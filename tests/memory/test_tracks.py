"""The tracks and the index below: which way they take, what they find, whether counts are true."""

from __future__ import annotations

import random
import re
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import numpy as np
import psycopg
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from memory import tracks
from memory.access import principal
from memory.lexical import hashed, query_terms
from memory.models import (
    Collection,
    EpisodeTurn,
    Note,
    Posting,
    Principal,
    RawItem,
    SearchText,
    Term,
    TurnVector,
)
from memory.retire import retire, revive
from memory.searchtexts import index_all, index_items, index_notes, pending, settle
from memory.stages.segment import segment
from memory.tracks import asked, few, heaviest, nearest, notes_of
from tests import factories
from tests.bench.load import Writing, add_notes, add_turns, analyze, without
from tests.cluster import owner_address
from tests.factories import EMBED_MODEL, T0, at, clock, three
from tests.hashing_embedder import vector_of
from tests.memory.books import purge
from tests.recall.making import NOW

#: More notes and turns than are compared one by one.
MANY = tracks.EXACT_ROWS_MAX + 500


def made(owner: Principal, content: str, **fields: Any) -> Note:
    """A live note as distill and embed leave it, not indexed yet."""
    given: dict[str, Any] = {
        "id": uuid.uuid4(),
        "owner": owner,
        "title": "",
        "content": content,
        "unit_key": "made",
        "content_key": content[:80],
        "embedding": vector_of(content),
        "embedding_model": EMBED_MODEL,
        "valid_from": T0,
        "created_at": T0,
    }
    return Note.objects.create(**given | fields)


def indexed() -> int:
    return index_all(over=lambda: False)


def by_words(owner: Principal, text: str, **options: Any) -> list[Note]:
    """The notes that the lexical track finds, best first."""
    terms = [hashed(term) for term in query_terms(text)]
    mine = {False: asked(owner, terms)[False]}
    found = [text for text, _ in heaviest(owner, mine, depth=50, **options)[False]]
    keys = notes_of(found)
    rows = Note.objects.as_pipeline().in_bulk(list(keys.values()))
    return [rows[keys[text]] for text in found]


def kept() -> tuple[dict[Any, Any], dict[Any, int]]:
    """The statistics as they are kept: collections, and terms that some text holds."""
    collections = {
        (row.owner_id, row.raw): (row.texts, row.length)
        for row in Collection.objects.all()
        if row.texts or row.length
    }
    terms = {(row.owner_id, row.raw, row.term): row.texts for row in Term.objects.all()}
    return collections, {key: texts for key, texts in terms.items() if texts}


def recount() -> tuple[dict[Any, Any], dict[Any, int]]:
    """The same, counted from the texts that are there: of notes those that live, and none that has
    no word, which no question can find."""
    collections: dict[Any, Any] = {}
    holding: Counter[Any] = Counter()
    living = set(Note.objects.as_pipeline().filter(deleted_at__isnull=True).values_list("pk"))
    for row in SearchText.objects.as_pipeline():
        if not row.length or (not row.raw and (row.note_id,) not in living):
            continue
        key = (row.owner_id, row.raw)
        texts, length = collections.get(key, (0, 0))
        collections[key] = (texts + 1, length + row.length)
        names = np.frombuffer(bytes(row.terms), dtype="<i8")
        counts = np.frombuffer(bytes(row.counts), dtype="<u2")
        holding.update((*key, int(name)) for name in names[counts > 0])
    return collections, dict(holding)


def postings_are_those_of_the_texts() -> None:
    rows = Posting.objects.as_pipeline().values_list("text_id", "term")
    expected = set()
    for text in SearchText.objects.as_pipeline():
        names = np.frombuffer(bytes(text.terms), dtype="<i8")
        counts = np.frombuffer(bytes(text.counts), dtype="<u2")
        expected |= {(text.pk, int(name)) for name in names[counts > 0]}
    assert set(rows) == expected


# The ways


@pytest.fixture
def large(clone_db: str) -> tuple[Principal, Principal, Writing]:
    """An owner of many notes and turns, and another of a few."""
    alice, bob = principal("alice"), principal("bob")
    writing = Writing(3)
    address = owner_address(clone_db)
    with without(address, "note_nearest", "turn_nearest"):
        add_notes(address, alice.pk, EMBED_MODEL, writing.texts(MANY), writing.vectors(MANY))
        add_turns(address, alice.pk, EMBED_MODEL, writing.texts(MANY), writing.vectors(MANY))
        add_notes(
            address, bob.pk, EMBED_MODEL, writing.texts(20), writing.vectors(20), first=MANY, seed=5
        )
    indexed()
    analyze(address, "memory_note", "memory_turnvector", "memory_searchtext", "memory_posting")
    return alice, bob, writing


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
def test_it_takes_the_graph_for_many_and_compares_few(
    large: tuple[Principal, Principal, Writing], clone_db: str
) -> None:
    alice, bob, writing = large
    vector = writing.vectors(1)[0].tolist()

    def ask(who: Principal, rows: Any) -> Callable[[], object]:
        return lambda: nearest(rows.visible_to(who), vector, EMBED_MODEL, depth=20)

    notes, texts = Note.objects, SearchText.objects.filter(raw=True)
    live = notes.as_pipeline().live(NOW)
    assert not few(live.filter(owner=alice)) and few(live.filter(owner=bob))
    assert "note_nearest" in plan(clone_db, ask(alice, live), "<=>")
    assert "turn_nearest" in plan(clone_db, ask(alice, texts), "<=>")
    assert "note_nearest" not in plan(clone_db, ask(bob, live), "<=>")
    assert "turn_nearest" not in plan(clone_db, ask(bob, texts), "<=>")


@pytest.mark.slow
def test_it_looks_texts_up_by_their_keys_whatever_the_predicates_cost(
    large: tuple[Principal, Principal, Writing], clone_db: str
) -> None:
    alice, _, writing = large
    vector = writing.vectors(1)[0].tolist()
    texts = SearchText.objects.visible_to(alice).filter(raw=True)
    # A predicate whose subquery the planner takes for dear, as recall's on silence is.
    dear = texts.exclude(
        raw_item__in=RawItem.objects.as_pipeline().filter(body="none").values("pk")
    )
    told = plan(clone_db, lambda: nearest(dear, vector, EMBED_MODEL, depth=20), "<=>")
    assert "turn_nearest" in told and "memory_searchtext_raw_item_id" in told, told
    assert "Seq Scan on memory_searchtext" not in told, told


@pytest.mark.slow
def test_it_reads_postings_from_the_index_alone(
    large: tuple[Principal, Principal, Writing], clone_db: str
) -> None:
    alice, _, writing = large
    word = writing.words[0]

    def ask() -> object:
        return by_words(alice, word)

    told = plan(clone_db, ask, "memory_posting")
    assert "Index Only Scan using posting_own" in told, told
    assert "Index Only Scan using posting_shared" in told, told


@pytest.mark.slow
def test_it_finds_by_the_graph_what_comparing_finds(
    large: tuple[Principal, Principal, Writing],
) -> None:
    alice, bob, writing = large
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
def test_it_leaves_the_planner_as_it_was(large: tuple[Principal, Principal, Writing]) -> None:
    alice, _, writing = large
    nearest(
        Note.objects.visible_to(alice), writing.vectors(1)[0].tolist(), EMBED_MODEL, depth=5,
        exact=False,
    )  # fmt: skip
    with connection.cursor() as cursor:
        for name in ("enable_sort", "enable_hashjoin", "enable_mergejoin"):
            cursor.execute(f"SHOW {name}")
            assert cursor.fetchone() == ("on",)


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
    assert {row.pk for row in by_words(alice, "harbor")} == {mine.pk, team.pk, common.pk}
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
    assert by_words(alice, "harbor", project=dock.pk) == [wanted]


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


# The index


@pytest.mark.django_db
def test_it_indexes_each_text_once_however_often_it_is_asked() -> None:
    alice, _, _ = three()
    for number in range(5):
        made(alice, f"harbor fact {number}")
    factories.turns(alice, ["What about the harbor?", "It is closed."])
    assert pending() == 7 and indexed() == 7
    before = kept()
    assert indexed() == 0 == index_notes() == index_items() == pending()
    assert kept() == before == recount()
    postings_are_those_of_the_texts()


@pytest.mark.django_db
@pytest.mark.parametrize(
    "body",
    [
        "...", "-- !!! --", "\u200b\u200d", "設定を変更した。東京都", "a\ufffdb \x01\x02 c",
        "x" * 9_000, "word " * 50_000, "😀 👍🏽", "\ud7ff \U0010ffff",
    ],
)  # fmt: skip
def test_it_indexes_any_body_and_counts_it_right_in_and_out(body: str) -> None:
    alice, _, _ = three()
    row, other = made(alice, body), made(alice, "harbor")
    factories.document(alice, body)
    indexed()
    assert kept() == recount()
    for term in query_terms(body)[:3]:
        assert row in by_words(alice, term)
    retire([row.pk], reason="duplicate", now=at(days=1))
    assert kept() == recount()
    revive(row.pk)
    assert kept() == recount()
    retire([other.pk, row.pk], reason="duplicate", now=at(days=1))
    assert kept() == recount() and (alice.pk, False) not in kept()[0]


@pytest.mark.django_db
@pytest.mark.parametrize("seed", range(6))
def test_it_keeps_the_statistics_that_a_recount_gives(seed: int) -> None:
    chance = random.Random(seed)
    owners = three()
    vocabulary = ["harbor", "berth", "crane", "src/app.py", "設定", "getUserName", "!!!", ""]
    now = at(days=1)
    for number in range(40):
        owner = chance.choice(owners)
        rows = list(Note.objects.visible_to(owner).values_list("pk", flat=True))
        some = chance.sample(rows, min(len(rows), chance.randint(1, 3)))
        match chance.choice(
            ("note", "note", "turn", "index", "index", "retire", "revive", "purge")
        ):
            case "note":
                made(owner, " ".join(chance.choices(vocabulary, k=chance.randint(0, 6))))
            case "turn":
                said = " ".join(chance.choices(vocabulary, k=3)) + f" {number}"
                factories.turns(owner, [said], session=f"s{number}")
            case "index":
                indexed()
            case "retire":
                retire(some, reason="duplicate", now=now)
            case "revive":
                for key in some:
                    revive(key)
            case "purge":
                items = RawItem.objects.visible_to(owner).values_list("pk", flat=True)
                if items:
                    purge([chance.choice(list(items))])
        assert kept() == recount(), number
    indexed()
    assert kept() == recount()
    postings_are_those_of_the_texts()


@pytest.mark.django_db
def test_it_forgets_what_is_purged_with_its_postings_and_counts() -> None:
    alice, _, _ = three()
    secret, other = factories.turns(alice, ["The zanzibar berth.", "The harbor."])
    row = factories.note(alice, "The zanzibar berth.", evidence=secret)
    indexed()
    term = hashed("zanzibar")
    assert Posting.objects.as_pipeline().filter(term=term).count() == 2
    purge([secret.pk])
    assert not Posting.objects.as_pipeline().filter(term=term).exists()
    texts = SearchText.objects.as_pipeline()
    assert not texts.filter(note=row.pk).exists() and not texts.filter(raw_item=secret.pk).exists()
    assert texts.filter(raw_item=other.pk).exists()
    assert kept() == recount()
    postings_are_those_of_the_texts()


@pytest.mark.django_db
def test_it_gives_tails_the_project_of_their_episode_once_they_have_one() -> None:
    alice, _, _ = three()
    items = factories.turns(alice, ["Where is the harbor?", "Over there."])
    factories.document(alice, "A page about the harbor.")
    indexed()
    texts = SearchText.objects.as_pipeline().filter(raw_item__in=items)
    assert not texts.filter(settled=True).exists()
    assert settle() == 0, "an open tail has no episode yet"
    segment(clock=clock(at(hours=9)))
    episode = EpisodeTurn.objects.get(raw_item=items[0]).episode
    episode.project = factories.project("shop")
    episode.save(update_fields=["project"])
    assert settle() == 2 and settle() == 0
    assert set(texts.values_list("settled", "project_id")) == {(True, episode.project_id)}
    moved = Posting.objects.as_pipeline().filter(text_id__in=texts.values("pk"))
    assert set(moved.values_list("project_id", flat=True)) == {episode.project_id}
    assert kept() == recount()


# Several at once


@pytest.fixture
def working() -> Iterator[Callable[[Sequence[Callable[[], object]]], list[Any]]]:
    """Runs these at once, each in a thread with a connection of its own."""

    def run(jobs: Sequence[Callable[[], object]]) -> list[Any]:
        def alone(job: Callable[[], object]) -> Any:
            try:
                return job()
            finally:
                connection.close()

        with ThreadPoolExecutor(len(jobs)) as pool:
            return list(pool.map(alone, jobs))

    yield run


@pytest.mark.slow
@pytest.mark.usefixtures("clone_db")
def test_it_shares_the_work_among_workers(
    working: Callable[[Sequence[Callable[[], object]]], list[Any]],
) -> None:
    alice, bob, _ = three()
    chance = random.Random(4)
    words = [f"w{number}x" for number in range(50)]
    for number in range(120):
        made((alice, bob)[number % 2], " ".join(chance.choices(words, k=12)))
    for number in range(10):
        said = [" ".join(chance.choices(words, k=12)) + f" {n}" for n in range(6)]
        factories.turns((alice, bob)[number % 2], said, session=f"s{number}")

    def small() -> int:
        done = 0
        while count := index_notes(limit=7) + index_items(limit=7):
            done += count
        return done

    assert sum(working([small] * 4)) == 180
    assert pending() == 0 and SearchText.objects.as_pipeline().count() == 180
    assert kept() == recount()
    postings_are_those_of_the_texts()


@pytest.mark.slow
@pytest.mark.usefixtures("clone_db")
def test_it_counts_right_while_notes_are_retired_and_revived(
    working: Callable[[Sequence[Callable[[], object]]], list[Any]],
) -> None:
    alice, _, _ = three()
    chance = random.Random(5)
    words = [f"w{number}x" for number in range(30)]
    rows = [made(alice, " ".join(chance.choices(words, k=12))).pk for _ in range(160)]

    def index() -> None:
        while index_notes(limit=5):
            pass

    def turn(seed: int) -> Callable[[], None]:
        def work() -> None:
            own = random.Random(seed)
            for _ in range(30):
                some = own.sample(rows, 3)
                retire(some, reason="duplicate", now=T0 + timedelta(days=1))
                revive(some[0])

        return work

    working([index, index, turn(1), turn(2)])
    index()
    assert kept() == recount()
