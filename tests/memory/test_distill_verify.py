"""How: distill with self-questioning: the scripted server asks, answers, or is away."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from memory.making import VERIFY_CHARACTERS_MAX
from memory.models import Cooldown, DistillFailure, Episode, GateRejection, Note, Principal
from memory.stages.distill import distill
from tests.factories import OTHER, QUOTE, SAID, document, episode, three
from tests.openai_server import (
    CHAT,
    OpenAIServer,
    Request,
    Step,
    fails,
    note,
    notes,
    says,
)

pytestmark = pytest.mark.django_db

Configure = Callable[..., None]


@pytest.fixture
def alice() -> Principal:
    return three()[0]


def verifier(answered: bool, answer: str) -> list[Step]:
    question = {"question": "Where did the job queue move to?", "expected": "Postgres"}
    reply = {"answered": answered, "answer": answer, "quote": ""}
    return [says(json.dumps(question)), says(json.dumps(reply))]


def test_it_stores_the_question_that_the_raw_text_answered(
    server: OpenAIServer, alice: Principal, configure: Configure
) -> None:
    configure(verify=True)
    episode(alice, SAID)
    server.script(CHAT, says(notes(note(QUOTE))), *verifier(True, "to Postgres"))
    assert distill().notes_created == 1
    made = Note.objects.as_pipeline().get()
    assert (made.question, made.answer) == ("Where did the job queue move to?", "to Postgres")


@pytest.mark.parametrize(("answered", "answer"), [(False, ""), (True, "to Kafka")])
def test_it_refuses_what_the_raw_text_does_not_answer(
    server: OpenAIServer, alice: Principal, configure: Configure, answered: bool, answer: str
) -> None:
    configure(verify=True)
    episode(alice, SAID)
    server.script(CHAT, says(notes(note(QUOTE))), *verifier(answered, answer))
    report = distill()
    assert report.rejected == {"unsupported": 1} and not Note.objects.as_pipeline().exists()
    assert "Where did the job queue move to?" in GateRejection.objects.as_pipeline().get().detail


def test_it_writes_nothing_of_a_unit_whose_verifier_is_away(
    server: OpenAIServer, alice: Principal, configure: Configure
) -> None:
    configure(verify=True)
    one = episode(alice, SAID)
    server.script(
        CHAT, says(notes(note(QUOTE), note(OTHER))), *verifier(True, "to Postgres"), fails(503)
    )
    assert distill().transient_failures == 1
    assert not Note.objects.as_pipeline().exists()
    assert Episode.objects.as_pipeline().get(pk=one.pk).distilled_at is None
    Cooldown.objects.all().delete()
    asked = len(server.requests)
    server.script(CHAT, *verifier(True, "port 8443"))
    distill()
    texts = [r.body["messages"][0]["content"] for r in server.requests[asked:]]
    assert not any("source_ref" in text for text in texts), "the kept answer is not paid twice"


def test_it_refuses_the_one_candidate_whose_check_cannot_be_read(
    server: OpenAIServer, alice: Principal, configure: Configure
) -> None:
    configure(verify=True)
    episode(alice, SAID)
    unreadable = says("I had rather talk about something else entirely.")
    server.script(
        CHAT, says(notes(note(QUOTE), note(OTHER))), unreadable, *verifier(True, "to Postgres")
    )
    report = distill()
    assert (report.notes_created, report.rejected) == (1, {"unsupported": 1})
    assert "could not be read" in GateRejection.objects.as_pipeline().get().detail


def test_it_counts_a_failure_of_the_unit_when_no_check_can_be_read(
    server: OpenAIServer, alice: Principal, configure: Configure
) -> None:
    configure(verify=True)
    episode(alice, SAID)
    unreadable = says("I had rather talk about something else entirely.")
    server.script(CHAT, says(notes(note(QUOTE), note(OTHER))), unreadable, unreadable)
    report = distill()
    assert (report.content_failures, report.episodes_distilled) == (1, 0)
    assert (
        not Note.objects.as_pipeline().exists() and not GateRejection.objects.as_pipeline().exists()
    )
    assert DistillFailure.objects.get().owner == alice


def test_it_shows_the_verifier_what_stands_around_the_quote_and_no_more(
    server: OpenAIServer, alice: Principal, configure: Configure
) -> None:
    configure(verify=True)
    long = "\n\n".join(f"Paragraph {number} tells of other things." for number in range(3_000))
    document(alice, f"# Far above\n\n{long}\n\n{QUOTE}\n\n{long}")
    # One window a model call; the quote stands in one of them.
    replies = {True: says(notes(note(QUOTE))), False: says(notes())}

    def answers(request: Request) -> Step:
        system = str(request.body["messages"][0]["content"])
        if '"expected"' in system:
            return Step(verifier(True, "to Postgres")[0].body)
        if '"answered"' in system:
            assert QUOTE in request.user and len(request.user) < VERIFY_CHARACTERS_MAX + 500
            return Step(verifier(True, "to Postgres")[1].body)
        return replies[QUOTE in request.user]

    server.script(CHAT, *[answers] * 200)
    assert distill().notes_created == 1
