"""Backup: the whole database as one file, with what is needed to know that it came back whole.

Reads: every table. Writes: the file. Audits: act.
The hashes in the file are of the very snapshot that was dumped. Not inside: the vault (`export`
writes it again), ARGUS_HOME (its secret key least of all), what is in the environment, and who is
logged in. Verify: `check` without a database, `restore` with one.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import psycopg
from django.conf import settings
from django.db import connection
from tqdm import tqdm

from argus.backups import archive, clients, inventory, since
from argus.backups.parsed import parse
from argus.owner import OwnerProblem
from argus.scratch import connected
from memory.acts import record_act
from memory.models import Principal

#: How a backup is named that nobody named.
NAME = "argus-{at:%Y%m%dT%H%M%SZ}.backup"


@dataclass(frozen=True)
class BackupReport:
    """Where the backup lies; its size, that of the dump in it, and what it holds."""

    file: str
    bytes: int
    sha256: str
    tables: int
    rows: int
    made_at: str
    server: str
    seconds: float = 0.0
    #: Of a look at one: why nobody read its dump as PostgreSQL does; "" where that was done.
    unread: str = ""


def back_up(
    path: Path, *, by: Principal, now: datetime, force: bool = False, progress: bool = False
) -> BackupReport:
    """Write everything that the database holds into a new file, as of one moment.

    Whole or not at all, for its owner's eyes only (0600). Raises RefusedError when the file is
    there and not `force`, OwnerProblem without a `pg_dump` of the server's version, ProgramFailed.
    """
    started = time.monotonic()
    connection.ensure_connection()  # The embedded server starts by this.
    with connected(_reader()) as at, archive.writing(path, force=force) as out:
        with _snapshot(at) as snapshot, tqdm(**_bar(progress, "B", unit_scale=True)) as bar:
            program = clients.matching("pg_dump", at.info.server_version // 10_000)
            for block in _dumped(program, snapshot):
                out.write(block)
                bar.update(len(block))
        with tqdm(**_bar(progress, "table")) as bar:
            held = inventory.take(
                at, app=settings.ARGUS_APP_ROLE, progress=lambda name: bar.update(1)
            )
        known = since.known(at, most=since.KNOWN_MAX)
        dump = out.finish({"made_at": now.isoformat(), "taken": known, **asdict(held)})
        at.rollback()
    detail = {"bytes": path.stat().st_size, "rows": held.rows, "sha256": dump}
    record_act(by, "back_up", "database", now=now, detail=detail)
    return BackupReport(
        file=str(path), bytes=path.stat().st_size, sha256=dump, tables=len(held.tables),
        rows=held.rows, made_at=now.isoformat(), server=held.server,
        seconds=round(time.monotonic() - started, 2),
    )  # fmt: skip


def check(path: Path) -> BackupReport:
    """Read a backup from end to end, compare every hash, and have PostgreSQL's own program read the
    dump in it; no database. Raises Broken."""
    checked, unread = archive.check(path), ""
    try:
        parse(path, checked.manifest)
    except OwnerProblem as problem:
        unread = str(problem)
    tables = checked.manifest["tables"]
    return BackupReport(
        file=str(path), bytes=path.stat().st_size, sha256=checked.dump_sha256, tables=len(tables),
        rows=sum(table["rows"] for table in tables.values()),
        made_at=checked.manifest["made_at"], server=checked.manifest["server"], unread=unread,
    )  # fmt: skip


def lines(report: BackupReport, *, verb: str) -> str:
    """The report for people."""
    return (
        f"{verb} {report.file}: {report.bytes:,} bytes, {report.rows:,} rows in {report.tables}"
        f" tables, as of {report.made_at} (PostgreSQL {report.server})\n"
        f"sha256 of the dump: {report.sha256}"
        + (f"\nits hashes fit, but its dump was not read. {report.unread}" if report.unread else "")
    )


def _reader() -> dict[str, Any]:
    """The owner where we know it, else the application: either may read all."""
    return {**(settings.OWNER_DATABASE or connection.settings_dict),
            "NAME": connection.settings_dict["NAME"]}  # fmt: skip


@contextmanager
def _snapshot(at: psycopg.Connection) -> Iterator[str]:
    """The name of a snapshot that `at` stays in: what is dumped by it is what is hashed here."""
    at.autocommit = False
    at.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    at.read_only = True
    row = at.execute("SELECT pg_export_snapshot()").fetchone()
    assert row is not None
    yield row[0]


def _dumped(program: Path, snapshot: str) -> Iterator[bytes]:
    left_out = [f"--exclude-table-data=public.{name}" for name in inventory.LEFT_OUT]
    with clients.running(
        program, "--format=custom", "--no-owner", "--no-comments", f"--snapshot={snapshot}",
        *left_out, at=_reader(), reads=False,
    ) as dump:  # fmt: skip
        while block := dump.read(archive.BLOCK_BYTES):
            yield block


def _bar(progress: bool, unit: str, **more: Any) -> dict[str, Any]:
    # `None`: a bar on a terminal only.
    return {"unit": unit, "disable": None if progress else True, "leave": False, **more}
