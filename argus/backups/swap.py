"""Two databases change names, and nobody's word is lost meanwhile.

Reads: the catalogue. Writes: names and rights of databases. Knows nothing about what is in them.
Whoever is killed leaves the names as they were, or as they should be, and no lock.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from django.db import connections
from psycopg import sql

from argus.scratch import connected
from memory.errors import RefusedError

#: The database from which another one can be renamed.
MAINTENANCE = "postgres"

#: How long the names may take to change, in seconds.
# Why: PostgreSQL itself waits five for whoever is still connected.
SWAP_SECONDS_MAX = 30

#: Tables that the owner may keep others from writing to.
OURS = """
SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = 'public' AND c.relkind IN ('r', 'p') AND has_table_privilege(c.oid, 'DELETE')
"""


@contextmanager
def held(real: dict[str, Any], name: str) -> Iterator[psycopg.Connection]:
    """A connection to the real database by which nobody writes there, and nobody sweeps `name` away
    as a dead process's. Ends with us, however we end. Raises RefusedError while others are in."""
    with connected(real) as keeper:
        keeper.execute("SELECT pg_advisory_lock(hashtextextended(%s, 0))", [name])
        check_alone(keeper)
        tables = [table for (table,) in keeper.execute(OURS).fetchall()]
        keeper.execute("BEGIN; SET LOCAL lock_timeout = '5s'")
        keeper.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
        if tables:
            names = sql.SQL(", ").join(sql.Identifier("public", one) for one in tables)
            try:
                keeper.execute(sql.SQL("LOCK TABLE {} IN EXCLUSIVE MODE").format(names))
            except psycopg.errors.LockNotAvailable:
                raise RefusedError("somebody is at work in the database: it stays") from None
        yield keeper


def check_alone(keeper: psycopg.Connection) -> None:
    """Raises RefusedError while anybody else is connected to the database."""
    keeper.execute("SELECT pg_stat_clear_snapshot()")
    rows = keeper.execute(
        "SELECT application_name, count(*) FROM pg_stat_activity WHERE usename IS NOT NULL"
        " AND datname = current_database() AND pid != pg_backend_pid() GROUP BY 1 ORDER BY 1"
    ).fetchall()
    if rows:
        who = ", ".join(f"{count} of {name or 'somebody'}" for name, count in rows)
        raise RefusedError(
            f"the database is in use ({who}): stop the web server, the workers and whoever else "
            "is connected first (`up` ends by Ctrl-C); it is as it was"
        )


def swap(real: dict[str, Any], name: str, keeper: psycopg.Connection) -> None:
    """The loaded database takes the real one's name, which takes the other's: both or neither.

    The change is asked for while `keeper` still holds the old one. From the moment at which it has
    the name nobody else can connect; then the keeper looks whether anybody is in, and goes.
    """
    connections.close_all()
    old, new, spare = sql.Identifier(real["NAME"]), sql.Identifier(name), sql.Identifier(f"{name}_")
    rename = sql.SQL("ALTER DATABASE {} RENAME TO {}").format
    names = sql.SQL("; ").join((rename(new, spare), rename(old, new), rename(spare, old)))
    with connected({**real, "NAME": MAINTENANCE}) as at:
        _same_rights(at, new, real["NAME"])
        at.pgconn.send_query(names.as_string(at).encode())
        alone = False
        try:
            _until(lambda: _taken(keeper) or not _busy(at))
            check_alone(keeper)
            alone = True
        finally:
            if not alone:
                at.cancel_safe()
                _faults(at)
            keeper.close()
        if wrong := _faults(at):
            raise RefusedError(f"the names cannot change: {wrong[0]}; it is as it was")


def _faults(at: psycopg.Connection) -> list[str]:
    """The end of what was asked for: what went wrong."""
    found = []
    while (result := at.pgconn.get_result()) is not None:
        if wrong := result.error_field(psycopg.pq.DiagnosticField.MESSAGE_PRIMARY):
            found.append(wrong.decode(errors="replace"))
    return found


def _taken(keeper: psycopg.Connection) -> bool:
    """Whether whoever changes the names has the old one: nobody connects to it any more."""
    row = keeper.execute(
        "SELECT FROM pg_locks WHERE locktype = 'object' AND classid = 'pg_database'::regclass"
        " AND objid = (SELECT oid FROM pg_database WHERE datname = current_database())"
        " AND mode = 'AccessExclusiveLock' AND granted"
    ).fetchone()
    return row is not None


def _busy(at: psycopg.Connection) -> bool:
    at.pgconn.consume_input()
    return bool(at.pgconn.is_busy())


def _until(there: Callable[[], bool]) -> None:
    """Wait for it, SWAP_SECONDS_MAX at most."""
    ends = time.monotonic() + SWAP_SECONDS_MAX
    while not there():
        if time.monotonic() > ends:
            raise RefusedError("the names cannot change: somebody is at the database's own")
        time.sleep(0.01)


def _same_rights(at: psycopg.Connection, new: sql.Identifier, old: str) -> None:
    """Who may connect to the old database may connect to the new one, and nobody else."""
    rights = at.execute(
        "SELECT r.rolname, x.privilege_type FROM pg_database d, aclexplode(d.datacl) x"
        " LEFT JOIN pg_roles r ON r.oid = x.grantee WHERE d.datname = %s",
        [old],
    ).fetchall()
    if not rights:
        return
    at.execute(sql.SQL("REVOKE ALL ON DATABASE {} FROM PUBLIC").format(new))
    for role, privilege in rights:
        who = sql.SQL("PUBLIC") if role is None else sql.Identifier(role)
        grant = sql.SQL("GRANT {} ON DATABASE {} TO {}")
        at.execute(grant.format(sql.SQL(privilege), new, who))
