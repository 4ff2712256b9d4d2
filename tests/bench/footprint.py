"""What Argus weighs: memory of the web server and of a worker, bytes in the database by item.

`python -m tests.bench.footprint [ITEMS]`. The processes run as `up` starts them, idle first, then
after posts, recalls and the pipeline over all of it. Their floor is a Python that has imported the
same libraries and nothing of Argus. Memory is what is resident, and what that is when pages that
processes share are counted once among them. The database is weighed after a vacuum, raw items
first, then as many notes; its floor is the bytes of the texts alone, and of texts and vectors.
"""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import psutil
import psycopg

from tests.bench.ground import ROOT, Web, crowd, database, environment, server
from tests.bench.load import Writing, add_notes, add_turns, analyze, index, without

ITEMS = 10_000

#: What the processes are put through: posts of so many turns, and recalls.
POSTS, TURNS_A_POST, RECALLS, CLIENTS = 20, 50, 400, 8

#: Processes of a worker: its head, a guard, one that works, one that pushes, one that keeps books.
WORKER_PROCESSES = 5

#: Seconds until a process has settled, until the worker is whole, and until it has done its work.
SETTLED_SECONDS = 4.0
STARTED_SECONDS_MAX = 60
WORKED_SECONDS_MAX = 300

#: The libraries that the processes stand on.
LIBRARIES = (
    "django.db.backends.postgresql.base, rest_framework.views, django_q.cluster, gunicorn.app.base,"
    " numpy, onnxruntime, tokenizers, psycopg"
)
#: A Python that waits; the second with everything that is not ours.
BARE = "import sys; print('ready', flush=True); sys.stdin.read()"
FLOORS = {
    "bare Python": BARE,
    "the libraries alone": (
        "import django; from django.conf import settings;"
        " settings.configure(Q_CLUSTER={'timeout': 60, 'retry': 120}); django.setup();"
        f" import {LIBRARIES}; {BARE}"
    ),
}

WEIGHED = ("memory_note", "memory_evidence", "memory_rawitem", "memory_turnvector",
           "memory_searchtext", "memory_posting", "memory_term", "memory_session")  # fmt: skip

MB = 1024 * 1024


def main() -> None:
    count = int(sys.argv[1]) if sys.argv[1:] else ITEMS
    processes()
    weigh(count)


def processes() -> None:
    """Print what web server and worker hold, idle and after the load."""
    from tests.bench.capture import bodies

    print(f"{'MB':<34} {'processes':>9} {'resident':>9} {'once':>9}")
    for name, code in FLOORS.items():
        with waiting(code) as process:
            tell(name, [process])
    with database() as address:
        from memory.access import SCOPES, create_key, principal

        key, _ = create_key(owner=principal("bench").name, scopes=SCOPES)
        with server(address) as url, worker(address) as cluster:
            web = children("gunicorn")
            time.sleep(SETTLED_SECONDS)
            tell("web, idle", web())
            tell("worker, idle", [cluster, *cluster.children(recursive=True)])

            def post(items: Sequence[dict[str, Any]]) -> None:
                Web(url, key).ask("POST", "/capture", json.dumps({"items": items}))

            def recall(item: dict[str, Any]) -> None:
                question = f"what do we know about {' '.join(item['body'].split()[:6])}?"
                Web(url, key).ask("POST", "/recall/notes", json.dumps({"query": question}))

            given = [bodies(TURNS_A_POST, seed=seed) for seed in range(POSTS)]
            with crowd(CLIENTS) as at_once:
                at_once(post, given)
                work_off()
                at_once(recall, list(itertools.islice(itertools.chain(*given), RECALLS)))
            tell(f"web, after {POSTS * TURNS_A_POST:,} turns, {RECALLS} recalls", web())
            tell("worker, after the pipeline", [cluster, *cluster.children(recursive=True)])


@contextmanager
def waiting(code: str) -> Iterator[psutil.Process]:
    """A Python that has run this and waits."""
    command = [sys.executable, "-c", code]
    process = subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout and process.stdin
    try:
        assert process.stdout.readline() == "ready\n"
        yield psutil.Process(process.pid)
    finally:
        process.stdin.close()
        process.wait(timeout=30)


@contextmanager
def worker(address: str) -> Iterator[psutil.Process]:
    """The worker as `up` runs it, with one process that works."""
    given = {**environment(address, "argus.settings"), "ARGUS_WORKERS": "1"}
    command = [sys.executable, str(ROOT / "manage.py"), "qcluster"]
    process = subprocess.Popen(
        command, cwd=ROOT, env=given, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    head, ends = psutil.Process(process.pid), time.monotonic() + STARTED_SECONDS_MAX
    try:
        while 1 + len(head.children(recursive=True)) < WORKER_PROCESSES:
            if time.monotonic() > ends:
                print("the worker has fewer processes than it should")
                break
            time.sleep(0.5)
        yield head
    finally:
        process.terminate()
        process.wait(timeout=60)


def children(word: str) -> Callable[[], list[psutil.Process]]:
    """The processes of ours that run this, as they are when asked."""
    return lambda: [
        one
        for one in psutil.Process().children(recursive=True)
        if any(word in part for part in one.cmdline())
    ]


def tell(name: str, processes: Sequence[psutil.Process]) -> None:
    """Print what these hold together."""
    held = [one.memory_full_info() for one in processes if one.is_running()]
    resident = sum(one.rss for one in held) / MB
    print(f"{name:<34} {len(held):9} {resident:9.0f} {sum(one.pss for one in held) / MB:9.0f}")


def work_off() -> None:
    """Have the worker run the pipeline, and wait until it is through."""
    from django_q.tasks import async_task, result

    ends = time.monotonic() + WORKED_SECONDS_MAX
    task = async_task("memory.tasks.run_process")
    while time.monotonic() < ends:
        if result(task) is not None:
            return
        time.sleep(1.0)
    print(f"the worker was not through in {WORKED_SECONDS_MAX} s")


def weigh(count: int) -> None:
    """Print what raw items and notes take, indexes and all."""
    with database() as address:
        from memory.access import principal
        from memory.llm.minilm import shared
        from tests.cluster import owner_address

        at, owner, model = owner_address(address), principal("bench").pk, shared().name
        writing = Writing()
        empty = sizes(at)
        with without(at, "turn_nearest"):
            add_turns(at, owner, model, writing.texts(count), writing.vectors(count))
        index()
        raw = sizes(at)
        with without(at, "note_nearest"):
            add_notes(at, owner, model, writing.texts(count), writing.vectors(count))
        index()
        whole = sizes(at)
        for name, before, after, table, column in (
            ("a raw item", empty, raw, "memory_rawitem", "body"),
            ("a note", raw, whole, "memory_note", "content"),
        ):
            with psycopg.connect(at) as connection:
                row = connection.execute(
                    f"SELECT avg(octet_length({column})) FROM {table}".encode()
                ).fetchone()
                assert row is not None
                text = float(row[0])
                vector = connection.execute(
                    "SELECT pg_column_size(embedding) FROM memory_note LIMIT 1"
                ).fetchone()
            floor = text + float(vector[0] if vector else 0)
            total = sum(after.values()) - sum(before.values())
            print(
                f"\n{name}, {count:,} of them: {total / count:,.0f} bytes;"
                f" its text {text:,.0f} ({total / count / text:.1f} x),"
                f" text and vector {floor:,.0f} ({total / count / floor:.1f} x)"
            )
            grown = {part: after[part] - before.get(part, 0) for part in after}
            for part, size in sorted(grown.items(), key=lambda one: -one[1]):
                if size > total / 100:
                    print(f"  {part:<44} {size / count:9,.0f} {size / total:6.0%}")


def sizes(address: str) -> dict[str, int]:
    """Bytes of every table (its TOAST with it) and every index, after a vacuum."""
    analyze(address, *WEIGHED)
    with psycopg.connect(address) as connection:
        rows = connection.execute(
            "SELECT relname, CASE relkind WHEN 'r' THEN pg_table_size(oid)"
            " ELSE pg_relation_size(oid) END FROM pg_class"
            " WHERE relkind IN ('r', 'i') AND relnamespace = 'public'::regnamespace"
        ).fetchall()
    return {str(name): int(size) for name, size in rows}


if __name__ == "__main__":
    main()
