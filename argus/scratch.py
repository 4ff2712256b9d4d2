"""A throwaway database beside the real one: made by the owner, migrated, used, dropped.

Django's default connection is to it inside `scratch`. Dropped on errors and on Ctrl-C, too; what a
killed process left is swept by the next one. Knows nothing about what happens inside.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg
from django.conf import settings
from django.core.management import CommandError, call_command
from django.db import connection, connections
from psycopg import sql

from argus.owner import EXTENSIONS, OwnerProblem, as_owner
from recall.evaluation.copies import Copied

#: What stands between the real database's name and the random end of a throwaway one's.
MARK = "_scratch_"

#: Characters of the real name in it.
# Why: PostgreSQL cuts names at 63 bytes, and the random end must survive.
NAME_CHARACTERS_MAX = 40

#: Tries to drop a database that somebody, autovacuum mostly, is still in.
DROP_TRIES_MAX = 20


@contextmanager
def scratch(
    rows: Sequence[Copied] = (), *, furnish: Callable[[], None] | None = None
) -> Iterator[str]:
    """A migrated database with these rows of the real one; its name. Not inside a transaction.
    `furnish` makes its tables in another way.

    Raises OwnerProblem when the owner may not make databases, or not what they need, in words that
    say what to do.
    """
    if connection.in_atomic_block:
        raise OwnerProblem("A throwaway database cannot be made inside a transaction.")
    real = dict(connection.settings_dict)
    name = f"{_prefix(real['NAME'])}{secrets.token_hex(6)}"
    with connected(owner_of(real)) as keeper:
        sweep(keeper, real["NAME"])
        # Held until this connection ends, however it ends: who can take it may drop the database.
        keeper.execute("SELECT pg_advisory_lock(hashtextextended(%s, 0))", [name])
        try:
            _create(keeper, name, None if furnish else settings.SCRATCH_TEMPLATE)
            with connected({**owner_of(real), "NAME": name}) as inside:
                extend(inside, EXTENSIONS)
            with pointed(name):
                (furnish or _furnish)()
                if rows:
                    _copy(rows, real)
                yield name
        finally:
            drop(keeper, name)


def sweep(keeper: psycopg.Connection, database: str) -> list[str]:
    """Drop throwaway databases of this one that no living process holds; the names dropped."""
    found = keeper.execute(
        "SELECT datname FROM pg_database WHERE starts_with(datname, %s)"
        # Exactly as we name them: a person's own scratch pad is none of ours.
        " AND substr(datname, %s) ~ '^[0-9a-f]{12}$' AND pg_has_role(datdba, 'MEMBER')",
        [_prefix(database), len(_prefix(database)) + 1],
    ).fetchall()
    gone = []
    for (name,) in found:
        lock = "hashtextextended(%s, 0)"
        row = keeper.execute(f"SELECT pg_try_advisory_lock({lock})".encode(), [name]).fetchone()
        if not row or not row[0]:
            continue
        try:
            drop(keeper, name)
            gone.append(name)
        except psycopg.errors.ObjectInUse:
            # A backend of the killed process is still at its last statement: the next run's.
            pass
        finally:
            keeper.execute(f"SELECT pg_advisory_unlock({lock})".encode(), [name])
    return gone


def lying() -> list[str]:
    """Those of `standing` that no living process holds; drops none. Inside a transaction: what it
    tries is let go at its end."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT name FROM unnest(%s::text[]) name"
            " WHERE pg_try_advisory_xact_lock(hashtextextended(name, 0)) ORDER BY 1",
            [standing()],
        )
        return [name for (name,) in cursor.fetchall()]


def standing() -> list[str]:
    """All throwaway databases of this one, whoever holds them: each may have the record in it."""
    prefix = _prefix(connection.settings_dict["NAME"])
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT datname::text FROM pg_database WHERE starts_with(datname, %s)"
            " AND substr(datname, %s) ~ '^[0-9a-f]{12}$' ORDER BY 1",
            [prefix, len(prefix) + 1],
        )
        return [name for (name,) in cursor.fetchall()]


def leftovers() -> list[str]:
    """Sweep now, outside any run: for whoever purges. The names dropped."""
    real = dict(connection.settings_dict)
    with connected(owner_of(real)) as keeper:
        return sweep(keeper, real["NAME"])


def _prefix(database: str) -> str:
    return f"{database[:NAME_CHARACTERS_MAX]}{MARK}"


def owner_of(real: dict[str, Any]) -> dict[str, Any]:
    """The owner's settings for the same database."""
    owner = settings.OWNER_DATABASE
    if owner is None:
        raise OwnerProblem(
            "This makes a database of its own, as the owner: set ARGUS_OWNER_DATABASE_URL."
        )
    return {**owner, "NAME": real["NAME"]}


def connected(at: dict[str, Any]) -> psycopg.Connection:
    """A connection of our own, beside Django's."""
    names = {"dbname": "NAME", "user": "USER", "password": "PASSWORD", "host": "HOST"}
    given = {key: at[name] for key, name in names.items() if at[name]}
    port = {"port": at["PORT"]} if at["PORT"] else {}
    return psycopg.connect(**given, **port, **at["OPTIONS"], autocommit=True)


def extend(at: psycopg.Connection, extensions: Mapping[str, bool]) -> None:
    """Make these extensions in a new database of the owner's, and whether it needs each.

    Raises OwnerProblem, in words that say what to do, when the owner may not make one that is
    needed: a new database has then what template1 has.
    """
    for extension, needed in extensions.items():
        query = sql.SQL("CREATE EXTENSION IF NOT EXISTS {}").format(sql.Identifier(extension))
        try:
            at.execute(query)
        except psycopg.errors.InsufficientPrivilege:
            if needed:
                raise OwnerProblem(
                    f"A new database has no extension {extension}, and the role {at.info.user!r} "
                    "may not make it there: have a superuser run CREATE EXTENSION "
                    f"{extension} in template1, which each new database is a copy of."
                ) from None
        except psycopg.errors.FeatureNotSupported:
            # The server does not have it at all.
            if needed:
                raise


def _create(keeper: psycopg.Connection, name: str, template: str | None = None) -> None:
    names = map(sql.Identifier, (name, template or "template1"))
    try:
        keeper.execute(sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(*names))
    except psycopg.errors.InsufficientPrivilege:
        user = keeper.info.user
        raise OwnerProblem(
            f"The role {user!r} may not make a throwaway database: ALTER ROLE {user} CREATEDB, as "
            "a superuser."
        ) from None
    # Nobody asks for its data when the machine dies.
    keeper.execute(
        sql.SQL("ALTER DATABASE {} SET synchronous_commit = off").format(sql.Identifier(name))
    )


def _furnish() -> None:
    try:
        call_command("migrate", verbosity=0)
    except CommandError as problem:
        raise OwnerProblem(
            f"{problem} For throwaway databases that is template1: make the extension there."
        ) from None


@contextmanager
def pointed(name: str) -> Iterator[None]:
    """Django's default connection, in every thread that opens one, is to this database."""
    configured = connections.settings["default"]
    before = configured["NAME"], connection.settings_dict["NAME"]

    def point(configured_name: str, connected_name: str) -> None:
        connection.close()
        configured["NAME"] = configured_name
        connection.settings_dict["NAME"] = connected_name

    point(name, name)
    try:
        yield
    finally:
        point(*before)


def _copy(rows: Sequence[Copied], real: dict[str, Any]) -> None:
    """Bring the rows over. Read as the application, written as the owner of the new database.

    Constraints between tables and vector indexes are in the way of a bulk load: the first are not
    needed where nothing is written any more, the second are made anew when the rows are there.
    """
    with as_owner(), connected(real) as source, connection.cursor() as cursor:
        tables = [one.table for one in rows]
        cursor.execute(
            "SELECT conrelid::regclass::text, conname FROM pg_constraint WHERE contype = 'f'"
            " AND conrelid::regclass::text = ANY(%s)",
            [tables],
        )
        for table, constraint in cursor.fetchall():
            dropping = sql.SQL("ALTER TABLE {} DROP CONSTRAINT {}")
            names = map(sql.Identifier, (table, constraint))
            cursor.execute(dropping.format(*names))
        cursor.execute(
            "SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = current_schema"
            " AND tablename = ANY(%s) AND indexdef LIKE '%% USING hnsw %%'",
            [tables],
        )
        indexes = cursor.fetchall()
        for index, _ in indexes:
            cursor.execute(sql.SQL("DROP INDEX {}").format(sql.Identifier(index)))
        for one in rows:
            _copy_table(one, source, connection.connection)
        for _, definition in indexes:
            cursor.execute(definition)
        cursor.execute("ANALYZE")


def _copy_table(one: Copied, source: psycopg.Connection, target: psycopg.Connection) -> None:
    into = sql.SQL("COPY {} ({}) FROM STDIN (FORMAT BINARY)").format(
        sql.Identifier(one.table), sql.SQL(", ").join(map(sql.Identifier, one.columns))
    )
    out = f"COPY ({one.query}) TO STDOUT (FORMAT BINARY)".encode()
    with (
        source.cursor() as reader,
        target.cursor() as writer,
        reader.copy(out, one.parameters) as read,
        writer.copy(into) as write,
    ):
        for block in read:
            write.write(block)


def drop(keeper: psycopg.Connection, name: str) -> None:
    """Drop it; we are out, but somebody may have looked in. Raises ObjectInUse in the end."""
    for attempt in range(DROP_TRIES_MAX):
        try:
            keeper.execute(sql.SQL("DROP DATABASE IF EXISTS {}").format(sql.Identifier(name)))
        except psycopg.errors.ObjectInUse:
            if attempt == DROP_TRIES_MAX - 1:
                raise
            time.sleep(0.1)
        else:
            return
