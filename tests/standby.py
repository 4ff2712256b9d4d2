"""A primary of a test's own and its streaming standby, made with the wheel's programs.

Knows nothing about what is asked of either.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from django.conf import settings
from django.db import connection, connections

from argus import postgres
from argus.binaries import Binaries, locate
from argus.settings import STANDBY_GONE
from memory.reading import STANDBY
from tests.cluster import discard, into_memory

#: How long anything here may take.
SECONDS_MAX = 30

#: Nobody asks for this data once the test has ended.
TUNING = {"fsync": "off", "wal_level": "replica", "max_connections": "60"}


@dataclass(frozen=True)
class Server:
    """One of the two. `run` is the folder of its socket."""

    data: Path
    run: Path
    binaries: Binaries

    def url(self, role: str = postgres.APP) -> str:
        return f"postgresql://{role}@/{postgres.DATABASE}?host={self.run}"

    def ask(self, query: str) -> Any:
        """The first value of the first row, as the superuser."""
        with psycopg.connect(self.url(postgres.SUPERUSER), autocommit=True) as connection:
            cursor = connection.execute(query.encode())
            row = cursor.fetchone() if cursor.description else None
            return row[0] if row else None

    def control(self, *words: str) -> None:
        """pg_ctl; it waits until it is done."""
        place = f"-c unix_socket_directories={self.run}"
        log = str(self.data.parent / f"{self.data.name}.log")
        done = self.binaries.run(
            *("pg_ctl", *words, "-w", "-D", str(self.data), "-o", place, "-l", log),
            cwd=self.data.parent,
            timeout_seconds=SECONDS_MAX,
        )
        assert done.returncode == 0, done.stdout

    def pid(self) -> int:
        return int((self.data / "postmaster.pid").read_text().split()[0])

    def kill(self) -> None:
        """As if the machine lost its power; its backends end when they notice."""
        os.kill(self.pid(), signal.SIGKILL)

    def rise(self) -> None:
        """Start after `kill`: backends of the old server may hold its memory for a moment."""
        until(lambda: self._started(), "it does not start again")

    def _started(self) -> bool:
        try:
            self.control("start")
        except AssertionError:
            return False
        return True


def until(done: Any, otherwise: str, seconds: float = SECONDS_MAX) -> None:
    """Wait until it is so."""
    deadline = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < deadline, otherwise
        time.sleep(0.05)


@contextmanager
def pair(home: Path) -> Iterator[tuple[Server, Server]]:
    """A running primary with Argus's roles and an empty database, and its standby."""
    into_memory(home)
    place = postgres.start(home, options=TUNING)
    binaries = locate()
    primary = Server(place.data, place.run, binaries)
    standby = Server(place.root / "standby", place.root / "s", binaries)
    try:
        with (place.data / "pg_hba.conf").open("a") as handle:
            handle.write("local replication all trust\n")
        primary.ask("SELECT pg_reload_conf()")
        standby.run.mkdir(mode=0o700)
        if binaries.account is not None:
            os.chown(standby.run, binaries.account.pw_uid, binaries.account.pw_gid)
        done = binaries.run(
            *("pg_basebackup", "-h", str(primary.run), "-U", postgres.SUPERUSER, "-R", "-C"),
            *("-S", "standby", "-D", str(standby.data), "-c", "fast"),
            cwd=place.root,
            timeout_seconds=SECONDS_MAX,
        )
        assert done.returncode == 0, done.stdout
        standby.control("start")
        yield primary, standby
    finally:
        for server in (standby, primary):
            if (server.data / "postmaster.pid").exists():
                binaries.run(
                    *("pg_ctl", "stop", "-m", "immediate", "-D", str(server.data)),
                    cwd=place.root,
                    timeout_seconds=SECONDS_MAX,
                )
        discard(home)


@contextmanager
def pointed(primary: Server, standby: Server) -> Iterator[None]:
    """Django of this process is connected to both inside: default and replica, and the owner."""
    default = connections.settings["default"]
    owner = settings.OWNER_DATABASE
    assert owner is not None
    places = [(one, one["HOST"], one["NAME"]) for one in (default, owner)]
    connection.close()
    for one, *_ in places:
        one.update(HOST=str(primary.run), NAME=postgres.DATABASE)
    connections.settings[STANDBY] = {
        **default,
        "ENGINE": "django.db.backends.postgresql",
        "HOST": str(standby.run),
        "OPTIONS": {**STANDBY_GONE, "application_name": "argus reading"},
    }
    connection.settings_dict.update(HOST=str(primary.run), NAME=postgres.DATABASE)
    try:
        yield
    finally:
        connection.close()
        connections[STANDBY].close()
        del connections[STANDBY], connections.settings[STANDBY]
        for one, host, name in places:
            one.update(HOST=host, NAME=name)
        connection.settings_dict.update(HOST=places[0][1], NAME=places[0][2])
