"""How: notes by factories, the scripted embeddings server, rows read back."""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from memory.llm.remote.embed import shared
from memory.models import (
    Claim,
    Cooldown,
    DistillFailure,
    LlmCall,
    Note,
    Principal,
    StageRun,
    TurnVector,
)
from memory.stages.embed import NOTES_A_BATCH, EmbedReport, embed, reembed, text_of
from memory.stages.segment import segment
from tests.factories import at, clock, fresh, note, three, turns
from tests.hashing_embedder import vector_of
from tests.openai_server import EMBEDDINGS, OpenAIServer, Request, Scripted, Step, fails, gives

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("local")]

Configure = Callable[..., None]
BAD = "The text that this model cannot embed."


@pytest.fixture
def alice() -> Principal:
    return three()[0]


def run(**fields: Any) -> EmbedReport:
    return embed(clock=clock(at(days=1)), **fields)


def bare(owner: Principal, count: int) -> list[Note]:
    """So many notes without a vector."""
    return [note(owner, f"Fact number {n} of the build.", embedded=False) for n in range(count)]


def lacking() -> int:
    return Note.objects.as_pipeline().unembedded().count()


def poisoned(answer: Callable[[Request], Step]) -> Callable[[Request], Step]:
    """Answers well unless the bad text is in the batch."""

    def step(request: Request) -> Step:
        if BAD in request.body["input"]:
            return answer(request)
        return gives([vector_of(text) for text in request.body["input"]])

    return step


def with_bad(vector: object) -> Callable[[Request], Step]:
    """Gives this vector for the bad text, good ones for the others."""
    return lambda request: gives(
        [vector if text == BAD else vector_of(text) for text in request.body["input"]]
    )


def test_it_gives_every_live_note_a_vector_and_names_its_model(alice: Principal) -> None:
    made = bare(alice, 3)
    retired = note(alice, "Retired fact.", embedded=False, deleted_at=at(40))
    report = run()
    assert (report.embedded, report.failed, report.parked, report.pending) == (3, 0, 0, 0)
    for one in map(fresh, made):
        assert one.embedding_model == "scripted-embed" and one.embedded_at == at(days=1)
        assert list(one.embedding) == pytest.approx(vector_of(text_of(one)), abs=1e-3)
    assert fresh(retired).embedding is None
    assert not Claim.objects.exists()
    row = StageRun.objects.get(stage="embed")
    assert (row.status, row.report["embedded"]) == ("done", 3)
    assert LlmCall.objects.filter(port="embed").latest("pk").run_id == row.pk


def test_it_asks_for_sixty_four_at_once(alice: Principal, server: OpenAIServer) -> None:
    bare(alice, NOTES_A_BATCH + 3)
    assert run().embedded == NOTES_A_BATCH + 3
    assert [len(r.body["input"]) for r in server.requests] == [NOTES_A_BATCH, 3]


def test_it_embeds_so_many_and_no_more(alice: Principal) -> None:
    bare(alice, 5)
    report = run(limit=2)
    assert (report.embedded, report.pending) == (2, 3)


def test_it_adds_the_title_where_it_says_more(alice: Principal) -> None:
    more = note(alice, "It listens on 8443.", title="Port of staging", embedded=False)
    cut = note(alice, "It listens on 8443 now.", title="It listens on…", embedded=False)
    assert text_of(more) == "Port of staging\nIt listens on 8443."
    assert text_of(cut) == "It listens on 8443 now."


ODD: list[tuple[str, object]] = [
    ("nan", [math.nan] * 768),
    ("infinity", [math.inf] + [0.0] * 767),
    ("zeros", [0.0] * 768),
    ("short", [1.0] * 384),
    ("long", [1.0] * 1536),
    ("empty", []),
    ("null", None),
]


@pytest.mark.parametrize("vector", [v for _, v in ODD], ids=[name for name, _ in ODD])
def test_it_stores_the_others_and_parks_the_one_bad_note(
    alice: Principal, server: OpenAIServer, vector: object
) -> None:
    bare(alice, 7)
    bad = note(alice, BAD, embedded=False)
    server.script(EMBEDDINGS, *[poisoned(with_bad(vector))] * 40)
    reports = [run() for _ in range(5)]
    assert sum(report.embedded for report in reports) == 7
    assert sum(report.parked for report in reports) == 1
    assert reports[-1].pending == 0
    assert fresh(bad).embedding is None
    assert Claim.objects.get().parked_at is not None
    rows = DistillFailure.objects.filter(stage="embed", unit=f"note:{bad.pk}")
    assert rows.count() == 5 and rows.filter(parked=True).count() == 1
    assert all(len(row.error) < 500 for row in rows), "no message carries a vector"


def test_it_bisects_a_batch_whose_bad_text_is_not_named(
    alice: Principal, server: OpenAIServer
) -> None:
    bare(alice, 63)
    bad = note(alice, BAD, embedded=False)
    broken = fails(500, '{"error": "unsupported value: NaN"}')
    server.script(EMBEDDINGS, *[poisoned(lambda request: broken)] * 99)
    for _ in range(5):
        run()
    assert lacking() == 1 and fresh(bad).embedding is None
    assert Claim.objects.get().unit == f"note:{bad.pk}" and Claim.objects.get().parked_at
    assert not Cooldown.objects.exists(), "the server was not away"
    # Seven calls find it among 64 (two a level); tried again it goes alone.
    assert len(server.requests) <= 13 + 4
    reply = DistillFailure.objects.order_by("pk")[0].reply
    assert b"NaN" in zlib.decompress(bytes(reply))


def test_it_tries_alone_what_failed_before(alice: Principal, server: OpenAIServer) -> None:
    bare(alice, 7)
    note(alice, BAD, embedded=False)
    broken = fails(500, '{"error": "unsupported value: NaN"}')
    server.script(EMBEDDINGS, *[poisoned(lambda request: broken)] * 99)
    assert run(limit=8).failed == 1
    bare(alice, 7)
    asked = len(server.requests)
    report = run(limit=8)
    assert (report.embedded, report.failed) == (7, 1)
    assert [len(r.body["input"]) for r in server.requests[asked:]] == [7, 1]


def test_it_stores_what_came_when_fewer_vectors_come_than_were_asked_for(
    alice: Principal, server: OpenAIServer
) -> None:
    bare(alice, 4)
    server.script(EMBEDDINGS, lambda r: gives([vector_of(t) for t in r.body["input"][:3]]))
    report = run()
    assert report.embedded == 4 and report.failed == 1 and lacking() == 0


@pytest.mark.parametrize("size", [384, 1024, 1536])
def test_it_writes_nothing_when_all_vectors_are_of_another_size(
    alice: Principal, server: OpenAIServer, size: int
) -> None:
    bare(alice, 5)
    server.script(EMBEDDINGS, *[lambda r: gives([[1.0] * size] * len(r.body["input"]))] * 9)
    report = run()
    assert (report.embedded, report.transient_failures, report.pending) == (0, 1, 5)
    assert lacking() == 5 and not DistillFailure.objects.exists()
    assert LlmCall.objects.latest("pk").outcome == "wrong_size"
    assert not Claim.objects.exclude(attempts=0, content_failures=0).exists()


def test_it_parks_a_lone_bad_note_of_a_model_that_fitted_before(
    alice: Principal, server: OpenAIServer
) -> None:
    bare(alice, 2)
    run()
    shared.cache_clear()  # As in a process that begins with this note.
    note(alice, BAD, embedded=False)
    server.script(EMBEDDINGS, *[poisoned(with_bad([1.0] * 384))] * 5)
    assert sum(run().parked for _ in range(5)) == 1
    assert not Cooldown.objects.exists()


@pytest.mark.parametrize("http_date", [False, True])
def test_it_rests_as_long_as_it_is_told_and_then_goes_on(
    alice: Principal, server: OpenAIServer, http_date: bool
) -> None:
    until = timezone.now() + timedelta(seconds=60)
    wait = until.strftime("%a, %d %b %Y %H:%M:%S GMT") if http_date else "60"
    bare(alice, 3)
    server.script(EMBEDDINGS, fails(429, retry_after=wait))
    report = run()
    assert (report.transient_failures, report.embedded, report.pending) == (1, 0, 3)
    rest = Cooldown.objects.get()
    assert abs((rest.until - until).total_seconds()) < 5
    for _ in range(6):
        assert run().transient_failures == 1
    assert len(server.requests) == 1, "nobody asks a provider that rests"
    assert not Claim.objects.exclude(attempts=0, content_failures=0, lease_until=None).exists()
    rest.delete()
    assert run().embedded == 3


def test_it_keeps_the_batches_that_were_done_before_the_server_went_away(
    alice: Principal, server: OpenAIServer
) -> None:
    bare(alice, NOTES_A_BATCH + 5)
    good: Scripted = lambda r: gives([vector_of(t) for t in r.body["input"]])  # noqa: E731
    server.script(EMBEDDINGS, good, fails(500))
    report = run()
    assert (report.embedded, report.pending, report.transient_failures) == (NOTES_A_BATCH, 5, 1)


def test_it_gives_no_vector_to_a_note_that_may_not_leave(
    alice: Principal, server: OpenAIServer
) -> None:
    secret = note(alice, "The vault is behind the mill.", embedded=False, confidentiality="secret")
    bare(alice, 3)
    assert run().embedded == 3
    assert fresh(secret).embedding is None
    assert not any("mill" in json.dumps(r.body) for r in server.requests)


def test_it_embeds_anew_after_a_change_of_model_and_can_be_interrupted(
    alice: Principal, server: OpenAIServer, configure: Configure
) -> None:
    turns(alice, ["One turn.", "Another turn."])
    segment(clock=clock(at(90)))
    made = bare(alice, 5)
    run()
    configure(model_url=None, model=None, embed_model="scripted-two")
    shared.cache_clear()
    assert run().embedded == 0, "embed leaves vectors of another model alone"
    now = clock(at(days=2))
    first = reembed(clock=now, limit=2)
    assert (first.embedded, first.pending) == (2, 3)
    assert {n.embedding_model for n in map(fresh, made)} == {"scripted-embed", "scripted-two"}
    asked = len(server.requests)
    second = reembed(clock=now)
    assert (second.embedded, second.pending) == (3, 0)
    texts = [t for r in server.requests[asked:] for t in r.body["input"]]
    assert len([t for t in texts if t.startswith("Fact number")]) == 3, "two are done already"
    assert {n.embedding_model for n in map(fresh, made)} == {"scripted-two"}
    assert second.turns == 2 + 5, "the turns, and those that the notes were taken from"
    assert TurnVector.objects.filter(model="scripted-two").count() == 2 + 5
    again = reembed(clock=now)
    assert (again.embedded, again.turns) == (0, 0)


def test_it_parks_in_one_run_the_note_whose_vector_is_bad_by_itself(
    alice: Principal, server: OpenAIServer
) -> None:
    bare(alice, 63)
    note(alice, BAD, embedded=False)
    server.script(EMBEDDINGS, *[poisoned(with_bad([0.0] * 768))] * 40)
    report = run()
    assert (report.embedded, report.failed, report.parked, report.pending) == (63, 5, 1, 0)
    assert set(DistillFailure.objects.values_list("owner", flat=True)) == {alice.pk}


def test_it_parks_nothing_in_one_run_of_a_model_that_gives_only_bad_vectors(
    alice: Principal, server: OpenAIServer
) -> None:
    bare(alice, 6)
    zeros: Scripted = lambda r: gives([[0.0] * 768] * len(r.body["input"]))  # noqa: E731
    server.script(EMBEDDINGS, *[zeros] * 40)
    report = run()
    assert (report.embedded, report.failed, report.parked, report.pending) == (0, 6, 0, 6)


@pytest.mark.parametrize("status", [400, 413, 422])
def test_it_tries_once_a_run_what_was_refused_for_a_reason_that_may_pass(
    alice: Principal, server: OpenAIServer, status: int
) -> None:
    bare(alice, 3)
    note(alice, BAD, embedded=False)
    server.script(EMBEDDINGS, *[poisoned(lambda request: fails(status))] * 40)
    report = run()
    assert (report.embedded, report.failed, report.parked, report.pending) == (3, 1, 0, 1)


def test_it_parks_at_once_what_may_not_leave(alice: Principal, server: OpenAIServer) -> None:
    secret = note(alice, "The vault is behind the mill.", embedded=False, confidentiality="secret")
    bare(alice, 3)
    report = run()
    assert (report.embedded, report.failed, report.parked, report.pending) == (3, 1, 1, 0)
    row = Claim.objects.get()
    assert (row.unit, row.parked_reason) == (f"note:{secret.pk}", "confidential")
    refused = LlmCall.objects.filter(outcome="confidential").count()
    assert refused == 1, "the others of its batch are not asked about one by one"


def turned(alice: Principal, configure: Configure, count: int) -> None:
    """So many turns with a vector of the model before this one."""
    turns(alice, [f"Turn number {n} of the talk." for n in range(count)])
    segment(clock=clock(at(90)))
    configure(model_url=None, model=None, embed_model="scripted-two")
    shared.cache_clear()


def test_it_says_that_the_embedder_went_away_while_turns_were_embedded_anew(
    alice: Principal, server: OpenAIServer, configure: Configure
) -> None:
    turned(alice, configure, 70)
    good: Scripted = lambda r: gives([vector_of(t) for t in r.body["input"]])  # noqa: E731
    server.script(EMBEDDINGS, good, fails(503))
    report = reembed(clock=clock(at(days=1)))
    assert (report.turns, report.transient_failures) == (64, 1)
    Cooldown.objects.all().delete()
    report = reembed(clock=clock(at(days=1)))
    assert (report.turns, report.transient_failures) == (6, 0)
    assert TurnVector.objects.filter(model="scripted-two").count() == 70


def test_it_embeds_so_many_turns_anew_and_no_more(alice: Principal, configure: Configure) -> None:
    turned(alice, configure, 5)
    assert reembed(clock=clock(at(days=1)), limit=2).turns == 2
    assert reembed(clock=clock(at(days=1)), limit=9).turns == 3
    assert reembed(clock=clock(at(days=1))).turns == 0


def test_it_embeds_nothing_after_its_time(alice: Principal, configure: Configure) -> None:
    turned(alice, configure, 3)
    bare(alice, 3)
    report = reembed(clock=clock(at(days=1)), until=at(days=1))
    assert (report.embedded, report.turns, report.pending) == (0, 0, 3)
