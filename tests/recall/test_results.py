"""From hits to results: each statement once, and what a reader is told of it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from memory import retire
from memory.llm.remote.rerank import shared
from memory.models import Note, Principal
from memory.searchtexts import index_items
from recall.calibration import in_force
from recall.feedback import give_feedback
from recall.results import as_json, fold, read, second_opinion
from recall.scoring import Hit, weigh_all
from recall.search import Searched, search
from tests.openai_server import RERANK, fails, ranks, running
from tests.recall.making import NOW, evidence, note, people, said, turn

pytestmark = pytest.mark.django_db

ASKED = "Which port does the staging database use?"
PORT = "The staging database listens on port 5433."


def found(who: Principal, query: str = ASKED) -> Searched:
    return search(query, principal=who, now=NOW)


def weigh(got: Searched) -> list[Hit]:
    return weigh_all(got, in_force(got.question.model).floors, project=None, now=NOW)


def weighed(who: Principal, query: str = ASKED) -> list[Hit]:
    return weigh(found(who, query))


def keys(hits: list[Hit]) -> list[Any]:
    return [hit.key for hit in hits]


def told(who: Principal, query: str = ASKED) -> list[Hit]:
    got = found(who, query)
    return read(fold(weigh(got)), got, principal=who, here=None, now=NOW)


def test_it_makes_one_result_of_a_note_and_the_turn_it_came_from() -> None:
    alice = people().alice
    item = said(alice, f"Found it. {PORT}")
    one = note(alice, PORT)
    evidence(one, item, PORT)
    assert set(keys(weighed(alice))) == {one.pk, item.pk}
    (only,) = fold(weighed(alice))
    assert (only.key, only.turns) == (one.pk, (item.pk,))


def test_it_lets_the_note_stand_where_its_turn_would_have_stood() -> None:
    alice = people().alice
    item = said(alice, PORT)
    others = [note(alice, f"The database of host {n} is large.") for n in range(5)]
    vague = note(alice, "It was moved lately.")
    evidence(vague, turn(alice, "It was moved lately.", session="s2"), "It was moved lately.")
    evidence(vague, item, PORT)
    hits = weighed(alice)
    assert keys(hits)[0] == item.pk and keys(hits).index(vague.pk) > 2
    folded = fold(hits)
    assert (folded[0].key, folded[0].turns) == (vague.pk, (item.pk,))
    assert sorted(map(str, keys(folded))) == sorted(str(one.pk) for one in [vague, *others])


def test_it_lets_the_best_of_several_notes_stand_for_their_turn() -> None:
    alice = people().alice
    item = said(alice, f"{PORT} Deploys are frozen on Friday.")
    port, deploys = note(alice, PORT), note(alice, "Deploys are frozen on Friday.")
    for one in (port, deploys):
        evidence(one, item, one.content)
    folded = fold(weighed(alice))
    assert keys(folded)[0] == port.pk and set(keys(folded)) == {port.pk, deploys.pk}
    assert all(hit.turns == (item.pk,) for hit in folded)


def test_it_says_a_statement_of_several_notes_once_and_names_the_twins() -> None:
    alice = people().alice
    made = {note(alice, text).pk for text in (PORT, PORT, PORT.lower())}
    (one,) = fold(weighed(alice))
    assert {str(one.key), *one.twins} == {str(pk) for pk in made}


def test_it_says_the_same_words_of_several_turns_once() -> None:
    alice = people().alice
    made = {said(alice, text, session=f"s{n}").pk for n, text in enumerate((PORT, PORT.upper()))}
    (one,) = fold(weighed(alice))
    assert {str(one.key), *one.twins} == {str(pk) for pk in made}


def test_it_takes_no_turns_for_the_same_that_have_the_same_words_in_another_order() -> None:
    alice = people().alice
    said(alice, "The staging port moved from 5432 to 5433.", session="s1")
    said(alice, "The staging port moved from 5433 to 5432.", session="s2")
    hits = weighed(alice)
    assert len({hit.found.content for hit in hits}) == 1
    assert len(fold(hits)) == 2


def test_it_folds_nothing_of_nothing() -> None:
    alice = people().alice
    assert fold([]) == []
    assert read([], found(alice, ""), principal=alice, here=None, now=NOW) == []


def test_it_tells_of_a_turn_who_said_it_and_the_words_that_fit() -> None:
    cast = people()
    long = "Semicolons separate the columns. " * 40 + PORT + " Nothing else." * 40
    said(cast.alice, long, metadata={"speaker": "Melanie"}, visibility="common", session="s7")
    (hit,) = told(cast.alice)
    assert PORT in hit.facts["excerpt"] and len(hit.facts["excerpt"]) < len(long)
    assert (hit.facts["speaker"], hit.facts["session"]) == ("Melanie", "s7")
    assert hit.facts["shared_by"] == ""
    assert told(cast.charlie)[0].facts["shared_by"] == "alice"


def test_it_leaves_out_what_can_no_longer_be_read() -> None:
    """Found, and then retired or ended: what is shown holds at the moment it is read."""
    cast = people()
    said(cast.alice, f"Mind you: {PORT}")
    gone, ended, kept = (note(cast.alice, f"{PORT} Number {n}.") for n in range(3))
    got = found(cast.alice)
    hits = fold(weigh(got))
    assert len(hits) == 4
    retire.retire([gone.pk], reason="redistilled", now=NOW)
    Note.objects.as_pipeline().filter(pk=ended.pk).update(valid_to=NOW)
    left = read(hits, got, principal=cast.alice, here=None, now=NOW)
    assert {hit.key for hit in left if hit.source == "note"} == {kept.pk} and len(left) == 2


def test_it_leaves_out_what_was_retired_or_silenced_while_a_reranker_was_asked(
    settings: Any,
) -> None:
    alice = people().alice
    gone, hushed, kept = (note(alice, f"{PORT} Number {n}.") for n in range(3))
    item = said(alice, f"Mind you: {PORT}")
    evidence(hushed, item, PORT)
    got = found(alice)
    hits = read(weigh(got), got, principal=alice, here=None, now=NOW)
    assert {hit.key for hit in hits} == {gone.pk, hushed.pk, kept.pk, item.pk}
    retire.retire([gone.pk], reason="redistilled", now=NOW)
    give_feedback(hushed.pk, "never", principal=alice, now=NOW)
    asked: dict[str, Any] = {"principal": alice, "here": None}
    unasked, said_of_it = second_opinion(got, hits, **asked, prompt=False)
    assert (len(unasked), said_of_it.shown) == (4, 0), "without a reranker nobody waited"
    shared.cache_clear()
    with running() as server:
        base = {"rerank_url": server.url, "rerank_model": "scripted-rerank"}
        settings.ARGUS = settings.ARGUS.model_copy(update=base)
        for answer in (ranks([0.4, 0.3, 0.2, 0.1]), fails(500)):
            server.script(RERANK, answer)
            (left,), _ = second_opinion(got, hits, **asked, prompt=False)
            assert left.key == kept.pk
    shared.cache_clear()


@pytest.mark.parametrize("explain", [True, False])
def test_it_tells_short_results_and_every_number_when_asked(explain: bool) -> None:
    alice = people().alice
    note(alice, PORT, project="harbor")
    said(alice, "On which port does staging listen?", project="harbor")
    results = {hit.source: as_json(hit, 1, explain=explain) for hit in told(alice)}
    for source, one in results.items():
        assert one["source"] == source and one["project"] == "harbor" and one["score"] > 0
        numbers = {"features", "order", "tracks", "cleared", "relevance", "coverage", "cosine"}
        assert (numbers <= set(one)) == explain
        assert bool(numbers & set(one)) == explain
    assert (results["note"]["content"], results["note"]["state"]) == (PORT, "live")
    assert results["turn"]["excerpt"] == "On which port does staging listen?"
    assert "owner_id" not in results["note"] and "content_key" not in results["note"]


def test_it_names_a_document_by_its_kind() -> None:
    alice = people().alice
    turn(alice, PORT, kind="document", role="", session="", occurred_at=NOW - timedelta(days=1))
    index_items()
    (hit,) = told(alice)
    assert (hit.facts["kind"], hit.facts["role"]) == ("document", "")
