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
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import psycopg

from tests.bench.ground import database, milliseconds, server, table

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
    """Load, then index: inserting into a live HNSW graph is many times slower."""
    from memory.lexical import document

    chance, noise = random.Random(11), np.random.default_rng(11)
    at = datetime(2026, 3, 1, tzinfo=UTC)
    columns = (
        "id, owner_id, visibility, confidentiality, level, memory_kind, title, content, context,"
        " keywords, tags, importance, confidence, said_by, locator, session, unit_key, content_key,"
        " search, embedding, embedding_model, question, answer, model_asked, model_real,"
        " prompt_version, valid_from, created_at, retired_reason"
    )
    with psycopg.connect(address, autocommit=True) as connection, connection.cursor() as cursor:
        row = cursor.execute(
            "SELECT indexdef FROM pg_indexes WHERE indexname = 'note_nearest'"
        ).fetchone()
        assert row is not None
        cursor.execute("DROP INDEX note_nearest")
        with cursor.copy(f"COPY memory_note ({columns}) FROM STDIN") as copy:
            for n in range(count):
                text = sentence(chance)
                near = np.array(vectors[n % len(vectors)]) + noise.normal(scale=0.02, size=768)
                when = at + timedelta(minutes=n)
                copy.write_row(
                    (
                        uuid.UUID(int=chance.getrandbits(128)),
                        owner,
                        "private",
                        "internal",
                        "note",
                        "semantic",
                        text[:80],
                        text,
                        "",
                        "{}",
                        "{}",
                        chance.random(),
                        0.5,
                        "user",
                        "{}",
                        f"s{n // 10}",
                        f"episode:{n // 3}",
                        f"key{n}",
                        document((text[:80], text, "", "")),
                        str((near / np.linalg.norm(near)).tolist()),
                        model,
                        "",
                        "",
                        "",
                        "",
                        "",
                        when,
                        when,
                        "",
                    )  # fmt: skip
                )
        cursor.execute(str(row[0]))
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE memory_note")


NEAREST = (
    "SELECT id, embedding <=> %s::halfvec AS distance FROM memory_note WHERE deleted_at IS NULL"
    " AND owner_id = %s ORDER BY distance LIMIT {limit}"
)
WORDS = (
    "SELECT id, ts_rank(search, %s::tsquery) AS rank FROM memory_note WHERE deleted_at IS NULL"
    " AND owner_id = %s AND search @@ %s::tsquery ORDER BY rank DESC LIMIT 30"
)


def nearest(connection: psycopg.Connection, vector: str, owner: int, limit: int) -> list[Any]:
    with connection.transaction():
        connection.execute("SET LOCAL hnsw.ef_search = 100")
        return connection.execute(NEAREST.format(limit=limit), [vector, owner]).fetchall()


def hybrid(
    connection: psycopg.Connection, vector: str, rare: str, query: str, owner: int
) -> list[Any]:
    scores: dict[Any, float] = {}
    words = connection.execute(WORDS, [query, owner, rare]).fetchall()
    for rows in (nearest(connection, vector, owner, 30), words):
        for rank, (key, _) in enumerate(rows, start=1):
            scores[key] = scores.get(key, 0.0) + 1 / (60 + rank)
    return sorted(scores, key=lambda key: -scores[key])[:5]


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else NOTES
    with database() as address:
        from memory.access import create_key, principal
        from memory.lexical import query_terms, quoted, selective, statistics
        from memory.llm.minilm import shared
        from tests.cluster import owner_address

        owner = principal("bench")
        key, _ = create_key(owner=owner.name, scopes=["recall"])
        chance, model = random.Random(5), shared()
        texts = [sentence(chance) for _ in range(SENTENCES)]
        vectors = [model.encode(text) for text in texts]
        load(owner_address(address), owner.pk, model.name, vectors, count)
        asked = [f"what do we know: {text}" for text in texts[:QUERIES]]
        known = [str(model.encode(text)) for text in asked]
        common = statistics()
        terms = [query_terms(text, common) for text in asked]
        any_of = [" | ".join(map(quoted, one)) for one in terms]
        rare = [" | ".join(map(quoted, selective(one, common))) for one in terms]
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
            every: list[float] = []
            near: list[float] = []
            product: list[float] = []
            http_only: list[float] = []
            for _ in range(ROUNDS):
                for text, vector, query, few in zip(asked, known, any_of, rare, strict=True):
                    near.append(milliseconds(nearest, bare, vector, owner.pk, 20))
                    every.append(milliseconds(hybrid, bare, vector, query, query, owner.pk))
                    floor.append(milliseconds(hybrid, bare, vector, few, query, owner.pk))
                    product.append(milliseconds(post, text))
                    http_only.append(milliseconds(healthz))
            rows = {
                "bare hybrid SQL": floor,
                "  looked up by every term": every,
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
