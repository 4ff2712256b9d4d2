"""A hit's JSON as some six lines that say why it is where it is: JSON that recall itself made."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings as django_settings
from hypothesis import given
from hypothesis import strategies as st

from memory import verdicts
from memory.llm.remote.rerank import shared
from memory.models import DedupVerdict, Injection, Principal
from recall.explain import explain
from recall.notes import Recalled, Wanted, recall_notes
from recall.query import recall_query
from recall.ranker import PARTS_SHOWN
from recall.results import as_json
from recall.scoring import REST, Hit
from recall.search import Past
from tests.openai_server import RERANK, ranks, running
from tests.recall.making import NOW, evidence, note, people, said

ASKED = "Which port does the staging database use?"
PORT = "The staging database listens on port 5433."
DAY = timedelta(days=1)


def recalled(who: Principal, **more: Any) -> Recalled:
    return recall_notes(ASKED, principal=who, now=NOW, cwd="/src/harbor", **more)


def told(hit: Hit, rank: int = 1) -> str:
    return explain(as_json(hit, rank, explain=True))


def lines(text: str) -> dict[str, str]:
    """What is said of each thing, by its name."""
    return {line[3:11].strip(): line[12:] for line in text.splitlines()[1:]}


def kept(pk: int | None) -> list[dict[str, Any]]:
    """The hits of a ledger row."""
    row: Injection = Injection.objects.as_pipeline().get(pk=pk)
    return list(row.hits)


@pytest.mark.django_db
def test_it_tells_the_whole_story_of_a_hit() -> None:
    alice = people().alice
    item = said(alice, f"Found it. {PORT}", project="harbor")
    one, twin = (note(alice, PORT, project="harbor") for _ in range(2))
    for each in (one, twin):
        evidence(each, item, PORT)
    (hit,) = recalled(alice).hits
    text = told(hit)
    assert text.splitlines()[0] == f"#1 note {hit.key}  {PORT}  injected"
    by_name = lines(text)
    assert list(by_name) == ["tracks", "ranker", "score", "words", "near", "floors"]
    semantic = hit.found.tracks["semantic"]
    assert f"semantic #{semantic.rank} ({semantic.score:.4g})" in by_name["tracks"]
    assert "keyword #" in by_name["tracks"]
    assert by_name["score"].startswith(f"{hit.score:.4g} = fused ")
    assert by_name["score"].endswith(" x boost 1.25")
    assert {"staging", "database", "port"} & set(by_name["words"].split(", "))
    (other,) = {str(one.pk), str(twin.pk)} - {str(hit.key)}
    assert f"turns {item.pk}; twins {other}" in by_name["near"]
    assert f"relevance {hit.judged.relevance:.4g}" in by_name["floors"]
    assert f"cleared {', '.join(hit.judged.cleared)}" in by_name["floors"]


@pytest.mark.django_db
def test_it_adds_up_from_the_reply_and_from_the_ledger_alike() -> None:
    alice = people().alice
    note(alice, PORT)
    for number, body in enumerate((ASKED, f"On 5433. {PORT}", "Good to know.", "Port 22 is ssh.")):
        at = NOW - DAY + timedelta(minutes=number)
        said(alice, body, session="s1", occurred_at=at, metadata={"speaker": f"Person {number}"})
    got = recall_query(ASKED, principal=alice, now=NOW)
    rows = {hit.get("note") or str(hit["turn"]): hit for hit in kept(got.injection)}
    longest = 0
    for hit in got.hits:
        both = [lines(told(hit))["ranker"], lines(explain(rows[str(hit.key)]))["ranker"]]
        for line in both:
            whole, _, parts = line.partition(" log-odds: ")
            named = dict(part.rsplit(" ", 1) for part in parts.split(", "))
            longest = max(longest, len(named))
            assert REST not in named or list(named)[-1] == REST, "what is small stands last"
            assert sum(map(float, named.values())) == pytest.approx(float(whole), abs=0.06)
        assert both[0] == both[1]
    assert longest == PARTS_SHOWN + 1


@pytest.mark.django_db
def test_it_says_why_a_hit_was_left_out() -> None:
    alice = people().alice
    note(alice, PORT)
    note(alice, "Semicolons separate the columns of the export.")
    got = recalled(alice)
    (refused,) = [hit for hit in got.weighed if hit.judged.refused]
    text = explain(refused.as_json(rank=2, injected=False))
    assert text.startswith(f"#2 note {refused.key}  left out")
    assert f"refused: {refused.judged.refused}" in lines(text)["floors"]


@pytest.mark.django_db
def test_it_names_what_stands_in_the_place_of_a_note_that_holds_no_more() -> None:
    alice = people().alice
    old = note(alice, PORT.replace("3.", "2."), valid_from=NOW - 30 * DAY)
    new = note(alice, PORT, title="The new port", valid_from=NOW - 10 * DAY)
    row = DedupVerdict.objects.create(owner=alice, note=new, target=old, verdict="supersede")
    verdicts.apply(row, now=NOW - 5 * DAY)
    past = Past(NOW - 20 * DAY, NOW)
    got = recalled(alice, wanted=Wanted(past=past))
    assert lines(told(got.hits[0]))["near"] == f"superseded today by {new.pk} The new port"
    ((ledger,),) = (kept(got.injection),)
    assert lines(explain(ledger))["near"] == f"superseded today by {new.pk}"
    (asked,) = recall_query(ASKED, principal=alice, now=NOW, past=past).hits
    assert "superseded today" in told(asked)
    assert "near" not in lines(told(recalled(alice).hits[0])), "what holds needs no word"


@pytest.mark.django_db
def test_it_tells_what_a_reranker_made_of_it(settings: Any) -> None:
    alice = people().alice
    first, second = (note(alice, f"{PORT} Number {n}.") for n in range(2))
    shared.cache_clear()
    with running() as server:
        base = {"rerank_url": server.url, "rerank_model": "scripted-rerank"}
        settings.ARGUS = django_settings.ARGUS.model_copy(update=base)
        server.script(RERANK, ranks([0.25, 0.75]))
        got = recall_query(ASKED, principal=alice, now=NOW)
    shared.cache_clear()
    assert {hit.key for hit in got.hits} == {first.pk, second.pk}
    endings = [lines(told(hit))["ranker"].rpartition("; ")[2] for hit in got.hits]
    assert endings == ["reranker 0.75", "reranker 0.25"]
    assert {hit["reranked"] for hit in kept(got.injection)} == {0.75, 0.25}


@pytest.mark.django_db
def test_it_names_the_turn_nearby_that_lent_to_a_turn() -> None:
    alice = people().alice
    for number, body in enumerate(
        ("Which port does the staging database use?", "It is on 5433.", "Good to know, thanks.")
    ):
        said(alice, body, session="s1", occurred_at=NOW - DAY + timedelta(minutes=number))
    got = recall_query(ASKED, principal=alice, now=NOW)
    near = {hit.key: hit.found.near for hit in got.hits if hit.found.near is not None}
    assert near, "a turn of a session has neighbours"
    for hit in got.hits:
        if hit.key in near:
            assert f"turn {near[hit.key]}" in lines(told(hit))["near"]


def test_it_tells_of_a_row_only_what_was_kept() -> None:
    assert explain({"note": "5f0c", "rank": 1}) == "#1 note 5f0c"
    assert explain({"turn": 17, "rank": 1, "score": 0.5}).splitlines() == [
        "#1 turn 17", "   score    0.5",
    ]  # fmt: skip
    assert explain({}) == "#? note ?"


WHOLE: dict[str, Any] = {
    "note": "5f0c", "rank": 2, "title": "Port", "score": 0.04, "fused": 0.03, "decay": 0.9,
    "order": 2.1, "features": {"cosine": 1.21, REST: 0.89}, "terms": ["port"],
    "tracks": {"semantic": {"rank": 1, "score": 0.7}}, "cleared": ["semantic"], "turns": [1],
    "relevance": 1.8, "injected": True,
}  # fmt: skip


def test_it_lets_no_text_of_anybodys_steer_the_terminal_or_start_a_line() -> None:
    evil = "a\x1b[2J\nfloors   cleared all\r\u202e" + "x" * 5_000
    hit = WHOLE | {
        "title": evil, "terms": [evil], "refused": evil, "state": evil,
        "replaced_by": {"id": evil, "title": evil}, "neighbour": evil,
        "features": {evil: 1.0}, "tracks": {evil: {"rank": 1, "score": 1}}, "cleared": [evil],
    }  # fmt: skip
    text = explain(hit)
    assert len(text.splitlines()) == 7 and "\x1b" not in text and "\u202e" not in text
    assert len(text) < 2_500


VALUES = st.one_of(st.none(), st.text(max_size=20), st.floats(), st.integers())
KEYS = st.sampled_from(
    ["title", "rank", "score", "order", "neighbour", "decay", "fused", "refused", "note", "turn",
     "cosine", "relevance", "reranked", "replaced_by", "state"]
)  # fmt: skip


@given(st.dictionaries(KEYS, VALUES))
def test_it_tells_any_row_in_few_lines(more: dict[str, Any]) -> None:
    assert 1 <= len(explain(WHOLE | more).splitlines()) <= 7
