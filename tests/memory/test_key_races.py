"""Keys made and revoked at once, in threads on a database of their own."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from django.db import connection

from memory.access import CHILDREN_MAX, create_key, derive_key, new_prefix, revoke_key
from memory.errors import Conflict, Forbidden, RefusedError
from memory.models import AccessKey

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("clone_db")]

NOW = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)


def at_once(*acts: Callable[[], object]) -> None:
    start = threading.Barrier(len(acts))

    def run(act: Callable[[], object]) -> None:
        try:
            start.wait()
            with contextlib.suppress(Conflict, Forbidden, RefusedError):
                act()
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=(act,)) for act in acts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_no_key_outlives_its_maker_when_both_happen_at_once() -> None:
    _, parent = create_key(owner="alice", scopes=["recall"])
    makes = [lambda: derive_key(parent, scopes=["recall"])] * 8
    at_once(*makes, lambda: revoke_key(parent.prefix, now=NOW))
    assert not AccessKey.objects.filter(revoked_at=None).exists()


def test_a_key_makes_no_more_than_it_may_when_asked_at_once() -> None:
    _, parent = create_key(owner="alice", scopes=["recall"])
    for _ in range(CHILDREN_MAX - 2):
        derive_key(parent, scopes=["recall"])
    at_once(*[lambda: derive_key(parent, scopes=["recall"])] * 6)
    assert AccessKey.objects.filter(parent=parent).count() == CHILDREN_MAX


def test_a_form_that_is_sent_twice_at_once_makes_one_key() -> None:
    prefix = new_prefix()
    at_once(*[lambda: create_key(owner="alice", scopes=["recall"], prefix=prefix)] * 6)
    assert AccessKey.objects.get().prefix == prefix
