"""One short call of a chat model, to see that it answers and who does.

Keeps no reply and makes nobody else wait. Knows nothing about who asks.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from memory.llm.calls import Away, Question, Reply, ask
from memory.llm.ports import Origin, Usage
from memory.llm.remote.client import Dialect, Unsupported, adapt, chat
from memory.llm.remote.endpoints import Endpoint

PROMPT_VERSION = "greeting-1"

#: What it is told and asked.
TEXTS = ("Answer with the one word: yes.", "Do you answer?")

#: Tokens of the answer; more than a word, because some models think first.
# Why: an answer that is cut off is an answer all the same, and costs next to nothing.
ANSWER_TOKENS_MAX = 16

#: How long it may take.
# Why: a person waits, and a model that must be loaded first takes some seconds.
GREETING_SECONDS_MAX = 15.0

#: Dialects tried: one other name for the limit, one without temperature.
TRIES_MAX = 3


def greet(endpoint: Endpoint, *, origin: Origin) -> Usage:
    """Ask the model at this endpoint for a word: who answered, and what it cost.

    Raises InfraError when it is away (BudgetExhausted among them), ContentError when it refuses
    such a question. One LlmCall row; a model that is slow to wake makes no other worker wait.
    """
    quick = replace(endpoint, timeout_seconds=min(endpoint.timeout_seconds, GREETING_SECONDS_MAX))
    dialect = Dialect(structured="plain")
    for last in (False,) * (TRIES_MAX - 1) + (True,):
        try:
            return _ask(quick, dialect, origin)
        except Unsupported as error:
            other = adapt(dialect, error.raw)
            if other is None or last:
                raise
            dialect = other
    raise AssertionError("the loop returns or raises")


def _ask(endpoint: Endpoint, dialect: Dialect, origin: Origin) -> Usage:
    question = Question(
        "greeting",
        endpoint.provider,
        endpoint.model,
        TEXTS,
        PROMPT_VERSION,
        dialect.structured,
        ANSWER_TOKENS_MAX,
    )
    say = partial(
        chat,
        endpoint,
        schema_name="",
        schema={},
        dialect=dialect,
        tokens_out_max=ANSWER_TOKENS_MAX,
    )

    def send(texts: tuple[str, ...]) -> Reply:
        try:
            return say(texts)
        except Away as error:
            error.rests = False
            raise

    return ask(question, send, lambda reply: reply.model_real, origin=origin)[1]
