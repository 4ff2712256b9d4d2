"""How a chat model would begin its answer: its first tokens with their log-probabilities.

Asks for no form and keeps no text. Knows nothing about what two openings are compared for.
"""

from __future__ import annotations

from functools import partial

from memory.errors import ContentError
from memory.llm.calls import Question, Reply, ask
from memory.llm.ports import NoLogProbabilities, Origin, Usage
from memory.llm.remote.client import Dialect, Unsupported, adapt, opening
from memory.llm.remote.endpoints import Endpoint

PROMPT_VERSION = "opening-1"

#: Tokens of an opening.
# Why: what a text stands on shows in its first words; each more costs a decoding step.
# Calibrate: share of pairs of a right and a foreign context that are told apart, by this number.
OPENING_TOKENS_MAX = 16

#: Alternatives of each token that are asked for; what most servers give at most.
LIKELIEST_MAX = 20

#: Dialects tried for one opening: one other name for the limit, one without temperature.
TRIES_MAX = 3


class OpenAIOpener:
    """A call an opening; learns once how its server names the limit."""

    prompt_version = PROMPT_VERSION

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self.name = endpoint.model
        self._dialect = Dialect(structured="plain")

    def open(
        self, system: str, user: str, *, origin: Origin
    ) -> tuple[tuple[dict[str, float], ...], Usage]:
        """For each of the first tokens its likeliest values with natural log-probabilities.

        Raises InfraError and Confidential as the other ports do, NoLogProbabilities when the server
        leaves them out, ContentError when it refuses the question.
        """
        for last in (False,) * (TRIES_MAX - 1) + (True,):
            try:
                return self._ask(system, user, origin)
            except Unsupported as error:
                other = adapt(self._dialect, error.raw)
                if other is None or last:
                    raise
                self._dialect = other
        raise AssertionError("the loop returns or raises")

    def _ask(
        self, system: str, user: str, origin: Origin
    ) -> tuple[tuple[dict[str, float], ...], Usage]:
        question = Question(
            "open",
            self.endpoint.provider,
            self.name,
            (system, user),
            PROMPT_VERSION,
            tokens_out_max=OPENING_TOKENS_MAX,
        )
        send = partial(
            opening,
            self.endpoint,
            dialect=self._dialect,
            tokens_max=OPENING_TOKENS_MAX,
            likeliest=LIKELIEST_MAX,
        )
        try:
            return ask(question, send, _read, origin=origin)
        except ContentError as error:
            if "logprobs" in error.raw and not isinstance(error, Unsupported):
                raise NoLogProbabilities(str(error), error.raw) from None
            raise


def _read(reply: Reply) -> tuple[dict[str, float], ...]:
    if not reply.openings:
        raise NoLogProbabilities
    return reply.openings
