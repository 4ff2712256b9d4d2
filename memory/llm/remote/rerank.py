"""The reranker behind a URL: a query and texts to one score a text.

Speaks what Cohere, Jina, vLLM and LiteLLM share and, where a server asks for it, what
text-embeddings-inference speaks. Knows nothing about notes, ranks or what a score decides.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

from memory.errors import ContentError
from memory.llm.calls import Question, Reply, ask
from memory.llm.ports import Origin
from memory.llm.remote.client import rerank
from memory.llm.remote.endpoints import Endpoint

#: Characters of one text that are scored.
# Why: cross-encoders read 512 tokens, query included, and what is over costs time and is cut there.
# Calibrate: the context of the model in use, in dense text.
TEXT_CHARS_MAX = 2_000

#: Characters of the query that is scored against.
QUERY_CHARS_MAX = 1_000

# How a server says that it wants the other words.
_WANTS_TEXTS = re.compile(r"missing field.{0,4}\btexts\b|\btexts\b.{0,40}\brequired\b", re.I)


class HTTPReranker:
    """One call for all texts; finds out once which words its server speaks."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self.name = endpoint.model
        self._bare = False

    def rerank(self, query: str, texts: Sequence[str], *, origin: Origin) -> list[float]:
        """One score per text, in order; the higher the better, on the model's own scale.

        Raises InfraError when the server is away, late or resting, Confidential when the texts may
        not leave, ContentError when not every text got one number.
        """
        if not texts:
            return []
        try:
            return self._ask(query, texts, origin)
        except ContentError as error:
            if self._bare or not _WANTS_TEXTS.search(error.raw):
                raise
        self._bare = True
        return self._ask(query, texts, origin)

    def _ask(self, query: str, texts: Sequence[str], origin: Origin) -> list[float]:
        endpoint, bare = self.endpoint, self._bare
        cut = (query[:QUERY_CHARS_MAX], *(text[:TEXT_CHARS_MAX] for text in texts))
        question = Question("rerank", endpoint.provider, self.name, cut)

        def send(redacted: tuple[str, ...]) -> Reply:
            return rerank(endpoint, redacted[0], redacted[1:], bare=bare)

        def read(reply: Reply) -> list[float]:
            return _scores(reply.scores, len(texts), endpoint.provider)

        scores, _ = ask(question, send, read, origin=origin)
        return scores


def _scores(given: Mapping[int, object], count: int, provider: str) -> list[float]:
    """`count` finite numbers in order of position. Raises ContentError."""
    found: list[float] = []
    for position in range(count):
        score = given.get(position)
        if isinstance(score, bool) or not isinstance(score, (int, float)):
            raise ContentError(f"{provider} gave no score for text {position + 1} of {count}")
        if not math.isfinite(score):
            raise ContentError(f"{provider} gave text {position + 1} of {count} the score {score}")
        found.append(float(score))
    return found


@lru_cache(maxsize=4)
def shared(endpoint: Endpoint) -> HTTPReranker:
    """The one reranker of this endpoint in this process."""
    return HTTPReranker(endpoint)
