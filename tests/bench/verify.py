"""`verify` of 10,000 notes, against reading the same rows.

`python -m tests.bench.verify [N]`. One owner's notes, each with its raw item, evidence, vectors and
search texts, in one throwaway database that is whole: nothing is found. The floors run on the same
connection in the same process: the server reads every row of the same tables once; the client
fetches notes, evidence and items and compares the spans in Python. Rounds are interleaved.
"""

from __future__ import annotations

import sys
import time
from collections import defaultdict
from typing import Any

import psycopg

from tests.bench.ground import database, milliseconds, table
from tests.bench.load import Writing, add_notes, add_turns, analyze, index, without

NOTES = 10_000
ROUNDS = 3

#: What is measured: two floors, the look at everything, and each check of it.
READ, FETCH, VERIFY = "the server reads every row", "the client compares spans", "verify"

#: Tables that a look goes over.
TABLES = (
    "memory_rawitem", "memory_note", "memory_evidence", "memory_searchtext", "memory_posting",
    "memory_turnvector", "memory_episodeturn", "memory_dedupverdict", "memory_injection",
)  # fmt: skip

#: What the product promises: the time of a look over that of reading each row once.
VERIFY_RATIO_MAX = 5.0

EVIDENCE_SQL = """
INSERT INTO memory_evidence
    (note_id, raw_item_id, start, "end", quote, sha256, origin, created_at)
SELECT n.id, r.id, 0, least(length(r.body), 160), left(r.body, 160),
    encode(sha256(convert_to(left(r.body, 160), 'UTF8')), 'hex'), 'distill', n.created_at
FROM memory_note n JOIN memory_rawitem r ON r.dedup_key = n.content_key
"""
FETCH_SQL = """
SELECT n.content, e.quote, e.start, e."end", e.sha256, i.body, i.sha256
FROM memory_evidence e JOIN memory_note n ON n.id = e.note_id
JOIN memory_rawitem i ON i.id = e.raw_item_id
"""


def main() -> None:
    count = int(sys.argv[1]) if sys.argv[1:] else NOTES
    with database() as address:
        from memory.access import principal
        from memory.llm.minilm import shared
        from memory.models import StageRun
        from tests.cluster import owner_address

        started = time.perf_counter()
        load(owner_address(address), principal("bench").pk, shared().name, count)
        # Without it, what has no search text may still be waiting for one.
        StageRun.objects.create(stage="embed", status="done", report={"pending": 0})
        print(f"loaded {count:,} notes in {time.perf_counter() - started:.1f} s")
        measure()


def load(address: str, owner: int, model: str, count: int) -> None:
    """So many notes with evidence, and what they are found by."""
    writing = Writing()
    texts, vectors = writing.texts(count), writing.vectors(count)
    with without(address, "note_nearest", "turn_nearest"):
        add_notes(address, owner, model, texts, vectors)
        add_turns(address, owner, model, texts, vectors)
    index()
    with psycopg.connect(address) as connection:
        connection.execute(EVIDENCE_SQL)
    analyze(address, *TABLES)


def measure() -> None:
    """The look and its floors in turn; the tables, and whether the aim holds."""
    from memory.stages.verify import verify

    times: defaultdict[str, list[float]] = defaultdict(list)
    checks: defaultdict[str, list[float]] = defaultdict(list)
    verify()  # Read from memory from here on, as the floors are.
    for _ in range(ROUNDS):
        times[READ].append(milliseconds(read))
        times[FETCH].append(milliseconds(fetch))
        reports: list[Any] = []
        times[VERIFY].append(milliseconds(lambda: reports.append(verify())))  # noqa: B023
        assert reports[0].findings == 0, reports[0]
        for name, took in reports[0].milliseconds.items():
            checks[name].append(float(took))
    table("a look at everything", times, floor=READ)
    table("its checks, against the whole", {VERIFY: times[VERIFY], **checks}, floor=VERIFY)
    ratio = min(times[VERIFY]) / min(times[READ])
    word = "holds" if ratio <= VERIFY_RATIO_MAX else "MISSED"
    print(f"\nverify / read {ratio:.1f} (aim <= {VERIFY_RATIO_MAX}): {word}")


def read() -> None:
    """Every row of the tables once, by the server: nothing is sent."""
    from django.db import connection

    with connection.cursor() as cursor:
        for name in TABLES:
            cursor.execute(f"SELECT count(t.*) FROM {name} t")
            cursor.fetchone()


def fetch() -> None:
    """What a plain program would do for the spans alone."""
    from django.db import connection

    from memory.text.identity import sha256

    with connection.cursor() as cursor:
        cursor.execute(FETCH_SQL)
        for _, quote, start, end, key, body, whole in cursor.fetchall():
            assert body[start:end] == quote and sha256(quote) == key and sha256(body) == whole


if __name__ == "__main__":
    main()
