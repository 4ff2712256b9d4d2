"""The owner's role: what may change tables, and what the application's role must not be.

Knows nothing about the tables themselves.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.db import Error, connection

from memory.errors import ConfigurationError

#: The oldest PostgreSQL: the first whose public schema is closed to strangers.
SERVER_MAJOR_MIN = 15

#: The oldest pgvector: the first with iterative index scans.
VECTOR_VERSION_MIN = (0, 8)

#: What each database needs, and whether Argus works without.
EXTENSIONS = {"vector": True, "pg_trgm": False}


class OwnerProblem(ConfigurationError):
    """The database or its roles are not as Argus needs them. The message says what to do."""


@dataclass(frozen=True)
class Facts:
    """What the database says of itself, for a sentence of `problems`."""

    server_major: int
    extensions: dict[str, str]
    role_found: bool
    role_superuser: bool
    role_is_owner: bool


@contextmanager
def as_owner() -> Iterator[None]:
    """This thread's default connection is the owner's inside, the application's after.

    Raises OwnerProblem when the owner's address is not known or a transaction is open.
    """
    owner = settings.OWNER_DATABASE
    if owner is None:
        raise OwnerProblem(
            "This needs the owner's role: set ARGUS_OWNER_DATABASE_URL to the address of the "
            "role that owns the database of ARGUS_DATABASE_URL."
        )
    if connection.in_atomic_block:
        raise OwnerProblem("The role cannot change inside a transaction.")
    before: dict[str, Any] = connection.settings_dict
    connection.close()
    # Why a new dict: Django shares one among threads, and this is ours alone.
    connection.settings_dict = {
        **before,
        **{name: owner[name] for name in ("USER", "PASSWORD", "HOST", "PORT", "OPTIONS")},
    }
    try:
        yield
    finally:
        connection.close()
        connection.settings_dict = before


def prepare() -> None:
    """Make missing extensions where the owner may, then check all. Only inside `as_owner`."""
    for extension, needed in EXTENSIONS.items():
        try:
            with connection.cursor() as cursor:
                cursor.execute(f"CREATE EXTENSION IF NOT EXISTS {extension}")
        except Error as error:
            if needed and type(error).__name__ == "OperationalError":
                raise
    found = problems(look())
    if found:
        raise OwnerProblem(" ".join(found))


def look() -> Facts:
    """Ask the connected database about itself."""
    role = settings.ARGUS_APP_ROLE
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_setting('server_version_num')::int / 10000")
        server_major = cursor.fetchone()[0]
        cursor.execute("SELECT extname, extversion FROM pg_extension")
        extensions = dict(cursor.fetchall())
        cursor.execute(
            "SELECT r.rolsuper, pg_has_role(r.oid, d.datdba, 'MEMBER')"
            " FROM pg_roles r, pg_database d"
            " WHERE r.rolname = %s AND d.datname = current_database()",
            [role],
        )
        row = cursor.fetchone()
    superuser, owner = row or (False, False)
    return Facts(server_major, extensions, row is not None, superuser, owner and not superuser)


def problems(facts: Facts) -> list[str]:
    """What stands in the way, a sentence each. Pure."""
    role = settings.ARGUS_APP_ROLE
    found = []
    if facts.server_major < SERVER_MAJOR_MIN:
        found.append(
            f"The server is PostgreSQL {facts.server_major}: Argus needs {SERVER_MAJOR_MIN} or "
            "newer."
        )
    version = facts.extensions.get("vector")
    least = ".".join(map(str, VECTOR_VERSION_MIN))
    if version is None:
        found.append(
            f"The extension vector is missing: install pgvector {least} or newer on the server, "
            f"and have a superuser run CREATE EXTENSION vector in this database."
        )
    elif tuple(int(part) for part in version.split(".")[:2]) < VECTOR_VERSION_MIN:
        found.append(
            f"The extension vector is {version}: Argus needs {least} or newer; update pgvector "
            "and run ALTER EXTENSION vector UPDATE."
        )
    if not facts.role_found:
        found.append(
            f"The role {role!r} of ARGUS_DATABASE_URL is missing: run CREATE ROLE {role} LOGIN "
            "PASSWORD '...' as a superuser."
        )
    elif facts.role_superuser:
        found.append(
            f"The role {role!r} of ARGUS_DATABASE_URL is a superuser, so nothing would be "
            "append-only for it: use an ordinary role."
        )
    elif facts.role_is_owner:
        found.append(
            f"The role {role!r} of ARGUS_DATABASE_URL owns the database, or may act for who "
            "does, so nothing would be append-only for it: use another role for the application."
        )
    return found
