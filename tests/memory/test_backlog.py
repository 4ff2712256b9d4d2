"""How: the loop over units of the test's own; the clock moves when the test says so."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import datetime

import pytest

from memory import claims
from memory.audit import open_run
from memory.backlog import Backlog, OutOfTime
from memory.claims import LEASE_SECONDS, Held
from memory.errors import Conflict, ContentError, InfraError
from memory.models import Claim, DistillFailure, StageRun
from tests.factories import at, document, three

pytestmark = pytest.mark.django_db

UNITS = [f"unit {number}" for number in range(6)]


class Hand:
    """A clock that goes on when it is told to."""

    def __init__(self) -> None:
        self.minutes = 0.0

    def __call__(self) -> datetime:
        return at(self.minutes)


@pytest.fixture
def hand() -> Hand:
    return Hand()


def backlog(hand: Hand, limit: int | None = None, until: datetime | None = None) -> Backlog:
    run = open_run("count", trigger="test", now=hand())
    return Backlog(run, clock=hand, limit=limit, until=until)


def done(held: list[Held]) -> Counter[str]:
    for one in held:
        claims.finish(one)
    return Counter(done=len(held))


def work_off(
    log: Backlog, work: Callable[[list[Held]], Counter[str]], at_once: int = 4
) -> Counter[str]:
    return log.work_off(lambda: UNITS, work, at_once=at_once)


def raises(error: BaseException) -> Callable[[list[Held]], Counter[str]]:
    def work(held: list[Held]) -> Counter[str]:
        raise error

    return work


def untried() -> bool:
    return not Claim.objects.exclude(attempts=0, content_failures=0, lease_until=None).exists()


def test_it_does_each_unit_once_and_counts(hand: Hand) -> None:
    log = backlog(hand)
    asked: list[str] = []

    def work(held: list[Held]) -> Counter[str]:
        asked.extend(one.unit for one in held)
        return done(held)

    assert work_off(log, work) == {"done": 6} and asked == UNITS


def test_it_takes_no_more_than_it_was_told(hand: Hand) -> None:
    assert work_off(backlog(hand, limit=3), done) == {"done": 3}
    assert not Claim.objects.exclude(worker="").exists()


def test_it_begins_nothing_after_its_time_and_puts_back_what_it_holds(hand: Hand) -> None:
    def work(held: list[Held]) -> Counter[str]:
        hand.minutes += 1
        return done(held)

    assert work_off(backlog(hand, until=at(2)), work) == {"done": 2}
    assert untried()


def test_it_stops_between_two_calls_of_a_unit_and_counts_no_attempt(hand: Hand) -> None:
    log = backlog(hand, until=at(2))
    calls: list[str] = []

    def work(held: list[Held]) -> Counter[str]:
        for _ in range(10):
            log.pulse()
            calls.append(held[0].unit)
            hand.minutes += 1
        return done(held)

    assert work_off(log, work) == {} and calls == [UNITS[0]] * 2
    assert untried()
    with pytest.raises(OutOfTime):
        log.pulse()


def test_it_keeps_a_unit_of_many_calls_while_it_shows_that_it_lives(hand: Hand) -> None:
    log, other = backlog(hand), open_run("count", trigger="test", now=at(0))
    stale = StageRun.objects.get(pk=log.run.pk).heartbeat_at

    def work(held: list[Held]) -> Counter[str]:
        for _ in range(3):
            hand.minutes += LEASE_SECONDS / 60 - 1
            log.pulse()
        assert claims.claim(other, [held[0].unit], now=hand(), limit=1) == []
        return done(held)

    assert log.work_off(lambda: UNITS[:1], work, at_once=1) == {"done": 1}
    assert StageRun.objects.get(pk=log.run.pk).heartbeat_at > stale


def test_it_holds_a_unit_for_longer_than_the_longest_call(
    hand: Hand, configure: Callable[..., None]
) -> None:
    configure(model_timeout_seconds=600.0)
    one, other = (open_run("count", trigger="test", now=at(0)) for _ in range(2))
    claims.claim(one, ["unit"], now=at(0), limit=1)
    assert claims.claim(other, ["unit"], now=at(15), limit=1) == []
    assert len(claims.claim(other, ["unit"], now=at(20), limit=1)) == 1


def test_it_ends_when_what_we_need_is_away(hand: Hand) -> None:
    log = backlog(hand)
    assert work_off(log, raises(InfraError())) == {"transient_failures": 1}
    assert log.away and untried() and not DistillFailure.objects.exists()


def test_it_goes_on_after_a_conflict(hand: Hand) -> None:
    assert work_off(backlog(hand), raises(Conflict())) == {}
    assert untried()


def test_it_tries_what_failed_once_a_run_and_names_its_owner(hand: Hand) -> None:
    alice, _, _ = three()
    item = document(alice, "# A page\n\nWith a line.")
    failing = raises(ContentError("no", "the reply"))
    log = backlog(hand)
    assert log.work_off(lambda: [f"item:{item.pk}"], failing, at_once=4) == {
        "content_failures": 1,
        "parked": 0,
    }
    row = DistillFailure.objects.get()
    assert (row.owner, row.kind, row.created_at) == (alice, "content", at(0))


@pytest.mark.parametrize("end", [KeyboardInterrupt(), SystemExit(143)])
def test_it_burns_no_attempt_when_a_person_ends_it(hand: Hand, end: BaseException) -> None:
    with pytest.raises(type(end)):
        work_off(backlog(hand), raises(end))
    assert Claim.objects.get(unit=UNITS[0]).attempts == 0


def test_it_counts_the_attempt_when_the_queue_ends_what_took_too_long(hand: Hand) -> None:
    class TooLong(SystemExit):
        """As the queue raises it."""

    with pytest.raises(TooLong):
        work_off(backlog(hand), raises(TooLong()))
    assert Claim.objects.get(unit=UNITS[0]).attempts == 1
