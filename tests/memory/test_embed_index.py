"""Embed makes the search index: without a model, once, and in the end the same whoever makes it.

How: real rows of capture, segment and distill; what the index says is compared with a count of
what it was made from.
"""

from __future__ import annotations

import uuid
from collections import Counter
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.db.models import Value
from pytest_django import DjangoDbBlocker

from argus.owner import as_owner
from memory import retire
from memory.lexical import hashed, lexemes, query_terms
from memory.models import (
    Collection,
    Note,
    Posting,
    Principal,
    RawItem,
    SearchText,
    StageRun,
    Term,
)
from memory.searchtexts import pending
from memory.stages.embed import EmbedReport, embed
from memory.stages.segment import segment
from memory.tracks import asked, heaviest
from tests import cluster
from tests.factories import at, clock, distilled, document, fresh, note, three, turns
from tests.memory import books
from tests.openai_server import EMBEDDINGS, OpenAIServer, fails

pytestmark = pytest.mark.usefixtures("local")


def run(**fields: Any) -> EmbedReport:
    return embed(**{"clock": clock(at(days=5))} | fields)


def written() -> int:
    """Notes and raw items that there are."""
    return Note.objects.as_pipeline().count() + RawItem.objects.as_pipeline().count()


def found(owner: Principal, words: str) -> dict[bool, list[int]]:
    """Search texts by source (raw or note) that the words lead to."""
    terms = [hashed(term) for term in query_terms(words)]
    best = heaviest(owner, asked(owner, terms), depth=50)
    return {raw: [text for text, _ in texts] for raw, texts in best.items()}


def check_counts() -> None:
    """The statistics are what a count of the living that hold a word says."""
    sizes: Counter[tuple[int, bool]] = Counter()
    holding: Counter[tuple[int, bool, int]] = Counter()
    retired = set(
        Note.objects.as_pipeline().filter(deleted_at__isnull=False).values_list("pk", flat=True)
    )
    for text in SearchText.objects.as_pipeline():
        if text.note_id in retired or not text.length:
            continue
        sizes[text.owner_id, text.raw] += 1
        rows = Posting.objects.as_pipeline().filter(text_id=text.pk, live=True)
        holding.update(
            (text.owner_id, text.raw, term) for term in rows.values_list("term", flat=True)
        )
    assert {(c.owner_id, c.raw): c.texts for c in Collection.objects.all() if c.texts} == sizes
    assert {(t.owner_id, t.raw, t.term): t.texts for t in Term.objects.all() if t.texts} == holding


@pytest.mark.django_db
def test_it_indexes_notes_and_raw_items_while_the_embedder_is_away(server: OpenAIServer) -> None:
    alice = three()[0]
    made = distilled(alice, books.DECIDED)
    document(alice, "The barnacle survey counts every hull in the harbor.")
    assert made and pending() == written() and not SearchText.objects.as_pipeline().exists()
    server.script(EMBEDDINGS, *[fails(503)] * 9)
    report = run()
    assert (report.indexed, report.embedded, report.turns) == (written(), 0, 0)
    assert report.transient_failures == 1 and report.pending == len(made)
    assert StageRun.objects.get(stage="embed").report["indexed"] == written()
    assert pending() == 0
    queue = found(alice, "Where is the job queue?")
    assert queue[False] and queue[True]
    assert len(found(alice, "barnacle surveys")[True]) == 1
    check_counts()


@pytest.mark.django_db
def test_it_indexes_each_thing_once() -> None:
    alice = three()[0]
    distilled(alice, books.DECIDED)
    assert run().indexed == written()
    before = list(Term.objects.order_by("pk").values_list("pk", "texts"))
    assert run().indexed == 0
    assert list(Term.objects.order_by("pk").values_list("pk", "texts")) == before
    document(alice, "One more page.")
    assert run().indexed == 1
    check_counts()


@pytest.mark.django_db
def test_it_indexes_all_whatever_the_limit_of_the_vectors_is() -> None:
    alice = three()[0]
    for n in range(4):
        document(alice, f"Page {n} of the manual.")
    report = run(limit=1)
    assert (report.indexed, report.turns) == (4, 1)


@pytest.mark.django_db
def test_it_indexes_nothing_after_its_time() -> None:
    alice = three()[0]
    document(alice, "A page of the manual.")
    assert run(until=at(days=5)).indexed == 0
    assert run(until=at(days=6)).indexed == 1


@pytest.mark.django_db
def test_it_counts_no_note_that_was_retired_before_it_was_indexed() -> None:
    alice = three()[0]
    first, *others = distilled(alice, books.DECIDED)
    retire.retire([first.pk], reason="redistilled", now=at(days=2))
    run()
    text = SearchText.objects.as_pipeline().get(note=first)
    rows = Posting.objects.as_pipeline().filter(text_id=text.pk)
    assert rows.exists() and not rows.filter(live=True).exists()
    assert text.pk not in found(alice, first.content)[False]
    assert Collection.objects.get(raw=False).texts == len(others)
    check_counts()
    retire.revive(first.pk)
    assert text.pk in found(alice, first.content)[False]
    check_counts()


@pytest.mark.django_db
def test_it_gives_an_open_tail_the_project_of_its_episode_later() -> None:
    alice = three()[0]
    said = turns(alice, ["Where is the queue?", "It is in Postgres."])
    run(clock=clock(at(2)))
    texts = SearchText.objects.as_pipeline().filter(raw_item__in=said)
    assert set(texts.values_list("settled", flat=True)) == {False}
    segment(clock=clock(at(hours=9)))
    # By now the turns are placed, by hand or by the folder they were said in.
    report = run()
    placed = {item.placed.episode.project_id for item in RawItem.objects.as_pipeline()}
    assert report.indexed == 0 and len(placed) == 1
    assert set(texts.values_list("settled", "project_id")) == {(True, placed.pop())}
    postings = Posting.objects.as_pipeline().filter(text_id__in=texts.values("pk"))
    assert set(postings.values_list("project_id")) == set(texts.values_list("project_id"))


@pytest.mark.django_db
def test_it_indexes_what_is_odd_as_well() -> None:
    alice = three()[0]
    bodies = ["?!", "数据库迁移到Postgres", "word " * 50_000, "naïve café ÜBER", "🔴" * 400]
    rows = [document(alice, body) for body in bodies]
    assert run().indexed == len(rows)
    for words, row in (("数据库", rows[1]), ("cafe uber", rows[3])):
        text = SearchText.objects.as_pipeline().get(raw_item=row)
        assert found(alice, words)[True] == [text.pk], words
    long = SearchText.objects.as_pipeline().get(raw_item=rows[2])
    assert long.length <= len(lexemes(bodies[2]))
    check_counts()
    books.purge([rows[0].pk, rows[2].pk])
    check_counts()


def test_it_indexes_what_was_there_before_the_index(
    template_db: str, django_db_blocker: DjangoDbBlocker
) -> None:
    """An upgrade makes empty tables; the next run fills them."""
    with django_db_blocker.unblock():
        name = cluster.clone("template1")
    try:
        with django_db_blocker.unblock(), cluster.using(name):
            with as_owner():
                call_command("migrate", "memory", "0002_guards", verbosity=0)
                alice = three()[0]
                state = MigrationExecutor(connection).loader.project_state(
                    [("memory", "0002_guards")]
                )
                # By the tables of then: today's capture writes columns that come later.
                page: Any = state.apps.get_model("memory", "RawItem")
                page._base_manager.create(
                    owner_id=alice.pk, source="file", kind="document", occurred_at=at(0),
                    body="A page that tells of barnacles.", sha256="1", dedup_key="1",
                )  # fmt: skip
                old: Any = state.apps.get_model("memory", "Note")
                for n, gone in enumerate((None, at(9))):
                    old._base_manager.create(
                        id=uuid.uuid4(), owner_id=alice.pk, title="Queue",
                        content=f"The queue has {n} workers.", unit_key=f"made:{n}",
                        content_key=str(n), valid_from=at(0),
                        created_at=at(1), deleted_at=gone, search=Value("'queue'"),
                    )  # fmt: skip
                call_command("migrate", verbosity=0)
            assert pending() == 3 and run().indexed == 3
            assert len(found(alice, "barnacles")[True]) == 1
            assert len(found(alice, "workers of the queue")[False]) == 1
            check_counts()
    finally:
        cluster.drop(name)


@pytest.mark.django_db
def test_it_finds_by_words_what_the_index_of_a_retired_note_left() -> None:
    alice = three()[0]
    old = note(alice, "The ferry leaves at seven from pier four.")
    new = note(alice, "The ferry leaves at eight from pier four.", when=at(days=1))
    retire.retire([old.pk], reason="superseded", now=at(days=2), valid_to=at(days=1))
    texts = dict(SearchText.objects.as_pipeline().filter(raw=False).values_list("note_id", "pk"))
    assert found(alice, "ferry pier")[False] == [texts[new.pk]]
    assert fresh(old).deleted_at is not None
    check_counts()
