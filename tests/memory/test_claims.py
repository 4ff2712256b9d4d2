"""How: claims on a real table, two runs as two workers, a clock in the test's hand."""

from __future__ import annotations

import zlib
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection

from memory import claims
from memory.audit import open_run
from memory.claims import (
    CONTENT_FAILURES_MAX,
    ENTERED_PER_CLAIM,
    LEASE_SECONDS,
    UNANSWERED_CLAIMS_MAX,
    ClaimLost,
    Held,
)
from memory.errors import ContentError
from memory.models import Claim, DistillFailure, StageRun
from tests.factories import at

UNITS = [f"unit {letter}" for letter in "zyxwvutsrq"]
LEASE_MINUTES = LEASE_SECONDS / 60


def worker() -> StageRun:
    return open_run("distill", trigger="test", now=at(0))


def take(run: StageRun, units: list[str], *, limit: int = 99, minutes: float = 0) -> list[Held]:
    return claims.claim(run, units, now=at(minutes), limit=limit)


def names(held: list[Held]) -> list[str]:
    return [one.unit for one in held]


@pytest.mark.django_db
class TestOneAtATime:
    def test_it_takes_the_first_ones_in_the_order_given(self) -> None:
        first, second = worker(), worker()
        assert names(take(first, UNITS, limit=3)) == UNITS[:3]
        assert names(take(second, UNITS, limit=3)) == UNITS[3:6]
        assert names(take(first, UNITS)) == UNITS[6:]
        assert take(second, UNITS) == []

    def test_it_enters_no_more_rows_than_workers_may_want(self) -> None:
        take(worker(), [f"unit {number}" for number in range(1_000)], limit=2)
        assert Claim.objects.count() == 2 * ENTERED_PER_CLAIM

    def test_it_asks_nothing_about_no_units(self) -> None:
        assert take(worker(), []) == []

    def test_it_keeps_stages_apart(self) -> None:
        take(worker(), UNITS)
        other = open_run("dedup", trigger="test", now=at(0))
        assert names(take(other, UNITS)) == UNITS

    def test_it_gives_a_unit_to_another_worker_when_the_lease_ends(self) -> None:
        slow, quick = worker(), worker()
        held = take(slow, ["unit"])[0]
        assert take(quick, ["unit"], minutes=LEASE_MINUTES - 1) == []
        again = take(quick, ["unit"], minutes=LEASE_MINUTES)[0]
        assert not claims.begin(held, now=at(LEASE_MINUTES)), "the slow one hears that it lost"
        with pytest.raises(ClaimLost):
            claims.finish(held)
        claims.put_back(held)
        claims.forget(held)
        assert not claims.fail(slow, held, ContentError("late"), now=at(LEASE_MINUTES))
        claims.finish(again)
        assert not Claim.objects.exists() and not DistillFailure.objects.exists()

    def test_it_renews_the_lease_when_the_work_begins(self) -> None:
        one, other = worker(), worker()
        held = take(one, ["unit"])[0]
        assert claims.begin(held, now=at(LEASE_MINUTES - 1))
        assert take(other, ["unit"], minutes=LEASE_MINUTES + 1) == []

    def test_it_takes_out_entries_that_a_late_list_left_and_nobody_comes_for(self) -> None:
        quick, late = worker(), worker()
        seen = UNITS[:3]
        for held in take(quick, seen):
            claims.finish(held)
        mine = take(late, seen, limit=1)
        assert Claim.objects.count() == 3, "two were entered ahead, and are done"
        claims.sweep("dedup")
        assert Claim.objects.count() == 3, "of another stage"
        claims.sweep("distill")
        assert list(Claim.objects.values_list("unit", flat=True)) == names(mine)
        claims.begin(mine[0], now=at(0))
        claims.let_go(late)
        claims.sweep("distill")
        assert Claim.objects.get().attempts == 1, "what it remembers stays"

    def test_it_counts_an_attempt_only_where_work_began(self) -> None:
        run = worker()
        first, _ = take(run, UNITS[:2])
        claims.begin(first, now=at(0))
        claims.let_go(run)
        assert dict(Claim.objects.values_list("unit", "attempts")) == {UNITS[0]: 1, UNITS[1]: 0}
        assert [one.troubled for one in take(worker(), UNITS[:2])] == [True, False]

    def test_it_counts_nothing_for_what_is_put_back(self) -> None:
        run = worker()
        for _ in range(3):
            held = take(run, ["unit"])[0]
            claims.begin(held, now=at(0))
            claims.put_back(held)
        assert (Claim.objects.get().attempts, Claim.objects.get().lease_until) == (0, None)

    def test_it_parks_what_killed_five_workers_and_not_what_they_merely_held(self) -> None:
        for _ in range(UNANSWERED_CLAIMS_MAX):
            run = worker()
            killer, innocent = take(run, UNITS[:2])
            claims.begin(killer, now=at(0))
            claims.let_go(run)
        assert names(take(worker(), UNITS[:2])) == [innocent.unit]
        row = Claim.objects.get(unit=killer.unit)
        assert row.parked_at == at(0) and "5 claims" in row.parked_reason
        failure = DistillFailure.objects.get()
        assert (failure.unit, failure.parked, failure.attempt) == (killer.unit, True, 5)
        assert claims.parked("distill") == {killer.unit}
        assert take(worker(), [killer.unit], minutes=60) == []

    def test_it_parks_after_five_content_failures_with_each_reply_kept(self) -> None:
        run = worker()
        for number in range(1, CONTENT_FAILURES_MAX + 1):
            held = take(run, ["unit"])[0]
            claims.begin(held, now=at(0))
            parked = claims.fail(run, held, ContentError("no", f"reply {number}"), now=at(number))
            assert parked == (number == CONTENT_FAILURES_MAX)
        replies = DistillFailure.objects.order_by("attempt").values_list("reply", flat=True)
        kept = [zlib.decompress(bytes(reply)).decode() for reply in replies]
        assert kept == [f"reply {number}" for number in range(1, 6)]
        assert Claim.objects.get().attempts == 0, "an answer, though a useless one"
        assert take(run, ["unit"]) == []


def test_it_gives_each_unit_to_one_of_many_workers(clone_db: str) -> None:
    units = [f"unit {number}" for number in range(120)]

    def work(_: int) -> list[str]:
        try:
            run, mine = worker(), []
            while held := take(run, units, limit=4):
                mine += names(held)
            return mine
        finally:
            connection.close()

    with ThreadPoolExecutor(6) as pool:
        taken = [unit for mine in pool.map(work, range(6)) for unit in mine]
    assert len(taken) == len(set(taken))
    assert sorted(taken) == sorted(units)
