"""Writers of the statistics at once: whoever they are, none waits in a ring and none is lost.

How: threads on a clone, each with a connection of its own; afterwards the counts are made afresh.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection

from memory import retire
from memory.models import Note, Principal
from tests.factories import at, note, three
from tests.memory.test_embed_index import check_counts

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("clone_db", "local")]

#: What all notes share most of, in whatever order.
WORDS = [
    "ferry",
    "pier",
    "tide",
    "harbor",
    "barnacle",
    "mast",
    "anchor",
    "sail",
    "rudder",
    "keel",
    "hull",
    "deck",
]
#: Retirements of four notes each, by each of three threads.
ROUNDS = 40


def sentence(chance: random.Random) -> str:
    return " ".join(chance.sample(WORDS, 9)) + "."


def test_it_waits_for_nobody_in_a_ring_and_loses_no_count() -> None:
    alice: Principal = three()[0]
    chance = random.Random(7)
    made = [note(alice, sentence(chance)) for _ in range(24)]

    def churn(seed: int) -> Callable[[], None]:
        mine, dice = made[seed::3], random.Random(seed)

        def work() -> None:
            try:
                for _ in range(ROUNDS):
                    some = dice.sample(mine, 4)
                    retire.retire([one.pk for one in some], reason="redistilled", now=at(days=1))
                    for one in some:
                        retire.revive(one.pk)
            finally:
                connection.close()

        return work

    with ThreadPoolExecutor(3) as pool:
        for done in [pool.submit(churn(seed)) for seed in range(3)]:
            done.result()
    assert Note.objects.as_pipeline().filter(deleted_at__isnull=True).count() == len(made)
    check_counts()
