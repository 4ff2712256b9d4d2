"""The doctor in the database: server, roles, throwaway databases, what it refuses, migrations,
clock, standby.

Asks, changes nothing. Knows nothing about what stands in the rows.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator

import psycopg
from django.conf import settings
from django.db import connection

from argus import owner, probes, scratch
from argus.doctoring.row import ANSWER_SECONDS, CONNECT_SECONDS, Row, bounded
from memory import guards, reading

#: Seconds by which the clocks of the database and of this machine may differ before somebody should
#: look, and before claims and schedules go wrong.
# Why: a lease lasts minutes and both clocks write into the same columns.
SKEW_SECONDS_FEW = 2
SKEW_SECONDS_MAX = 60

assert SKEW_SECONDS_FEW < SKEW_SECONDS_MAX


def server() -> Iterator[Row]:
    """The server, its extensions and the role that Argus has."""
    with bounded():
        facts = owner.look()
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT current_setting('server_version'), current_database(),"
                " pg_database_size(current_database())"
            )
            version, name, size = cursor.fetchone()
    where = "embedded" if settings.ARGUS.embedded else "ARGUS_DATABASE_URL"
    yield Row("database", "ok", f"{name} ({where}), {size / 1e6:,.0f} MB")
    found = owner.problems(facts)
    yield _judge("version", f"PostgreSQL {version}", found, "The server is")
    vector = facts.extensions.get("vector", "")
    yield _judge("extension", f"vector {vector}", found, "The extension vector")
    if "pg_trgm" not in facts.extensions:
        fix = "CREATE EXTENSION pg_trgm, as a superuser; names misspelt are found less without."
        yield Row("extension", "warn", "pg_trgm is missing.", fix)
    role = settings.ARGUS_APP_ROLE
    yield _judge("roles", f"{role} is neither owner nor superuser", found, "The role")
    if settings.ARGUS.embedded:
        yield Row(
            "roles",
            "ok",
            "Append-only binds Argus's own connections; any process of this user of the machine "
            "can still connect to the embedded server as superuser.",
        )


def _judge(name: str, well: str, found: list[str], begin: str) -> Row:
    for sentence in found:
        if sentence.startswith(begin):
            what, _, fix = sentence.partition(": ")
            return Row(name, "fail", f"{what}.", fix)
    return Row(name, "ok", well)


#: What each new database is a copy of.
TEMPLATE = "template1"

MAKER_SQL = """
SELECT r.rolname, r.rolsuper, r.rolcreatedb, (SELECT array_agg(extname::text) FROM pg_extension),
    (SELECT array_agg(DISTINCT name::text) FROM pg_available_extension_versions WHERE trusted)
FROM pg_roles r
WHERE r.rolname = %(owner)s OR %(owner)s = '' AND r.oid = (
    SELECT datdba FROM pg_database WHERE datname = %(database)s)
"""


def throwaway() -> Iterator[Row]:
    """Whether the owner can make the databases that `rebuild`, `eval` and `restore` work in."""
    told = settings.OWNER_DATABASE
    at = told or connection.settings_dict
    options = {"connect_timeout": CONNECT_SECONDS, **at["OPTIONS"]}
    values = {"owner": told["USER"] if told else "", "database": connection.settings_dict["NAME"]}
    try:
        asked = {**at, "NAME": TEMPLATE, "OPTIONS": options}
        with scratch.connected(asked) as template, template.transaction():
            template.execute(f"SET LOCAL statement_timeout = '{ANSWER_SECONDS}s'".encode())
            found = template.execute(MAKER_SQL, values).fetchone()
    except psycopg.OperationalError:
        # A pooler may lead to one database alone; whether another one answers is the row above.
        found = None
    if found is None:
        yield Row("throwaway", "ok", f"not looked at: nobody lets us into {TEMPLATE} here")
        return
    role, superuser, may_make, has, trusted = found
    at_hand = {*(has or ()), *(owner.EXTENSIONS if superuser else trusted or ())}
    yield judge_throwaway(str(role), may_make=superuser or may_make, at_hand=at_hand)


def judge_throwaway(role: str, *, may_make: bool, at_hand: Collection[str]) -> Row:
    """What it means that the owner may make databases, and has these extensions in them. Pure."""
    lacks = [name for name, needed in owner.EXTENSIONS.items() if needed and name not in at_hand]
    fixes = [] if may_make else [f"ALTER ROLE {role} CREATEDB"]
    fixes += [f"CREATE EXTENSION {name} in {TEMPLATE}" for name in lacks]
    if fixes:
        what = f"{role} cannot make a throwaway database: rebuild, eval and restore do not work."
        return Row("throwaway", "warn", what, f"Have a superuser run {', and '.join(fixes)}.")
    return Row("throwaway", "ok", f"{role} may make databases with all that is needed")


def migrations() -> Iterator[Row]:
    """Whether the tables are those of this code."""
    with bounded():
        waiting = probes.unapplied()
    if waiting:
        what = f"{len(waiting)} are not applied, the first is {waiting[0]}."
        yield Row("migrations", "fail", what, "Run manage.py migrate.")
    else:
        yield Row("migrations", "ok", "all applied")


def triggers() -> Iterator[Row]:
    """Whether every frozen table refuses to be rewritten."""
    with bounded():
        missing = guards.missing_triggers(connection)
    if missing:
        what = f"{len(missing)} are missing or switched off: {', '.join(missing[:3])}."
        fix = "Somebody could rewrite the record: find out who changed the schema, then restore it."
        yield Row("triggers", "fail", what, fix)
    else:
        yield Row("triggers", "ok", f"{len(guards.FROZEN)} tables refuse to be rewritten")


GRANTS_SQL = """
SELECT c.relname FROM pg_class c JOIN pg_roles r ON r.rolname = %(role)s
WHERE c.relnamespace = 'public'::regnamespace AND c.relname = ANY(%(tables)s)
    AND (c.relowner = r.oid OR has_table_privilege(r.oid, c.oid, 'UPDATE')
        OR has_table_privilege(r.oid, c.oid, 'DELETE')
        OR has_table_privilege(r.oid, c.oid, 'TRUNCATE'))
ORDER BY 1
"""


def grants() -> Iterator[Row]:
    """Whether the application's role may do no more to the record than it must."""
    values = {"role": settings.ARGUS_APP_ROLE, "tables": list(guards.FROZEN)}
    with bounded(), connection.cursor() as cursor:
        cursor.execute(GRANTS_SQL, values)
        wide = [name for (name,) in cursor.fetchall()]
    if wide:
        told = f"{len(wide)} frozen tables: {', '.join(wide[:3])}"
        what = f"{values['role']} owns or may rewrite {told}."
        fix = "Run manage.py migrate, which grants anew, and let another role own the tables."
        yield Row("grants", "fail", what, fix)
    else:
        yield Row("grants", "ok", f"{values['role']} may add to the record, and rewrite nothing")


def clock() -> Iterator[Row]:
    """Whether the database and this machine have the same time."""
    with bounded(), connection.cursor() as cursor:
        before = time.time()
        cursor.execute("SELECT extract(epoch FROM clock_timestamp())::float")
        theirs = float(cursor.fetchone()[0])
        after = time.time()
    yield judge_clocks(theirs - (before + after) / 2, (after - before) / 2)


def judge_clocks(skew_seconds: float, doubt_seconds: float) -> Row:
    """What it means that the database's clock is so far ahead, measured so well. Pure."""
    off = max(0.0, abs(skew_seconds) - doubt_seconds)
    way = "ahead of" if skew_seconds > 0 else "behind"
    what = f"The database's clock is {abs(skew_seconds):,.1f} s {way} this machine's."
    fix = "Run a time service (chrony, systemd-timesyncd) on both machines."
    if off > SKEW_SECONDS_MAX:
        return Row("clock", "fail", what, fix)
    if off > SKEW_SECONDS_FEW:
        return Row("clock", "warn", what, fix)
    return Row(
        "clock", "ok", f"the database and this machine agree to {abs(skew_seconds):.2f} s, in UTC"
    )


def standby() -> Iterator[Row]:
    """Where searches are read, where a standby is set."""
    read = reading.look()
    if read is None:
        return
    if read.server == "standby":
        yield Row("standby", "ok", "searches are read at the standby")
    else:
        fix = "See the standby's log; recall goes on at the primary."
        yield Row("standby", "warn", f"Searches are read at the primary: {read.why}.", fix)
