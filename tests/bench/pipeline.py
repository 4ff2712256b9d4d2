"""Turns through segment, distill, embed and dedup by the default models, as the memory grows.

`python -m tests.bench.pipeline [NOTES ...]`. One owner's notes, judged already, and as many turns
in one throwaway database that grows; at each size the same number of new turns in sessions that
ended is captured, and each stage works off all of it. The floor is what nobody can do without: the
embedder on the very same texts, and for dedup the bare nearest twenty of each new note by the
graph. Then one note comes alone: what it costs to find it, its neighbours and a verdict.
"""

from __future__ import annotations

import itertools
import math
import random
import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from statistics import median
from typing import Any

import psycopg

from tests.bench.ground import database, milliseconds
from tests.bench.load import Writing, add_notes, add_turns, analyze, index, without

SIZES = (1_000, 10_000, 100_000)

#: New turns at each size, in each of the rounds, and turns of one session.
TURNS = 120
ROUNDS = 3
SESSION_TURNS = 12

#: Notes that come alone, at each size.
ALONE = 15

#: Milliseconds of a unit may grow by the logarithm of the notes, and this much is the machine's.
NOISE_RATIO_MAX = 1.25

STAGES = ("segment", "distill", "embed", "dedup")
EMBEDDER, NEAREST, ONE = "the embedder alone", "bare nearest 20", "dedup, one note alone"

START = datetime(2026, 9, 1, tzinfo=UTC)

THINGS = (
    "staging database", "payment sandbox", "booking service", "export job", "deploy script",
    "login page", "berth planner", "invoice worker", "search index", "mail gateway",
)  # fmt: skip
FACTS = (
    "We decided that the {thing} listens on port {n} from now on.",
    "The {thing} must never be restarted before {name} has drained its queue.",
    "I moved the {thing} from {name} to {other}, because it timed out after {n} seconds.",
    "The {thing} depends on {name} {n}, and {other} owns it.",
    "{name} said that the {thing} is rebuilt from {other} every {n} minutes.",
)
CHATTER = (
    "Can you have a look at the {thing} again?",
    "Running the tests of the {thing} now, give me a minute.",
    "Hm, that did not work, let me try something else with {name}.",
)

VERDICTS_SQL = """
INSERT INTO memory_dedupverdict (owner_id, note_id, verdict, status, candidates, reasoning,
    model_asked, model_real, prompt_version, corroborates, created_at)
SELECT owner_id, id, 'distinct', 'applied', '[]', 'loaded', 'none', 'none', '', false, created_at
FROM memory_note n WHERE NOT EXISTS (SELECT FROM memory_dedupverdict v WHERE v.note_id = n.id)
"""
NEAREST_SQL = (
    "SELECT id FROM memory_note WHERE deleted_at IS NULL AND owner_id = %s"
    " ORDER BY embedding <=> %s::halfvec LIMIT 20"
)


def main() -> None:
    sizes = [int(one) for one in sys.argv[1:]] or list(SIZES)
    seeds = itertools.count(1)
    costs: dict[int, dict[str, float]] = {}
    with database() as address:
        from memory.access import principal
        from tests.cluster import owner_address

        owner, writing, before = principal("bench"), Writing(), 0
        for size in sizes:
            load(owner_address(address), owner.pk, writing, before, size)
            costs[size] = measure(address, owner, size, seeds)
            before = size
    told_growth(costs)


def load(address: str, owner: int, writing: Writing, first: int, size: int) -> None:
    """More notes that were judged, and as many turns, up to so many of each."""
    from memory.llm.minilm import shared

    started, more, model = time.perf_counter(), size - first, shared().name
    with without(address, "note_nearest", "turn_nearest"):
        add_notes(address, owner, model, writing.texts(more), writing.vectors(more), first=first)
        add_turns(address, owner, model, writing.texts(more), writing.vectors(more), first=first)
    with without(address, "posting_own", "posting_common", "posting_team"):
        index()
    with psycopg.connect(address) as connection:
        connection.execute(VERDICTS_SQL)
        # As those of an older session, whose turns lie in episodes.
        connection.execute("UPDATE memory_searchtext SET settled = true WHERE NOT settled")
    analyze(
        address, "memory_note", "memory_rawitem", "memory_turnvector", "memory_searchtext",
        "memory_posting", "memory_term", "memory_collection", "memory_session",
        "memory_dedupverdict", "memory_waitingnote", "memory_waitingitem",
    )  # fmt: skip
    print(f"\n{size:,} notes and turns: loaded in {time.perf_counter() - started:.0f} s")


def conversation(count: int, seed: int) -> list[str]:
    """Turns of people at work; every second one says something that lasts."""
    said = zip(remarks(count, seed, CHATTER), remarks(count, seed + 10**6), strict=True)
    return [turn for pair in said for turn in pair][:count]


def remarks(count: int, seed: int, forms: Sequence[str] = FACTS) -> list[str]:
    """So many turns, each of which says something that lasts, unless the forms say otherwise."""
    chance = random.Random(seed)
    return [
        chance.choice(forms).format(
            thing=chance.choice(THINGS),
            n=chance.randint(2, 9_999),
            name="".join(chance.choices("abcdefghijklmnoprstu", k=6)).capitalize(),
            other="".join(chance.choices("abcdefghijklmnoprstu", k=7)).capitalize(),
        )
        for _ in range(count)
    ]


def hear(owner: Any, texts: Sequence[str], seed: int) -> datetime:
    """Capture these turns, in sessions that have ended. A moment when all of it is over."""
    from memory.envelope import SessionEnd
    from memory.intake import Incoming
    from memory.stages.capture import capture

    begun = START + timedelta(days=seed)
    over = begun + timedelta(days=1)
    for first in range(0, len(texts), SESSION_TURNS):
        session = f"bench-{seed}-{first}"
        items = [
            Incoming(
                source="api", body=text, role="assistant" if n % 2 else "user", session=session,
                record_id=f"{session}-{n}", original_timestamp=begun + timedelta(seconds=30 * n),
            )
            for n, text in enumerate(texts[first : first + SESSION_TURNS])
        ]  # fmt: skip
        capture(items, owner=owner, now=over, session_end=SessionEnd(session, "logout"))
    return over + timedelta(hours=1)


def measure(address: str, owner: Any, size: int, seeds: itertools.count[int]) -> dict[str, float]:
    """Print what each stage costs a turn at this size; milliseconds a unit, by stage."""
    spent: defaultdict[str, list[float]] = defaultdict(list)
    units: defaultdict[str, list[float]] = defaultdict(list)
    notes = 0
    with psycopg.connect(address, autocommit=True) as bare:
        bare.execute("SET hnsw.ef_search = 100")
        for each in range(ROUNDS + 1):
            seed = next(seeds)
            texts = conversation(TURNS, seed)
            now = hear(owner, texts, seed)
            took, made = work_off(now, bare, owner.pk, texts)
            if each:  # The first one warms the embedder.
                notes += len(made)
                for name, milli in took.items():
                    spent[name].append(milli)
                    of_notes = name in ("dedup", "embed", NEAREST)
                    units[name].append(milli / (max(len(made), 1) if of_notes else TURNS))
        for _ in range(ALONE):
            seed = next(seeds)
            units[ONE].append(alone(owner, conversation(2, seed), seed))
    costs = {name: median(times) for name, times in units.items()}
    whole = sum(median(spent[name]) for name in STAGES)
    floor = median(spent[EMBEDDER])
    print(
        f"{size:,} notes: {TURNS} turns make {notes / ROUNDS:.0f} notes;"
        f" {TURNS / whole * 1000:.1f} turns/s through all stages,"
        f" {TURNS / floor * 1000:.1f} through the embedder alone ({whole / floor:.2f} x)"
    )
    print(f"{'':<26} {'ms of ' + str(TURNS) + ' turns':>18} {'x embedder':>11} {'ms a unit':>10}")
    for name in (EMBEDDER, *STAGES, NEAREST, ONE):
        all_of_it = median(spent[name]) if name in spent else None
        total = f"{all_of_it:18.0f} {all_of_it / floor:11.2f}" if all_of_it else ""
        print(f"{name:<26} {total:30} {costs[name]:10.2f}")
    return costs


def work_off(
    now: datetime, bare: psycopg.Connection, owner: int, texts: Sequence[str]
) -> tuple[dict[str, float], list[Any]]:
    """Milliseconds of each stage and each floor over what waits, and the notes that came of it."""
    from memory.llm.minilm import shared
    from memory.models import Note
    from memory.pipeline import PIPELINE
    from memory.tracks import literal

    took: dict[str, float] = {}
    made: list[Any] = []
    for verb in PIPELINE:
        if verb.__name__ == "dedup":
            waiting = Note.objects.as_pipeline().undecided()
            made = list(waiting.values_list("content", "embedding"))
            vectors = [literal(vector) for _, vector in made]
            took[NEAREST] = milliseconds(nearest, bare, owner, vectors)
        took[verb.__name__] = milliseconds(lambda: verb(clock=lambda: now))  # noqa: B023
    same = [*texts, *(content for content, _ in made)]
    took[EMBEDDER] = milliseconds(lambda: [shared().encode(text) for text in same])
    return took, made


def nearest(bare: psycopg.Connection, owner: int, vectors: Sequence[str]) -> None:
    for vector in vectors:
        bare.execute(NEAREST_SQL, [owner, vector]).fetchall()


def alone(owner: Any, texts: Sequence[str], seed: int) -> float:
    """Milliseconds of a run of dedup that finds one note waiting."""
    from memory.pipeline import PIPELINE

    now = hear(owner, texts, seed)
    *others, dedup = PIPELINE
    for verb in others:
        verb(clock=lambda: now)
    return milliseconds(lambda: dedup(clock=lambda: now))


def told_growth(costs: dict[int, dict[str, float]]) -> None:
    """Print by how much each unit costs more at the last size than at the first."""
    small, *_, large = costs
    if small == large:
        return
    limit = math.log(large) / math.log(small)
    print(f"\ngrowth of a unit {small:,} -> {large:,} notes; the logarithm grows {limit:.2f} times")
    for name in (*STAGES, ONE, NEAREST, EMBEDDER):
        ratio = costs[large][name] / costs[small][name]
        judged = name in ("dedup", ONE)
        word = "holds" if ratio <= limit * NOISE_RATIO_MAX else "MISSED"
        print(f"{name:<26} {ratio:6.2f}{f'  (aim <= {limit:.2f}): {word}' if judged else ''}")


if __name__ == "__main__":
    main()
