"""How: whole calls against a server that says anything; the ledger must have a row of each."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memory.errors import ArgusError
from memory.llm import choice
from memory.llm.calls import MODEL_CHARS_MAX, TOKENS_A_CALL_MAX
from memory.llm.ports import VECTOR_SIZE, Origin, Statement
from memory.llm.vectors import BadVectors
from memory.models import Cooldown, LlmCall, TokenDay
from tests.openai_server import CHAT, EMBEDDINGS, OpenAIServer, Step, gives, says

pytestmark = pytest.mark.django_db

ORIGIN = Origin("dedup", "note:1")
Configure = Callable[..., None]

ODD = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
    | st.sampled_from([10**30, -1, 1e30, "\x00", "\ud800", "m" * 1_000, [[]], {"a": None}]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=5,
)  # fmt: skip
VERDICT = '{"verdict": "distinct", "target": null, "reasoning": "\\ud800 \\u0000"}'


def replaced(whole: Any, path: tuple[Any, ...], value: object) -> Any:
    """The JSON value with one place of it made into another value."""
    if not path:
        return value
    copy = whole.copy()
    copy[path[0]] = replaced(whole[path[0]], path[1:], value)
    return copy


NUMBERS = itertools.count()


def judge() -> None:
    # Each time another question: a reply that could be read is kept and would be used again.
    new = Statement("new", f"New {next(NUMBERS)}.")
    choice.judge().judge(new, [Statement("old", "Old.")], origin=ORIGIN)


CHAT_PLACES: list[tuple[Any, ...]] = [
    (), ("model",), ("usage",), ("usage", "prompt_tokens"), ("usage", "completion_tokens"),
    ("choices",), ("choices", 0), ("choices", 0, "finish_reason"), ("choices", 0, "message"),
    ("choices", 0, "message", "content"), ("choices", 0, "message", "refusal"),
]  # fmt: skip
VECTOR_PLACES: list[tuple[Any, ...]] = [
    (), ("data",), ("data", 0), ("data", 0, "index"), ("data", 0, "embedding"), ("model",),
    ("data", 0, "embedding", 0), ("usage",), ("usage", "prompt_tokens"),
]  # fmt: skip


@settings(
    max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(place=st.sampled_from(CHAT_PLACES), value=ODD)
def test_it_writes_one_row_whatever_a_chat_server_says(
    server: OpenAIServer, configure: Configure, place: Any, value: object
) -> None:
    answer = json.loads(says(VERDICT).body)
    server.script(CHAT, Step(json.dumps(replaced(answer, place, value))))
    once(judge)


@settings(
    max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(place=st.sampled_from(VECTOR_PLACES), value=ODD)
def test_it_writes_one_row_whatever_an_embedding_server_says(
    server: OpenAIServer, configure: Configure, place: Any, value: object
) -> None:
    answer = json.loads(gives([[1.0] * VECTOR_SIZE] * 2).body)
    server.script(EMBEDDINGS, Step(json.dumps(replaced(answer, place, value))))
    once(lambda: choice.embedder().embed(["a", "b"], origin=ORIGIN))


def once(act: Callable[[], object]) -> None:
    """Act: only our own errors, and one row, which is no bug's."""
    Cooldown.objects.all().delete()
    TokenDay.objects.all().delete()
    before = LlmCall.objects.count()
    with suppress(ArgusError):
        act()
    row = LlmCall.objects.latest("id")
    assert LlmCall.objects.count() == before + 1
    assert row.outcome in ("ok", "content", "no_answer", "wrong_size")
    assert 0 <= row.tokens_in <= TOKENS_A_CALL_MAX and 0 <= row.tokens_out <= TOKENS_A_CALL_MAX
    assert len(row.model_real) <= MODEL_CHARS_MAX


def test_it_keeps_counts_and_names_to_what_the_ledger_holds(
    server: OpenAIServer, configure: Configure
) -> None:
    answer = json.loads(says(VERDICT).body)
    answer["usage"] = {"prompt_tokens": 1e30, "completion_tokens": -4}
    answer["model"] = "na\x00me" + "x" * 1_000_000
    server.script(CHAT, Step(json.dumps(answer)))
    judge()
    row = LlmCall.objects.get()
    assert row.outcome == "ok" and row.tokens_in == TOKENS_A_CALL_MAX
    assert 0 < row.tokens_out < 100, "a negative count is none: it is estimated"
    assert row.model_real == "name" + "x" * (MODEL_CHARS_MAX - 4)


@pytest.mark.parametrize("number", [1e200, 10**400, -1e308])
def test_it_names_the_text_whose_vector_is_too_long(
    server: OpenAIServer, configure: Configure, number: float
) -> None:
    fine = [1.0] * VECTOR_SIZE
    server.script(EMBEDDINGS, gives([fine, [number] * VECTOR_SIZE]))
    with pytest.raises(BadVectors) as caught:
        choice.embedder().embed(["a", "b"], origin=ORIGIN)
    assert list(caught.value.bad) == [1]


def test_it_says_oversized_in_the_ledger_and_counts_what_may_have_been_generated(
    server: OpenAIServer, configure: Configure
) -> None:
    configure(model_timeout_seconds=20.0)
    head = b"HTTP/1.1 200 OK\r\n\r\n"
    server.script(
        CHAT, Step(pieces=lambda: itertools.chain([head], itertools.repeat(b" " * 65_536)))
    )
    with pytest.raises(ArgusError):
        judge()
    row = LlmCall.objects.get()
    assert row.outcome == "oversized" and min(row.tokens_in, row.tokens_out) > 0
    assert row.tokens_in + row.tokens_out == TokenDay.objects.get().tokens
    assert not Cooldown.objects.exists()


def test_it_does_not_make_a_prompt_wait_for_a_server_that_drips(
    server: OpenAIServer, configure: Configure
) -> None:
    configure(model_timeout_seconds=60.0)
    head = b"HTTP/1.1 200 OK\r\n\r\n"
    drip = Step(pieces=lambda: itertools.chain([head], itertools.repeat(b" ")), drip_seconds=0.3)
    server.script(EMBEDDINGS, drip)
    started = time.monotonic()
    with pytest.raises(ArgusError):
        choice.embedder().embed_query("who waits?", origin=Origin("recall"))
    assert time.monotonic() - started < 3
    assert LlmCall.objects.get().outcome == "timeout"
