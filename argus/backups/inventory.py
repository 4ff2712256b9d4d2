"""What a database holds, told so that two of them can be compared: rows by hashes, rights by names.

Reads: every table of the schema public, the catalogue. Writes: nothing.
Knows nothing about files or dumps. Roles are named by what they are (owner, app, public), so that
a database under other roles compares equal.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import sql

#: Tables whose rows are in no backup.
# Why: whoever logged out since would be logged in again; everybody just logs in anew.
LEFT_OUT = ("django_session",)

#: How values are written while they are hashed, whatever the server's own taste.
TASTE = {
    "DateStyle": "ISO, MDY", "IntervalStyle": "postgres", "TimeZone": "UTC",
    "extra_float_digits": "1", "bytea_output": "hex",
}  # fmt: skip

TABLES = """
SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = 'public' AND c.relkind IN ('r', 'p')
  AND NOT EXISTS (SELECT 1 FROM pg_depend d WHERE d.classid = 'pg_class'::regclass
                  AND d.objid = c.oid AND d.deptype = 'e')
ORDER BY c.relname COLLATE "C"
"""

# Why a sum: rows come in any order, and nothing has to be sorted or held.
ROWS = """
SELECT count(*), coalesce(sum(('x' || left(h, 16))::bit(64)::bigint::numeric), 0)::text,
       coalesce(sum(('x' || substr(h, 17, 16))::bit(64)::bigint::numeric), 0)::text
FROM (SELECT encode(sha256(convert_to(t::text, 'UTF8')), 'hex') AS h FROM public.{table} t) hashed
"""

RIGHTS = """
WITH grants (thing, grantee, privilege) AS (
    SELECT CASE c.relkind WHEN 'S' THEN 'sequence ' ELSE 'table ' END || c.relname,
           x.grantee, x.privilege_type
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace,
         aclexplode(coalesce(c.relacl, acldefault(
             CASE c.relkind WHEN 'S' THEN 's' ELSE 'r' END::"char", c.relowner))) x
    WHERE n.nspname = 'public' AND c.relkind IN ('r', 'p', 'v', 'm', 'S')
  UNION ALL
    SELECT 'column ' || c.relname || '.' || a.attname, x.grantee, x.privilege_type
    FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
         JOIN pg_namespace n ON n.oid = c.relnamespace, aclexplode(a.attacl) x
    WHERE n.nspname = 'public' AND NOT a.attisdropped
  UNION ALL
    SELECT 'function ' || p.oid::regprocedure, x.grantee, x.privilege_type
    FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace,
         aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) x
    WHERE n.nspname = 'public' AND NOT EXISTS (
        SELECT 1 FROM pg_depend d WHERE d.classid = 'pg_proc'::regclass
          AND d.objid = p.oid AND d.deptype = 'e')
)
SELECT thing || ': ' || CASE grants.grantee WHEN 0 THEN 'public' ELSE 'app' END || ' ' || privilege
FROM grants LEFT JOIN pg_roles r ON r.oid = grants.grantee
WHERE grants.grantee = 0 OR r.rolname = %s
"""

FUNCTIONS = """
SELECT p.oid::regprocedure::text FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
WHERE n.nspname = 'public' AND NOT EXISTS (
    SELECT 1 FROM pg_depend d WHERE d.classid = 'pg_proc'::regclass
      AND d.objid = p.oid AND d.deptype = 'e')
  AND NOT EXISTS (
    SELECT 1 FROM aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) x
    WHERE x.grantee = 0 AND x.privilege_type = 'EXECUTE')
ORDER BY 1
"""

# Identity columns and serials: the next number against the highest that is there.
NUMBERS = """
SELECT c.relname, a.attname, pg_get_serial_sequence(format('public.%I', c.relname), a.attname)
FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
     JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = 'public' AND c.relkind = 'r' AND a.attnum > 0 AND NOT a.attisdropped
  AND pg_get_serial_sequence(format('public.%I', c.relname), a.attname) IS NOT NULL
"""

Progress = Callable[[str], object]


@dataclass(frozen=True)
class Inventory:
    """`tables`: rows and hash of each, by name. `rights`: what the application and everybody may.
    `closed`: functions that not everybody may call. `migrations`: "app.name", as applied."""

    server: str
    extensions: dict[str, str]
    migrations: list[str]
    tables: dict[str, dict[str, Any]]
    rights: list[str]
    closed: list[str]

    @property
    def rows(self) -> int:
        return sum(table["rows"] for table in self.tables.values())


def take(at: psycopg.Connection, *, app: str, progress: Progress | None = None) -> Inventory:
    """The inventory of the connected database, in the transaction at hand. `app`: the role of the
    application there. `progress` hears of each table before it is read."""
    for name, value in TASTE.items():
        at.execute("SELECT set_config(%s, %s, true)", [name, value])
    names = [name for (name,) in at.execute(TABLES) if name not in LEFT_OUT]
    tables = {}
    for name in names:
        if progress is not None:
            progress(name)
        tables[name] = _table(at, name)
    version = at.execute("SHOW server_version").fetchone()
    migrated = "django_migrations" in tables
    applied = at.execute("SELECT app || '.' || name FROM django_migrations") if migrated else ()
    return Inventory(
        server=version[0].split()[0] if version else "",
        extensions=dict(at.execute("SELECT extname, extversion FROM pg_extension").fetchall()),
        migrations=sorted(one for (one,) in applied),
        tables=tables,
        rights=sorted(one for (one,) in at.execute(RIGHTS, [app])),
        closed=[one for (one,) in at.execute(FUNCTIONS)],
    )


def _table(at: psycopg.Connection, name: str) -> dict[str, Any]:
    row = at.execute(sql.SQL(ROWS).format(table=sql.Identifier(name))).fetchone()
    assert row is not None
    return {"rows": row[0], "hash": hashlib.sha256(":".join(map(str, row)).encode()).hexdigest()}


def other_tables(was: dict[str, dict[str, Any]], now: dict[str, dict[str, Any]]) -> list[str]:
    """A sentence for each table that differs. Pure."""
    found = []
    for name in sorted(was.keys() | now.keys()):
        before, after = was.get(name), now.get(name)
        if before == after:
            continue
        if before is None or after is None:
            found.append(f"{name} is {'new' if before is None else 'missing'}")
        elif before["rows"] != after["rows"]:
            found.append(f"{name} has {after['rows']} rows and had {before['rows']}")
        else:
            found.append(f"{name} has other contents")
    return found


def behind(at: psycopg.Connection) -> list[str]:
    """Tables whose next number is one that is there already: an insert would fail."""
    found = []
    for table, column, sequence in at.execute(NUMBERS).fetchall():
        query = sql.SQL(
            "SELECT coalesce(max({column}), 0), (SELECT CASE WHEN is_called THEN last_value"
            " ELSE last_value - 1 END FROM {sequence}) FROM public.{table}"
        ).format(
            column=sql.Identifier(column),
            table=sql.Identifier(table),
            sequence=sql.SQL(sequence),
        )
        row = at.execute(query).fetchone()
        if row is not None and row[1] < row[0]:
            found.append(table)
    return found
