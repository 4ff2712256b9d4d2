"""POST /recall/notes over HTTP against the bare hybrid SQL of the same queries, as notes grow.

`python -m tests.bench.recall [NOTES ...]`; 1000000 is for whoever starts it by hand: it loads for
an hour. One owner's notes in one throwaway database that grows. The floor is psycopg on a warm
connection: the nearest and the any-of-words query, merged by rank in Python; beside it the nearest
alone. The product adds the key, the gates, the predicates, the fetch, the block, the ledger and
HTTP. First the queries are known to the web process, then each is new and embedded: the floor
embeds it, too. By one client and by eight at once; rounds are interleaved.
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import psycopg

from tests.bench.ground import Crowd, Each, Web, crowd, database, server, table
from tests.bench.load import Writing, add_notes, analyze, index, without

SIZES = (1_000, 10_000, 100_000)
CLIENTS = (1, 8)
QUERIES = 60
ROUNDS = 5

#: Notes that are embedded for real; every other note's vector is one of theirs with noise.
ANCHORS = 200
NOISE = 0.02

#: Notes made at once: a million vectors would be six gigabytes of numbers.
NOTES_A_LOAD = 50_000

#: How a new question begins, in words that say nothing.
OPENERS = tuple(
    f"{first} {rest}:"
    for first, rest in product(
        ("so", "and", "now", "then", "well", "but"),
        ("what do we have on", "what was there about", "what did we do with", "where are we with",
         "what should i have on", "when were we about"),
    )
)  # fmt: skip

SQL, NEAR, POST, INSIDE, HEALTHZ = (
    "bare hybrid SQL", "bare nearest 20", "POST /recall/notes", "  of it inside the verb",
    "GET /healthz",
)  # fmt: skip
EMBED = "embed the query"

NEAREST = (
    "SELECT id, embedding <=> %s::halfvec AS distance FROM memory_note WHERE deleted_at IS NULL"
    " AND owner_id = %s ORDER BY distance LIMIT {limit}"
)
WORDS = (
    "SELECT id, ts_rank(search, q) AS rank FROM plain, to_tsquery('english', %s) AS q"
    " WHERE deleted_at IS NULL AND owner_id = %s AND search @@ q ORDER BY rank DESC LIMIT 30"
)


@dataclass(frozen=True)
class Query:
    """A question, its vector as Postgres reads it, and its words as the plain index asks."""

    text: str
    vector: str
    any_of: str


#: What is compared, by name.
Ways = dict[str, Callable[[Query], object]]


@dataclass
class Grown:
    """The owner's database, its notes so far, and what they are made of."""

    address: str
    owner: int
    model: str
    writing: Writing
    anchors: list[list[str]]
    vectors: Any
    count: int = 0


def main() -> None:
    sizes = [int(one) for one in sys.argv[1:]] or list(SIZES)
    with database() as address:
        from memory.access import create_key, principal
        from tests.cluster import owner_address

        owner = principal("bench")
        key, _ = create_key(owner=owner.name, scopes=["recall"])
        grown = made(owner_address(address), owner.pk)
        for size in sizes:
            grow(grown, size)
            with server(address) as url:
                measure(grown, address, url, key)
            _steps(grown.address)


def made(address: str, owner: int) -> Grown:
    """Nothing yet, and the notes that are embedded for real."""
    from memory.llm.minilm import shared

    writing = Writing()
    anchors = writing.texts(ANCHORS)
    vectors = np.array([shared().encode(" ".join(words)) for words in anchors])
    return Grown(address, owner, shared().name, writing, anchors, vectors)


def grow(grown: Grown, size: int) -> None:
    """More notes, up to so many, indexed; and a plain text index beside them."""
    started = time.perf_counter()
    noise = np.random.default_rng([11, grown.count])
    with without(grown.address, "note_nearest"):
        for first in range(grown.count, size, NOTES_A_LOAD):
            count = min(NOTES_A_LOAD, size - first)
            texts = grown.writing.texts(count)
            if not first:
                texts[:ANCHORS] = grown.anchors[:count]
            near = grown.vectors[np.arange(first, first + count) % ANCHORS]
            near = near + noise.normal(scale=NOISE, size=near.shape)
            near /= np.linalg.norm(near, axis=1, keepdims=True)
            add_notes(grown.address, grown.owner, grown.model, texts, near, first=first)
    loaded = time.perf_counter()
    with without(grown.address, "posting_own", "posting_common", "posting_team"):
        index()
    indexed = time.perf_counter()
    with psycopg.connect(grown.address, autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS plain")
        connection.execute(
            "CREATE TABLE plain AS SELECT id, owner_id, deleted_at,"
            " to_tsvector('english', content) AS search FROM memory_note"
        )
        connection.execute("CREATE INDEX plain_search ON plain USING gin (search)")
        connection.execute("GRANT SELECT ON plain TO PUBLIC")
    analyze(
        grown.address, "memory_note", "memory_searchtext", "memory_posting", "memory_term", "plain"
    )
    grown.count = size
    print(
        f"\n{size:,} notes: loaded with the graph in {loaded - started:.0f} s,"
        f" indexed in {indexed - loaded:.0f} s"
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


def queries(grown: Grown) -> list[Query]:
    """The rarest word of an anchor and four others, with what they mean."""
    from memory.llm.minilm import shared

    chance = np.random.default_rng(5)
    holding = Counter(word for words in grown.anchors for word in set(words))
    made = []
    for anchor in grown.anchors[:QUERIES]:
        distinct = sorted(set(anchor), key=lambda word: (holding[word], word))
        others = chance.permutation(len(distinct) - 1)[:4] + 1
        words = [distinct[0], *(distinct[at] for at in others)]
        text = f"what do we know about {' '.join(words)}?"
        made.append(Query(text, str(shared().encode(text)), " | ".join(words)))
    return made


def measure(grown: Grown, address: str, url: str, key: str) -> None:
    """Print the times at this size: queries known, then new, by each number of clients."""
    from memory.llm.minilm import shared

    bare = Each(lambda: psycopg.connect(address, autocommit=True))
    web = Each(lambda: Web(url, key))
    inside: list[float] = []
    outcomes: Counter[str] = Counter()

    def post(query: Query) -> None:
        body = json.dumps({"query": query.text, "cwd": "/src/harbor", "session": "bench"})
        reply = json.loads(web().ask("POST", "/recall/notes", body))
        outcomes[reply["outcome"]] += 1
        inside.append(reply["milliseconds"])

    def healthz(_: Query) -> None:
        web().ask("GET", "/healthz")

    def near(query: Query) -> None:
        nearest(bare(), query.vector, grown.owner, 20)

    def both(query: Query) -> None:
        hybrid(bare(), query.vector, query.any_of, grown.owner)

    def embed(query: Query) -> None:
        shared().encode(query.text)

    def embed_and_both(query: Query) -> None:
        hybrid(bare(), str(shared().encode(query.text)), query.any_of, grown.owner)

    known: Ways = {SQL: both, NEAR: near, POST: post, HEALTHZ: healthz}
    new: Ways = {f"embed, {SQL}": embed_and_both, EMBED: embed, POST: post}
    asked = queries(grown)
    for clients in CLIENTS:
        with crowd(clients) as at_once:
            for ways, floor, what in (
                (known, SQL, "query known"), (new, f"embed, {SQL}", "query new, embedded"),
            ):  # fmt: skip
                at_once(ways[floor], asked)  # Warm, as the connections are from here on.
                at_once(post, asked)
                outcomes.clear()
                given = renewed(asked, clients) if ways is new else iter([asked] * ROUNDS)
                times = compare(ways, given, at_once, inside)
                title = f"{grown.count:,} notes, {what}, {clients} client{'s' * (clients > 1)}"
                table(f"{title}, {QUERIES} queries x {ROUNDS}", times, floor=floor)
                print(f"outcomes: {dict(outcomes)}")


def renewed(asked: Sequence[Query], clients: int) -> Iterator[list[Query]]:
    """The same queries so often, in words that nobody asked them by: no round and no number of
    clients begins as another does."""
    first = CLIENTS.index(clients) * ROUNDS
    for opener in OPENERS[first : first + ROUNDS]:
        yield [
            Query(one.text.replace("what do we know about", opener), one.vector, one.any_of)
            for one in asked
        ]


def compare(
    ways: Ways,
    rounds: Iterator[list[Query]],
    at_once: Crowd,
    inside: list[float],
) -> dict[str, list[float]]:
    """Milliseconds by name, each way once a round."""
    times: dict[str, list[float]] = {name: [] for name in ways}
    for each, asked in enumerate(rounds):
        for name, way in ways.items():
            if name == POST and not each:
                inside.clear()
            times[name] += at_once(way, asked)
    places = list(times)
    # Right below the row of which it is a part.
    places.insert(places.index(POST) + 1, INSIDE)
    return {name: list(inside) if name == INSIDE else times[name] for name in places}


def _steps(address: str) -> None:
    """Milliseconds of each step as the ledger has them, of what was asked at this size."""
    with psycopg.connect(address) as connection:
        rows = connection.execute(
            "SELECT key, percentile_cont(0.5) WITHIN GROUP (ORDER BY value::float) FROM"
            " (SELECT * FROM memory_injection ORDER BY id DESC LIMIT %s) told,"
            " jsonb_each_text(timings) GROUP BY key ORDER BY 2 DESC",
            [QUERIES * ROUNDS * len(CLIENTS) * 2],
        ).fetchall()
    print("\nsteps, p50 ms: " + ", ".join(f"{name} {value:.2f}" for name, value in rows))


if __name__ == "__main__":
    main()
