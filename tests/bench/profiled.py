"""Where the time of recall and capture goes, function by function, by cProfile.

`python -m tests.bench.profiled [NOTES]`. The doors are asked in this process, through the whole of
Django: middleware, key, verb, reply. Notes and as many turns lie in one throwaway database; queries
are known to the embedder. cProfile makes small functions look larger than they are, so each table
is headed by the time of the same work without it, and by the server's part: what statements took.
"""

from __future__ import annotations

import cProfile
import heapq
import itertools
import json
import pstats
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.bench.capture import bodies
from tests.bench.ground import ROOT, database

NOTES = 10_000

#: Requests of each kind: without the profiler, and under it.
CALLS = 40

#: Functions that are printed, by own time and by all time.
ROWS = 14

#: Characters by which a statement is told.
STATEMENT_CHARACTERS = 110

#: Where what is ours lies.
APPS = ("argus", "memory", "recall")


def main() -> None:
    count = int(sys.argv[1]) if sys.argv[1:] else NOTES
    with database() as address:
        from django.test import Client

        from memory.access import create_key, principal
        from tests.bench import recall
        from tests.bench.load import add_turns
        from tests.cluster import owner_address

        owner = principal("bench")
        key, _ = create_key(owner=owner.name, scopes=["recall", "capture"])
        at = owner_address(address)
        grown = recall.made(at, owner.pk)
        writing = grown.writing
        add_turns(at, owner.pk, grown.model, writing.texts(count), writing.vectors(count))
        recall.grow(grown, count)
        client = Client(SERVER_NAME="localhost", headers={"authorization": f"Bearer {key}"})

        def post(path: str, body: Any) -> Any:
            reply = client.post(path, json.dumps(body), content_type="application/json")
            assert reply.status_code == 200, reply.content
            return reply.json()

        asked = itertools.cycle(recall.queries(grown))
        seeds = itertools.count(1)
        tell("POST /recall/notes", lambda: post("/recall/notes", {"query": next(asked).text}))
        for size in (1, 64, 500):
            posts = iter([bodies(size, seed=1000 * size + next(seeds)) for _ in range(3 * CALLS)])
            tell(
                f"POST /capture, {size} items",
                lambda: post("/capture", {"items": next(posts)}),  # noqa: B023
            )


def tell(title: str, work: Callable[[], object]) -> None:
    """Print the work's time by function."""
    for _ in range(CALLS // 2):
        work()
    with statements() as asked:
        started = time.process_time(), time.perf_counter()
        for _ in range(CALLS):
            work()
        busy, spent = time.process_time() - started[0], time.perf_counter() - started[1]
    whole = sum(sum(times) for times in asked.values())
    print(
        f"\n{title}: {spent / CALLS * 1000:.2f} ms on the clock, {busy / CALLS * 1000:.2f} ms of"
        f" this processor; {sum(map(len, asked.values())) / CALLS:.1f} statements of"
        f" {whole / CALLS:.2f} ms"
    )
    print(f"{'ms of statements':>22} {'calls':>8}  the statement begins")
    for statement, times in heapq.nlargest(ROWS, asked.items(), key=lambda one: sum(one[1])):
        print(f"{sum(times) / CALLS:22.2f} {len(times) / CALLS:8.1f}  {statement}")
    profile = cProfile.Profile(time.process_time)
    profile.enable()
    for _ in range(CALLS):
        work()
    profile.disable()
    rows = pstats.Stats(profile).stats  # type: ignore[attr-defined]
    for place, word in ((2, "own"), (3, "with what it calls")):
        # Of what calls others only ours says where to look: Django's rings lie around all of it.
        shown = rows if place == 2 else {at: row for at, row in rows.items() if ours(at[0])}
        print(f"{'ms ' + word:>22} {'calls':>8}  of one request, this processor's time")
        for where, row in heapq.nlargest(ROWS, shown.items(), key=lambda one: one[1][place]):  # noqa: B023
            print(f"{row[place] / CALLS * 1000:22.2f} {row[1] / CALLS:8.1f}  {named(*where)}")


def ours(file: str) -> bool:
    """Whether this is a file of Argus, and no benchmark."""
    path = Path(file)
    return path.is_relative_to(ROOT) and path.relative_to(ROOT).parts[0] in APPS


def named(file: str, line: int, name: str) -> str:
    """A function as a person finds it."""
    path = Path(file)
    if path.is_relative_to(ROOT / ".venv") or "site-packages" in path.parts:
        file = "/".join(path.parts[path.parts.index("site-packages") + 1 :])
    elif path.is_relative_to(ROOT):
        file = str(path.relative_to(ROOT))
    else:
        file = path.name
    return f"{file}:{line} {name}" if line else name


@contextmanager
def statements() -> Iterator[dict[str, list[float]]]:
    """Milliseconds of each of Django's statements meanwhile, as this process waits for them, by how
    they begin."""
    from django.db import connection

    asked: defaultdict[str, list[float]] = defaultdict(list)

    def clocked(execute: Any, sql: str, *args: Any) -> Any:
        started = time.perf_counter()
        try:
            return execute(sql, *args)
        finally:
            begins = " ".join(sql.split())[:STATEMENT_CHARACTERS]
            asked[begins].append((time.perf_counter() - started) * 1000)

    with connection.execute_wrapper(clocked):
        yield asked


if __name__ == "__main__":
    main()
