"""The embedder behind a URL: texts to unit-length vectors of exactly VECTOR_SIZE numbers.

A vector that cannot be stored is never mended: the error says which texts got none. Knows nothing
about notes or batches of work.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

from memory.errors import ContentError
from memory.llm.calls import Away, Question, Reply, ask
from memory.llm.ports import VECTOR_SIZE, Origin
from memory.llm.recent import Recent
from memory.llm.remote.client import embeddings
from memory.llm.remote.endpoints import Endpoint, query_endpoint
from memory.llm.vectors import Vector, accept
from memory.models import LlmCall

#: Characters of a text that are embedded.
# Why: embedding servers refuse or silently cut what is over their context (often 2,048 tokens).
# Calibrate: the context of the smallest model in use, in dense text.
TEXT_CHARS_MAX = 6_000

#: What models want before a passage and before a query; others get the bare text.
# Why: these were trained with the words, and lose much of their order without them.
PREFIXES = (
    (re.compile(r"nomic-embed", re.IGNORECASE), "search_document: ", "search_query: "),
    (re.compile(r"\be5\b", re.IGNORECASE), "passage: ", "query: "),
)


class OpenAIEmbedder:
    """Batches as they are given; remembers the vectors of the last queries."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self.name = self.endpoint.model
        self._passage, self._query = _prefixes(self.name)
        # Once a vector fitted, a single one of another size is about its text.
        self._fitted = False
        self._recent = Recent()

    def embed(self, texts: Sequence[str], *, origin: Origin) -> list[Vector]:
        """One vector per text, in order.

        Raises InfraError when the server is away or is another model than wanted (every vector of
        one other size), BadVectors naming the positions, ContentError when it refused the batch
        without saying which text was bad.
        """
        if not texts:
            return []
        return self._ask(self.endpoint, [self._passage + text for text in texts], origin)

    def embed_query(self, text: str, *, origin: Origin) -> Vector:
        """The vector of one query, with a short deadline: a person is waiting."""

        def make() -> Vector:
            return self._ask(query_endpoint(self.endpoint), [self._query + text], origin)[0]

        return self._recent.of(text, make)

    def _ask(self, endpoint: Endpoint, texts: Sequence[str], origin: Origin) -> list[Vector]:
        cut = tuple(text[:TEXT_CHARS_MAX] for text in texts)
        question = Question("embed", endpoint.provider, self.name, cut)

        def send(redacted: tuple[str, ...]) -> Reply:
            return embeddings(endpoint, redacted)

        def read(reply: Reply) -> list[Vector]:
            if not reply.vectors:
                raise ContentError(f"{endpoint.provider} sent no vectors for {len(cut)} texts")
            self._refuse_another_model(reply.vectors, len(cut))
            return accept(reply.vectors, len(cut), VECTOR_SIZE)

        vectors, _ = ask(question, send, read, origin=origin)
        return vectors

    def _refuse_another_model(self, vectors: Mapping[int, object], count: int) -> None:
        sizes = {len(vector) if isinstance(vector, list) else 0 for vector in vectors.values()}
        if VECTOR_SIZE in sizes:
            self._fitted = True
            return
        if len(sizes) > 1 or (count == 1 and self._has_fitted()):
            return
        raise Away(
            f"{self.name} gives {sizes.pop()} numbers a vector; {VECTOR_SIZE} are stored. "
            "Nothing was written; ask for another model or embedder.",
            "wrong_size",
        )

    def _has_fitted(self) -> bool:
        """Whether this model ever gave vectors that fit, by the ledger when not in this process."""
        if not self._fitted:
            calls = LlmCall.objects.filter(port="embed", model_asked=self.name, outcome="ok")
            self._fitted = calls.exists()
        return self._fitted


def _prefixes(model: str) -> tuple[str, str]:
    return next(
        ((passage, query) for name, passage, query in PREFIXES if name.search(model)), ("", "")
    )


@lru_cache(maxsize=4)
def shared(endpoint: Endpoint) -> OpenAIEmbedder:
    """The one embedder of this endpoint in this process."""
    return OpenAIEmbedder(endpoint)
