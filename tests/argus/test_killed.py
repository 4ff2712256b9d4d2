"""Killed at random: a process of a house at work gets SIGKILL, and nothing that was said is lost.

Three seeds, one for each of worker, web server and PostgreSQL; `ARGUS_TEST_SEEDS=20` asks for more,
every other three with a process below the head killed, and a line of each is printed (`pytest -s`).
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import psutil
import pytest
from django.utils import timezone
from django_q.brokers import get_broker
from django_q.models import Success
from django_q.tasks import async_task
from pytest_django import DjangoDbBlocker

from memory import claims
from memory.audit import RUN_LOST_MINUTES
from memory.models import Claim, Evidence, LlmCall, Note, RawItem, StageRun
from memory.pipeline import PIPELINE, pending, process
from memory.stages import reconcile as replay
from memory.stages.verify import verify
from tests.cluster import ROOT
from tests.killing import SECONDS_MAX, VICTIMS, House, Person, busy, living
from tests.openai_server import CHAT, OpenAIServer, Request, Step, behave, running
from tests.settings import SEEDS
from tests.standby import until

#: Seconds of work before the kill, at least and at most.
BEFORE_SECONDS = (0.2, 2.0)

#: Turns that must be acknowledged after it.
AFTER = 4

PEOPLE = 2

#: Seconds into the work; turns acknowledged by then and in all; seconds until everybody was served
#: and the worker at work; posts tried again; units replayed; runs lost and failed; seconds until
#: nothing waited, and leases that had to end for it; findings.
HEAD = (
    "seed  victim    who            after s  taken in all  served  at work again        units  lost"
    " failed  settled aged verify reconcile"
)


def slowly(request: Request) -> Step:
    """Long enough that a kill finds a question that is not answered yet."""
    return replace(behave(request), hang_seconds=0.05)


@pytest.fixture(scope="module")
def model() -> Iterator[OpenAIServer]:
    with running() as server:
        server.script(CHAT, *[slowly] * 100_000)
        yield server


@pytest.fixture(scope="module")
def house(
    model: OpenAIServer,
    tmp_path_factory: pytest.TempPathFactory,
    django_db_blocker: DjangoDbBlocker,
) -> Iterator[House]:
    with (
        django_db_blocker.unblock(),
        living(tmp_path_factory.mktemp("killed"), model.url) as house,
    ):
        yield house


@pytest.mark.parametrize("seed", range(SEEDS))
def test_it_keeps_what_it_acknowledged_and_finds_nothing_wrong(house: House, seed: int) -> None:
    by, victim = random.Random(seed), VICTIMS[seed % len(VICTIMS)]
    house.stands()
    last = newest()
    with busy(house, seed, people=PEOPLE) as people:
        until(lambda: all(one.acknowledged for one in people), "nothing is taken", SECONDS_MAX)
        moment = by.uniform(*BEFORE_SECONDS)
        time.sleep(moment)
        before = sum(len(one.acknowledged) for one in people)
        who, gone = house.kill(victim, by, below=bool(seed // len(VICTIMS) % 2))
        began = time.monotonic()
        back(people)
        away = time.monotonic() - began
    until(at_work, "no worker is at work again", SECONDS_MAX)
    worked = time.monotonic() - began
    assert [one for one in gone if one.is_running()] == [], "what was killed left some behind"
    bodies = [body for one in people for body in one.acknowledged]
    waited, aged = settle()
    check_kept(people, bodies)
    check_distilled(bodies)
    assert not Claim.objects.exclude(worker="").exists() and not still_running()
    found = verify()
    assert found.findings == 0, found.found
    asked = LlmCall.objects.count()
    again = replay.reconcile(run=replay.ask(trigger="test", now=timezone.now(), full=True))
    assert (again.findings, again.stopped, again.left) == (0, "", 0), again
    assert again.units and LlmCall.objects.count() == asked, "what was answered is not asked again"
    refused = sum((one.refused for one in people), Counter())
    if not seed:
        print(f"\n\n{HEAD}")
    runs = Counter(StageRun.objects.filter(pk__gt=last).values_list("status", flat=True))
    print(
        f"{seed:>4}  {victim:<8}  {who:<14} {moment:>6.2f} {before:>6} {len(bodies):>6} "
        f"{away:>7.1f} {worked:>7.1f} {told(refused):<14} {again.units:>5} {runs['lost']:>5} "
        f"{runs['failed']:>6} {waited:>7.1f} {aged:>5} {found.findings:>6} {again.findings:>9}"
    )


def told(refused: Counter[int]) -> str:
    """Posts that were tried again, by status; 0 is no answer."""
    return " ".join(f"{many} x {status}" for status, many in sorted(refused.items())) or "-"


@pytest.mark.parametrize("place", range(3 if SEEDS > 3 else 1))
def test_a_worker_ends_as_a_whole_when_one_of_its_processes_is_killed(
    clone_environment: dict[str, str], place: int
) -> None:
    """One that waits for tasks holds the lock of their pipe: no other would ever get one."""
    worker = subprocess.Popen(
        [sys.executable, "manage.py", "qcluster"], cwd=ROOT, stderr=subprocess.PIPE, text=True,
        env={**clone_environment, "ARGUS_WORKERS": "1"}, start_new_session=True,
    )  # fmt: skip
    try:
        head = psutil.Process(worker.pid)
        # The keeper, and below it one that works, one that fetches, one that keeps results.
        until(lambda: len(head.children(recursive=True)) >= 4, "it does not start")
        family = head.children(recursive=True)
        time.sleep(0.5)
        keeper = head.children()[0]
        sorted(keeper.children(), key=lambda one: one.pid)[place].kill()
        _, told = worker.communicate(timeout=60)
        assert worker.returncode == 1 and "ended by signal 9: all end" in told
        psutil.wait_procs(family, timeout=5)
        assert [one for one in family if one.is_running()] == []
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(worker.pid, signal.SIGKILL)


def newest() -> int:
    row = StageRun.objects.order_by("-pk").values_list("pk", flat=True).first()
    return int(row or 0)


def back(people: list[Person]) -> None:
    """Everybody is served again."""
    wanted = [(one, len(one.acknowledged) + AFTER) for one in people]
    until(
        lambda: all(len(one.acknowledged) >= many for one, many in wanted),
        f"nobody is served: {[(one.refused, one.lost) for one in people]}",
        SECONDS_MAX,
    )


def at_work() -> bool:
    """Whether the worker carries out a task that was put now."""
    name = async_task("os.getpid", broker=get_broker())
    end = time.monotonic() + 10
    while time.monotonic() < end:
        if Success.objects.filter(pk=name).exists():
            return True
        time.sleep(0.1)
    return False


def still_running() -> list[StageRun]:
    """Of the pipeline: what else runs by the clock goes on meanwhile."""
    stages = [verb.__name__ for verb in PIPELINE]
    return list(StageRun.objects.filter(status="running", stage__in=stages))


def settle() -> tuple[float, int]:
    """Process until nothing waits. Seconds it took, and leases that had to end first."""
    began, aged = time.monotonic(), 0
    while time.monotonic() < began + SECONDS_MAX:
        process()
        held = Claim.objects.exclude(worker="")
        if not held.exists() and not still_running() and not any(waiting().values()):
            return time.monotonic() - began, aged
        time.sleep(0.2)
        if time.monotonic() > began + 5:
            # What a living process let fall while its database was away waits for the lease.
            now = timezone.now()
            silent = now - timedelta(seconds=claims.silence_seconds(RUN_LOST_MINUTES * 60) + 1)
            aged += held.update(lease_until=now)
            StageRun.objects.filter(status="running").update(heartbeat_at=silent)
    raise AssertionError((waiting(), list(Claim.objects.values()), still_running()))


def waiting() -> dict[str, int]:
    return pending(timezone.now())


def check_kept(people: list[Person], bodies: list[str]) -> None:
    assert [one.lost for one in people] == [[]] * len(people)
    assert not any(one.is_alive() for one in people)
    assert len(bodies) == len(set(bodies))
    kept = Counter(RawItem.objects.as_pipeline().values_list("body", flat=True))
    assert {body: kept[body] for body in bodies} == dict.fromkeys(bodies, 1)
    assert set(kept.values()) == {1}


def check_distilled(bodies: list[str]) -> None:
    """Each turn is the evidence of one note, and no note is there twice."""
    quoted = Counter(Evidence.objects.values_list("raw_item__body", flat=True))
    assert {body: quoted[body] for body in bodies} == dict.fromkeys(bodies, 1)
    notes = Counter(Note.objects.as_pipeline().values_list("unit_key", "content_key"))
    assert set(notes.values()) == {1}
