"""A question asked on purpose: both sources, floors told and not enforced, a row for every call."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.conf import LazySettings

from memory import retire
from memory.llm.remote.rerank import shared
from memory.llm.thresholds import recall_floor
from memory.models import Injection, Principal
from recall.feedback import give_feedback
from recall.models import Calibration
from recall.query import QUERY_CHARACTERS_MAX, Answered, recall_query
from recall.ranker import shipped
from tests.openai_server import RERANK, OpenAIServer, Request, Step, fails, ranks, running
from tests.recall.making import NOW, evidence, note, notes, people, said

pytestmark = pytest.mark.django_db

ASKED = "Which port does the staging database use?"
PORT = "The staging database listens on port 5433."


def ask(who: Principal, query: str = ASKED, **more: Any) -> Answered:
    return recall_query(query, principal=who, now=NOW, **more)


def keys(got: Answered) -> list[Any]:
    return [hit.key for hit in got.hits]


def the_row(got: Answered) -> Injection:
    found: Injection = Injection.objects.as_pipeline().get(pk=got.injection)
    return found


def test_it_finds_as_a_turn_what_distilling_missed() -> None:
    alice = people().alice
    note(alice, "Semicolons separate the columns of the export.")
    item = said(alice, f"By the way: {PORT}")
    got = ask(alice)
    assert keys(got)[0] == item.pk and got.hits[0].source == "turn"
    row = the_row(got)
    assert (row.mode, row.outcome, row.turn_ids) == ("query", "answered", [item.pk])
    told = got.as_json()["results"][0]
    assert (told["source"], told["id"], told["excerpt"]) == ("turn", item.pk, f"By the way: {PORT}")


def test_it_answers_with_a_note_for_the_turn_that_it_came_from() -> None:
    alice = people().alice
    item = said(alice, PORT)
    one = note(alice, PORT)
    evidence(one, item, PORT)
    got = ask(alice)
    assert keys(got) == [one.pk]
    assert got.as_json()["results"][0]["turns"] == [item.pk]


def test_it_tells_the_floors_and_enforces_none() -> None:
    alice = people().alice
    weak = note(alice, "Semicolons separate the columns of the export.")
    got = ask(alice)
    assert keys(got) == [weak.pk]
    told = got.as_json()["results"][0]
    assert told["refused"] in ("below every track's floor", "below the floor of relevance")
    row = the_row(got)
    own = recall_floor("minilm-l6-v2-int8-pad768", "english")
    assert row.floors["note"]["semantic"] == pytest.approx(own, abs=1e-4)
    assert got.as_json()["floors"] == {name: row.floors[name] for name in ("note", "turn")}
    assert row.hits[0]["injected"] and row.hits[0]["refused"]


def test_it_keeps_which_floors_and_which_ranker_were_in_force() -> None:
    alice = people().alice
    note(alice, PORT)
    assert the_row(ask(alice)).floors["ranker"] is None
    made = [
        Calibration.objects.create(
            kind=kind, embedder="minilm-l6-v2-int8-pad768", values=values, principal=alice
        )
        for kind, values in (("floors", {}), ("ranker", shipped().as_json()))
    ]
    row = the_row(ask(alice))
    assert [row.floors[kind] for kind in ("calibration", "ranker")] == [one.pk for one in made]


@pytest.mark.parametrize("source", ["note", "turn"])
def test_it_asks_one_source_alone(source: Any) -> None:
    alice = people().alice
    one, item = note(alice, PORT), said(alice, f"Mind you: {PORT}")
    assert keys(ask(alice, sources=(source,))) == [one.pk if source == "note" else item.pk]


def test_it_gives_no_more_than_was_asked_for_and_counts_the_rest() -> None:
    alice = people().alice
    notes(alice, [f"The staging database listens on port {n}." for n in range(20)])
    few = ask(alice, limit=3)
    assert (len(few.hits), few.omitted) == (3, 17)
    assert keys(few) == keys(ask(alice, limit=20, characters=100_000))[:3]


@pytest.mark.parametrize("explain", [False, True])
def test_it_gives_whole_results_in_the_characters_and_the_same_ones_explained(
    explain: bool,
) -> None:
    alice = people().alice
    notes(alice, [f"The staging database has port {n}. " + "Detail. " * 60 for n in range(10)])
    note(alice, "The staging database has a port. " + "Much. " * 1_000)
    got = ask(alice, characters=2_000)
    told = got.as_json(explain=explain)
    assert 0 < len(told["results"]) == len(got.hits) < 10
    assert len(told["results"]) + told["omitted"] == 11
    assert sum(len(one["content"]) for one in told["results"]) <= 2_000
    assert all(one["content"].endswith(("Detail.", "Much.", " ")) for one in told["results"])
    row = the_row(got)
    assert row.note_ids == keys(got), "the ledger names what went out, and nothing else"
    assert (row.omitted, row.characters > 0) == (got.omitted, True)


def test_it_says_nothing_when_nothing_fits() -> None:
    alice = people().alice
    note(alice, PORT + " Much." * 1_000)
    got = ask(alice, characters=500)
    assert (got.as_json()["results"], got.omitted) == ([], 1)
    assert the_row(got).note_ids == [] and the_row(got).omitted == 1


@pytest.mark.parametrize(
    "query", ["", " \n\t", "the of and", "🔴🔴", "\x00", "\ud83d", "適者生存", "x" * 100_000, "?!"]
)
def test_it_takes_any_question_and_leaves_a_row(query: str) -> None:
    alice = people().alice
    note(alice, PORT)
    got = ask(alice, query)
    row = the_row(got)
    assert len(row.query) <= QUERY_CHARACTERS_MAX and "\x00" not in row.query
    assert row.outcome in ("answered", "no_hits")


def test_it_finds_nothing_in_an_empty_memory_or_in_a_project_that_nobody_has() -> None:
    alice = people().alice
    assert (ask(alice).hits, the_row(ask(alice)).outcome) == ((), "no_hits")
    note(alice, PORT)
    assert keys(ask(alice, project="atlantis")) == []
    assert len(ask(alice).hits) == 1


def test_it_keeps_to_the_project_it_was_asked_about() -> None:
    alice = people().alice
    note(alice, PORT, project="harbor")
    other = note(alice, "Tidepool has a database.", project="tidepool")
    assert keys(ask(alice, project="tidepool", cwd="/src/harbor")) == [other.pk]


def test_it_shows_each_person_what_that_person_may_see() -> None:
    cast = people()
    shown: dict[str, set[Any]] = {}
    for sees in ("private", "team", "common"):
        one = note(cast.alice, f"{PORT} Note for {sees}.", visibility=sees)
        item = said(cast.alice, f"{PORT} Turn for {sees}.", visibility=sees)
        shown[sees] = {one.pk, item.pk}
    assert set(keys(ask(cast.alice))) == set().union(*shown.values())
    assert set(keys(ask(cast.bob))) == shown["team"] | shown["common"]
    stranger = ask(cast.charlie)
    assert set(keys(stranger)) == shown["common"] == {hit.key for hit in stranger.weighed}
    assert stranger.omitted == 0
    told = stranger.as_json(explain=True)
    assert all(one["shared_by"] == "alice" for one in told["results"])


def test_it_honours_never_at_once_for_the_note_its_turn_and_who_said_so() -> None:
    cast = people()
    item = said(cast.alice, PORT, visibility="team")
    one = note(cast.alice, PORT, visibility="team")
    evidence(one, item, PORT)
    assert keys(ask(cast.bob)) == [one.pk]
    give_feedback(one.pk, "never", principal=cast.bob, now=NOW)
    assert ask(cast.bob).weighed == ()
    assert keys(ask(cast.alice)) == [one.pk]


def test_it_finds_no_note_that_was_retired_a_moment_ago() -> None:
    alice = people().alice
    one = note(alice, PORT)
    assert keys(ask(alice)) == [one.pk]
    retire.retire([one.pk], reason="superseded", now=NOW)
    assert keys(ask(alice)) == []
    retire.revive(one.pk)
    assert keys(ask(alice)) == [one.pk]


def test_it_tells_when_asked_every_number_and_what_they_sum_to() -> None:
    alice = people().alice
    notes(alice, [f"The staging database listens on port {n}." for n in range(8)], project="harbor")
    said(alice, PORT)
    told = ask(alice, cwd="/src/harbor").as_json(explain=True)
    assert told["words"] and told["timings"] and told["reranking"]["why"] == "no reranker is set"
    for rank, one in enumerate(told["results"], start=1):
        assert one["rank"] == rank
        assert sum(one["features"].values()) == pytest.approx(one["order"], abs=0.01)
        product = one["fused"] * one["prior"] * one["decay"] * one["boost"]
        assert one["score"] == pytest.approx(product, abs=1e-5)


def test_it_is_the_same_every_time() -> None:
    alice = people().alice
    notes(alice, ["The staging database listens on a port." for _ in range(9)])
    notes(alice, [f"The staging database listens on port 54{n}." for n in range(10, 30)])
    orders = {tuple(map(str, keys(ask(alice, limit=20)))) for _ in range(3)}
    assert len(orders) == 1


def test_it_lets_old_ones_stand_behind_equal_new_ones_where_that_is_switched_on(
    settings: LazySettings,
) -> None:
    alice = people().alice
    old = note(alice, "The staging port is 5433.", valid_from=NOW - timedelta(days=300))
    new = note(alice, "The staging port is 5434.", valid_from=NOW - timedelta(days=1))
    settings.ARGUS = settings.ARGUS.model_copy(update={"recency_half_life_days": 30.0})
    assert keys(ask(alice)) == [new.pk, old.pk]


Configure = Callable[..., None]


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with running() as server:
        yield server


@pytest.fixture
def configure(server: OpenAIServer, settings: Any) -> Configure:
    base = settings.ARGUS

    def change(**values: Any) -> None:
        given = {"rerank_url": server.url, "rerank_model": "scripted-rerank"} | values
        settings.ARGUS = base.model_copy(update=given)

    shared.cache_clear()
    change()
    return change


def last_first(request: Request) -> Step:
    return ranks([float(n) for n in range(len(request.body["documents"]))])


def test_it_takes_a_rerankers_order_and_says_whose_it_is(
    server: OpenAIServer, configure: Configure
) -> None:
    alice = people().alice
    notes(alice, [f"The staging database listens on port {n}." for n in range(6)])
    configure(rerank_url=None)
    before = keys(ask(alice))
    configure()
    server.script(RERANK, last_first)
    got = ask(alice)
    assert keys(got) == before[::-1]
    told = got.as_json(explain=True)
    assert told["reranked"] is True and told["reranking"]["model"]
    assert [one["reranked"] for one in told["results"]] == [5.0, 4.0, 3.0, 2.0, 1.0, 0.0]
    row = the_row(got)
    assert row.options["reranking"]["reranked"] is True
    assert {hit["reranked"] for hit in row.hits} == {0.0, 1.0, 2.0, 3.0, 4.0, 5.0}


@pytest.mark.parametrize("step", [fails(500), fails(401), Step("no json"), ranks([0.1])])
def test_it_answers_in_its_own_order_when_the_reranker_fails_and_says_so(
    server: OpenAIServer, configure: Configure, step: Step
) -> None:
    alice = people().alice
    notes(alice, [f"The staging database listens on port {n}." for n in range(6)])
    configure(rerank_url=None)
    before = keys(ask(alice))
    configure()
    server.script(RERANK, *[step] * 5)
    got = ask(alice)
    assert keys(got) == before
    told = got.as_json(explain=True)
    assert told["reranked"] is False and told["reranking"]["why"]
    row = the_row(got)
    assert row.options["reranking"] == told["reranking"]
    assert all(hit["reranked"] is None for hit in row.hits)
