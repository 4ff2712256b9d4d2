"""Prompt recall as a whole: notes or silence, a reason for either, and a row for every call."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.conf import LazySettings
from django.db import connection
from django.test.utils import CaptureQueriesContext

from memory.llm.remote.rerank import shared
from memory.llm.thresholds import recall_floor
from memory.models import DedupVerdict, Emission, Injection, LlmCall, Principal
from recall.floors import shipped
from recall.notes import NOTES_MAX, Recalled, Wanted, recall_notes
from recall.query import recall_query
from recall.scoring import SAME_PROJECT_BOOST
from tests.openai_server import RERANK, fails, ranks, running
from tests.recall.making import NOW, evidence, note, notes, people, said

ASKED = "Which port does the staging database use?"
PORT = "The staging database listens on port 5433."

#: Statements of one prompt recall, its ledger row among them.
# Why: each is a round trip where the database is another machine.
ROUND_TRIPS_MAX = 24


def recall(prompt: str, who: Principal, *, cwd: str = "", session: str = "") -> Recalled:
    return recall_notes(prompt, principal=who, now=NOW, cwd=cwd, session=session)


def the_row(recalled: Recalled) -> Injection:
    assert recalled.injection is not None
    found: Injection = Injection.objects.as_pipeline().get(pk=recalled.injection)
    return found


@pytest.mark.django_db
def test_it_puts_the_note_that_answers_before_the_agent_and_tells_every_number() -> None:
    alice = people().alice
    port = note(alice, PORT, project="harbor")
    other = note(alice, "Semicolons separate the columns of the export.")
    got = recall(ASKED, alice, cwd="/home/dev/src/harbor", session="s9")
    assert got.outcome == "injected" and PORT in got.text
    row = the_row(got)
    assert (row.mode, row.outcome, row.session, row.cwd) == (
        "prompt", "injected", "s9", "/home/dev/src/harbor",
    )  # fmt: skip
    assert row.project is not None and row.project.name == "harbor"
    assert row.note_ids == [port.pk] and row.query == ASKED
    hits = {hit["note"]: hit for hit in row.hits}
    first = hits[str(port.pk)]
    assert first["injected"] and first["rank"] == 1 and first["boost"] == SAME_PROJECT_BOOST
    assert first["tracks"]["semantic"]["rank"] == first["tracks"]["keyword"]["rank"] == 1
    assert first["score"] == pytest.approx(2 / 61 * SAME_PROJECT_BOOST, abs=1e-6)
    assert hits[str(other.pk)]["refused"] and not hits[str(other.pk)]["injected"]
    name = "minilm-l6-v2-int8-pad768"
    own = recall_floor(name, "english")
    assert row.floors["note"] == shipped(name, score=0.015)["note"].as_json(own=own)
    assert row.floors["note"]["semantic"] == pytest.approx(own) and own > 0
    assert row.floors["turn"] != row.floors["note"]
    assert row.floors["calibration"] is row.floors["ranker"] is None
    assert got.as_json()["floors"] == {name: row.floors[name] for name in ("note", "turn")}
    assert {"embed", "keyword", "note", "turn", "total"} <= set(row.timings)
    assert row.characters == len(got.text) and row.model_asked == "minilm-l6-v2-int8-pad768"
    emitted = Emission.objects.get(owner=alice)
    assert (emitted.kind, emitted.reference) == ("recall", str(row.pk))


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("prompt", "outcome", "gate"),
    [
        ("ok", "gated", "too_short"),
        ("", "gated", "too_short"),
        ("<system-reminder>x</system-reminder>", "gated", "system_turn"),
        ("What is the capital city of Mongolia and its population?", "below_floor", ""),
    ],
)
def test_it_writes_a_row_for_silence_and_says_why(prompt: str, outcome: str, gate: str) -> None:
    alice = people().alice
    note(alice, PORT)
    got = recall(prompt, alice)
    row = the_row(got)
    assert (got.outcome, row.outcome, row.gate) == (outcome, outcome, gate)
    assert (got.text, row.note_ids, row.characters) == ("", [], 0)
    assert row.floors and "total" in row.timings
    assert not Emission.objects.exists()


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("prompt", "tongue"),
    [
        (ASKED, "english"),
        ("Auf welchem Port lauscht die Datenbank von staging?", "latin"),
        ("ステージングのデータベースのポートは何番ですか port 5433", "script"),
    ],
)
def test_it_keeps_the_floors_of_the_tongue_and_puts_nothing_below_them_before_an_agent(
    prompt: str, tongue: str
) -> None:
    alice = people().alice
    note(alice, PORT)
    said(alice, f"Mind you: {PORT}")
    notes(alice, ["Semicolons separate the columns.", "ポートは5433番です。", "Der Port ist frei."])
    row = the_row(recall(prompt, alice))
    own = recall_floor("minilm-l6-v2-int8-pad768", tongue)
    assert row.floors["note"]["semantic"] == pytest.approx(own, abs=1e-4)
    assert row.hits
    for hit in row.hits:
        floors = row.floors[hit["source"]]
        near = hit["cosine"] >= floors["semantic"]
        worded = hit["tracks"].get("keyword", {"score": 0.0})["score"] >= floors["keyword"]
        assert ("semantic" in hit["cleared"]) is near
        if hit["injected"]:
            assert (near or worded) and hit["relevance"] >= floors["relevance"]
            assert hit["score"] >= floors["score"]


@pytest.mark.django_db
def test_it_asks_no_model_behind_a_gate() -> None:
    recall("ok", people().alice)
    assert not LlmCall.objects.exists()


@pytest.mark.django_db
def test_it_writes_a_row_when_there_is_nothing_to_find() -> None:
    got = recall(ASKED, people().alice)
    assert (got.outcome, the_row(got).hits) == ("no_hits", [])


@pytest.mark.django_db
def test_it_keeps_no_secret_of_a_prompt() -> None:
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" + "k1L2m3N4o5P6q7R8"
    got = recall(f"Which port does staging use with the token {secret} today?", people().alice)
    assert secret not in the_row(got).query and "[redacted:" in the_row(got).query


@pytest.mark.django_db
def test_it_takes_a_place_that_postgres_cannot_hold() -> None:
    got = recall(ASKED, people().alice, session="s\x00\ud83d", cwd="/src/\x00harbor\ud83d")
    assert "\x00" not in the_row(got).session + the_row(got).cwd


def away(settings: LazySettings) -> None:
    settings.ARGUS = settings.ARGUS.model_copy(
        update={"embedder": "url", "embed_url": "http://127.0.0.1:9/v1", "embed_model": "m"}
    )


def test_it_answers_by_words_alone_when_the_embedder_is_away_and_says_so(
    clone_db: str, settings: LazySettings
) -> None:
    alice = people().alice
    port = note(alice, PORT)
    # What weighs in a question is told from how many texts hold its words.
    notes(alice, [f"Whoever wants to use printer {n} asks at the desk." for n in range(9)])
    away(settings)
    got = recall(ASKED, alice)
    assert got.outcome == "injected" and [hit.key for hit in got.hits] == [port.pk]
    told = got.as_json()
    assert told["degraded"] == ["semantic"] and told["detail"].startswith("semantic: ")
    row = the_row(got)
    assert row.degraded == ["semantic"] and row.outcome == "injected"
    assert "keyword" in row.hits[0]["tracks"] and row.hits[0]["cosine"] is None
    assert not any("semantic" in hit["tracks"] for hit in row.hits)
    assert LlmCall.objects.get(stage="recall").outcome != "ok"


def test_it_answers_a_query_by_words_alone_and_keeps_silent_about_what_it_only_means(
    clone_db: str, settings: LazySettings
) -> None:
    alice = people().alice
    one, item = note(alice, PORT), said(alice, f"Mind you: {PORT}")
    away(settings)
    asked = recall_query(ASKED, principal=alice, now=NOW)
    assert {hit.key for hit in asked.hits} == {one.pk, item.pk}
    assert asked.as_json()["degraded"] == ["semantic"]
    assert recall("Where does our test system take its connections?", alice).hits == ()


@pytest.mark.django_db
def test_it_says_the_same_thing_once() -> None:
    alice = people().alice
    for text in (PORT, PORT, "the staging database listens on port 5433"):
        note(alice, text)
    note(alice, "The staging database runs PostgreSQL 16.")
    got = recall(ASKED, alice)
    assert len(got.notes) == 2
    assert got.text.lower().count("listens on port 5433") == 1


@pytest.mark.django_db
def test_it_gives_at_most_five() -> None:
    alice = people().alice
    notes(alice, [f"The staging database listens on port 54{n}." for n in range(10, 30)])
    got = recall(ASKED, alice)
    assert len(got.notes) == NOTES_MAX == 5
    assert len(the_row(got).hits) > NOTES_MAX


@pytest.mark.django_db
def test_it_counts_the_notes_that_did_not_fit() -> None:
    alice = people().alice
    long = [f"The staging database listens on port 543{n}. " * 50 for n in range(5)]
    notes(alice, long, title="The staging database listens on a port.")
    got = recall(ASKED, alice)
    assert got.omitted == the_row(got).omitted == 5 - len(got.notes) > 0
    assert len(got.text) <= 8_000


@pytest.mark.django_db
def test_it_prefers_the_project_that_asks_among_equals() -> None:
    alice = people().alice
    own = note(alice, "The staging database of ours listens on port 5433.", project="harbor")
    other = note(alice, "The staging database of ours listens on port 5544.", project="tidepool")
    notes(alice, [f"Column {n} of the export is for ports." for n in range(20)])
    for project, first in (("harbor", own), ("tidepool", other)):
        got = recall(
            "Which port does our staging database listen on?", alice, cwd=f"/src/{project}"
        )
        assert got.notes[0].key == first.pk


@pytest.mark.django_db
def test_it_lets_old_notes_fade_where_that_is_switched_on(settings: LazySettings) -> None:
    alice = people().alice
    note(alice, PORT, valid_from=NOW - timedelta(days=300))
    assert recall(ASKED, alice).outcome == "injected"
    settings.ARGUS = settings.ARGUS.model_copy(update={"recency_half_life_days": 30.0})
    got = recall(ASKED, alice)
    assert got.outcome == "below_floor"
    assert got.weighed[0].decay == pytest.approx(0.5**10)


@pytest.mark.django_db
def test_it_reads_the_floor_of_the_machine_and_of_the_call(settings: LazySettings) -> None:
    alice = people().alice
    note(alice, PORT)
    score = recall(ASKED, alice).weighed[0].score
    equal = recall_notes(ASKED, principal=alice, now=NOW, wanted=Wanted(floor=score))
    above = recall_notes(ASKED, principal=alice, now=NOW, wanted=Wanted(floor=score + 1e-9))
    assert (equal.outcome, above.outcome) == ("injected", "below_floor")
    assert the_row(above).options["floor"] == score + 1e-9
    assert the_row(above).floors["turn"]["score"] == pytest.approx(score, abs=1e-4)
    settings.ARGUS = settings.ARGUS.model_copy(update={"recall_floor": 0.5})
    assert recall(ASKED, alice).outcome == "below_floor"


@pytest.mark.django_db
def test_it_gives_a_stranger_nothing_and_tells_nothing() -> None:
    cast = people()
    notes(cast.alice, [f"The staging database listens on port 54{n}." for n in range(10, 30)])
    got = recall(ASKED, cast.charlie)
    assert (got.outcome, got.weighed, got.omitted) == ("no_hits", (), 0)
    assert the_row(got).owner == cast.charlie


@pytest.mark.django_db
def test_it_is_the_same_every_time() -> None:
    alice = people().alice
    notes(alice, [f"The staging database listens on port 54{n}." for n in range(10, 30)])
    texts = {recall(ASKED, alice).text for _ in range(3)}
    assert len(texts) == 1


@pytest.mark.django_db
def test_it_says_whose_words_a_note_is() -> None:
    alice = people().alice
    note(alice, PORT, said_by="assistant", context="the port of staging")
    text = recall(ASKED, alice).text
    assert "the assistant said] " + PORT in text and "(the port of staging)" in text


@pytest.mark.django_db
def test_it_strips_what_cannot_be_seen_and_counts_it() -> None:
    alice = people().alice
    note(alice, f"{PORT}\u200b\u202e\U000e0072\U000e0075\U000e006e")
    got = recall(ASKED, alice)
    assert not any(char in got.text for char in "\u200b\u202e\U000e0072")
    assert PORT in got.text


@pytest.mark.django_db
def test_it_says_who_shared_a_note_that_is_not_the_readers_own() -> None:
    crew = people()
    note(crew.bob, PORT, visibility="team")
    line = recall(ASKED, crew.alice).text.splitlines()[-2]
    assert "shared by bob, the user said] " + PORT in line
    assert "shared by" not in recall(ASKED, crew.bob).text


@pytest.mark.django_db
def test_it_says_of_both_notes_that_a_person_has_still_to_decide() -> None:
    alice = people().alice
    old = note(alice, PORT)
    new = note(alice, PORT.replace("5433", "6001"))
    DedupVerdict.objects.create(
        owner=alice, note=new, target=old, verdict="supersede", status="pending"
    )
    recalled = recall(ASKED, alice)
    assert (
        recalled.text.count("disputed: a person decides whether this or another statement holds")
        == 2
    )
    assert all(told["disputed"] for told in recalled.as_json()["notes"])


#: Says it in the words of the question.
SPOKEN = "The staging database does use a port, and it is port 5433."


@pytest.mark.django_db
def test_it_puts_a_turn_before_the_agent_that_no_note_was_made_of() -> None:
    alice = people().alice
    item = said(alice, SPOKEN)
    got = recall(ASKED, alice)
    assert (got.outcome, [hit.key for hit in got.turns], got.notes) == ("injected", [item.pk], ())
    assert f"the user said, verbatim, turn {item.pk}] {SPOKEN}" in got.text
    row = the_row(got)
    assert (row.turn_ids, row.note_ids) == ([item.pk], [])
    assert row.hits[0]["turn"] == item.pk and row.hits[0]["injected"]
    assert got.as_json()["turns"][0]["excerpt"] == SPOKEN


@pytest.mark.django_db
def test_it_asks_more_of_a_turn_than_of_a_note() -> None:
    alice = people().alice
    text = "Our staging database was slow again on Monday, and nobody knew why."
    item = said(alice, text)
    got = recall(ASKED, alice)
    assert got.outcome == "below_floor"
    assert got.floors["turn"].relevance > got.floors["note"].relevance
    (hit,) = got.weighed
    assert (hit.key, hit.judged.refused) == (item.pk, "below the floor of relevance")
    one = note(alice, text)
    got = recall(ASKED, alice)
    assert [hit.key for hit in got.hits] == [one.pk]


@pytest.mark.django_db
def test_it_takes_notes_first_and_turns_after_them_whichever_fits_best() -> None:
    alice = people().alice
    item = said(alice, SPOKEN)
    vague = note(alice, "The staging database has a port of its own.")
    got = recall(ASKED, alice)
    assert [hit.key for hit in got.hits] == [vague.pk, item.pk]
    lines = [line for line in got.text.splitlines() if line.startswith("- ")]
    assert "verbatim" not in lines[0] and "verbatim" in lines[1]
    notes(alice, [f"The staging database has port 54{n}." for n in range(10, 20)])
    assert all(hit.source == "note" for hit in recall(ASKED, alice).hits)


@pytest.mark.django_db
def test_it_says_what_a_note_says_and_not_the_turn_again() -> None:
    alice = people().alice
    item = said(alice, SPOKEN)
    one = note(alice, SPOKEN)
    evidence(one, item, SPOKEN)
    got = recall(ASKED, alice)
    assert [hit.key for hit in got.hits] == [one.pk] and got.hits[0].turns == (item.pk,)
    assert got.text.count("5433") == 1


@pytest.mark.django_db
def test_it_takes_relevance_for_the_reason_to_be_silent() -> None:
    """The rank alone would let the best of a bad lot by."""
    alice = people().alice
    note(alice, "The release notes are written on Thursday.")
    got = recall("Which database migrations are risky on a Thursday afternoon, and why?", alice)
    (hit,) = got.weighed
    assert got.outcome == "below_floor" and hit.score > got.floors["note"].score
    assert hit.judged.refused and hit.judged.relevance < got.floors["note"].relevance


@pytest.mark.django_db
def test_it_says_when_what_answers_is_too_long_to_be_given_whole() -> None:
    alice = people().alice
    note(alice, "The staging database listens on port 5433. " * 300, title=PORT)
    got = recall(ASKED, alice)
    row = the_row(got)
    assert (got.outcome, row.outcome, got.text) == ("too_long", "too_long", "")
    assert got.omitted == row.omitted == 1
    assert not row.hits[0]["injected"] and not row.hits[0]["refused"]


@pytest.mark.django_db
@pytest.mark.parametrize(("wanted", "most"), [(Wanted(notes=2), 2), (Wanted(characters=500), 3)])
def test_it_keeps_to_the_budget_of_the_caller(wanted: Wanted, most: int) -> None:
    alice = people().alice
    notes(alice, [f"The staging database listens on port 54{n}." for n in range(10, 30)])
    got = recall_notes(ASKED, principal=alice, now=NOW, wanted=wanted)
    assert 0 < len(got.hits) <= most and len(got.text) <= wanted.characters
    assert got.text.count("listens on port") == len(got.hits)


@pytest.mark.django_db
def test_it_leaves_out_what_is_not_of_the_project_that_was_asked_for() -> None:
    alice = people().alice
    notes(alice, [f"The staging database listens on port 54{n}." for n in range(10, 40)],
          project="harbor")  # fmt: skip
    own = note(alice, "The staging database has a port in tidepool.", project="tidepool")
    got = recall_notes(ASKED, principal=alice, now=NOW, wanted=Wanted(project="tidepool"))
    assert [hit.key for hit in got.weighed] == [own.pk]
    unknown = recall_notes(ASKED, principal=alice, now=NOW, wanted=Wanted(project="atlantis"))
    assert (unknown.outcome, unknown.weighed) == ("no_hits", ())


@pytest.mark.django_db
def test_it_asks_the_database_a_bounded_number_of_times_however_much_there_is() -> None:
    alice = people().alice

    def asked() -> int:
        with CaptureQueriesContext(connection) as ran:
            assert recall(ASKED, alice, cwd="/src/harbor", session="s1").outcome == "injected"
        frame = ("SAVEPOINT", "RELEASE SAVEPOINT", "SET LOCAL")
        return len([one for one in ran if not one["sql"].startswith(frame)])

    note(alice, PORT, project="harbor")
    said(alice, SPOKEN, project="harbor")
    few = asked()
    many = notes(
        alice, [f"The staging database has port {n}." for n in range(60)], project="harbor"
    )
    for n in range(20):
        evidence(many[n], said(alice, f"The staging database has port {n}."), many[n].content)
    assert few <= ROUND_TRIPS_MAX
    assert asked() <= ROUND_TRIPS_MAX


@pytest.mark.django_db
def test_it_lets_a_reranker_order_prompts_where_that_is_switched_on_and_notes_stay_first(
    settings: LazySettings,
) -> None:
    alice = people().alice
    item = said(alice, SPOKEN)
    made = notes(alice, [f"The staging database has port {n}." for n in range(3)])
    usual = [hit.key for hit in recall(ASKED, alice).hits]
    assert usual[-1] == item.pk and len(usual) == 4
    shared.cache_clear()
    with running() as server:
        given = {"rerank_url": server.url, "rerank_model": "scripted-rerank"}
        settings.ARGUS = settings.ARGUS.model_copy(update=given)
        assert [hit.key for hit in recall(ASKED, alice).hits] == usual
        assert not server.requests, "an agent waits: off until somebody asks for it"
        settings.ARGUS = settings.ARGUS.model_copy(update={"rerank_prompts": True})
        server.script(RERANK, ranks([0.1, 0.2, 0.3, 0.9]), fails(500), fails(500), fails(500))
        got = recall(ASKED, alice)
        assert [hit.key for hit in got.hits] == [*usual[2::-1], item.pk]
        assert got.as_json()["reranked"] is True
        failed = recall(ASKED, alice)
        assert [hit.key for hit in failed.hits] == usual
        assert failed.as_json()["reranked"] is False
        assert the_row(failed).options["reranking"]["why"]
    assert {row.pk for row in made} == set(usual[:3])
