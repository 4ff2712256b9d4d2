"""How: calls whose far side is a plain function; what leaves, what is spent, what is written."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.conf import settings as django_settings
from django.db import connection, connections, transaction

from memory.errors import BudgetExhausted, Confidential, ContentError, InfraError
from memory.llm.calls import (
    COOLDOWN_SECONDS,
    COOLDOWN_SECONDS_MAX,
    Away,
    Oversized,
    Question,
    Reply,
    ask,
)
from memory.llm.ports import Origin
from memory.llm.remote.tokens import estimate
from memory.models import Cooldown, LlmCall, TokenDay

NOW = datetime(2026, 5, 4, 23, 0, tzinfo=UTC)
ORIGIN = Origin("distill", "episode:1")
QUESTION = Question("distill", "chat:host", "m-1", ("system", "user text"), "v1", "plain", 100)
ANSWER = Reply(text="fine", model_real="m-1-real", tokens_in=40, tokens_out=9)


def call(
    send: Callable[[tuple[str, ...]], Reply] = lambda texts: ANSWER,
    read: Callable[[Reply], Any] = lambda reply: reply.text,
    question: Question = QUESTION,
    origin: Origin = ORIGIN,
    now: datetime = NOW,
) -> Any:
    return ask(question, send, read, origin=origin, clock=lambda: now)


def raises(error: BaseException) -> Callable[[object], Any]:
    def raising(given: object) -> Any:
        raise error

    return raising


def limit(settings: Any, **values: Any) -> None:
    settings.ARGUS = django_settings.ARGUS.model_copy(update=values)


@pytest.mark.django_db
def test_it_writes_one_row_with_what_was_asked_answered_and_spent() -> None:
    value, usage = call()
    row = LlmCall.objects.get()
    assert value == "fine"
    assert (row.stage, row.port, row.unit) == ("distill", "distill", "episode:1")
    assert (row.model_asked, row.model_real, row.prompt_version) == ("m-1", "m-1-real", "v1")
    assert (row.tokens_in, row.tokens_out, row.outcome) == (40, 9, "ok")
    assert (row.structured_mode, row.created_at) == ("plain", NOW)
    assert (usage.tokens_in, usage.tokens_out, usage.model_real) == (40, 9, "m-1-real")
    assert TokenDay.objects.get().tokens == 49


@pytest.mark.django_db
def test_it_redacts_secrets_from_everything_that_leaves_and_counts_them() -> None:
    seen: list[str] = []
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    question = Question("embed", "embed:host", "m", (f"token {secret} here", f"and {secret}"))

    def send(texts: tuple[str, ...]) -> Reply:
        seen.extend(texts)
        return ANSWER

    call(send, question=question)
    assert all(secret not in text and "[redacted:" in text for text in seen)
    assert sum(LlmCall.objects.get().redacted.values()) == 2


@pytest.mark.django_db
@pytest.mark.parametrize("confidentiality", ["restricted", "secret", "no such word"])
def test_it_lets_nothing_leave_above_the_allowed_confidentiality(confidentiality: str) -> None:
    with pytest.raises(Confidential):
        call(raises(AssertionError("sent")), origin=Origin("embed", "x", confidentiality))
    assert LlmCall.objects.get().outcome == "confidential"
    assert not TokenDay.objects.exists()


@pytest.mark.django_db
def test_it_lets_more_leave_when_the_setting_says_so(settings: Any) -> None:
    limit(settings, model_confidentiality="secret")
    assert call(origin=Origin("embed", "x", "secret"))[0] == "fine"


@pytest.mark.django_db
def test_it_gives_the_reservation_back_when_nothing_was_answered() -> None:
    with pytest.raises(InfraError):
        call(raises(Away("down", "refused")))
    row = LlmCall.objects.get()
    assert (row.outcome, row.tokens_in, row.tokens_out) == ("refused", 0, 0)
    assert TokenDay.objects.get().tokens == 0


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (Away("slow", "timeout", charged=True), "timeout"),
        (Oversized("The answer is over 9 bytes", "..."), "oversized"),
        (SystemExit(143), "bug"),
        (ZeroDivisionError(), "bug"),
    ],
)
def test_what_may_have_been_generated_stays_spent(error: BaseException, outcome: str) -> None:
    """A model that is slower than the timeout, an answer nobody reads, a worker that is ended."""
    with pytest.raises(type(error)):
        call(raises(error))
    sent = sum(map(estimate, QUESTION.texts))
    row = LlmCall.objects.get()
    assert (row.outcome, row.tokens_in, row.tokens_out) == (outcome, sent, 100)
    assert TokenDay.objects.get().tokens == sent + 100


@pytest.mark.django_db
def test_it_counts_what_an_unusable_answer_cost() -> None:
    with pytest.raises(ContentError):
        call(read=raises(ContentError("unreadable", "raw")))
    row = LlmCall.objects.get()
    assert (row.outcome, row.tokens_in, row.tokens_out) == ("content", 40, 9)
    assert TokenDay.objects.get().tokens == 49
    assert not Cooldown.objects.exists()


@pytest.mark.django_db
def test_what_was_refused_as_it_came_costs_nothing_and_what_was_answered_what_it_said() -> None:
    with pytest.raises(ContentError):
        call(raises(ContentError("too long", "raw")))
    assert TokenDay.objects.get().tokens == 0
    with pytest.raises(InfraError):
        call(read=raises(Away("odd", "no_answer", rests=False)))
    assert TokenDay.objects.get().tokens == 49
    with pytest.raises(ZeroDivisionError):
        call(read=raises(ZeroDivisionError()))
    assert TokenDay.objects.get().tokens == 98


@pytest.mark.django_db
def test_it_estimates_when_the_server_does_not_count() -> None:
    call(lambda texts: Reply(text="twelve chars"))
    row = LlmCall.objects.get()
    assert (row.tokens_in, row.tokens_out) == (sum(map(estimate, QUESTION.texts)), 3)


@pytest.mark.django_db
def test_it_rests_for_everybody_after_trouble_and_goes_on_alone() -> None:
    with pytest.raises(InfraError):
        call(raises(Away("down", "http_5xx")))
    with pytest.raises(InfraError) as caught:
        call(raises(AssertionError("sent")), now=NOW + timedelta(seconds=10))
    assert caught.value.retry_after == COOLDOWN_SECONDS - 10
    assert call(now=NOW + timedelta(seconds=COOLDOWN_SECONDS))[0] == "fine"
    outcomes = LlmCall.objects.order_by("id").values_list("outcome", flat=True)
    assert list(outcomes) == ["http_5xx", "cooldown", "ok"]


@pytest.mark.django_db
@pytest.mark.parametrize(("asked", "rests"), [(60, 60), (0, 0), (10**9, COOLDOWN_SECONDS_MAX)])
def test_it_rests_as_long_as_it_was_asked_to_within_reason(asked: float, rests: float) -> None:
    with pytest.raises(InfraError):
        call(raises(Away("busy", "http_429", asked)))
    assert Cooldown.objects.get().until == NOW + timedelta(seconds=rests)


@pytest.mark.django_db
def test_it_never_shortens_a_rest_and_keeps_providers_apart() -> None:
    Cooldown.objects.create(provider="chat:other", until=NOW + timedelta(hours=1), reason="x")

    def trouble(texts: tuple[str, ...]) -> Reply:
        # Another worker's call to the same server failed meanwhile.
        later = NOW + timedelta(seconds=600)
        Cooldown.objects.create(provider="chat:host", until=later, reason="http_429")
        raise Away("busy", "http_429", 5)

    with pytest.raises(InfraError):
        call(trouble)
    assert Cooldown.objects.get(provider="chat:host").until == NOW + timedelta(seconds=600)


@pytest.mark.django_db
def test_it_does_not_rest_when_the_trouble_is_not_the_providers() -> None:
    with pytest.raises(InfraError):
        call(raises(Away("odd", "no_answer", rests=False)))
    assert not Cooldown.objects.exists()


@pytest.mark.django_db
def test_it_stops_before_the_budget_is_overspent_until_the_next_day(settings: Any) -> None:
    limit(settings, tokens_per_day=150)
    call()
    with pytest.raises(BudgetExhausted) as caught:
        call(raises(AssertionError("sent")))
    assert caught.value.retry_after == 3600
    assert TokenDay.objects.get().tokens == 49
    assert call(now=NOW + timedelta(hours=1))[0] == "fine"
    outcomes = LlmCall.objects.order_by("id").values_list("outcome", flat=True)
    assert list(outcomes) == ["ok", "budget", "ok"]


@pytest.mark.django_db
def test_it_counts_what_a_prompt_asks_and_does_not_make_it_wait(settings: Any) -> None:
    limit(settings, tokens_per_day=1)
    assert call(origin=Origin("recall"))[0] == "fine"
    assert TokenDay.objects.get().tokens == 49


@pytest.mark.django_db
def test_it_asks_nothing_at_a_budget_of_zero(settings: Any) -> None:
    limit(settings, tokens_per_day=0)
    with pytest.raises(BudgetExhausted):
        call(raises(AssertionError("sent")))
    with pytest.raises(BudgetExhausted):
        call(raises(AssertionError("sent")), origin=Origin("recall"))
    assert not TokenDay.objects.exists()


@pytest.mark.django_db
def test_it_refuses_to_call_a_model_inside_a_transaction() -> None:
    with transaction.atomic(), pytest.raises(RuntimeError, match="durable"):
        call(raises(AssertionError("sent")))


def test_it_lets_no_two_workers_overspend_together(clone_db: str, settings: Any) -> None:
    limit(settings, tokens_per_day=1000)
    ahead = sum(map(estimate, QUESTION.texts)) + QUESTION.tokens_out_max
    together = threading.Barrier(16)
    go_on = threading.Event()
    outcomes: list[str] = []

    def send(texts: tuple[str, ...]) -> Reply:
        go_on.wait(10)
        return ANSWER

    def work() -> None:
        together.wait(10)
        try:
            call(send)
            outcomes.append("ok")
        except BudgetExhausted:
            outcomes.append("budget")
        finally:
            connections.close_all()

    threads = [threading.Thread(target=work) for _ in range(16)]
    for thread in threads:
        thread.start()
    while outcomes.count("budget") < 16 - 1000 // ahead and any(t.is_alive() for t in threads):
        go_on.wait(0.02)
    assert TokenDay.objects.get().tokens == 1000 // ahead * ahead
    go_on.set()
    for thread in threads:
        thread.join(10)
    assert sorted(outcomes) == ["budget"] * (16 - 1000 // ahead) + ["ok"] * (1000 // ahead)
    assert TokenDay.objects.get().tokens == 49 * (1000 // ahead)
    assert LlmCall.objects.count() == 16
    connection.close()
