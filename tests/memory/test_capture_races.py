"""Capture under concurrent posts: Postgres settles who was first, nobody sees an error."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
import threading
import time
from datetime import timedelta

from django.db import connection, transaction

from memory.access import principal
from memory.models import CaptureReceipt, RawItem
from memory.stages.capture import capture
from tests.cluster import ROOT
from tests.memory.posting import NOW, SPOKEN, item, post, stored


def test_it_stores_each_turn_once_when_thirty_clients_post_overlapping_batches(
    clone_db: str,
) -> None:
    owner, clients, turns = principal("alice"), 30, 40
    failures: list[BaseException] = []
    answers: list[list[tuple[str, int | None]]] = []
    start = threading.Barrier(clients)

    def client(number: int) -> None:
        # Every client has another session and another order: resumed copies of one history.
        order = [(number * 7 + step) % turns for step in range(turns)]
        batch = [
            item(
                f"turn {one}: we talk about part {one % 5} of the queue",
                session=f"s{number % 3}",
                record_id=f"row-{one}" if one % 2 else "",
                original_timestamp=SPOKEN + timedelta(seconds=one),
            )
            for one in order
        ]
        try:
            start.wait(30)
            report = capture(batch, owner=owner, now=NOW)
            answers.append([(b.body, o.id) for b, o in zip(batch, report.outcomes, strict=True)])
        except BaseException as error:
            failures.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=client, args=(number,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not failures
    rows = {row.body: row.pk for row in stored()}
    assert len(rows) == RawItem.objects.as_pipeline().count() == turns
    assert len(answers) == clients
    assert all(rows[body] == id_ for answer in answers for body, id_ in answer)
    totals = CaptureReceipt.objects.as_pipeline().values_list("seen", "stored", "duplicates")
    assert sum(stored for _, stored, _ in totals) == turns
    assert all(seen == stored + duplicates for seen, stored, duplicates in totals)


def test_it_points_a_near_copy_at_the_row_that_is_there(clone_db: str) -> None:
    """Of two in one post, another post was faster with the first."""
    owner = principal("alice")
    text = (
        "The staging server listens on port 8443 and the load balancer in front of it forwards "
        "everything that arrives on port 443, as the team agreed on Monday after the incident."
    )
    first, copy = item(text), item(text.upper(), session="s2")
    stored_first, faster = threading.Event(), []

    def other() -> None:
        try:
            with transaction.atomic():
                faster.append(capture([first], owner=owner, now=NOW).outcomes[0].id)
                stored_first.set()
                for _ in range(1_000):
                    with connection.cursor() as cursor:
                        cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
                        if cursor.fetchone()[0]:
                            return
                    time.sleep(0.01)
        finally:
            connection.close()

    thread = threading.Thread(target=other)
    thread.start()
    assert stored_first.wait(30)
    report = capture([first, copy], owner=owner, now=NOW)
    thread.join(30)
    assert [one.duplicate for one in report.outcomes] == [True, False]
    assert report.outcomes[0].id == faster[0]
    (row,) = stored(body=text.upper())
    assert (row.pk, row.near_duplicate_of_id) == (report.outcomes[1].id, faster[0])


def test_it_keeps_what_a_killed_worker_had_answered_for(clone_environment: dict[str, str]) -> None:
    program = """
        import django, itertools, json, sys
        django.setup()
        from tests.memory.posting import item, post
        for number in itertools.count(int(sys.argv[1])):
            report = post(*(item(f"post {number}, turn {turn}") for turn in range(20)))
            print(json.dumps([number, [one.id for one in report.outcomes]]), flush=True)
    """
    connection.ensure_connection()
    for kill_after in (1, 5, 12):
        with subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(program), str(1000 * kill_after)],
            env=clone_environment, cwd=ROOT, stdout=subprocess.PIPE, text=True,
        ) as worker:  # fmt: skip
            assert worker.stdout is not None
            lines = [worker.stdout.readline() for _ in range(kill_after)]
            worker.kill()
            lines += worker.stdout.readlines()
        answered = dict(json.loads(line) for line in lines if line.strip())
        assert len(answered) >= kill_after
        rows = {row.body: row.pk for row in stored()}
        for number, ids in answered.items():
            assert [rows[f"post {number}, turn {turn}"] for turn in range(20)] == ids
        # What it was killed over is whole or not there, and who saw no answer posts again.
        for number in range(1000 * kill_after, max(answered) + 2):
            again = post(*(item(f"post {number}, turn {turn}") for turn in range(20)))
            assert again.stored in (0, 20)
    assert len(stored()) == len({row.body for row in stored()})
