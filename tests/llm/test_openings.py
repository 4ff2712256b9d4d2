"""How: a chat model that shows log-probabilities, or does not, in the ways in which servers do."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import pytest

from memory.errors import ContentError, InfraError
from memory.llm import choice
from memory.llm.ports import NoLogProbabilities, Origin
from memory.llm.remote.openings import LIKELIEST_MAX, OPENING_TOKENS_MAX
from memory.llm.remote.wire import LOGPROB_MIN
from memory.models import LlmCall
from tests.openai_server import CHAT, OpenAIServer, Step, fails, opens, says

pytestmark = pytest.mark.django_db

Configure = Callable[..., None]
ORIGIN = Origin("impact", "injection:1")


def ask() -> tuple[dict[str, float], ...]:
    model = choice.opener()
    assert model is not None
    tokens, usage = model.open("You answer.", "Which port?", origin=ORIGIN)
    assert (usage.model_asked, usage.model_real) == ("scripted", "scripted-2026-01")
    return tokens


def test_it_gives_each_token_with_what_might_have_stood_there(
    server: OpenAIServer, configure: Configure
) -> None:
    server.script(CHAT, opens({"84": -0.1, "80": -2.5}, {"43": -0.01}))
    assert ask() == ({"84": -0.1, "80": -2.5}, {"43": -0.01})
    body = server.requests[0].body
    assert (body["logprobs"], body["top_logprobs"]) == (True, LIKELIEST_MAX)
    assert (body["max_tokens"], body["temperature"]) == (OPENING_TOKENS_MAX, 0)
    row = LlmCall.objects.get()
    assert (row.port, row.stage, row.outcome, row.tokens_out) == ("open", "impact", "ok", 2)


def test_it_takes_an_impossible_token_for_a_rare_one(
    server: OpenAIServer, configure: Configure
) -> None:
    server.script(CHAT, opens({"84": -0.1, "80": -math.inf, "22": -9999.0}))
    assert ask() == ({"84": -0.1, "80": LOGPROB_MIN, "22": LOGPROB_MIN},)


def broken(change: Callable[[dict[str, Any]], object]) -> Step:
    answer = json.loads(opens({"84": -0.1}, {"43": -0.2}).body)
    change(answer["choices"][0])
    return Step(json.dumps(answer))


@pytest.mark.parametrize(
    "step",
    [
        says("8443"),
        fails(400, '{"error": {"message": "logprobs is not supported by this model"}}'),
        broken(lambda choice: choice.update(logprobs=None)),
        broken(lambda choice: choice.update(logprobs={"tokens": ["84"], "token_logprobs": [-1]})),
        broken(lambda choice: choice["logprobs"].update(content=[])),
        broken(lambda choice: choice["logprobs"]["content"][1].update(top_logprobs=[])),
        broken(lambda choice: choice["logprobs"]["content"][1].update(top_logprobs=["84"])),
        broken(lambda choice: choice["logprobs"]["content"][0]["top_logprobs"][0].update(
            logprob="-0.1"
        )),
        broken(lambda choice: choice["logprobs"]["content"][0]["top_logprobs"][0].update(
            logprob=math.nan
        )),
    ],
)  # fmt: skip
def test_it_says_so_when_a_server_shows_none(
    server: OpenAIServer, configure: Configure, step: Step
) -> None:
    server.script(CHAT, step)
    with pytest.raises(NoLogProbabilities):
        ask()
    assert LlmCall.objects.get().outcome == "content"


def test_it_learns_what_the_limit_is_called(server: OpenAIServer, configure: Configure) -> None:
    model = choice.opener()
    assert model is not None
    server.script(
        CHAT, fails(400, '{"error": {"message": "Use max_completion_tokens, not max_tokens"}}'),
        opens({"84": -0.1}), opens({"84": -0.1}),
    )  # fmt: skip
    for _ in range(2):
        assert model.open("You answer.", "Which port?", origin=ORIGIN)[0]
    assert "max_completion_tokens" in server.requests[-1].body
    assert len(server.requests) == 3


def test_it_tells_a_refused_question_from_a_server_that_is_away(
    server: OpenAIServer, configure: Configure
) -> None:
    server.script(CHAT, fails(400, "too long"), fails(500))
    with pytest.raises(ContentError) as refused:
        ask()
    assert not isinstance(refused.value, NoLogProbabilities)
    with pytest.raises(InfraError):
        ask()


def test_it_has_no_model_for_what_may_not_leave(configure: Configure) -> None:
    assert choice.opener("secret") is None
    configure(model_url=None)
    assert choice.opener() is None
