"""How the identities of a post are looked up: by as many probes as it has keys."""

from __future__ import annotations

import pytest
from django.db import connection

from memory.access import principal
from memory.identities import FIND_SQL
from memory.intake import Incoming
from memory.stages.capture import BATCH_ITEMS_MAX, capture
from tests import factories as make
from tests.memory.plans import nodes, plan_of

pytestmark = pytest.mark.django_db

#: Enough that no index is so small that it is as good as another.
POSTS = 3
WORDS = "The old berth is free from now on. " * 8

INDEXES = {"raw_item_dedup", "raw_item_copy", "raw_item_record", "raw_item_near"}


def test_it_looks_up_a_post_by_its_keys_alone_however_much_is_kept() -> None:
    alice = principal("alice")
    for first in range(0, POSTS * BATCH_ITEMS_MAX, BATCH_ITEMS_MAX):
        said = [
            Incoming(
                source="api", body=f"Step {n} of the move went well, said the worker. {WORDS}",
                session="s1", record_id=f"record-{n:030}", original_timestamp=make.at(n),
            )
            for n in range(first, first + BATCH_ITEMS_MAX)
        ]  # fmt: skip
        capture(said, owner=alice, now=make.at(days=9))
    keys = [f"unheard of {n}" for n in range(BATCH_ITEMS_MAX)]
    names = ("dedup", "copy", "source", "record", "near")
    with connection.cursor() as cursor:
        # As autovacuum would; the application's role may not by itself.
        cursor.execute("SELECT argus_analyze()")
        plan = plan_of(cursor, FIND_SQL, {"owner": alice.pk, **dict.fromkeys(names, keys)})
    reads = [node for node in nodes(plan) if "Relation Name" in node]
    assert {node["Node Type"] for node in reads} == {"Index Scan"}, reads
    assert {node["Index Name"] for node in reads} == INDEXES
