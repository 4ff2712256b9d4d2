"""What is purged while a stage is at it costs that stage nothing but the work on what went."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from django.db import connections

from memory.access import principal
from memory.models import Claim, Note, RawItem, StageRun
from memory.pipeline import PIPELINE
from memory.purge import plan, purge
from memory.selection import Selection
from tests.factories import FACTS, at, clock, document, end_session, turns
from tests.memory.breaking import look
from tests.openai_server import CHAT, EMBEDDINGS, OpenAIServer, Request, Step, behave

pytestmark = pytest.mark.usefixtures("clone_db")

LATER = at(days=1)


class Purging:
    """Answers as a model does; when it is first sent these words, somebody purges the session."""

    def __init__(self, session: str, words: str) -> None:
        self.session, self.words, self.done = session, words, False

    def __call__(self, request: Request) -> Step:
        if self.words in json.dumps(request.body) and not self.done:
            self.done, alice = True, principal("alice")
            try:
                gone = plan(Selection(session=self.session), by=alice)
                purge(gone, by=alice, reason="asked to", now=LATER)
            finally:
                connections.close_all()
        return behave(request)


@pytest.mark.parametrize(
    "stage, path, words",
    [
        ("segment", EMBEDDINGS, "because MySQL lost orders"),
        ("distill", CHAT, "because MySQL lost orders"),
        ("embed", EMBEDDINGS, "The deploy key"),
    ],
)
def test_what_goes_while_a_model_answers_is_passed_over_and_the_rest_is_done(
    stage: str, path: str, words: str, server: OpenAIServer, configure: Callable[..., None]
) -> None:
    configure(embedder="url", embed_url=server.url)
    alice = principal("alice")
    turns(alice, FACTS, session="goes")
    turns(alice, ["The crane in the harbour is repaired on Mondays, that is settled."], session="b")
    # For embed: of which nobody made a vector yet.
    document(alice, "The deploy key must never be used from a laptop. " * 3, session="goes")
    for session in ("goes", "b"):
        end_session(alice, session, now=at(hours=1))
    for verb in PIPELINE:
        if verb.__name__ == stage:
            meanwhile = Purging("goes", words)
            server.script(path, *[meanwhile] * 9)
        verb(clock=clock(LATER))
    assert meanwhile.done
    assert {run.status for run in StageRun.objects.all()} == {"done"}
    left = RawItem.objects.as_pipeline()
    assert set(left.values_list("session", flat=True)) == {"b"}
    # What was put back is taken up by the next pass.
    for verb in PIPELINE:
        verb(clock=clock(LATER))
    assert {run.status for run in StageRun.objects.all()} == {"done"}
    assert set(Note.objects.as_pipeline().live(LATER).values_list("session", flat=True)) <= {"b"}
    assert not Claim.objects.exists()
    assert not look("waiting", LATER) and not look("orphans", LATER) and not look("parents", LATER)
