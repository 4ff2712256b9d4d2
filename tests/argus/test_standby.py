"""A real standby: searches go there while it keeps up, and no answer depends on it.

A primary of this file's own and its streaming standby, made once. Knows nothing about what is
found best.
"""

from __future__ import annotations

import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from django.conf import settings as configured
from django.core.management import call_command
from django.db import connection, connections, transaction
from django.test import override_settings
from django_q.brokers import get_broker
from django_q.models import Success
from django_q.tasks import async_task
from pytest_django import DjangoDbBlocker

from argus import postgres, schedules
from argus.owner import as_owner
from memory import reading, retire
from memory.access import create_key, principal
from memory.models import Injection, Note, Principal, RawItem
from memory.reading import Read, Standby, anywhere, look, server
from recall.notes import Recalled, recall_notes
from recall.query import recall_query
from tests.factories import group
from tests.recall.making import NOW, note, said
from tests.standby import Server, pair, pointed, until
from tests.topology import Caller, load, machines

ASKED = "Which port does the staging database use?"
FACT = "The staging database uses port 5433."
OTHER = "The staging database of the harbor project listens on port 6543."

READ = Read("standby")


@pytest.fixture(scope="module")
def both(
    tmp_path_factory: pytest.TempPathFactory, django_db_blocker: DjangoDbBlocker
) -> Iterator[tuple[Server, Server]]:
    with (
        django_db_blocker.unblock(),
        pair(tmp_path_factory.mktemp("pair") / "home") as servers,
        pointed(*servers),
    ):
        with as_owner():
            call_command("migrate", verbosity=0)
        yield servers


@pytest.fixture
def alice(both: tuple[Server, Server], monkeypatch: pytest.MonkeyPatch) -> Principal:
    """Somebody with a note and a turn of her own, at both servers; this process asks anew."""
    monkeypatch.setattr(reading, "_standby", Standby())
    monkeypatch.setattr(reading, "ALONE_SECONDS", 0.3)
    monkeypatch.setattr(reading, "MEASURE_SECONDS", 0.2)
    who = principal(f"alice-{time.monotonic_ns()}")
    note(who, FACT)
    caught_up(*both)
    return who


def caught_up(primary: Server, standby: Server) -> None:
    place = primary.ask("SELECT pg_current_wal_flush_lsn()")
    query = f"SELECT pg_last_wal_replay_lsn() >= '{place}'"
    until(lambda: standby.ask(query), "the standby does not catch up")


def recalled(who: Principal) -> tuple[Recalled, Any]:
    """A recall, and where its row says that it was read."""
    got = recall_notes(ASKED, principal=who, now=NOW)
    row = Injection.objects.visible_to(who).get(pk=got.injection)
    return got, row.options["read"]


def scans(server: Server) -> int:
    query = "SELECT idx_scan + seq_scan FROM pg_stat_user_tables WHERE relname = 'memory_posting'"
    return int(server.ask(query))


def _hang_up() -> None:
    """A server counts what was read through a connection when that ends."""
    for one in connections.all(initialized_only=True):
        one.close()


def test_it_searches_at_the_standby_alone_and_writes_at_the_primary(
    both: tuple[Server, Server], alice: Principal
) -> None:
    primary, standby = both
    _hang_up()
    before = scans(primary), scans(standby)
    for _ in range(5):
        got, read = recalled(alice)
        assert FACT in got.text and read == {"server": "standby"}
    assert recall_query(ASKED, principal=alice, now=NOW).hits[0].facts["content"] == FACT
    _hang_up()
    until(lambda: scans(standby) >= before[1] + 6, "the standby was not searched")
    assert scans(primary) == before[0]
    assert look() == READ


def test_it_gives_nothing_that_was_retired_or_hidden_since_the_standby_heard_of_it(
    both: tuple[Server, Server], alice: Principal
) -> None:
    _, standby = both
    bob = principal("bob")
    crew = group("crew", alice, bob)
    note(bob, OTHER, visibility="team")
    caught_up(*both)
    assert recalled(alice)[1] == {"server": "standby"}
    assert OTHER in {hit.facts["content"] for hit in recalled(alice)[0].weighed}
    standby.ask("SELECT pg_wal_replay_pause()")
    try:
        mine = Note.objects.visible_to(alice).get(content=FACT)
        retire.retire([mine.pk], reason="superseded", now=NOW)
        alice.groups.remove(crew)
        turn = said(alice, "Staging database: its port is 7777 now.")
        got, read = recalled(alice)
        assert read == {"server": "standby"}, "the standby finds, and what it found is asked again"
        assert standby.ask(f"SELECT deleted_at IS NULL FROM memory_note WHERE id = '{mine.pk}'")
        assert got.text == "" and got.weighed == ()
        # Too far behind, it is not asked at all, and what is new is found.
        told = configured.ARGUS.model_copy(update={"replica_lag_seconds": 0.5})
        with override_settings(ARGUS=told):
            until(lambda: recalled(alice)[1]["server"] == "primary", "a lag goes unnoticed")
            got, read = recalled(alice)
        assert "behind" in read["why"] and [hit.key for hit in got.weighed] == [turn.pk]
    finally:
        standby.ask("SELECT pg_wal_replay_resume()")
    caught_up(*both)
    until(lambda: recalled(alice)[1]["server"] == "standby", "it is not read again")


def test_it_measures_and_reads_in_one_transaction_so_that_a_pooler_cannot_part_them(
    both: tuple[Server, Server], alice: Principal
) -> None:
    def told() -> tuple[Any, ...]:
        with server().cursor() as cursor:
            cursor.execute("SELECT current_setting('statement_timeout'), pg_is_in_recovery()")
            row: tuple[Any, ...] = cursor.fetchone()
            return row

    # The one statement that measures sets it, for its own transaction alone.
    assert anywhere(told) == (("2s", True), READ)
    with connections[reading.STANDBY].cursor() as cursor:
        cursor.execute("SHOW statement_timeout")
        assert cursor.fetchone() == ("0",)


def test_it_asks_the_primary_when_a_conflict_ends_the_search(
    both: tuple[Server, Server], alice: Principal
) -> None:
    primary, standby = both
    standby.ask("ALTER SYSTEM SET max_standby_streaming_delay = '50ms'")
    standby.ask("SELECT pg_reload_conf()")
    holding = threading.Event()

    def slow() -> str:
        with server().cursor() as cursor:
            if server().alias == reading.STANDBY:
                holding.set()
                cursor.execute("SELECT pg_sleep(1.5) FROM memory_principal LIMIT 1")
            return str(server().alias)

    def lock() -> None:
        holding.wait(10)
        time.sleep(0.2)
        primary.ask("VACUUM FULL memory_principal")

    thread = threading.Thread(target=lock)
    thread.start()
    found, read = anywhere(slow)
    thread.join()
    assert found == "default" and read is not None and read.server == "primary"
    assert read.why in ("it failed (SerializationFailure)", "it failed (QueryCanceled)")
    # Left alone for a while, and then read again.
    assert recalled(alice)[1] == {"server": "primary", "why": read.why}
    until(lambda: recalled(alice)[1]["server"] == "standby", "it is left alone for ever")


def test_it_answers_within_seconds_when_the_standby_is_frozen_or_dead(
    both: tuple[Server, Server], alice: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, standby = both
    monkeypatch.setattr(reading, "ANSWER_SECONDS_MAX", 0.5)
    assert recalled(alice)[1] == {"server": "standby"}
    root = psutil.Process(standby.pid())
    family = [root, *root.children(recursive=True)]
    for process in family:
        process.send_signal(signal.SIGSTOP)
    try:
        started = time.monotonic()
        got, read = recalled(alice)
        assert FACT in got.text and read["server"] == "primary" and "failed" in read["why"]
        # Half a second for the search, and two for a connection at the most.
        assert time.monotonic() - started < 5
        assert recalled(alice)[1]["server"] == "primary"
    finally:
        for process in family:
            process.send_signal(signal.SIGCONT)
    until(lambda: recalled(alice)[1]["server"] == "standby", "a thawed standby is not read")
    standby.kill()
    for _ in range(3):
        got, read = recalled(alice)
        assert FACT in got.text and read["server"] == "primary"
    standby.rise()
    until(lambda: recalled(alice)[1]["server"] == "standby", "a standby that is back is not read")


def test_it_takes_no_other_server_for_its_standby(
    both: tuple[Server, Server], alice: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    primary, _ = both
    monkeypatch.setitem(connections.settings[reading.STANDBY], "HOST", str(primary.run))
    connections[reading.STANDBY].close()
    monkeypatch.setitem(connections[reading.STANDBY].settings_dict, "HOST", str(primary.run))
    assert recalled(alice)[1] == {"server": "primary", "why": "it is no standby"}
    connections[reading.STANDBY].close()


def test_it_reads_its_own_writes_inside_a_transaction_and_beside_the_real_database(
    both: tuple[Server, Server], alice: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    with transaction.atomic():
        assert anywhere(lambda: server().alias) == ("default", None)
    monkeypatch.setitem(connection.settings_dict, "NAME", "argus_scratch_0123")
    assert anywhere(lambda: server().alias) == ("default", None)
    assert look() is None


def test_an_error_of_ours_comes_back_from_the_primary(
    both: tuple[Server, Server], alice: Principal
) -> None:
    def wrong() -> None:
        with server().cursor() as cursor:
            cursor.execute("SELECT nothing_of_this_name")

    with pytest.raises(Exception, match="nothing_of_this_name"):
        anywhere(wrong)


def more(callers: list[Caller], each: int = 4) -> None:
    """Wait until every client has been served so many times from now."""
    wanted = [(one, len(one.acknowledged) + each, one.recalls + each) for one in callers]
    until(
        lambda: all(
            len(one.acknowledged) >= captures and one.recalls >= recalls
            for one, captures, recalls in wanted
        ),
        f"nobody is served: {[(one.refused, one.lost) for one in callers]}",
    )


def newest(who: Principal) -> int:
    """The row of the latest recall."""
    return int(Injection.objects.visible_to(who).order_by("-pk")[:1].get().pk)


def _at_work() -> set[int]:
    """The clusters whose workers have carried out a task like this one."""
    async_task("os.getpid", broker=get_broker(), group="who")
    time.sleep(0.3)
    workers = Success.objects.filter(group="who").values_list("result", flat=True)
    return {psutil.Process(pid).ppid() for pid in workers if psutil.pid_exists(pid)}


def test_nothing_is_lost_while_the_standby_dies_and_the_primary_starts_again_under_load(
    both: tuple[Server, Server], alice: Principal, tmp_path: Path
) -> None:
    primary, standby = both
    schedules.sync()
    key, _ = create_key(owner=alice.name, scopes=("capture", "recall"))
    environment = {
        "ARGUS_DATABASE_URL": primary.url(),
        "ARGUS_OWNER_DATABASE_URL": primary.url(postgres.OWNER),
        "ARGUS_REPLICA_URL": standby.url(),
        # Tasks are signed with it: all hosts of one Argus share it.
        "ARGUS_SECRET_KEY": configured.SECRET_KEY,
    }

    def read_at(name: str, after: int) -> bool:
        rows = Injection.objects.visible_to(alice).filter(pk__gt=after)
        return rows.filter(options__read__server=name).exists()

    with (
        machines(environment, tmp_path, clusters=2) as url,
        load(url, key, callers=4) as callers,
    ):
        until(lambda: read_at("standby", 0), "the standby is not read")
        more(callers)
        seen = standby.ask(
            "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'argus argus.wsgi%'"
        )
        assert seen >= 1
        last = newest(alice)
        standby.kill()
        more(callers)
        assert read_at("primary", last)
        last = newest(alice)
        standby.rise()
        until(lambda: read_at("standby", last), "a standby that is back is not read")
        assert not [one.refused for one in callers if one.refused], "a standby is nobody's concern"
        primary.control("restart", "-m", "fast")
        _hang_up()
        more(callers)
        last = newest(alice)
        until(lambda: read_at("standby", last), "the standby does not find its primary again")
        until(lambda: len(_at_work()) == 2, "not both clusters are at work again", seconds=60)
    assert [one.lost for one in callers] == [[], [], [], []]
    # Said to be for a while only, and it was.
    assert {answer for one in callers for answer in one.refused} <= {(503, "5")}
    kept = Counter(RawItem.objects.visible_to(alice).values_list("body", flat=True))
    assert {body: kept[body] for one in callers for body in one.acknowledged} == {
        body: 1 for one in callers for body in one.acknowledged
    }
