"""Letting go of old rows of a ledger: one deed, and none that says so where nothing went."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from memory.access import principal
from memory.letgo import LetGo, let_go, look_at
from memory.models import Act, Injection, LedgerDay, PurgeLedger
from tests import factories

pytestmark = pytest.mark.django_db

BEFORE = factories.at(days=2).date()


def go() -> tuple[LetGo, int]:
    """What went, and how often the database was asked to take it away."""
    alice, now = principal("alice"), factories.at(days=9)
    with CaptureQueriesContext(connection) as asked:
        told = let_go("injection", BEFORE, by=alice, reason="old", now=now)
    return told, sum("argus_let_go(" in one["sql"] for one in asked.captured_queries)


def test_what_goes_goes_once_and_is_what_a_look_says() -> None:
    alice = principal("alice")
    for day in range(4):
        Injection.objects.create(
            owner=alice, mode="notes", outcome="hit", created_at=factories.at(days=day)
        )
    seen = look_at("injection", BEFORE, now=factories.at(days=9))
    told, deeds = go()
    assert deeds == 1, "a year of rows is not taken away twice"
    assert (told.counts, told.days) == (seen.counts, seen.days) == ({"injection": 2}, 2)
    assert (
        told.ledger == PurgeLedger.objects.get().pk and Injection.objects.as_pipeline().count() == 2
    )


def test_what_took_nothing_leaves_nothing() -> None:
    told, deeds = go()
    assert (told.counts, told.days, told.ledger, deeds) == ({}, 0, 0, 1)
    assert not (PurgeLedger.objects.exists() or LedgerDay.objects.exists())
    assert not Act.objects.filter(verb="let_go").exists()
