"""How: one run of a stage fails at its n-th statement, for every n; what is left must be whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from memory.models import (
    Claim,
    DedupVerdict,
    Episode,
    EpisodeTurn,
    Evidence,
    GateRejection,
    Note,
    Session,
    StageRun,
)
from memory.stages.dedup import dedup
from memory.stages.distill import distill
from memory.stages.segment import segment
from tests.factories import at, clock, episode, note, three, turns
from tests.openai_server import CHAT, OpenAIServer, says
from tests.openai_server import note as said
from tests.openai_server import notes as answer

pytestmark = pytest.mark.usefixtures("clone_db")

#: Statements of one run that are tried at most; a run that needs more is not a small one.
STATEMENTS_MAX = 150

FACT = "Service number {} listens on port 8443 behind the balancer."


class Fault(Exception):
    """The statement that was not run."""


@contextmanager
def failing(at_statement: int) -> Iterator[Callable[[], bool]]:
    """Raise instead of the n-th statement, once. Yields: did it come to that?"""
    numbers = count(1)
    reached = False

    def wrapper(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        nonlocal reached
        if next(numbers) == at_statement:
            reached = True
            raise Fault(sql[:80])
        return execute(sql, params, many, context)

    with connection.execute_wrapper(wrapper):
        yield lambda: reached


def survive(run: Callable[[], object], check: Callable[[], None]) -> int:
    """Run with a fault at each statement in turn, until one run meets none. How many there were."""
    for number in range(1, STATEMENTS_MAX):
        # Five faults park a unit, which is right, and not what is tried here.
        Claim.objects.update(attempts=0)
        with failing(number) as reached, suppress(Fault):
            run()
        check()
        if not reached():
            return number - 1
    raise AssertionError("the run never ended")


def check_runs() -> None:
    assert not StageRun.objects.filter(status="running").exists()
    assert not Claim.objects.exclude(lease_until=None).exists()


def test_it_segments_a_session_wholly_or_not_at_all(local: object) -> None:
    alice, _, _ = three()
    turns(alice, [FACT.format(n) for n in range(24)])

    def check() -> None:
        check_runs()
        for one in Episode.objects.as_pipeline():
            assert one.turns.count() == one.turn_count and one.attributions.count() == 1
        if Session.objects.filter(pending=False).exists():
            assert EpisodeTurn.objects.count() == 24

    assert survive(lambda: segment(clock=clock(at(90))), check) > 10
    assert [e.turn_count for e in Episode.objects.as_pipeline().order_by("pk")] == [20, 4]


def test_it_distills_a_unit_wholly_or_not_at_all(
    configure: Callable[..., None], server: OpenAIServer
) -> None:
    alice, _, _ = three()
    for number in range(STATEMENTS_MAX):
        text = FACT.format(number)
        server.script(CHAT, says(answer(said(text), said("Nobody said this sentence at all."))))
    made = count()

    def one_more() -> None:
        distill(clock=clock(at(days=9)), limit=1)

    def fill() -> None:
        number = next(made)
        episode(
            alice, ["Which?", *[FACT.format(n) for n in range(8)]], session=f"s{number}",
            start=at(hours=number),
        )  # fmt: skip

    def check() -> None:
        check_runs()
        for one in Episode.objects.as_pipeline():
            notes = Note.objects.as_pipeline().filter(episode=one)
            refused = GateRejection.objects.as_pipeline().filter(episode=one).count()
            if one.distilled_at is None:
                assert (notes.count(), refused) == (0, 0)
            else:
                assert notes.count() + refused == 2
                assert not Claim.objects.filter(unit=one.unit_key).exists()
            assert Evidence.objects.filter(note__in=notes.values("pk")).count() == notes.count()
        if not Episode.objects.as_pipeline().filter(distilled_at=None).exists():
            fill()

    fill()
    assert survive(one_more, check) > 20


def test_it_judges_a_note_wholly_or_not_at_all(local: object) -> None:
    alice, _, _ = three()
    text = "The staging server listens on port {}."
    old = note(alice, text.format(8000))
    made = count(1)

    def change() -> None:
        number = next(made)
        note(alice, text.format(8000 + number), when=at(number))

    def check() -> None:
        check_runs()
        assert old.pk
        live = Note.objects.as_pipeline().live(timezone.now())
        undecided = live.undecided().count()
        retired = Note.objects.as_pipeline().filter(retired_reason="superseded").count()
        verdicts = (
            DedupVerdict.objects.as_pipeline().filter(verdict="supersede", status="applied").count()
        )
        assert retired == verdicts
        for row in DedupVerdict.objects.as_pipeline().filter(verdict="supersede"):
            assert row.target is not None and row.target.deleted_at is not None
            assert row.target.valid_to == row.note.valid_from
        assert live.count() == 1 + undecided, "neither none nor both of the two"
        if not undecided:
            change()

    dedup(clock=clock(at(days=1)))
    change()
    assert survive(lambda: dedup(clock=clock(at(days=1)), limit=1), check) > 10
