"""How: rerankers of every dialect, well and ill, against a scripted server and a real ledger."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import SecretStr

from argus.environment import EnvironmentProblem, read
from memory.errors import ArgusError, Confidential, ContentError, InfraError
from memory.llm import choice
from memory.llm.ports import Origin, Reranker
from memory.llm.remote.rerank import TEXT_CHARS_MAX, shared
from memory.models import Cooldown, LlmCall, TokenDay
from tests.llm.test_hostile_ledger import ODD, replaced
from tests.openai_server import (
    CHAT,
    RERANK,
    OpenAIServer,
    Request,
    Step,
    fails,
    hangs,
    ranks,
    says,
)

pytestmark = pytest.mark.django_db

ORIGIN = Origin("recall", "prompt")
TEXTS = ["the queue moved", "the port is 8443", "nothing of note"]
SCORES = [0.25, 0.875, -3.5]
Configure = Callable[..., None]


@pytest.fixture
def reranker(server: OpenAIServer, configure: Configure) -> Callable[..., Reranker]:
    """The reranker of the settings, with changes by keyword; what a process learnt is forgotten."""

    def make(**values: Any) -> Reranker:
        shared.cache_clear()
        named = {"rerank_url": server.url, "rerank_model": "scripted-rerank"}
        configure(**{**named, **values})
        made = choice.reranker()
        assert made is not None
        return made

    return make


def outcomes() -> list[str]:
    return list(LlmCall.objects.order_by("id").values_list("outcome", flat=True))


def test_it_is_not_there_until_it_is_set(configure: Configure) -> None:
    configure(rerank_url=None)
    assert choice.reranker() is None


@pytest.mark.parametrize("step", [ranks(SCORES), ranks(SCORES, key="data")])
def test_it_reads_the_scores_of_cohere_and_its_kin_by_position(
    server: OpenAIServer, reranker: Callable[..., Reranker], step: Step
) -> None:
    server.script(RERANK, step)
    key = SecretStr("sk-rank")
    assert reranker(rerank_key=key).rerank("which port?", TEXTS, origin=ORIGIN) == SCORES
    asked = server.requests[0]
    assert asked.body == {
        "model": "scripted-rerank", "query": "which port?", "documents": TEXTS, "top_n": 3,
    }  # fmt: skip
    assert asked.headers["authorization"] == "Bearer sk-rank"
    row = LlmCall.objects.get()
    assert (row.port, row.stage, row.outcome) == ("rerank", "recall", "ok")
    assert (row.model_asked, row.model_real) == ("scripted-rerank", "scripted-rerank")
    assert (row.tokens_in, row.tokens_out) == (9, 0)
    assert TokenDay.objects.get().tokens == 9


def test_it_finds_out_once_that_a_server_speaks_of_texts(
    server: OpenAIServer, reranker: Callable[..., Reranker]
) -> None:
    def tei(request: Request) -> Step:
        if "texts" not in request.body:
            return fails(422, "Failed to deserialize: missing field `texts` at line 1")
        return ranks(SCORES, bare=True)

    server.script("/rerank", *[tei] * 3)
    model = reranker(rerank_url=server.url.removesuffix("/v1"))
    for _ in range(2):
        assert model.rerank("which port?", TEXTS, origin=ORIGIN) == SCORES
    assert outcomes() == ["content", "ok", "ok"]
    assert server.requests[-1].body == {"query": "which port?", "texts": TEXTS, "truncate": True}


def test_it_asks_nobody_about_nothing(
    server: OpenAIServer, reranker: Callable[..., Reranker]
) -> None:
    assert reranker().rerank("which port?", [], origin=ORIGIN) == []
    assert not server.requests and not LlmCall.objects.exists()


@pytest.mark.parametrize(
    "body",
    [
        {"results": [{"index": 0, "relevance_score": 0.5}]},
        {"results": []},
        {"results": [{"relevance_score": s} for s in SCORES]},
        {"results": [{"index": 0, "relevance_score": s} for s in SCORES]},
        {"results": [{"index": True, "relevance_score": s} for s in SCORES]},
        {"results": [{"index": n, "relevance_score": "0.5"} for n in range(3)]},
        {"results": [{"index": n, "relevance_score": None} for n in range(3)]},
        {"results": [{"index": n, "relevance_score": float("nan")} for n in range(3)]},
        {"results": [{"index": n, "relevance_score": True} for n in range(3)]},
        ["0.5", "0.6", "0.7"],
    ],
)
def test_it_takes_no_score_that_belongs_to_no_text(
    server: OpenAIServer, reranker: Callable[..., Reranker], body: object
) -> None:
    server.script(RERANK, Step(json.dumps(body)))
    with pytest.raises(ContentError):
        reranker().rerank("which port?", TEXTS, origin=ORIGIN)
    assert outcomes() == ["content"]


@pytest.mark.parametrize(
    ("step", "outcome"),
    [
        (fails(503), "http_5xx"),
        (fails(429, retry_after="60"), "http_429"),
        (fails(404), "http_404"),
        (fails(307, location="http://127.0.0.1:9/rerank"), "http_307"),
        (Step("<html>", content_type="text/html"), "no_answer"),
        (Step('{"hello": 1}'), "no_answer"),
        (says("I am a chat endpoint"), "no_answer"),
        (Step("17"), "no_answer"),
    ],
)
def test_it_rests_when_the_server_is_away_and_chat_goes_on(
    server: OpenAIServer, reranker: Callable[..., Reranker], step: Step, outcome: str
) -> None:
    server.script(RERANK, step)
    model = reranker()
    for _ in range(2):
        with pytest.raises(InfraError):
            model.rerank("which port?", TEXTS, origin=ORIGIN)
    assert outcomes() == [outcome, "cooldown"]
    assert [request.path for request in server.requests] == [RERANK]
    rest = Cooldown.objects.get()
    assert rest.provider.startswith("rerank:")
    assert rest.until < timezone.now() + timedelta(minutes=2)


def test_it_waits_no_longer_than_it_may(
    server: OpenAIServer, reranker: Callable[..., Reranker]
) -> None:
    server.script(RERANK, hangs(5))
    started = time.monotonic()
    with pytest.raises(InfraError):
        reranker(rerank_timeout_seconds=0.2).rerank("which port?", TEXTS, origin=ORIGIN)
    assert time.monotonic() - started < 2
    assert outcomes() == ["timeout"]


def test_it_ends_in_time_however_the_server_drips(
    server: OpenAIServer, reranker: Callable[..., Reranker]
) -> None:
    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n"
    server.script(RERANK, Step(pieces=lambda: [head, *[b" "] * 60], drip_seconds=0.1))
    started = time.monotonic()
    with pytest.raises(InfraError):
        reranker(rerank_timeout_seconds=0.3).rerank("which port?", TEXTS, origin=ORIGIN)
    assert time.monotonic() - started < 2


def test_it_redacts_and_cuts_what_leaves(
    server: OpenAIServer, reranker: Callable[..., Reranker]
) -> None:
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" + "k1L2m3N4o5P6q7R8"
    texts = [f"the token is {secret}", "x" * (TEXT_CHARS_MAX + 500)]
    server.script(RERANK, ranks([1.0, 2.0]))
    reranker().rerank(f"what is {secret}?", texts, origin=ORIGIN)
    sent = json.dumps(server.requests[0].body)
    assert secret not in sent
    assert len(server.requests[0].body["documents"][1]) == TEXT_CHARS_MAX
    assert sum(LlmCall.objects.get().redacted.values()) == 2


def test_it_lets_nothing_leave_that_may_not(
    server: OpenAIServer, reranker: Callable[..., Reranker]
) -> None:
    with pytest.raises(Confidential):
        reranker().rerank("q", TEXTS, origin=Origin("recall", confidentiality="secret"))
    assert not server.requests and outcomes() == ["confidential"]


def test_it_asks_nothing_when_nothing_may_be_asked(
    server: OpenAIServer, reranker: Callable[..., Reranker]
) -> None:
    with pytest.raises(InfraError):
        reranker(tokens_per_day=0).rerank("which port?", TEXTS, origin=ORIGIN)
    assert not server.requests and outcomes() == ["budget"]


def test_it_is_counted_but_not_stopped_by_the_budget_while_an_agent_waits(
    server: OpenAIServer, reranker: Callable[..., Reranker]
) -> None:
    assert reranker(tokens_per_day=1).rerank("which port?", TEXTS, origin=ORIGIN)
    assert TokenDay.objects.get().tokens > 1
    assert CHAT not in [request.path for request in server.requests]


@pytest.mark.parametrize(
    ("given_", "said"),
    [
        ({"ARGUS_RERANK_URL": "http://r/v1"}, "ARGUS_RERANK_MODEL is not set"),
        ({"ARGUS_RERANK_PROMPTS": "true"}, "ARGUS_RERANK_URL is not set"),
        ({"ARGUS_RERANK_TIMEOUT_SECONDS": "0"}, "ARGUS_RERANK_TIMEOUT_SECONDS"),
    ],
)
def test_it_refuses_half_a_setting(
    monkeypatch: pytest.MonkeyPatch, given_: dict[str, str], said: str
) -> None:
    for name, value in given_.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(EnvironmentProblem, match=said):
        read()


PLACES: list[tuple[Any, ...]] = [
    (), ("model",), ("usage",), ("usage", "total_tokens"), ("results",), ("results", 1),
    ("results", 1, "index"), ("results", 1, "relevance_score"),
]  # fmt: skip


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(place=st.sampled_from(PLACES), value=ODD)
def test_it_has_a_row_of_each_call_whatever_the_server_says(
    server: OpenAIServer, reranker: Callable[..., Reranker], place: tuple[Any, ...], value: object
) -> None:
    before = LlmCall.objects.count()
    whole = json.loads(ranks(SCORES).body)
    server.script(RERANK, Step(json.dumps(replaced(whole, place, value))))
    model = reranker()
    Cooldown.objects.all().delete()
    with suppress(ArgusError):
        assert len(model.rerank("which port?", TEXTS, origin=ORIGIN)) == len(TEXTS)
    assert LlmCall.objects.count() == before + 1
    assert outcomes()[-1] in ("ok", "content", "no_answer")
