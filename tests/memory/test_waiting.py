"""What waits for a stage: kept by the database, true at every moment, and all that is read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from typing import Any, get_args

import pytest
from django.db import connection

from memory.access import principal
from memory.health import waiting
from memory.intake import Incoming
from memory.making import ITEM_KINDS
from memory.models import (
    DedupVerdict,
    DistilledItem,
    Note,
    RawItem,
    SearchText,
    TurnVector,
    WaitingItem,
    WaitingNote,
)
from memory.models.record import Kind
from memory.pipeline import PIPELINE, process
from memory.purge import plan, purge
from memory.selection import Selection
from memory.tracks import EXACT_ROWS_MAX
from tests import cluster
from tests.bench.load import Writing, add_notes, add_turns, index
from tests.factories import EMBED_MODEL, FACTS, at, clock, document, end_session, items, turns
from tests.memory.breaking import look
from tests.memory.plans import nodes, plan_of

LATER = at(days=1)


def lists() -> Counter[tuple[str, str]]:
    """How many notes and raw items wait, by what for."""
    notes = WaitingNote.objects.values_list("lacks", flat=True)
    raw = WaitingItem.objects.values_list("lacks", flat=True)
    return Counter([*(("note", lacks) for lacks in notes), *(("item", lacks) for lacks in raw)])


def true() -> bool:
    """Whether what waits is what lacks something."""
    return not look("waiting", LATER)


@pytest.mark.django_db
def test_every_kind_that_is_distilled_by_itself_waits_for_it_and_no_other() -> None:
    for kind in get_args(Kind):
        said = Incoming(source="api", kind=kind, body=f"Some {kind} of ours.", session="s1")
        items(principal("alice"), said)
    waits = RawItem.objects.as_pipeline().filter(waits__lacks="distilled")
    assert set(waits.values_list("kind", flat=True)) == set(ITEM_KINDS)
    assert true()


@pytest.mark.django_db
def test_what_comes_waits_until_each_stage_did_its_part(local: Callable[..., None]) -> None:
    alice = principal("alice")
    turns(alice, FACTS)
    document(alice, "The deploy key must never be used from a laptop. " * 3)
    end_session(alice, now=at(hours=1))
    raw = RawItem.objects.as_pipeline().count()
    assert lists() == {("item", "text"): raw, ("item", "vector"): raw, ("item", "distilled"): 1}
    segment, distill, embed, dedup = (partial(verb, clock=clock(LATER)) for verb in PIPELINE)
    segment()
    assert lists() == {("item", "text"): raw, ("item", "vector"): 1, ("item", "distilled"): 1}
    distill()
    notes = Note.objects.as_pipeline().count()
    assert notes and lists() == {
        ("item", "text"): raw, ("item", "vector"): 1,
        ("note", "text"): notes, ("note", "verdict"): notes,
    }  # fmt: skip
    assert waiting(LATER)["dedup"].units == 0, "a note without a vector waits for embed"
    embed()
    assert lists() == {("note", "verdict"): notes}
    assert waiting(LATER)["dedup"].units == notes and true()
    dedup()
    assert not lists() and true()
    assert waiting(LATER)["dedup"].units == 0


@pytest.mark.django_db
@pytest.mark.parametrize(
    "made, waits",
    [
        (SearchText, {("note", "text"), ("item", "text")}),
        (TurnVector, {("item", "vector")}),
        (DistilledItem, {("item", "distilled")}),
    ],
)
def test_what_loses_its_row_waits_again(
    made: Any, waits: set[tuple[str, str]], local: Callable[..., None]
) -> None:
    alice = principal("alice")
    turns(alice, FACTS)
    document(alice, "The deploy key must never be used from a laptop. " * 3)
    end_session(alice, now=at(hours=1))
    process(clock=clock(LATER))
    assert not lists()
    rows = made.objects.as_pipeline() if made is SearchText else made.objects.all()
    assert rows.count() == rows.delete()[0]
    assert set(lists()) == waits and true()
    process(clock=clock(LATER))
    assert not lists() and true()


def test_a_purge_leaves_nothing_waiting_of_what_went_and_what_lost_a_turn_is_done_again(
    clone_db: str, local: Callable[..., None]
) -> None:
    alice = principal("alice")
    turns(alice, FACTS)
    end_session(alice, now=at(hours=1))
    turns(alice, ["The crane in the harbour is repaired on Mondays, that is settled."], session="b")
    process(clock=clock(LATER))
    gone = RawItem.objects.as_pipeline().filter(session="s1").order_by("pk")[1]
    asked = Selection(raw=(gone.pk,))
    purge(plan(asked, by=alice), by=alice, reason="asked to", now=LATER)
    assert true()
    process(clock=clock(LATER + timedelta(days=1)))
    assert not lists() and true()
    purge(plan(Selection(owner="alice"), by=alice), by=alice, reason="all", now=LATER)
    assert not lists() and true()


# Reads.

#: Rows that may be read without a word about which.
FEW = 500

#: Tables that only grow.
GROWING = {
    "memory_note", "memory_rawitem", "memory_searchtext", "memory_turnvector",
    "memory_dedupverdict", "memory_distilleditem", "memory_episodeturn",
}  # fmt: skip


@pytest.fixture
def full(clone_db: str, local: Callable[..., None]) -> Iterator[int]:
    """More notes and turns than are compared one by one, and nothing left to do about them; how
    many of each."""
    many, address = EXACT_ROWS_MAX + 400, cluster.owner_address(clone_db)
    alice, writing, model = principal("alice"), Writing(), EMBED_MODEL
    add_notes(address, alice.pk, model, writing.texts(many), writing.vectors(many))
    add_turns(address, alice.pk, model, writing.texts(many), writing.vectors(many))
    index()
    DedupVerdict.objects.bulk_create(
        DedupVerdict(owner=alice, note_id=pk, verdict="distinct", status="applied")
        for pk in Note.objects.as_pipeline().values_list("pk", flat=True)
    )
    SearchText.objects.as_pipeline().update(settled=True)
    with connection.cursor() as cursor:
        cursor.execute("SELECT argus_analyze()")
    yield many


@contextmanager
def explained() -> Iterator[dict[str, list[str]]]:
    """Statement -> tables of GROWING that its plan goes through from one end to the other."""
    through: dict[str, list[str]] = {}

    def wrap(execute: Any, statement: str, params: Any, many: bool, context: Any) -> Any:
        first = statement.lstrip().partition(" ")[0].rstrip()
        # Neighbours: whether they are few enough to be compared, and comparing those.
        bounded = f"LIMIT {EXACT_ROWS_MAX + 1}" in statement or "<=>" in statement
        if not many and not bounded and first in ("SELECT", "WITH", "DELETE"):
            with connection.connection.cursor() as cursor:
                through[statement] = [
                    node["Relation Name"]
                    for node in nodes(plan_of(cursor, statement, params))
                    if node.get("Relation Name") in GROWING
                    and not {"Index Cond", "Order By", "TID Cond"} & set(node)
                    and node["Plan Rows"] > FEW
                ]
        return execute(statement, params, many, context)

    with connection.execute_wrapper(wrap):
        yield through


def test_no_stage_reads_all_there_is_to_find_the_little_that_waits(full: int) -> None:
    alice = principal("alice")
    turns(alice, FACTS)
    document(alice, "The deploy key must never be used from a laptop. " * 3)
    end_session(alice, now=at(hours=1))
    with explained() as through:
        process(clock=clock(LATER))
        assert all(waiting(LATER)[verb.__name__].units == 0 for verb in PIPELINE)
    assert not lists() and len(through) > 40
    assert {one: tables for one, tables in through.items() if tables} == {}
    # As it was found before: the test would see it.
    with explained() as through, connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM memory_note n WHERE NOT EXISTS"
            " (SELECT FROM memory_dedupverdict v WHERE v.note_id = n.id)"
        )
    assert {table for tables in through.values() for table in tables} >= {"memory_note"}
