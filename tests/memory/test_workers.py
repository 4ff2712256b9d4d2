"""How: worker processes on one database, killed while the scripted model is slow to answer."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from django.db.models import QuerySet

from memory.claims import UNANSWERED_CLAIMS_MAX
from memory.models import (
    Claim,
    DistillFailure,
    Episode,
    Evidence,
    LlmCall,
    Note,
    Principal,
    StageRun,
)
from memory.stages.distill import UNITS_A_CLAIM
from tests.cluster import ROOT
from tests.factories import at, episode, three
from tests.openai_server import CHAT, OpenAIServer, Request, Step, behave, wait_until

pytestmark = pytest.mark.usefixtures("clone_db", "local")

EPISODES = 14
Start = Callable[[], subprocess.Popen[bytes]]


@pytest.fixture
def start(server: OpenAIServer, clone_environment: dict[str, str]) -> Iterator[Start]:
    """Starts `manage.py distill` on this test's database."""
    environment = clone_environment | {"ARGUS_MODEL_URL": server.url, "ARGUS_MODEL": "scripted"}
    running: list[subprocess.Popen[bytes]] = []

    def begin() -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [sys.executable, "manage.py", "distill"],
            cwd=ROOT,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        running.append(process)
        return process

    yield begin
    for process in running:
        process.kill()
        process.wait()


@pytest.fixture
def backlog() -> Principal:
    alice, _, _ = three()
    for number in range(EPISODES):
        fact = f"Service number {number} listens on port 80{number:02} behind the balancer."
        episode(alice, ["Which port?", fact], session=f"s{number}", start=at(hours=number))
    return alice


def slowly(request: Request) -> Step:
    return replace(behave(request), hang_seconds=0.25)


def asked(server: OpenAIServer) -> int:
    return len([request for request in server.requests if request.path == CHAT])


def distills() -> QuerySet[StageRun]:
    return StageRun.objects.filter(stage="distill")


def waiting() -> int:
    return Episode.objects.as_pipeline().filter(distilled_at=None).count()


def check_each_once() -> None:
    notes = Note.objects.as_pipeline()
    assert Counter(notes.values_list("unit_key", flat=True)) == dict.fromkeys(
        Episode.objects.as_pipeline().values_list("unit_key", flat=True), 1
    )
    assert Evidence.objects.count() == notes.count() == EPISODES
    assert not Claim.objects.exists()


def test_it_loses_and_repeats_nothing_when_one_of_two_workers_is_killed(
    backlog: Principal, server: OpenAIServer, start: Start
) -> None:
    server.script(CHAT, *[slowly] * 99)
    victim, survivor = start(), start()
    assert wait_until(lambda: distills().count() == 2 and asked(server) >= 5, 30)
    victim.kill()
    victim.wait()
    assert survivor.wait(timeout=60) == 0
    left = waiting()
    # What the victim held waits for its lease or for the next run, whichever comes first.
    assert 1 <= left <= UNITS_A_CLAIM
    assert start().wait(timeout=60) == 0
    assert waiting() == 0
    check_each_once()
    statuses = Counter(distills().values_list("status", flat=True))
    assert statuses == {"done": 2, "lost": 1}
    counted = sum(run.report["episodes_distilled"] for run in distills().filter(status="done"))
    lost = distills().get(status="lost")
    assert counted + Note.objects.as_pipeline().filter(run=lost).count() == EPISODES
    answered = Counter(
        LlmCall.objects.filter(port="distill", outcome="ok").values_list("unit", flat=True)
    )
    assert set(answered.values()) == {1}, "no unit was paid twice"


def test_it_parks_a_unit_that_kills_every_worker_and_does_the_others(
    backlog: Principal, server: OpenAIServer, start: Start
) -> None:
    worker: list[subprocess.Popen[bytes]] = []
    pill = "Service number 0 "

    def deadly(request: Request) -> Step:
        if pill in request.user:
            worker[-1].kill()
        return behave(request)

    server.script(CHAT, *[deadly] * 99)
    for _ in range(UNANSWERED_CLAIMS_MAX):
        worker.append(start())
        assert worker[-1].wait(timeout=60) == -9
    assert waiting() == EPISODES, "it is the first of them, and nobody came past it"
    worker.append(start())
    assert worker[-1].wait(timeout=60) == 0
    assert waiting() == 1
    row = Claim.objects.get()
    first = Episode.objects.as_pipeline().order_by("started_at")[0]
    assert (row.unit, row.attempts) == (first.unit_key, UNANSWERED_CLAIMS_MAX)
    assert row.parked_at and row.parked_reason
    assert DistillFailure.objects.get().parked
    statuses = Counter(distills().values_list("status", flat=True))
    assert statuses == {"done": 1, "lost": UNANSWERED_CLAIMS_MAX}
