"""The latency of a recall at 1,000, 10,000 and 100,000 notes, against the barest SQL of the run.

`python -m tests.bench.scale [N ...]`. One owner's notes in one throwaway database that grows, then
as many raw turns beside them. The floor is the nearest 20 by HNSW, by psycopg on a warm connection.
The query vector is given: the embedder is no part of this. Rounds are interleaved. Beside the time
it prints what the bounds cost: pruned words against all, the graph against comparing all.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from statistics import median
from typing import Any
from uuid import UUID

import numpy as np
import psycopg

from tests.bench.ground import database, milliseconds, spread, table
from tests.bench.load import Writing, add_notes, add_turns, analyze, index, without

SIZES = (1_000, 10_000, 100_000)
QUERIES = 40
ROUNDS = 3

#: Later than anything that is loaded.
NOW = datetime(2030, 1, 1, tzinfo=UTC)

#: More postings than any term has.
ALL_POSTINGS = 10**9

#: What the product promises: p50 over the bare HNSW's, growth from 10k to 100k, recall.
HYBRID_RATIO_MAX, GROWTH_RATIO_MAX = 3.0, 2.5
LEXICAL_LOSS_MAX, NEAREST_RECALL_MIN = 0.01, 0.98

NEAREST = (
    "SELECT id FROM memory_note WHERE deleted_at IS NULL AND owner_id = %s"
    " ORDER BY {order} LIMIT 20"
)
NAIVE = (
    "SELECT id FROM naive, to_tsquery('simple', %s) AS asked WHERE document @@ asked"
    " ORDER BY ts_rank_cd(document, asked) DESC LIMIT 20"
)


@dataclass(frozen=True)
class Query:
    """What is asked, its vector, and the note it was made of."""

    text: str
    words: Sequence[str]
    vector: list[float]
    right: UUID


@dataclass
class Grown:
    """The database as it stands, and the same things again for making queries."""

    address: str
    owner: Any
    model: str
    writing: Writing
    texts: list[list[str]]
    vectors: list[Any]
    ids: list[UUID]


def main() -> None:
    sizes = [int(one) for one in sys.argv[1:]] or list(SIZES)
    with database() as address:
        from memory.access import principal
        from memory.llm.minilm import shared
        from tests.cluster import owner_address

        grown = Grown(
            owner_address(address), principal("bench"), shared().name, Writing(), [], [], []
        )
        hybrids: dict[int, float] = {}
        for size in sizes:
            grow(grown, size)
            hybrids[size] = measure(grown, address, size)
    for small, large in zip(sizes, sizes[1:], strict=False):
        ratio = hybrids[large] / hybrids[small]
        print(f"growth of the hybrid {small} -> {large}: {ratio:.2f} (<= {GROWTH_RATIO_MAX})")


def grow(grown: Grown, size: int) -> None:
    """More notes and turns, up to so many of each."""
    more, first = size - len(grown.ids), len(grown.ids)
    writing, started = grown.writing, time.perf_counter()
    texts, vectors = writing.texts(more), writing.vectors(more)
    said, meant = writing.texts(more), writing.vectors(more)
    with without(grown.address, "note_nearest", "turn_nearest"):
        grown.ids += add_notes(
            grown.address, grown.owner.pk, grown.model, texts, vectors, first=first
        )
        add_turns(grown.address, grown.owner.pk, grown.model, said, meant, first=first)
    loaded = time.perf_counter()
    with without(grown.address, "posting_own", "posting_common", "posting_team"):
        count = index()
    indexed = time.perf_counter()
    with psycopg.connect(grown.address, autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS naive")
        connection.execute(
            "CREATE TABLE naive AS SELECT id, to_tsvector('simple', content) AS document"
            " FROM memory_note"
        )
        connection.execute("CREATE INDEX naive_document ON naive USING gin (document)")
        connection.execute("GRANT SELECT ON naive TO PUBLIC")
    analyze(
        grown.address, "memory_note", "memory_rawitem", "memory_turnvector", "memory_searchtext",
        "memory_posting", "memory_term", "memory_collection", "memory_session", "naive",
    )  # fmt: skip
    grown.texts += texts
    grown.vectors += list(vectors)
    print(
        f"\n{size} notes and turns: loaded with both graphs in {loaded - started:.0f} s,"
        f" {count} texts indexed in {indexed - loaded:.0f} s"
    )


def queries(grown: Grown, count: int = QUERIES) -> list[Query]:
    """Three to six words of a note, the rarest among them, and a vector near the note's."""
    chance = np.random.default_rng(len(grown.ids))
    holding = Counter(word for words in grown.texts for word in set(words))
    picked = chance.choice(len(grown.ids), size=count, replace=False)
    near = grown.writing.around(np.array([grown.vectors[at] for at in picked]))
    made = []
    for at, vector in zip(picked, near, strict=True):
        distinct = sorted(set(grown.texts[at]), key=lambda word: (holding[word], word))
        others = chance.permutation(len(distinct) - 1)[: chance.integers(2, 6)] + 1
        words = [distinct[0], *(distinct[other] for other in others)]
        made.append(Query(" ".join(words), words, vector.tolist(), grown.ids[at]))
    return made


def ways(grown: Grown, bare: psycopg.Connection) -> dict[str, Callable[[Query], Any]]:
    """What is compared, by name."""
    from memory.lexical import hashed, query_terms
    from memory.tracks import asked, heaviest, literal
    from recall.search import CANDIDATES_A_TRACK, search

    me = grown.owner

    def nearest(order: str) -> Callable[[Query], Any]:
        sql = NEAREST.format(order=order).encode()
        return lambda query: bare.execute(sql, [me.pk, literal(query.vector)]).fetchall()

    def lexical(postings: int | None) -> Callable[[Query], Any]:
        def run(query: Query) -> Any:
            terms = [hashed(term) for term in query_terms(query.text)]
            mine = {False: asked(me, terms)[False]}
            return heaviest(me, mine, depth=CANDIDATES_A_TRACK, postings=postings)[False]

        return run

    return {
        "bare HNSW, 20 nearest": nearest("embedding <=> %s::halfvec"),
        "bare exact, 20 nearest": nearest("(embedding <=> %s::halfvec) + 0"),
        "bare FTS of any word, ts_rank_cd": lambda query: bare.execute(
            NAIVE, [" | ".join(query.words)]
        ).fetchall(),
        "words": lexical(None),
        "words, all postings": lexical(ALL_POSTINGS),
        "hybrid, notes": lambda query: search(query.text, principal=me, now=NOW, sources=("note",)),
        "hybrid, notes and turns": lambda query: search(query.text, principal=me, now=NOW),
    }


def measure(grown: Grown, address: str, size: int) -> float:
    """Print times and quality at this size; the p50 of the hybrid over notes, in ms."""
    from memory.llm.minilm import shared

    asked = queries(grown)
    for query in asked:
        # Known to the embedder, as after a first asking.
        shared()._recent.of(query.text, lambda query=query: query.vector)  # type: ignore[misc]
    with psycopg.connect(address, autocommit=True) as bare:
        compared = ways(grown, bare)
        times: dict[str, list[float]] = {name: [] for name in compared}
        steps: dict[str, dict[str, list[float]]] = {name: {} for name in compared}
        for each in range(ROUNDS + 1):
            for query in asked:
                for name, way in compared.items():
                    kept: list[Any] = []
                    took = milliseconds(lambda: kept.append(way(query)))  # noqa: B023
                    if not each:
                        continue  # Warming up.
                    times[name].append(took)
                    for step, spent in getattr(kept[0], "milliseconds", {}).items():
                        steps[name].setdefault(step, []).append(spent)
    floor = "bare HNSW, 20 nearest"
    table(f"{size} notes, {QUERIES} queries x {ROUNDS}", times, floor=floor)
    for name, spent in steps.items():
        if spent:
            told = ", ".join(f"{step} {median(one):.2f}" for step, one in spent.items())
            print(f"{name}: steps, p50 ms: {told}")
    hybrid = spread(times["hybrid, notes"])[0]
    ratio = hybrid / spread(times[floor])[0]
    print(f"hybrid over bare HNSW: {ratio:.2f} (<= {HYBRID_RATIO_MAX})")
    judge(grown, asked, compared)
    return hybrid


def judge(
    grown: Grown, asked: Sequence[Query], compared: dict[str, Callable[[Query], Any]]
) -> None:
    """Print what the bounds cost: the share of right notes among the first five, and of the true
    ten nearest among those that the graph gives."""
    from memory.models import Note
    from memory.tracks import nearest, notes_of

    pool = Note.objects.visible_to(grown.owner).live(NOW)
    share: Counter[str] = Counter()
    for query in asked:
        for name in ("words", "words, all postings"):
            found = compared[name](query)
            notes = notes_of([text for text, _ in found])
            share[name] += query.right in [notes[text] for text, _ in found[:5]]
        found = compared["hybrid, notes"](query).found
        share["hybrid"] += query.right in [one.key for one in found[:5]]
        exact, graph = (
            {key for key, _ in nearest(pool, query.vector, grown.model, depth=10, exact=way)}
            for way in (True, False)
        )
        share["graph"] += len(exact & graph) / len(exact)  # type: ignore[assignment]
    told = {name: count / len(asked) for name, count in share.items()}
    loss = told["words, all postings"] - told["words"]
    print(
        f"recall@5 by words {told['words']:.3f}, of all postings"
        f" {told['words, all postings']:.3f} (loss {loss:.3f} <= {LEXICAL_LOSS_MAX}),"
        f" hybrid {told['hybrid']:.3f};"
        f" recall@10 of the graph {told['graph']:.3f} (>= {NEAREST_RECALL_MIN})"
    )


if __name__ == "__main__":
    main()
