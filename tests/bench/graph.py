"""What the graph of nearest neighbours finds of what comparing all finds, where few may be seen.

`python -m tests.bench.graph [NOTES]`. One throwaway database of 100,000 notes whose vectors lie in
clusters: a large owner's, among them a project of eight and one of half a percent, an owner's of
one percent and one's of three. Each pool is asked for its ten nearest by comparing all of it, by
the way that the product takes, and by the graph whatever the product would take. The floor is the
nearest ten of all by the bare graph, psycopg on a warm connection, who may see what left aside.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from statistics import mean
from typing import Any

import psycopg

from tests.bench.ground import database, milliseconds, table
from tests.bench.load import Writing, add_notes, analyze, without

NOTES = 100_000
QUERIES = 40
ROUNDS = 3
DEPTH = 10

#: The notes of a project that a person has just begun.
NOTES_OF_A_YOUNG_PROJECT = 8

#: The least share of the true ten nearest, and pools in which the way is the product's own choice.
RECALL_MIN = 0.98

NOW = datetime(2030, 1, 1, tzinfo=UTC)

FLOOR, EXACT, CHOSEN, GRAPH = "bare graph, all notes", "compare all", "as recall does", "the graph"

BARE = (
    "SELECT id FROM memory_note WHERE deleted_at IS NULL ORDER BY embedding <=> %s::halfvec"
    " LIMIT 10"
)


@dataclass(frozen=True)
class Pool:
    """Rows that somebody may see, and vectors near some of them."""

    name: str
    rows: Any
    asked: list[str]


def main() -> None:
    count = int(sys.argv[1]) if sys.argv[1:] else NOTES
    with database() as address:
        started = time.perf_counter()
        pools = load(address, count)
        print(f"loaded {count:,} notes with the graph in {time.perf_counter() - started:.0f} s")
        with psycopg.connect(address, autocommit=True) as bare:
            bare.execute("SET hnsw.ef_search = 100")
            for pool in pools:
                measure(pool, bare)


def load(address: str, count: int) -> list[Pool]:
    """The notes of three owners, two of them with few, and two small projects of the large one."""
    from memory.access import principal
    from memory.llm.minilm import shared
    from memory.models import Note, Project
    from memory.tracks import literal
    from tests.cluster import owner_address

    at, model, writing = owner_address(address), shared().name, Writing()
    large, one, three = (principal(name) for name in ("large", "one-percent", "three-percent"))
    young, small = (Project.objects.create(name=name) for name in ("young", "small"))
    parts = [
        ("an owner of 96 %", large, None, count * 96 // 100),
        ("an owner of 1 %", one, None, count // 100),
        ("an owner of 3 %", three, None, count * 3 // 100),
        (f"a project of {NOTES_OF_A_YOUNG_PROJECT}", large, young, NOTES_OF_A_YOUNG_PROJECT),
        ("a project of 0.5 %", large, small, count // 200),
    ]
    pools, first = [], 0
    with without(at, "note_nearest"):
        for name, owner, project, size in parts:
            vectors = writing.vectors(size)
            pk = project.pk if project else None
            add_notes(at, owner.pk, model, writing.texts(size), vectors, first=first, project=pk)
            first += size
            picked = writing.chance.choice(size, size=QUERIES)
            near = [literal(one.tolist()) for one in writing.around(vectors[picked])]
            rows = Note.objects.visible_to(owner).live(NOW)
            pools.append(Pool(name, rows.filter(project=project) if project else rows, near))
    analyze(at, "memory_note")
    return pools


def measure(pool: Pool, bare: psycopg.Connection) -> None:
    """Print how much each way finds of one pool, and how long it takes."""
    from memory.llm.minilm import shared
    from memory.tracks import nearest

    model = shared().name

    def way(exact: bool | None) -> Callable[[str], list[Any]]:
        return lambda vector: nearest(pool.rows, vector, model, depth=DEPTH, exact=exact)

    ways: dict[str, Callable[[str], list[Any]]] = {
        FLOOR: lambda vector: bare.execute(BARE, [vector]).fetchall(),
        EXACT: way(True),
        CHOSEN: way(None),
        GRAPH: way(False),
    }
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(ROUNDS):
        for vector in pool.asked:
            for name, one in ways.items():
                times[name].append(milliseconds(one, vector))
    table(f"{pool.name}, {QUERIES} queries x {ROUNDS}", times, floor=FLOOR)
    for name in (CHOSEN, GRAPH):
        found = mean(shares(pool, ways[EXACT], ways[name]))
        word = "holds" if found >= RECALL_MIN else "MISSED"
        print(f"recall@{DEPTH}, {name}: {found:.3f} (aim >= {RECALL_MIN}): {word}")


def shares(
    pool: Pool, exact: Callable[[str], list[Any]], way: Callable[[str], list[Any]]
) -> Iterator[float]:
    """Of each query's true nearest, how many a way finds. One as near as the last of them is as
    good."""
    for vector in pool.asked:
        true = exact(vector)
        least = true[-1][1] - 1e-6
        yield sum(near >= least for _, near in way(vector)) / len(true)


if __name__ == "__main__":
    main()
