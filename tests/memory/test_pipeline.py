"""How: files through capture and the whole pipeline with the local defaults, checked by SQL."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection
from pytest_django import DjangoDbBlocker

from memory.access import principal
from memory.files import capture_files
from memory.models import (
    Claim,
    DedupVerdict,
    Episode,
    EpisodeTurn,
    GateRejection,
    Note,
    Principal,
    RawItem,
    StageRun,
)
from memory.pipeline import PIPELINE, process
from memory.tasks import run_process
from tests import corpus
from tests.cluster import copied
from tests.corpus import needs_corpus
from tests.factories import FACTS, at, clock, document, three, turns
from tests.openai_server import CHAT, OpenAIServer, fails, says

FIXTURES = Path(__file__).parents[1] / "fixtures" / "demo"

#: Live notes whose quote does not stand in the raw item where the edge says that it does.
UNTRUE_SQL = """
SELECT n.id FROM memory_note n
LEFT JOIN memory_evidence e ON e.note_id = n.id
LEFT JOIN memory_rawitem r ON r.id = e.raw_item_id
WHERE n.deleted_at IS NULL AND (
    e.id IS NULL OR r.id IS NULL OR r.owner_id <> n.owner_id OR e.quote = ''
    OR substr(r.body, e.start + 1, e."end" - e.start) <> e.quote
    OR encode(sha256(convert_to(e.quote, 'UTF8')), 'hex') <> e.sha256)
"""


def untrue() -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(UNTRUE_SQL)
        return list(cursor.fetchall())


def live() -> int:
    return Note.objects.as_pipeline().filter(deleted_at=None).count()


def check_reports(run: dict[str, dict[str, Any]]) -> None:
    """What the reports of one pass over an empty database say is what the tables hold."""
    episodes = Episode.objects.as_pipeline()
    segmented, distilled, embedded, judged = (run[verb.__name__] for verb in PIPELINE)
    assert segmented["episodes"] == episodes.count()
    assert segmented["turns"] == EpisodeTurn.objects.count()
    assert segmented["late"] == episodes.filter(late=True).count()
    reasons = Counter(episodes.values_list("boundary_reason", flat=True))
    assert segmented["reasons"] == reasons
    assert distilled["episodes_distilled"] == episodes.exclude(distilled_at=None).count()
    notes = Note.objects.as_pipeline()
    assert distilled["notes_created"] == notes.count()
    refused = Counter(GateRejection.objects.as_pipeline().values_list("reason", flat=True))
    assert distilled["rejected"] == refused
    assert embedded["embedded"] == notes.exclude(embedding=None).count()
    verdicts = Counter(DedupVerdict.objects.as_pipeline().values_list("verdict", flat=True))
    for kind in ("duplicate", "refine", "supersede", "distinct"):
        assert judged[kind] == verdicts[kind]
    assert judged["held"] == DedupVerdict.objects.as_pipeline().filter(status="pending").count()
    for report in (distilled, embedded, judged):
        assert report["pending"] == report["parked"] == 0
    assert not Claim.objects.exists()


@pytest.mark.django_db
@pytest.mark.usefixtures("local")
class TestOnePass:
    @pytest.fixture(autouse=True)
    def people(self) -> None:
        self.alice: Principal = three()[0]

    def test_it_runs_every_stage_once_in_the_one_order(self) -> None:
        turns(self.alice, FACTS)
        document(self.alice, "# Rules\n\nAlways run the linter before you push to main.\n")
        report = process(clock=clock(at(days=1)))
        assert report.ok and live() >= 2
        assert list(report.stages) == ["segment", "distill", "embed", "dedup"]
        check_reports(report.stages)
        rows = StageRun.objects.order_by("pk")
        assert [row.stage for row in rows] == list(report.stages)
        assert {row.status for row in rows} == {"done"}
        assert [row.report for row in rows] == list(report.stages.values())
        assert not untrue()

    def test_it_does_nothing_the_second_time(self) -> None:
        turns(self.alice, FACTS)
        process(clock=clock(at(days=1)))
        tables = (Episode, Note)
        before = [list(model.objects.as_pipeline().values("pk")) for model in tables]
        again = process(clock=clock(at(days=2)))
        assert again.ok and again.stages["distill"]["notes_created"] == 0
        assert [list(model.objects.as_pipeline().values("pk")) for model in tables] == before

    def test_it_names_the_queue_as_what_set_it_off(self) -> None:
        report = run_process()
        assert set(report) == {"segment", "distill", "embed", "dedup", "ok"}
        assert set(StageRun.objects.values_list("trigger_source", flat=True)) == {"schedule"}
        json.dumps(report)

    def test_it_goes_on_with_the_next_stages_when_the_model_is_away(
        self, server: OpenAIServer, configure: Callable[..., None]
    ) -> None:
        configure()
        turns(self.alice, FACTS)
        server.script(CHAT, fails(503))
        report = process(clock=clock(at(days=1)))
        assert not report.ok and report.stages["distill"]["transient_failures"] == 1
        assert StageRun.objects.filter(status="done").count() == len(PIPELINE)

    def test_it_lets_no_stage_eat_the_time_of_the_others(self) -> None:
        turns(self.alice, FACTS)
        now = at(days=1)

        def going() -> datetime:
            # A second goes by at each look: nothing is done in no time.
            nonlocal now
            now += timedelta(seconds=1)
            return now

        report = process(clock=going, seconds=8)
        runs = StageRun.objects.order_by("pk")
        assert [(run.stage, run.status) for run in runs] == [
            (verb.__name__, "done") for verb in PIPELINE
        ]
        assert all(stage["pending"] <= 1 for stage in report.stages.values())
        assert live() == 0, "the time was over before a unit was done"
        assert process(clock=clock(at(days=2)), seconds=60).ok and live() >= 2

    def test_it_bounds_the_units_of_each_stage(self) -> None:
        for number in range(3):
            turns(
                self.alice, FACTS, session=f"s{number}", start=at(hours=number), cwd=f"/w/p{number}"
            )
        process(clock=clock(at(days=1)), limit=1)
        assert Episode.objects.as_pipeline().count() == 1


def command(*arguments: str) -> tuple[dict[str, Any], int]:
    """A command's JSON and its exit code."""
    stream, code = StringIO(), 0
    try:
        call_command(*arguments, "--json", stdout=stream)
    except SystemExit as end:
        code = int(str(end.code))
    return json.loads(stream.getvalue()), code


@pytest.mark.django_db
@pytest.mark.usefixtures("local")
class TestCommands:
    def test_each_prints_its_report_with_the_counts_of_the_contract(self) -> None:
        wanted = {
            "segment": {"sessions", "turns", "episodes", "open", "late"},
            "distill": {
                "episodes_distilled", "items_distilled", "notes_created", "rejected", "parked",
                "transient_failures", "pending",
            },
            "embed": {"embedded", "failed", "parked", "pending"},
            "dedup": {"duplicate", "refine", "supersede", "distinct", "held", "pending"},
            "process": {"segment", "distill", "embed", "dedup", "ok"},
        }  # fmt: skip
        for name, keys in wanted.items():
            report, code = command(name)
            assert code == 0 and keys <= set(report), name

    def test_it_counts_what_waits_and_does_nothing_when_run_dry(self) -> None:
        turns(three()[0], FACTS)
        document(three()[0], "# Rules\n\nAlways run the linter before you push to main.\n")
        for name in ("segment", "distill", "embed", "dedup", "reembed", "process"):
            report, code = command(name, "--dry-run")
            assert code == 0 and set(report) == {"pending"}
            if name != "process":
                assert set(report["pending"]) == {name}
        assert report["pending"] == {"segment": 1, "distill": 1, "embed": 0, "dedup": 0}
        assert not StageRun.objects.exists() and not Claim.objects.exists()

    def test_it_says_by_its_exit_code_what_was_away_and_what_failed(
        self, server: OpenAIServer, configure: Callable[..., None]
    ) -> None:
        configure()
        turns(three()[0], FACTS)
        command("segment")
        server.script(CHAT, says("No JSON at all, I am afraid, today."), fails(503))
        assert command("distill")[1] == 3
        assert command("distill")[1] == 75
        report, code = command("process")
        assert code == 75 and report["ok"] is False, "the provider rests"


@pytest.mark.django_db
def test_it_takes_the_bundled_sessions_from_files_to_judged_notes() -> None:
    me = principal()
    capture_files([str(FIXTURES)], owner=me, progress=False)
    report = process()
    check_reports(report.stages)
    assert live() > 10 and not untrue()


@needs_corpus
def test_it_finds_every_live_quote_of_the_corpus_in_its_raw_item(
    template_db: str, django_db_blocker: DjangoDbBlocker
) -> None:
    with django_db_blocker.unblock(), copied(corpus.database()):
        check_reports({run.stage: run.report for run in StageRun.objects.all()})
        assert live() >= 5 and not untrue()
        stored = RawItem.objects.as_pipeline().count()
        again = corpus.capture().as_json()
        assert again["stored"] == 0 and again["duplicates"] >= stored > 0


@pytest.mark.usefixtures("clone_db", "local")
def test_it_ends_alike_however_many_workers_do_it() -> None:
    alice, bob, _ = three()
    for owner in (alice, bob):
        for day in range(12):
            said = [
                *FACTS[:3],
                f"The staging server runs on staging.example.org, port {8000 + day}.",
            ]
            turns(owner, said, session=f"s{day}", start=at(days=day))

    def work(_: int) -> None:
        try:
            for _ in range(3):
                process(clock=clock(at(days=99)))
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    process(clock=clock(at(days=99)))
    assert not list(Claim.objects.values_list("stage", "unit", "worker", "attempts"))
    assert not untrue()
    assert set(StageRun.objects.values_list("status", flat=True)) == {"done"}
    ports = Note.objects.as_pipeline().live(at(days=99)).filter(content__contains="port 80")
    assert {row.content for row in ports} == {
        "The staging server runs on staging.example.org, port 8011."
    }
    assert ports.count() == 2, "one of each owner"
    judged = Counter(DedupVerdict.objects.as_pipeline().values_list("note", flat=True))
    assert set(judged.values()) == {1}
