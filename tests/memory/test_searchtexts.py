"""The index: each text once, counts as a recount gives them, and several workers at once."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection

from memory.lexical import hashed, query_terms
from memory.models import (
    Episode,
    EpisodeTurn,
    Note,
    Posting,
    RawItem,
    SearchText,
)
from memory.retire import retire, revive
from memory.searchtexts import index_items, index_notes, pending, restore, settle, withdraw
from memory.stages.segment import segment
from tests import factories
from tests.factories import T0, at, clock, three
from tests.memory.books import purge
from tests.memory.indexing import (
    by_words,
    indexed,
    kept,
    made,
    postings_are_those_of_the_texts,
    recount,
)

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
    assert settle(limit=1) == 1, "no more at once than it may"
    assert texts.get(settled=True).raw_item_id == items[0].pk, "the oldest first"
    assert indexed() == 0 and settle() == 0, "whoever indexes settles the rest"
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
def test_it_settles_each_tail_once_whoever_else_does(
    working: Callable[[Sequence[Callable[[], object]]], list[Any]],
) -> None:
    alice, _, _ = three()
    for number in range(6):
        factories.turns(alice, [f"Word {number} {n}." for n in range(8)], session=f"s{number}")
    indexed()
    segment(clock=clock(at(hours=9)))
    Episode.objects.as_pipeline().update(project=factories.project("shop"))
    tails = SearchText.objects.as_pipeline().filter(raw=True)
    assert tails.filter(settled=False).count() == 48

    def some() -> int:
        done = 0
        while count := settle(limit=3):
            done += count
        return done

    assert sum(working([some] * 3)) == 48
    assert not tails.filter(settled=False).exists()
    postings = Posting.objects.as_pipeline().filter(raw=True)
    assert not postings.filter(project__isnull=True).exists()


@pytest.mark.django_db
def test_it_takes_nothing_out_that_lives_and_puts_nothing_back_that_does_not() -> None:
    """Two who decide about one note at once: the later of them finds it as the other left it."""
    alice, _, _ = three()
    living, gone = made(alice, "harbor crane"), made(alice, "harbor berth")
    indexed()
    retire([gone.pk], reason="duplicate", now=at(days=1))
    before = kept()
    withdraw([living.pk, gone.pk])
    restore([living.pk, gone.pk])
    assert kept() == before == recount()
    assert by_words(alice, "harbor") == [living]


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
