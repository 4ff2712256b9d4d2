"""How: some thousand notes with vectors of the test's own, and Postgres's plans for them."""

from __future__ import annotations

import contextlib
import random
import re
import uuid
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from memory import tracks
from memory.llm.vectors import Vector, cosine, unit
from memory.models import Note, Principal
from memory.neighbours import NEIGHBOURS_A_TRACK, older_neighbours
from tests.cluster import owner_address
from tests.factories import EMBED_MODEL, T0, at, note, three

#: Notes in the table, and how many are few there: enough that the index is worth walking, few
#: enough to be made in seconds.
NOTES, FEW = 1_500, 500

#: Dead rows with one vector, and the living ones among them.
# Why: many more than the graph looks at (HNSW_EF_SEARCH), so that it is full of the dead.
DEAD, LIVING = 1_200, 30


def vectors(count: int, seed: int) -> list[Vector]:
    chance = random.Random(seed)
    return [unit([chance.gauss(0, 1) for _ in range(768)]) for _ in range(count)]


def fill(owner: Principal, made: list[Vector], **fields: object) -> list[Note]:
    return Note.objects.bulk_create(
        [
            Note(
                id=uuid.uuid4(),
                owner=owner,
                title=f"Note {number}",
                content=f"Note {number}",
                unit_key=f"made:{number}",
                content_key=f"{number}",
                embedding=vector,
                embedding_model=EMBED_MODEL,
                valid_from=T0,
                created_at=T0 + timedelta(seconds=number),
                **fields,
            )
            for number, vector in enumerate(made)
        ]
    )


@pytest.mark.slow
def test_it_finds_the_nearest_by_the_index_and_an_owner_of_few_exactly(
    clone_db: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tracks, "EXACT_ROWS_MAX", FEW)
    alice, bob, _ = three()
    made = vectors(NOTES, seed=1)
    rows = fill(alice, made)
    few = fill(bob, vectors(20, seed=2))
    # As autovacuum would; the application's role may not.
    with psycopg.connect(owner_address(clone_db), autocommit=True) as owner:
        owner.execute("ANALYZE memory_note")
    asked = vectors(1, seed=3)[0]
    exact = sorted(zip(rows, made, strict=True), key=lambda pair: -cosine(pair[1], asked))
    for person, wanted, indexed in (
        (alice, [row for row, _ in exact[:NEIGHBOURS_A_TRACK]], True),
        (bob, few, False),
    ):
        new = note(person, "Something else entirely.", when=at(days=1), embedding=asked)
        with CaptureQueriesContext(connection) as seen:
            found = older_neighbours(new, now=at(days=2), floor=-1.0, limit=NEIGHBOURS_A_TRACK)
        sql = next(query["sql"] for query in seen if "<=>" in query["sql"])
        assert ("note_nearest" in plan(sql)) is indexed, plan(sql)
        walks = [query["sql"] for query in seen if "iterative_scan" in query["sql"]]
        assert bool(walks) is indexed and all("SET LOCAL" in sql for sql in walks)
        ids = {one.note.pk for one in found}
        assert len(ids) == NEIGHBOURS_A_TRACK
        assert len(ids & {row.pk for row in wanted}) >= NEIGHBOURS_A_TRACK - 1


def plan(sql: str) -> str:
    """How Postgres would run what it asks, without the numbers of the vector."""
    question = re.search(r"SELECT .* LIMIT \d+", sql)
    assert question, sql
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(tracks.WIDE_SCAN)
        cursor.execute(f"EXPLAIN {question.group()}")
        return "\n".join(re.sub(r"'\[[^']*'", "VECTOR", line) for (line,) in cursor.fetchall())


@pytest.mark.django_db
def test_it_drops_what_is_below_the_floor_after_the_search() -> None:
    alice, _, _ = three()
    note(alice, "onions garlic thyme")
    near = note(alice, "ports servers staging")
    new = note(alice, "ports servers production", when=at(days=1))
    found = older_neighbours(new, now=at(days=2), floor=0.5, limit=9)
    assert [one.note for one in found] == [near]
    assert found[0].similarity == pytest.approx(2 / 3, abs=1e-3)


@pytest.mark.django_db
def test_it_takes_by_turns_the_nearest_and_those_found_by_words() -> None:
    alice, _, _ = three()
    asked, near, far = unit([1.0, 0.0]), unit([1.0, 0.2]), unit([0.1, 1.0])

    def made(text: str, vector: Vector, **fields: Any) -> Note:
        return note(alice, text, embedding=[*vector, *[0.0] * 766], **fields)

    for number in range(5):
        made(f"something near {number}", near)
    words = [made(f"zanzibar kubel {number}", far) for number in range(2)]
    other = made("zanzibar kubel", far, embedding_model="another")
    new = made("zanzibar kubel", asked, when=at(days=1))
    found = older_neighbours(new, now=at(days=2), floor=0.5, limit=3)
    assert sum(one.lexical is not None for one in found) == 1, "one of the best three is by words"
    found = older_neighbours(new, now=at(days=2), floor=0.5, limit=10)
    similar = {one.note.pk: one.similarity for one in found}
    for one in words:
        assert similar[one.pk] == pytest.approx(cosine(asked, far), abs=1e-3)
    assert similar[other.pk] is None and len(found) == 8


@pytest.mark.django_db
def test_it_shows_no_younger_retired_or_future_note() -> None:
    alice, _, _ = three()
    text = "ports servers staging"
    new = note(alice, text, when=at(days=1))
    note(alice, text, when=at(days=1), created_at=at(days=2))
    note(alice, text, deleted_at=at(60))
    note(alice, text, valid_to=at(60))
    note(alice, text, when=at(days=9), created_at=at(1))
    assert older_neighbours(new, now=at(days=3), floor=0.1, limit=9) == []


@pytest.mark.django_db
def test_it_does_without_a_note_that_is_retired_while_it_looks() -> None:
    alice, _, _ = three()
    gone, stays = (note(alice, f"ports servers staging {word}") for word in ("one", "two"))
    new = note(alice, "ports servers staging", when=at(days=1))

    def retires(execute: Callable[..., Any], sql: str, *rest: Any) -> Any:
        """As another worker would, between the search and the reading of what it found."""
        answer = execute(sql, *rest)
        if "<=>" in sql:
            Note.objects.as_pipeline().filter(pk=gone.pk).update(deleted_at=at(days=1))
        return answer

    with connection.execute_wrapper(retires):
        found = older_neighbours(new, now=at(days=2), floor=0.1, limit=9)
    assert [one.note for one in found] == [stays]


@pytest.mark.django_db
def test_it_is_the_same_every_time() -> None:
    alice, _, _ = three()
    for number in range(6):
        note(alice, "ports servers staging", when=at(number))
    new = note(alice, "ports servers staging", when=at(days=1))
    first, second = (older_neighbours(new, now=at(days=3), floor=0, limit=4) for _ in range(2))
    assert [one.note.pk for one in first] == [one.note.pk for one in second]


@pytest.mark.django_db
def test_it_puts_no_floor_into_the_search_for_the_nearest() -> None:
    alice, _, _ = three()
    note(alice, "ports servers staging")
    new = note(alice, "ports servers production", when=at(days=1))
    with CaptureQueriesContext(connection) as seen:
        older_neighbours(new, now=at(days=2), floor=0.5, limit=9)
    nearest = next(query["sql"] for query in seen if "<=>" in query["sql"])
    where = nearest.split("WHERE", 1)[1].split("ORDER BY")[0]
    assert "<=>" not in where and f"LIMIT {NEIGHBOURS_A_TRACK}" in nearest


class Undone(Exception):
    """Rolls the dead back."""


@pytest.mark.slow
def test_it_loses_none_of_many_alike_among_the_dead(clone_db: str) -> None:
    """Inserts that were rolled back stay in the graph until a vacuum: whoever walks it from one to
    the next sees them all and the living not."""
    alice, _, _ = three()
    same = vectors(1, seed=4)[0]
    with contextlib.suppress(Undone), transaction.atomic():
        fill(alice, [same] * DEAD)
        raise Undone
    alive = fill(alice, [same] * LIVING)
    pool = Note.objects.visible_to(alice).live(at(days=9))
    for _ in range(3):
        found = tracks.nearest(pool, same, EMBED_MODEL, depth=DEAD)
        assert [key for key, _ in found] == sorted(row.pk for row in alive)
        assert all(near == pytest.approx(1.0, abs=1e-3) for _, near in found)
    new = note(alice, "Something else entirely.", when=at(days=1), embedding=same)
    near = older_neighbours(new, now=at(days=2), floor=0.9, limit=LIVING)
    assert len(near) == NEIGHBOURS_A_TRACK
