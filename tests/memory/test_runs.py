"""How: runs put into the queue and carried out in this process, as a worker would."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from django_q.models import OrmQ

from memory import claims, passes
from memory.audit import Clock, beat, close_lost, open_run, stage
from memory.backlog import Backlog
from memory.errors import Conflict, NotFound
from memory.models import Act, Claim, Note, Principal, StageRun
from memory.pipeline import PIPELINE
from memory.runs import WORKER_SECONDS, cancel, take, waits_of
from memory.tasks import run_stages
from tests.factories import SAID, at, clock, document, three, turns
from tests.memory.test_audit import dead_worker

pytestmark = pytest.mark.django_db

Local = Callable[..., None]


@pytest.fixture
def alice() -> Principal:
    return three()[0]


def fresh(run: StageRun) -> StageRun:
    return StageRun.objects.get(pk=run.pk)


class TestStart:
    def test_it_waits_in_the_queue_as_a_row_and_as_an_act(self, alice: Principal) -> None:
        run = passes.start("process", by=alice, now=at())
        assert (run.stage, run.status, run.trigger_source) == ("process", "waiting", "page")
        task = OrmQ.objects.get().task
        assert (task["func"], task["args"]) == ("memory.tasks.run_stages", (run.pk,))
        act = Act.objects.get()
        assert (act.principal, act.verb, act.kind, act.reference) == (
            alice, "start", "run", str(run.pk),
        )  # fmt: skip

    def test_it_gives_the_run_that_there_is_to_who_asks_again(self, alice: Principal) -> None:
        first = passes.start("embed", by=alice, now=timezone.now())
        assert passes.start("embed", by=three()[1], now=timezone.now()) == first
        assert passes.start("dedup", by=alice, now=timezone.now()) != first
        assert OrmQ.objects.count() == 2 and Act.objects.count() == 2

    def test_it_knows_no_other_stage(self, alice: Principal) -> None:
        with pytest.raises(NotFound, match="process, segment"):
            passes.start("redistill", by=alice, now=at())

    def test_it_says_how_it_waits(self, alice: Principal) -> None:
        run = passes.start("process", by=alice, now=at())
        soon, later = at(), at() + timedelta(seconds=WORKER_SECONDS + 1)
        wait = waits_of([run], now=soon)[run.pk]
        assert (wait.long, wait.queued) == (False, True)
        assert waits_of([run], now=later)[run.pk].long
        OrmQ.objects.all().delete()
        assert not waits_of([run], now=later)[run.pk].queued

    def test_many_that_wait_ask_the_queue_once(self, alice: Principal) -> None:
        def asked(runs: list[StageRun]) -> int:
            with CaptureQueriesContext(connection) as queries:
                found = passes.looks(runs, now=at(), reader=None)
            assert all(one.wait for one in found)
            return len(queries)

        runs = [passes.start(stage, by=alice, now=at()) for stage in ("embed", "dedup", "distill")]
        assert asked(runs) == asked(runs[:1])


class TestCarryOut:
    def test_it_runs_every_stage_in_order_with_rows_of_their_own(
        self, local: Local, alice: Principal
    ) -> None:
        turns(alice, SAID)
        document(alice, f"# Notes\n\n{SAID[1]}")
        run = passes.start("process", by=alice, now=timezone.now())
        report = run_stages(run.pk)
        row = fresh(run)
        assert row.status == "done" and row.report == report and row.finished_at
        assert list(report) == [verb.__name__ for verb in PIPELINE]
        look = passes.look(run.pk, now=timezone.now(), reader=None)
        assert [step.stage for step in look.steps] == list(report)
        assert {step.run.status for step in look.steps if step.run} == {"done"}
        distilled = look.steps[1]
        assert distilled.run and distilled.run.progress["items_distilled"] == 1
        assert (distilled.pending, distilled.units) == (2, 2)
        assert distilled.run.worker and distilled.run.trigger_source == "page"
        assert Note.objects.as_pipeline().exists() and not look.is_open

    def test_it_runs_one_stage_alone(self, local: Local, alice: Principal) -> None:
        turns(alice, SAID)
        run = passes.start("segment", by=alice, now=timezone.now())
        assert list(run_stages(run.pk)) == ["segment"]
        assert list(StageRun.objects.exclude(pk=run.pk).values_list("stage", flat=True)) == [
            "segment"
        ]
        assert [
            step.stage for step in passes.look(run.pk, now=timezone.now(), reader=None).steps
        ] == ["segment"]

    def test_it_does_nothing_for_a_task_that_comes_twice(
        self, local: Local, alice: Principal
    ) -> None:
        run = passes.start("segment", by=alice, now=timezone.now())
        run_stages(run.pk)
        assert run_stages(run.pk) == {}
        assert StageRun.objects.count() == 2

    def test_it_gives_up_a_run_whose_worker_was_ended(self, alice: Principal) -> None:
        run = passes.start("segment", by=alice, now=timezone.now())
        assert take(run.pk, now=timezone.now()) is not None
        assert run_stages(run.pk) == {}
        assert fresh(run).status == "lost"

    def test_it_asks_anew_once_the_worker_of_the_first_is_gone(self, alice: Principal) -> None:
        first = passes.start("segment", by=alice, now=timezone.now())
        taken = take(first.pk, now=timezone.now())
        assert taken and passes.start("segment", by=alice, now=timezone.now()) == first
        progress = {**taken.progress, "worker": dead_worker()}
        StageRun.objects.filter(pk=first.pk).update(progress=progress)
        assert passes.start("segment", by=alice, now=timezone.now()) != first
        assert fresh(first).status == "lost"

    def test_it_says_what_went_wrong(self, alice: Principal, local: Local, settings: Any) -> None:
        turns(alice, SAID)
        run = passes.start("segment", by=alice, now=timezone.now())
        settings.PROCESS_SECONDS = "long"
        with pytest.raises(TypeError):
            run_stages(run.pk)
        assert fresh(run).status == "failed" and fresh(run).error.startswith("TypeError: ")


class TestCancel:
    def test_it_takes_a_run_out_of_the_queue(self, local: Local, alice: Principal) -> None:
        run = passes.start("process", by=alice, now=at())
        assert cancel(run.pk, by=alice, now=at(1)).status == "cancelled"
        assert run_stages(run.pk) == {}
        assert Act.objects.filter(verb="cancel", reference=str(run.pk)).count() == 1
        with pytest.raises(Conflict, match="is cancelled since 2026-03-02 09:01:00Z"):
            cancel(run.pk, by=alice, now=at(2))
        with pytest.raises(NotFound):
            cancel(run.pk + 1_000, by=alice, now=at(2))

    def test_it_stops_between_two_units_and_reports_what_was_done(self, alice: Principal) -> None:
        report = counting(stop_after=2, by=alice)(clock=clock(at()))
        row = StageRun.objects.get(stage="counting")
        assert (row.status, row.report) == ("cancelled", {"done": 2}) and report.done == 2
        assert row.progress == {"done": 2, "units": 2} and row.finished_at
        assert not Claim.objects.exclude(worker="", attempts=0).exists()

    def test_it_is_done_when_the_word_came_after_the_last_unit(self, alice: Principal) -> None:
        counting(stop_after=4, by=alice)(clock=clock(at()))
        row = StageRun.objects.get(stage="counting")
        assert (row.status, row.report) == ("done", {"done": 4})

    def test_it_begins_no_further_stage(self, local: Local, alice: Principal) -> None:
        turns(alice, SAID)
        run = passes.start("process", by=alice, now=timezone.now())

        def stopping() -> datetime:
            # From the first stage's row on, somebody wants it to end.
            if StageRun.objects.filter(stage="segment").exists():
                with suppress(Conflict):
                    cancel(run.pk, by=alice, now=timezone.now())
            return timezone.now()

        passes.carry_out(run.pk, clock=stopping)
        row = fresh(run)
        assert row.status == "cancelled" and list(row.report) == ["segment"]
        assert not StageRun.objects.filter(stage="distill").exists()

    def test_it_hands_the_word_on_to_the_stage_that_is_running(self, alice: Principal) -> None:
        outer = passes.start("process", by=alice, now=timezone.now())
        inner = open_run("segment", trigger="page", now=timezone.now())
        stages = {"segment": {"run": inner.pk, "pending": 1}}
        StageRun.objects.filter(pk=outer.pk).update(
            status="running", progress={**outer.progress, "stages": stages}
        )
        cancel(outer.pk, by=alice, now=timezone.now())
        assert beat(inner), "the stage hears it at its next sign of life"

    def test_it_stops_a_run_of_the_schedule_as_well(self, alice: Principal) -> None:
        run = open_run("segment", trigger="schedule", now=timezone.now())
        assert cancel(run.pk, by=alice, now=timezone.now()).status == "running"
        assert beat(run) and run.cancel_asked_at


@dataclass(frozen=True)
class CountingReport:
    """What the stage of this test counts."""

    done: int = 0


def counting(*, stop_after: int, by: Principal) -> Callable[..., CountingReport]:
    """A stage over four units that is told to stop once so many are done."""

    def counting(run: StageRun, *, clock: Clock, limit: object, until: object) -> CountingReport:
        log = Backlog(run, clock=clock, limit=None)

        def work(held: list[claims.Held]) -> dict[str, int]:
            claims.finish(held[0])
            if log.tried + 1 == stop_after:
                cancel(run.pk, by=by, now=clock())
            return {"done": 1}

        left = [f"unit {number}" for number in range(4)]
        return CountingReport(**log.work_off(lambda: left, work, at_once=2))

    return stage(counting)


def test_it_closes_a_waiting_run_for_nobody(alice: Principal) -> None:
    run = passes.start("process", by=alice, now=timezone.now())
    assert close_lost("process", now=timezone.now()) == 0 and fresh(run).status == "waiting"
