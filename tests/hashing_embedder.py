"""A deterministic embedder for tests: words are hashed to places of the vector. No meaning."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from memory.llm.ports import VECTOR_SIZE, Origin
from memory.llm.vectors import Vector, unit
from memory.text.words import words


def vector_of(text: str) -> Vector:
    """Unit-length vector; texts that share words are near, others nearly orthogonal."""
    vector = [0.0] * VECTOR_SIZE
    for word in words(text) or [""]:
        digest = hashlib.blake2b(word.encode(), digest_size=4).digest()
        vector[int.from_bytes(digest, "big") % VECTOR_SIZE] += 1.0
    return unit(vector)


class HashingEmbedder:
    """The Embedder protocol without a model, a ledger or a database."""

    name = "hashing-768"

    def embed(self, texts: Sequence[str], *, origin: Origin) -> list[Vector]:
        return [vector_of(text) for text in texts]

    def embed_query(self, text: str, *, origin: Origin) -> Vector:
        return vector_of(text)
