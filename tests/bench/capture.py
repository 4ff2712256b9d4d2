"""Capture, batched and item by item, against a bare INSERT ... ON CONFLICT of the same rows.

`python -m tests.bench.capture`. The floor writes rows that are judged, hashed and keyed already,
into the same table with the same indexes and triggers, in one statement and one transaction. The
verb and the door do all of it. Each round then posts its items again, as a client does that heard
no answer: all are known, and nothing is written but the receipt. Rounds are interleaved; owners
differ, so each writes every row.
"""

from __future__ import annotations

import json
import random
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.bench.ground import Web, database, milliseconds, server, table

#: Items of a post, and rounds of each.
SIZES = {500: 10, 64: 30, 1: 150}

#: What the product promises: the share of the bare INSERT that a batch of this size keeps.
SHARE_MIN, SHARE_SIZE = 0.35, 500

#: What is measured; the second of each does what the first did, once more.
BARE, VERB, DOOR = "bare INSERT", "capture()", "POST /capture"
AGAIN = ", known"

WORDS_A_BODY = 80


def bodies(count: int, *, seed: int) -> list[dict[str, Any]]:
    """Turns of some 500 characters as a hook posts them."""
    chance = random.Random(seed)
    vocabulary = ["".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=chance.randint(2, 9)))
                  for _ in range(4_000)]  # fmt: skip
    start = datetime(2026, 3, 1, tzinfo=UTC) + timedelta(days=seed)
    return [
        {
            "source": "claude-code",
            "kind": "turn",
            "role": "user" if n % 2 else "assistant",
            "body": " ".join(chance.choices(vocabulary, k=WORDS_A_BODY)) + ".",
            "session": f"session-{seed}-{n // 20}",
            "cwd": f"/home/dev/src/project{n // 20 % 4}",
            "record_id": str(uuid.UUID(int=chance.getrandbits(128))),
            "original_timestamp": (start + timedelta(seconds=40 * n)).isoformat(),
            "metadata": {"host": "bench", "branch": "main", "model": "a-model"},
        }
        for n in range(count)
    ]


def bare_rows(items: Sequence[dict[str, Any]], owner: int, now: datetime) -> list[list[Any]]:
    """The rows that capture would write, made before the clock runs."""
    from memory.api import incoming
    from memory.attribution import Registry
    from memory.intake import Prepared, judge
    from memory.text.identity import sha256

    registry = Registry.load()
    rows = []
    for n, item in enumerate(items):
        one = judge(n, incoming(item, publishes=False), registry=registry, now=now)
        assert isinstance(one, Prepared)
        rows.append(
            [
                owner, one.item.visibility, one.item.confidentiality, one.item.source,
                one.item.kind, one.item.role, one.body, one.item.session, one.item.cwd,
                one.attributed.method, one.item.record_id, one.occurred_at, now,
                json.dumps(one.item.metadata), json.dumps(one.item.locator),
                json.dumps(one.flags), sha256(one.body), one.dedup_key, one.copy_key, one.near_key,
            ]
        )  # fmt: skip
    return rows


NAMES = (
    "owner_id, visibility, confidentiality, source, kind, role, body, session, cwd, project_method,"
    " record_id, occurred_at, captured_at, metadata, locator, flags, sha256, dedup_key, copy_key,"
    " near_key"
)


def insert(connection: Any, rows: Sequence[Sequence[Any]]) -> None:
    place = "(" + ", ".join(["%s"] * len(rows[0])) + ")"
    connection.execute(
        f"INSERT INTO memory_rawitem ({NAMES}) VALUES {', '.join([place] * len(rows))}"
        " ON CONFLICT DO NOTHING RETURNING id",
        [value for row in rows for value in row],
    )
    connection.commit()


def main() -> None:
    with database() as address, server(address) as url:
        import psycopg

        from memory.access import create_key, principal
        from memory.api import incoming
        from memory.intake import Incoming, Invalid
        from memory.stages.capture import capture

        floor, verb, door = (principal(f"bench-{name}") for name in ("floor", "verb", "door"))
        key, _ = create_key(owner=door.name, scopes=["capture"])
        web = Web(url, key)
        now = datetime(2026, 9, 1, tzinfo=UTC)

        def store(parsed: Sequence[Incoming | Invalid]) -> None:
            capture(parsed, owner=verb, now=now)

        def post(payload: str, size: int, word: str) -> None:
            reply = json.loads(web.ask("POST", "/capture", payload))
            assert reply[word] == size, reply

        seed = 0
        with psycopg.connect(address) as bare:
            bare.prepare_threshold = None
            for size, rounds in SIZES.items():
                names = [name + again for again in ("", AGAIN) for name in (BARE, VERB, DOOR)]
                times: dict[str, list[float]] = {name: [] for name in names}
                for _ in range(rounds + 1):
                    seed += 1
                    items = bodies(size, seed=seed)
                    rows, payload = bare_rows(items, floor.pk, now), json.dumps({"items": items})
                    parsed = [incoming(item, publishes=False) for item in items]
                    for again, word in (("", "stored"), (AGAIN, "duplicates")):
                        times[BARE + again].append(milliseconds(insert, bare, rows))
                        times[VERB + again].append(milliseconds(store, parsed))
                        times[DOOR + again].append(milliseconds(post, payload, size, word))
                tell(size, {name: measured[1:] for name, measured in times.items()})


def tell(size: int, times: dict[str, list[float]]) -> None:
    """The tables of one size, and whether the aim holds."""
    for again, what in (("", "new"), (AGAIN, "known")):
        rows = {name + again: times[name + again] for name in (BARE, VERB, DOOR)}
        table(f"{size} {what} items a post", rows, floor=BARE + again, items=size)
    share = min(times[BARE]) / min(times[VERB])
    if size == SHARE_SIZE:
        word = "holds" if share >= SHARE_MIN else "MISSED"
        print(f"capture() keeps {share:.2f} of the bare INSERT (aim >= {SHARE_MIN}): {word}")


if __name__ == "__main__":
    main()
