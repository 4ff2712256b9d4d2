"""How: a small stage of the test's own, and rows of workers that are gone."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta

import pytest
from django.db import OperationalError, connection
from django.utils import timezone

from memory import claims
from memory.audit import RUN_LOST_MINUTES, Clock, close_lost, is_alive, open_run, stage, worker_name
from memory.models import Claim, LlmCall, Note, StageRun
from memory.stages.distill import distill
from tests.cluster import ROOT
from tests.factories import at, clock, episode, three
from tests.openai_server import CHAT, OpenAIServer, hangs, wait_until

SECRET = "x" * 5_000


@dataclass(frozen=True)
class CountReport:
    """What the stage of this test counts."""

    counted: int = 0


class Stop(Exception):
    """What went wrong."""


@stage
def count(run: StageRun, *, clock: Clock, limit: int | None, until: datetime | None) -> CountReport:
    """Counts to the limit; below zero it fails as told (by -3 with its connection)."""
    claims.claim(run, ["a unit"], now=clock(), limit=1)
    assert StageRun.objects.get(pk=run.pk).status == "running"
    if limit == -1:
        raise Stop(SECRET)
    if limit == -2:
        raise KeyboardInterrupt
    if limit == -3:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")
    return CountReport(limit or 0)


def dead_worker() -> str:
    """The name of a process of this host that ended."""
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    return f"{socket.gethostname()}:{ended.pid}"


@pytest.mark.django_db
class TestRows:
    def test_it_leaves_a_row_with_the_report_of_a_run(self) -> None:
        report = count(limit=3, trigger="schedule")
        row = StageRun.objects.get()
        assert row.report == asdict(report) == {"counted": 3}
        assert (row.stage, row.status, row.trigger_source) == ("count", "done", "schedule")
        assert row.worker == worker_name() == f"{socket.gethostname()}:{os.getpid()}"
        assert row.finished_at is not None and row.started_at <= row.finished_at

    def test_it_closes_the_row_as_failed_and_lets_the_error_through(self) -> None:
        with pytest.raises(Stop):
            count(limit=-1)
        row = StageRun.objects.get()
        assert (row.status, row.report) == ("failed", {}) and row.finished_at
        assert row.error.startswith("Stop: xxx") and len(row.error) == 2_000
        assert not Claim.objects.exists(), "nobody had begun it: nothing to remember"

    def test_it_closes_the_row_also_when_a_person_interrupts(self) -> None:
        with pytest.raises(KeyboardInterrupt):
            count(limit=-2)
        assert StageRun.objects.get().status == "failed"

    def test_it_closes_the_run_of_a_worker_that_is_gone_and_frees_its_units(self) -> None:
        run = open_run("count", trigger="test", now=timezone.now())
        lost = StageRun.objects.create(stage="count", worker=dead_worker())
        claims.claim(lost, ["its unit"], now=timezone.now(), limit=1)
        count()
        lost.refresh_from_db()
        assert lost.status == "lost" and lost.error and lost.finished_at
        assert not Claim.objects.filter(unit="its unit").exists(), "free, and nothing to remember"
        run.refresh_from_db()
        assert run.status == "running", "this process lives"

    def test_it_leaves_runs_of_other_stages_alone(self) -> None:
        lost = StageRun.objects.create(stage="other", worker=dead_worker())
        count()
        lost.refresh_from_db()
        assert lost.status == "running"

    def test_it_waits_for_a_silent_worker_of_another_host(self) -> None:
        now = timezone.now()
        quiet = timedelta(minutes=RUN_LOST_MINUTES)
        recent = StageRun.objects.create(
            stage="count", worker="elsewhere:1", heartbeat_at=now - quiet + timedelta(minutes=1)
        )
        silent = StageRun.objects.create(
            stage="count", worker="elsewhere:1", heartbeat_at=now - quiet - timedelta(minutes=1)
        )
        assert close_lost("count", now=now) == 1
        recent.refresh_from_db()
        silent.refresh_from_db()
        assert (recent.status, silent.status) == ("running", "lost")

    def test_it_waits_longer_where_a_model_may_take_longer(
        self, configure: Callable[..., None]
    ) -> None:
        configure(model_timeout_seconds=600.0)
        now = timezone.now()
        beaten = now - timedelta(minutes=RUN_LOST_MINUTES + 1)
        StageRun.objects.create(stage="count", worker="elsewhere:1", heartbeat_at=beaten)
        assert close_lost("count", now=now) == 0

    def test_it_takes_only_a_process_that_is_gone_for_dead(self) -> None:
        assert is_alive(worker_name()) and is_alive("elsewhere:99") and is_alive("odd")
        assert not is_alive(dead_worker())


QUEUED = "import django; django.setup(); from memory.tasks import run_process; run_process()"


def test_it_closes_the_row_on_another_connection_when_its_own_was_ended(clone_db: str) -> None:
    with pytest.raises(OperationalError):
        count(limit=-3)
    assert StageRun.objects.get().status == "failed"
    assert not Claim.objects.exists(), "nobody waits for a lease to end"


@pytest.mark.parametrize("program", [["manage.py", "distill"], ["-c", QUEUED]])
def test_it_closes_the_run_of_a_worker_that_is_told_to_end(
    local: object,
    server: OpenAIServer,
    clone_db: str,
    clone_environment: dict[str, str],
    program: list[str],
) -> None:
    alice, _, _ = three()
    episode(alice, ["Which port?", "The staging server listens on port 8443 since Monday."])
    server.script(CHAT, hangs(60))
    worker = subprocess.Popen(
        [sys.executable, *program],
        cwd=ROOT,
        env=clone_environment | {"ARGUS_MODEL_URL": server.url, "ARGUS_MODEL": "scripted"},
        stderr=subprocess.DEVNULL,
    )
    assert wait_until(lambda: any(r.path == CHAT for r in server.requests), 30)
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(timeout=20) == 128 + signal.SIGTERM
    row = StageRun.objects.get(stage="distill")
    assert (row.status, row.error) == ("failed", "SystemExit: 143")
    assert not Claim.objects.exclude(lease_until=None, attempts=0).exists()
    assert LlmCall.objects.get(port="distill").unit, "the call that was cut off left its row, too"
    assert not Note.objects.as_pipeline().exists()
    assert distill(clock=clock(at(days=1))).episodes_distilled == 1
