"""The ledger row of a recall: what went out, what was seen, and nothing that must not be kept."""

from __future__ import annotations

import json

import pytest
from django.db import DatabaseError, connection

from memory.access import principal
from memory.models import Emission, Injection
from recall.injections import HITS_KEPT_MAX
from recall.notes import Wanted, recall_notes
from recall.query import recall_query
from recall.ranker import PARTS_SHOWN
from recall.scoring import REST
from tests.recall.making import NOW, note, notes, people, said

pytestmark = pytest.mark.django_db

ASKED = "Which port does the staging database use?"
PORT = "The staging database listens on port 5433."


def the_row(pk: int | None) -> Injection:
    found: Injection = Injection.objects.as_pipeline().get(pk=pk)
    return found


def test_it_keeps_the_best_of_each_source_and_all_that_went_out() -> None:
    alice = people().alice
    notes(alice, [f"The staging database listens on port {n}." for n in range(45)])
    for n in range(3):
        said(alice, f"{PORT} Seen {n} times.")
    got = recall_query(ASKED, principal=alice, now=NOW, limit=40, characters=100_000)
    row = the_row(got.injection)
    shown = {(hit.source, hit.key) for hit in got.hits}
    assert len(shown) == 40
    by_source = {
        source: [hit for hit in row.hits if hit["source"] == source] for source in ("note", "turn")
    }
    assert len(by_source["turn"]) == 3
    assert len(by_source["note"]) >= HITS_KEPT_MAX
    assert [hit["rank"] for hit in by_source["turn"]] == [1, 2, 3]
    sent = {str(hit.get("note") or hit["turn"]) for hit in row.hits if hit["injected"]}
    assert sent == {str(key) for _, key in shown}
    assert {*row.note_ids, *row.turn_ids} == {key for _, key in shown}


def test_it_keeps_of_a_sum_the_weightiest_parts_and_what_is_left() -> None:
    alice = people().alice
    notes(alice, [f"The staging database listens on port {n}." for n in range(12)])
    got = recall_query(ASKED, principal=alice, now=NOW)
    row = the_row(got.injection)
    orders = {str(hit.key): hit.order for hit in got.weighed}
    for hit in row.hits:
        assert len(hit["features"]) <= PARTS_SHOWN + 1
        assert sum(hit["features"].values()) == pytest.approx(orders[hit["note"]], abs=0.01)
        assert REST in hit["features"] or len(hit["features"]) <= PARTS_SHOWN
    assert len(json.dumps(row.hits)) / len(row.hits) < 1_500, "a row must not grow by the prompt"


@pytest.mark.parametrize(
    "project", ["a\x00b", "har\ud83dbor", "x" * 200, "'; DROP", "ghp_" + "a1B2" * 9]
)
def test_it_keeps_what_was_asked_for_whatever_a_client_sends(project: str) -> None:
    alice = people().alice
    note(alice, PORT, project="harbor")
    for pk in (
        recall_notes(ASKED, principal=alice, now=NOW, wanted=Wanted(project=project)).injection,
        recall_query(ASKED, principal=alice, now=NOW, project=project).injection,
    ):
        row = the_row(pk)
        assert (row.outcome, row.note_ids) == ("no_hits", [])
        kept = row.options["project"]
        assert "\x00" not in kept and "ghp_" not in kept and "\ud83d" not in kept


def test_it_keeps_what_was_asked_for_beside_the_words() -> None:
    alice = people().alice
    note(alice, PORT, project="harbor")
    wanted = Wanted(notes=2, characters=900, floor=0.01, project="harbor")
    row = the_row(recall_notes(ASKED, principal=alice, now=NOW, wanted=wanted).injection)
    asked = {name: row.options[name] for name in ("notes", "characters", "floor", "project")}
    assert asked == {"notes": 2, "characters": 900, "floor": 0.01, "project": "harbor"}
    assert row.options["reranking"]["reranked"] is False
    row = the_row(recall_query(ASKED, principal=alice, now=NOW, sources=("turn",)).injection)
    assert (row.mode, row.options["sources"]) == ("query", ["turn"])


def test_it_writes_row_and_emission_or_neither() -> None:
    alice = people().alice
    note(alice, PORT)
    with connection.cursor() as cursor:
        # Stands before the real one, and takes no emission.
        cursor.execute("CREATE TEMP TABLE memory_emission (nothing int)")
    with pytest.raises(DatabaseError):
        recall_notes(ASKED, principal=alice, now=NOW)
    assert not Injection.objects.as_pipeline().exists()


def test_it_samples_what_a_query_put_out_so_that_it_is_no_evidence_later() -> None:
    alice = people().alice
    note(alice, PORT)
    got = recall_query(ASKED, principal=alice, now=NOW)
    emitted = Emission.objects.get(owner=alice)
    assert (emitted.kind, emitted.reference) == ("recall", str(got.injection))
    assert not Emission.objects.exclude(pk=emitted.pk).exists()
    recall_query("zeppelin", principal=principal("nobody"), now=NOW)
    assert Emission.objects.count() == 1
