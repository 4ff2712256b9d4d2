"""How: two people at the parked units at once, in a database of their own."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

from django.db import connection, transaction

from memory.models import Claim
from review import parked
from tests.factories import at, note, three


def test_it_frees_nothing_that_somebody_dismisses_meanwhile(clone_db: str) -> None:
    alice, *_ = three()
    first, second = (
        Claim.objects.create(
            stage="embed",
            unit=f"note:{note(alice, said).pk}",
            parked_at=at(),
            parked_reason="bad vector",
        )
        for said in ("The build needs a flag.", "Staging is on port 8443.")
    )
    holds, goes_on = threading.Event(), threading.Event()

    def dismiss() -> None:
        try:
            with transaction.atomic():
                parked.dismiss(first.pk, by=alice, now=at(days=1))
                holds.set()
                goes_on.wait(timeout=20)
        finally:
            connection.close()

    def free() -> parked.Freed:
        try:
            return parked.release_all(second.pk, by=alice, now=at(days=1))
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as pool:
        dismissing = pool.submit(dismiss)
        assert holds.wait(timeout=20)
        freeing = pool.submit(free)
        # It found both, and waits for the lock on the first one.
        while not _waits_for_a_lock():
            assert not freeing.done()
        goes_on.set()
        dismissing.result(timeout=20)
        assert freeing.result(timeout=20) == parked.Freed(1, 0)
    first.refresh_from_db()
    assert first.parked_at is not None and first.dismissed_at == at(days=1)


def _waits_for_a_lock() -> bool:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity"
            " WHERE datname = current_database() AND wait_event_type = 'Lock'"
        )
        return bool(cursor.fetchone()[0])
