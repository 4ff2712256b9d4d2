"""How: several threads segment one backlog in a database of their own."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection

from memory.models import Claim, Episode, EpisodeTurn, RawItem, Session, StageRun
from memory.stages.segment import SegmentReport, segment
from tests.factories import at, clock, three, turns

pytestmark = pytest.mark.usefixtures("clone_db", "local")

SESSIONS = 30


def test_it_shares_a_backlog_among_workers_and_places_each_turn_once() -> None:
    alice, _, _ = three()
    for number in range(SESSIONS):
        turns(alice, [f"Turn {n} of session {number}." for n in range(5)], session=f"s{number}")

    def work(_: int) -> SegmentReport:
        try:
            return segment(clock=clock(at(90)))
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        reports = list(pool.map(work, range(4)))
    assert sum(report.sessions for report in reports) == SESSIONS
    assert sum(report.episodes for report in reports) == Episode.objects.as_pipeline().count()
    placed = Counter(EpisodeTurn.objects.values_list("raw_item", flat=True))
    assert len(placed) == RawItem.objects.as_pipeline().count() == SESSIONS * 5
    assert not Claim.objects.exists() and not Session.objects.filter(pending=True).exists()
    assert set(StageRun.objects.values_list("status", flat=True)) == {"done"}
