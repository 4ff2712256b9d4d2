"""The same skipped recalls told by several at once, in threads on a database of their own."""

from __future__ import annotations

import threading
import uuid

import pytest
from django.db import connection

from memory.models import Injection
from recall.skipped import Noted, Skipped, note_skipped
from tests.recall.making import NOW, people

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("clone_db")]


def skipped() -> Skipped:
    return Skipped(uuid.uuid4(), "prompt", NOW, "s1", "/src/harbor", "claude", "desk", "away", 300)


def test_it_notes_each_once_when_they_are_told_at_once_and_in_any_order() -> None:
    alice, told = people().alice, [skipped() for _ in range(20)]
    start = threading.Barrier(6)
    noted: list[Noted] = []

    def tell(mine: list[Skipped]) -> None:
        try:
            start.wait()
            noted.append(note_skipped(mine, principal=alice, now=NOW))
        finally:
            connection.close()

    orders = [told, told[::-1]] * 3
    threads = [threading.Thread(target=tell, args=(mine,)) for mine in orders]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert Injection.objects.as_pipeline().filter(outcome="skipped").count() == len(told)
    assert sum(one.recorded for one in noted) == len(told)
    assert sum(one.known for one in noted) == 5 * len(told)
