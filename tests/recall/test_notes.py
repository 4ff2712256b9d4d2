"""Prompt recall as a whole: notes or silence, a reason for either, and a row for every call."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.conf import LazySettings

from memory.models import DedupVerdict, Emission, Injection, LlmCall, Principal
from recall.notes import NOTES_MAX, Recalled, recall_notes
from recall.scoring import SAME_PROJECT_BOOST
from tests.recall.making import NOW, note, notes, people

ASKED = "Which port does the staging database use?"
PORT = "The staging database listens on port 5433."


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
    assert row.floors == {"score": 0.015, "semantic": 0.36, "keyword": 0.04}
    assert {"embed", "semantic", "keyword", "total"} <= set(row.timings)
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


def test_it_answers_by_words_alone_when_the_embedder_is_away_and_says_so(
    clone_db: str, settings: LazySettings
) -> None:
    alice = people().alice
    port = note(alice, PORT)
    settings.ARGUS = settings.ARGUS.model_copy(
        update={"embedder": "url", "embed_url": "http://127.0.0.1:9/v1", "embed_model": "m"}
    )
    got = recall(ASKED, alice)
    assert got.outcome == "injected" and got.notes[0].note["id"] == port.pk
    told = got.as_json()
    assert told["degraded"] == ["semantic"] and told["detail"].startswith("semantic: ")
    row = the_row(got)
    assert row.degraded == ["semantic"] and row.outcome == "injected"
    assert set(row.hits[0]["tracks"]) == {"keyword"}
    assert LlmCall.objects.get(stage="recall").outcome != "ok"


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
    long = ["The staging database listens on port 5433. " + f"Detail {n}. " * 150 for n in range(5)]
    notes(alice, long, title="The staging database listens on port 5433.")
    got = recall(ASKED, alice)
    assert got.omitted == the_row(got).omitted == 5 - len(got.notes) > 0
    assert len(got.text) <= 8_000


@pytest.mark.django_db
def test_it_prefers_the_project_that_asks_among_equals() -> None:
    alice = people().alice
    own = note(alice, "The staging database of ours listens on port 5433.", project="harbor")
    other = note(alice, "The staging database of ours listens on port 5544.", project="tidepool")
    for project, first in (("harbor", own), ("tidepool", other)):
        got = recall(
            "Which port does our staging database listen on?", alice, cwd=f"/src/{project}"
        )
        assert got.notes[0].note["id"] == first.pk


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
    equal = recall_notes(ASKED, principal=alice, now=NOW, floor=score)
    above = recall_notes(ASKED, principal=alice, now=NOW, floor=score + 1e-9)
    assert (equal.outcome, above.outcome) == ("injected", "below_floor")
    assert the_row(above).floors["score"] == score + 1e-9
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
    assert recalled.text.count("disputed: a newer statement waits for a decision") == 2
    assert all(told["disputed"] for told in recalled.as_json()["notes"])
