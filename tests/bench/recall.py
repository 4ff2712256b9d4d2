"""POST /recall/notes over HTTP against the bare hybrid SQL of the same queries, at 10,000 notes.

`python -m tests.bench.recall [NOTES]`. The floor is psycopg on a warm connection: the nearest and
the any-of-words query, merged by rank in Python; beside it the nearest alone. The product adds the
key, the gates, the predicates, the fetch, the block, the ledger and HTTP. Query vectors are known
to both sides: the embedder is no part of this. Rounds are interleaved.
"""

from __future__ import annotations

import http.client
import json
import random
import sys
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import psycopg

from tests.bench.ground import database, milliseconds, server, table
from tests.bench.load import add_notes, analyze, index, without

NOTES = 10_000
QUERIES = 60
ROUNDS = 5

#: Sentences embedded for real; every note's vector is one of theirs with noise.
SENTENCES = 200

SUBJECTS = [
    "staging database",
    "payment sandbox",
    "booking service",
    "export job",
    "deploy script",
    "login page",
]
VERBS = [
    "listens on",
    "is rebuilt from",
    "waits for",
    "is owned by",
    "was moved to",
    "depends on",
    "times out after",
]
NOUNS = [
    "port",
    "schema",
    "cluster",
    "queue",
    "token",
    "worker",
    "invoice",
    "region",
    "berth",
    "replica",
    "cache",
    "branch",
    "ticket",
    "migration",
    "timeout",
    "gateway",
    "release",
    "fixture",
    "webhook",
    "bucket",
]


def sentence(chance: random.Random) -> str:
    """A statement of common words and some rare ones, as notes of work are."""
    rare = "".join(chance.choices("abcdefghijklmnop", k=3)) + str(chance.randint(1, 999))
    nouns = " ".join(chance.choices(NOUNS, k=4))
    return f"The {chance.choice(SUBJECTS)} {chance.choice(VERBS)} the {nouns} {rare}."


def load(
    address: str, owner: int, model: str, vectors: Sequence[Sequence[float]], count: int
) -> None:
    """Notes of these sentences' vectors with noise, indexed, and a plain text index beside them."""
    chance, noise = random.Random(11), np.random.default_rng(11)
    near = np.array([vectors[n % len(vectors)] for n in range(count)])
    near += noise.normal(scale=0.02, size=near.shape)
    near /= np.linalg.norm(near, axis=1, keepdims=True)
    texts = [[sentence(chance)] for _ in range(count)]
    with without(address, "note_nearest"):
        add_notes(address, owner, model, texts, near)
    with without(address, "posting_own", "posting_common", "posting_team"):
        index()
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(
            "CREATE TABLE plain AS SELECT id, owner_id, deleted_at,"
            " to_tsvector('english', content) AS search FROM memory_note"
        )
        connection.execute("CREATE INDEX plain_search ON plain USING gin (search)")
        connection.execute("GRANT SELECT ON plain TO PUBLIC")
    analyze(address, "memory_note", "memory_searchtext", "memory_posting", "memory_term", "plain")


NEAREST = (
    "SELECT id, embedding <=> %s::halfvec AS distance FROM memory_note WHERE deleted_at IS NULL"
    " AND owner_id = %s ORDER BY distance LIMIT {limit}"
)
WORDS = (
    "SELECT id, ts_rank(search, q) AS rank FROM plain, to_tsquery('english', %s) AS q"
    " WHERE deleted_at IS NULL AND owner_id = %s AND search @@ q ORDER BY rank DESC LIMIT 30"
)


def nearest(connection: psycopg.Connection, vector: str, owner: int, limit: int) -> list[Any]:
    with connection.transaction():
        connection.execute("SET LOCAL hnsw.ef_search = 100")
        return connection.execute(NEAREST.format(limit=limit), [vector, owner]).fetchall()


def hybrid(connection: psycopg.Connection, vector: str, query: str, owner: int) -> list[Any]:
    scores: dict[Any, float] = {}
    words = connection.execute(WORDS, [query, owner]).fetchall()
    for rows in (nearest(connection, vector, owner, 30), words):
        for rank, (key, _) in enumerate(rows, start=1):
            scores[key] = scores.get(key, 0.0) + 1 / (60 + rank)
    return sorted(scores, key=lambda key: -scores[key])[:5]


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else NOTES
    with database() as address:
        from memory.access import create_key, principal
        from memory.llm.minilm import shared
        from memory.text.words import terms
        from tests.cluster import owner_address

        owner = principal("bench")
        key, _ = create_key(owner=owner.name, scopes=["recall"])
        chance, model = random.Random(5), shared()
        texts = [sentence(chance) for _ in range(SENTENCES)]
        vectors = [model.encode(text) for text in texts]
        load(owner_address(address), owner.pk, model.name, vectors, count)
        asked = [f"what do we know: {text}" for text in texts[:QUERIES]]
        known = [str(model.encode(text)) for text in asked]
        any_of = [" | ".join(terms(text)) for text in asked]
        headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}

        with server(address) as url, psycopg.connect(address, autocommit=True) as bare:
            web = http.client.HTTPConnection(urlsplit(url).netloc)
            told: dict[str, list[float]] = {}

            def post(text: str) -> None:
                body = json.dumps({"query": text, "cwd": "/src/harbor", "session": "bench"})
                web.request("POST", "/recall/notes", body, headers)
                reply = json.loads(web.getresponse().read())
                assert reply["outcome"] == "injected", reply
                told.setdefault("inside", []).append(reply["milliseconds"])

            def healthz() -> None:
                web.request("GET", "/healthz")
                web.getresponse().read()

            for text in asked:
                post(text)
            told.clear()
            floor: list[float] = []
            near: list[float] = []
            product: list[float] = []
            http_only: list[float] = []
            for _ in range(ROUNDS):
                for text, vector, query in zip(asked, known, any_of, strict=True):
                    near.append(milliseconds(nearest, bare, vector, owner.pk, 20))
                    floor.append(milliseconds(hybrid, bare, vector, query, owner.pk))
                    product.append(milliseconds(post, text))
                    http_only.append(milliseconds(healthz))
            rows = {
                "bare hybrid SQL": floor,
                "bare nearest 20": near,
                "POST /recall/notes": product,
                "  of it inside the verb": told["inside"],
                "GET /healthz": http_only,
            }
            table(f"{count} notes, {QUERIES} queries x {ROUNDS}", rows, floor="bare hybrid SQL")
            _steps(address)


def _steps(address: str) -> None:
    """Milliseconds of each step as the ledger has them."""
    with psycopg.connect(address) as connection:
        rows = connection.execute(
            "SELECT key, percentile_cont(0.5) WITHIN GROUP (ORDER BY value::float) FROM"
            " memory_injection, jsonb_each_text(timings) GROUP BY key ORDER BY 2 DESC"
        ).fetchall()
    print("\nsteps, p50 ms: " + ", ".join(f"{name} {value:.2f}" for name, value in rows))


if __name__ == "__main__":
    main()
