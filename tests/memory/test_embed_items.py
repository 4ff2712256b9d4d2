"""Embed gives raw items their vectors: documents, and turns whose segment run had no embedder.

How: posts by capture, the scripted embeddings server, rows read back.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from memory.claims import CONTENT_FAILURES_MAX
from memory.models import (
    Claim,
    Cooldown,
    DistillFailure,
    Episode,
    LlmCall,
    Principal,
    RawItem,
    TurnVector,
)
from memory.stages.embed import NOTES_A_BATCH, EmbedReport, embed
from memory.stages.segment import segment
from tests.factories import EMBED_MODEL, at, clock, document, note, three, turns
from tests.hashing_embedder import vector_of
from tests.openai_server import EMBEDDINGS, OpenAIServer, Request, Scripted, Step, fails, gives

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("local")]

BAD = "A page that this model cannot embed."


@pytest.fixture
def alice() -> Principal:
    return three()[0]


def run(**fields: object) -> EmbedReport:
    given = {"clock": clock(at(days=1))} | fields
    return embed(**given)  # type: ignore[arg-type]


def pages(owner: Principal, count: int, **fields: Any) -> list[RawItem]:
    return [document(owner, f"Page {n} of the manual.", **fields) for n in range(count)]


def vectors() -> set[int]:
    """Raw items that have a vector."""
    return set(TurnVector.objects.filter(model=EMBED_MODEL).values_list("raw_item_id", flat=True))


def sent(server: OpenAIServer) -> list[str]:
    """Every text that went to the embedder."""
    return [text for request in server.requests for text in request.body.get("input", [])]


def well(request: Request) -> Step:
    return gives([vector_of(text) for text in request.body["input"]])


def but_bad(request: Request) -> Step:
    """Answers well unless the bad page is in the batch."""
    return fails(422, '{"error": "unsupported"}') if BAD in request.body["input"] else well(request)


def test_it_gives_a_document_its_vector(alice: Principal) -> None:
    page = document(alice, "The tide tables are printed every spring.")
    report = run()
    assert (report.turns, report.embedded, report.failed, report.pending) == (1, 0, 0, 0)
    row = TurnVector.objects.get()
    assert (row.raw_item_id, row.model) == (page.pk, EMBED_MODEL)
    assert list(row.embedding) == pytest.approx(vector_of(page.body), abs=1e-3)
    assert run().turns == 0 and not Claim.objects.exists()


def test_it_makes_up_for_an_embedder_that_was_away_while_turns_were_segmented(
    alice: Principal, server: OpenAIServer
) -> None:
    said = turns(alice, [f"Turn number {n} of the talk." for n in range(5)])
    server.script(EMBEDDINGS, fails(503))
    segment(clock=clock(at(90)))
    assert Episode.objects.as_pipeline().count() == 1 and not vectors()
    Cooldown.objects.all().delete()
    assert run().turns == 5
    assert vectors() == {item.pk for item in said}


def test_it_leaves_alone_what_segment_gave_a_vector(alice: Principal, server: OpenAIServer) -> None:
    turns(alice, ["One turn.", "Another turn."])
    segment(clock=clock(at(90)))
    asked = len(server.requests)
    assert len(vectors()) == 2 and run().turns == 0
    assert len(server.requests) == asked


def test_it_asks_once_a_run_about_raw_items_that_may_not_leave(
    alice: Principal, server: OpenAIServer
) -> None:
    secret = pages(alice, NOTES_A_BATCH + 6, confidentiality="secret")
    open_ = [document(alice, f"Open page {n}.") for n in range(3)]
    for runs in (1, 2):
        report = run()
        assert (report.turns, report.failed, report.parked) == (3 if runs == 1 else 0, 0, 0)
        assert LlmCall.objects.filter(outcome="confidential").count() == runs
    assert vectors() == {page.pk for page in open_}
    assert not {page.body for page in secret} & set(sent(server))
    assert not Claim.objects.exclude(attempts=0, lease_until=None).exists()
    assert not DistillFailure.objects.exists()


def test_it_embeds_them_as_soon_as_they_may_leave(
    alice: Principal, configure: Callable[..., None]
) -> None:
    pages(alice, 2, confidentiality="restricted")
    assert run().turns == 0
    configure(model_url=None, model=None, model_confidentiality="restricted")
    assert run().turns == 2


def test_it_parks_a_raw_item_that_cannot_be_embedded_and_asks_no_more(
    alice: Principal, server: OpenAIServer
) -> None:
    bad, good = document(alice, BAD), pages(alice, 4)
    server.script(EMBEDDINGS, *[but_bad] * 99)
    reports = [run() for _ in range(CONTENT_FAILURES_MAX)]
    assert [report.failed for report in reports] == [1] * CONTENT_FAILURES_MAX
    assert [report.parked for report in reports] == [0] * (CONTENT_FAILURES_MAX - 1) + [1]
    assert sum(report.turns for report in reports) == 4
    assert vectors() == {page.pk for page in good}
    row = Claim.objects.get()
    assert row.unit == f"item:{bad.pk}" and row.parked_at
    assert DistillFailure.objects.filter(unit=row.unit, owner=alice, stage="embed").count() == 5
    asked = len(server.requests)
    assert (run().failed, len(server.requests)) == (0, asked)


def test_it_tries_alone_a_raw_item_that_failed_before(
    alice: Principal, server: OpenAIServer
) -> None:
    document(alice, BAD)
    server.script(EMBEDDINGS, *[but_bad] * 99)
    run()
    pages(alice, 5)
    asked = len(server.requests)
    assert run().turns == 5
    assert [len(request.body["input"]) for request in server.requests[asked:]] == [5, 1]


def test_it_does_raw_items_with_what_the_notes_left_of_the_limit(alice: Principal) -> None:
    pages(alice, 3)
    for n in range(2):
        note(alice, f"Fact number {n} of the build.", embedded=False)
    first = run(limit=3)
    assert (first.embedded, first.turns) == (2, 1)
    assert (run(limit=0).turns, run(limit=1).turns, run().turns) == (0, 1, 1)


def test_it_does_no_raw_item_after_its_time(alice: Principal) -> None:
    pages(alice, 3)
    assert run(until=at(days=1)).turns == 0
    assert run(until=at(days=2)).turns == 3


def test_it_keeps_the_raw_items_done_before_the_embedder_went_away(
    alice: Principal, server: OpenAIServer
) -> None:
    pages(alice, NOTES_A_BATCH + 6)
    good: Scripted = well
    server.script(EMBEDDINGS, good, fails(503))
    report = run()
    assert (report.turns, report.transient_failures) == (NOTES_A_BATCH, 1)
    assert not Claim.objects.exclude(attempts=0, content_failures=0, lease_until=None).exists()
    Cooldown.objects.all().delete()
    assert run().turns == 6 and len(vectors()) == NOTES_A_BATCH + 6


def test_it_counts_what_came_of_each_confidentiality_before_the_embedder_went_away(
    alice: Principal, server: OpenAIServer
) -> None:
    pages(alice, 2, confidentiality="public")
    document(alice, "An internal page.")
    server.script(EMBEDDINGS, well, fails(503))
    report = run()
    assert (report.turns, report.transient_failures) == (2, 1)
    assert json.dumps(sent(server)).count("Page") == 2


def test_it_parks_a_raw_item_that_is_gone_for_nobody(
    alice: Principal, server: OpenAIServer
) -> None:
    """Retried alone after two claims that ended without an answer, it still gets its vector."""
    page = document(alice, "A page.")
    Claim.objects.create(stage="embed", unit=f"item:{page.pk}", attempts=2)
    assert run().turns == 1 and not Claim.objects.exists()
