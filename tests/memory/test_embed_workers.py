"""How: `manage.py embed` as processes on one database, killed while the scripted model is slow."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from django.db.models import QuerySet

from memory.claims import UNANSWERED_CLAIMS_MAX
from memory.models import Claim, Note, RawItem, SearchText, StageRun, TurnVector
from memory.searchtexts import pending
from memory.stages.embed import NOTES_A_BATCH
from tests.cluster import ROOT
from tests.factories import document, note, three
from tests.memory.test_embed_index import check_counts
from tests.openai_server import EMBEDDINGS, OpenAIServer, Request, Step, behave, wait_until

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("clone_db", "local")]

#: Raw items and notes that wait: several batches, so that two workers both find work.
PAGES, NOTES = 3 * NOTES_A_BATCH, 5

Start = Callable[[], subprocess.Popen[bytes]]


@pytest.fixture
def start(server: OpenAIServer, clone_environment: dict[str, str]) -> Iterator[Start]:
    """Starts `manage.py embed` on this test's database."""
    environment = clone_environment | {
        "ARGUS_EMBEDDER": "url",
        "ARGUS_EMBED_URL": server.url,
        "ARGUS_EMBED_MODEL": "scripted-embed",
    }
    running: list[subprocess.Popen[bytes]] = []

    def begin() -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [sys.executable, "manage.py", "embed"],
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
def backlog() -> None:
    alice, _, _ = three()
    for n in range(PAGES):
        document(alice, f"Page {n} tells of the tides and of harbor number {n % 7}.")
    for n in range(NOTES):
        note(alice, f"Fact number {n} of the build.", embedded=False)


def slowly(request: Request) -> Step:
    return replace(behave(request), hang_seconds=0.5)


def runs() -> QuerySet[StageRun]:
    return StageRun.objects.filter(stage="embed")


def sent(server: OpenAIServer) -> Counter[str]:
    return Counter(text for request in server.requests for text in request.body.get("input", []))


def check_all_once() -> None:
    """Every text has its row and every thing its vector; the statistics are a fresh count."""
    written = Note.objects.as_pipeline().count() + RawItem.objects.as_pipeline().count()
    assert pending() == 0 and SearchText.objects.as_pipeline().count() == written
    assert not Note.objects.as_pipeline().unembedded().exists()
    assert not RawItem.objects.as_pipeline().filter(vectors__isnull=True).exists()
    assert TurnVector.objects.count() == RawItem.objects.as_pipeline().count()
    assert not Claim.objects.exists()
    check_counts()


def test_it_pays_for_nothing_twice_when_two_workers_embed(
    backlog: None, server: OpenAIServer, start: Start
) -> None:
    server.script(EMBEDDINGS, *[slowly] * 99)
    workers = start(), start()
    assert [worker.wait(timeout=180) for worker in workers] == [0, 0]
    check_all_once()
    assert set(sent(server).values()) == {1}
    reports = list(runs().values_list("report", flat=True))
    counted = [sum(report[name] for report in reports) for name in ("turns", "embedded")]
    assert counted == [PAGES, NOTES]
    # The notes of this test were indexed as they were made, the turns they come from were not.
    assert sum(report["indexed"] for report in reports) == PAGES + NOTES


def test_it_goes_on_where_a_killed_worker_was(
    backlog: None, server: OpenAIServer, start: Start
) -> None:
    server.script(EMBEDDINGS, *[slowly] * 99)
    victim = start()
    assert wait_until(lambda: TurnVector.objects.count() >= NOTES + NOTES_A_BATCH, 90)
    victim.kill()
    victim.wait()
    done = TurnVector.objects.count()
    assert done < PAGES
    assert start().wait(timeout=180) == 0
    check_all_once()
    statuses = dict(runs().values_list("status", "report"))
    assert set(statuses) == {"done", "lost"}
    assert statuses["done"]["turns"] == PAGES + NOTES - done


def test_it_parks_a_raw_item_that_kills_every_worker_and_does_the_others(
    server: OpenAIServer, start: Start
) -> None:
    alice, _, _ = three()
    pages = [document(alice, f"Page {n} of the manual.") for n in range(3)]
    worker: list[subprocess.Popen[bytes]] = []

    def deadly(request: Request) -> Step:
        if pages[0].body in request.body["input"]:
            worker[-1].kill()
        return behave(request)

    server.script(EMBEDDINGS, *[deadly] * 99)
    for _ in range(2 * UNANSWERED_CLAIMS_MAX):
        worker.append(start())
        if worker[-1].wait(timeout=60) == 0:
            break
    assert worker[-1].wait() == 0
    row = Claim.objects.get()
    assert row.unit == f"item:{pages[0].pk}" and row.parked_at
    bare = RawItem.objects.as_pipeline().filter(vectors__isnull=True)
    assert [item.pk for item in bare] == [pages[0].pk]
