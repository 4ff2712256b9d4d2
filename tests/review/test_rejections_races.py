"""How: two browsers of one principal at once, in a database of their own."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from django.db import connection

from memory.errors import Conflict
from memory.models import GateRejection, RejectedFact, RejectionDecision
from review import rejections
from tests.factories import at, three


def test_it_decides_once_for_two_at_once_and_tells_the_other(clone_db: str) -> None:
    alice, *_ = three()
    rows = [
        GateRejection.objects.create(
            owner=alice, reason="shape", candidate={"content": f"Two look at number {number}."}
        )
        for number in range(5)
    ]
    together = threading.Barrier(2)

    def decide(verb: Callable[..., RejectionDecision], row: GateRejection) -> str:
        try:
            together.wait(timeout=20)
            return verb(row.pk, by=alice, now=at(1)).action
        except Conflict as told:
            return str(told)
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as pool:
        for row in rows:
            said = list(pool.map(decide, (rejections.confirm, rejections.forbid), (row, row)))
            done = RejectionDecision.objects.get(rejection=row)
            other = said[0] if said[1] == done.action else said[1]
            assert "by alice at 2026-03-02 09:01:00Z" in other
            facts = RejectedFact.objects.as_pipeline().filter(rejection=row).count()
            assert facts == (done.action == "forbid")
