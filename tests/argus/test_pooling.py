"""Behind a pooler that gives a connection for one transaction: nothing is kept in a session.

With the real pgbouncer where there is one: each transaction comes to another server process than
the one before.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import psycopg
import pytest
from django.db import connection, connections
from django.utils import timezone

from argus import postgres
from argus.binaries import locate
from memory.access import principal
from memory.models import Note, RawItem, StageRun
from memory.pipeline import process
from recall.notes import recall_notes
from tests import cluster
from tests.factories import end_session, turns
from tests.flow import ASKED, PORT
from tests.ports import free_port
from tests.standby import until

ROOT = Path(__file__).resolve().parents[2]
BOUNCER = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")

#: Server processes that the pooler keeps, and gives out in turn.
POOL_SIZE = 3

#: What a session would keep after its transaction; with whoever may, since it has one of its own.
SESSION_STATE = {
    r"pg_(try_)?advisory_(un)?lock(_shared|_all)?\(": {"argus/scratch.py", "argus/backups/swap.py"},
    r"\b(UN)?LISTEN\b [a-z]": set(),
    r"\bNOTIFY\b [a-z]": set(),
    r"\b(PREPARE|DEALLOCATE|DECLARE) [a-z_]+": set(),
    # Dropped at the end of the transaction that makes them.
    r"CREATE (LOCAL |GLOBAL )?TEMP": {"argus/rebuilding/settled.py"},
    r"\bSET (SESSION|[a-z_.]+ (TO|=))(?! DEFAULT)": set(),
    r"set_config\([^)]*,\s*false\)": set(),
    r"cursor\(name=": set(),
    r"WITH HOLD": set(),
}

#: A string with the words of a statement that changes rows: its SET is another one.
UPDATE = re.compile(r"\b(UPDATE|ALTER|ON DELETE|ON UPDATE)\b")


def _statements() -> Iterator[tuple[str, str]]:
    """(file, a run of lines) of what talks to the application's database."""
    for folder in ("argus", "memory", "review", "recall", "exporter"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            name = path.relative_to(ROOT).as_posix()
            if "/migrations/" in name or name.startswith(("argus/hook/", "argus/demo/")):
                continue
            yield name, path.read_text()


@pytest.mark.parametrize("pattern", SESSION_STATE)
def test_no_statement_of_ours_leaves_anything_in_a_session(pattern: str) -> None:
    found = {
        name
        for name, text in _statements()
        for line in text.splitlines()
        if re.search(pattern, line) and not UPDATE.search(line)
    }
    assert found <= SESSION_STATE[pattern]


@pytest.mark.parametrize(
    "line",
    [
        'cursor.execute("SELECT pg_advisory_lock(1)")',
        'cursor.execute("SET statement_timeout = 5")',
        "\"SELECT set_config('a.b', 'c', false)\"",
        "connection.cursor(name='rows')",
        '"CREATE TEMP TABLE t (n int)"',
        '"LISTEN jobs"',
    ],
)
def test_the_look_at_the_code_finds_what_it_looks_for(line: str) -> None:
    assert any(re.search(pattern, line) for pattern in SESSION_STATE)
    assert not any(
        re.search(pattern, "SET LOCAL enable_sort = off; SELECT pg_advisory_xact_lock(1)")
        for pattern in SESSION_STATE
    )


@pytest.fixture
def pooled(clone_db: str) -> Iterator[None]:
    """Django's default connection goes through pgbouncer, as ARGUS_POOLED has it."""
    if BOUNCER is None:
        pytest.skip("no pgbouncer on this machine: apt install pgbouncer")
    port = free_port()
    place = postgres.place(cluster.home())
    folder = place.root / f"pooler-{os.getpid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    (folder / "users").write_text(f'"{postgres.APP}" ""\n')
    (folder / "pgbouncer.ini").write_text(
        f"[databases]\n* = host={place.run}\n[pgbouncer]\nlisten_addr = 127.0.0.1\n"
        f"listen_port = {port}\nunix_socket_dir =\nauth_type = trust\n"
        f"auth_file = {folder}/users\npool_mode = transaction\nserver_round_robin = 1\n"
        f"default_pool_size = {POOL_SIZE}\nlogfile = {folder}/log\n"
    )
    account = locate().account
    if account is not None:
        for path in (folder, *folder.iterdir()):
            os.chown(path, account.pw_uid, account.pw_gid)
    pooler = subprocess.Popen(
        [BOUNCER, "-q", str(folder / "pgbouncer.ini")],
        user=account and account.pw_uid,
        group=account and account.pw_gid,
        extra_groups=None if account is None else [],
    )
    configured = connections.settings["default"]
    before = dict(configured)
    other = {"HOST": "127.0.0.1", "PORT": str(port), "DISABLE_SERVER_SIDE_CURSORS": True}
    try:
        until(lambda: _listens(port), "pgbouncer does not answer")
        connection.close()
        configured.update(other)
        connection.settings_dict.update(other)
        _fill(port, str(configured["NAME"]))
        yield
    finally:
        connection.close()
        back = {name: before[name] for name in other}
        configured.update(back)
        connection.settings_dict.update(back)
        pooler.terminate()
        pooler.wait(10)
        shutil.rmtree(folder, ignore_errors=True)


def _fill(port: int, database: str) -> None:
    """Have the pooler open all its connections: it opens another one when all are in use."""
    with ExitStack() as stack:
        for _ in range(POOL_SIZE):
            where = f"postgresql://{postgres.APP}@127.0.0.1:{port}/{database}"
            one = stack.enter_context(psycopg.connect(where, prepare_threshold=None))
            one.execute("SELECT 1")


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _ask(query: str) -> object:
    with connection.cursor() as cursor:
        cursor.execute(query)
        return cursor.fetchone()[0]


def test_it_captures_distills_and_recalls_with_each_transaction_in_another_process(
    pooled: None,
) -> None:
    alice, bob = principal("alice"), principal("bob")
    assert len({_ask("SELECT pg_backend_pid()") for _ in range(2 * POOL_SIZE)}) == POOL_SIZE
    turns(alice, [PORT, "Noted."])
    end_session(alice, now=timezone.now())
    assert process().as_json()["ok"]
    assert PORT in recall_notes(ASKED, principal=alice, now=timezone.now()).text
    assert not recall_notes(ASKED, principal=bob, now=timezone.now()).hits
    assert set(StageRun.objects.values_list("status", flat=True)) == {"done"}

    # Rows in pieces, while the connection is somebody else's between two of them.
    rows = RawItem.objects.as_pipeline().order_by("pk").iterator(chunk_size=1)
    assert [(row.pk, bool(_ask("SELECT true"))) for row in rows]

    def work(number: int) -> bool:
        try:
            who = principal(f"person {number}")
            turns(who, [PORT, "Noted."], session=f"s{number}")
            end_session(who, f"s{number}", now=timezone.now())
            return recall_notes(ASKED, principal=who, now=timezone.now()).injection is not None
        finally:
            connections.close_all()

    # More clients than the pooler has connections, and one more for the pipeline.
    with ThreadPoolExecutor(6) as pool:
        assert all(pool.map(work, range(6)))
    assert process().as_json()["ok"]
    assert Note.objects.as_pipeline().values("owner").distinct().count() == 7

    # What one transaction set for itself is not there for the next one.
    told = {
        (_ask("SHOW enable_sort"), _ask("SELECT current_setting('hnsw.ef_search', true)"))
        for _ in range(POOL_SIZE)
    }
    assert told <= {("on", None), ("on", "40")}
