"""What the database refuses: the table of frozen tables, the grants that follow from it, and what
the functions and triggers say that hold it.

Reads: the database's catalog. Writes: grants, as the owner, after every migrate.
The triggers stand in migration 0002; a test holds them, the grants and this table together.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Any

from django.conf import settings
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.operations import RunSQL
from psycopg import sql

#: Frozen table -> the columns of it that may change. Empty: the whole row is frozen.
# Why: an audit is worth what cannot be rewritten; what may change is what happens *to* a row later.
FROZEN: dict[str, tuple[str, ...]] = {
    "memory_rawitem": (),
    "memory_capturereceipt": (),
    "memory_emission": (),
    "memory_segmentcheck": (),
    "memory_attribution": (),
    "memory_evidence": (),
    "memory_gaterejection": (),
    "memory_distillfailure": (),
    "memory_injection": (),
    "memory_llmcall": (),
    "memory_modelreply": (),
    "memory_decision": (),
    "memory_feedback": (),
    "memory_act": (),
    "memory_proposal": ("status", "decided_by_id", "decided_at"),
    "memory_rejectedfact": ("lifted_at", "rejection_id"),
    "memory_rejectiondecision": (),
    "memory_taskitem": (),
    "memory_taskevent": (),
    "review_rating": (),
    "review_draw": (),
    "recall_calibration": (),
    "recall_impact": (),
    "exporter_exportedfile": (),
    "memory_finding": (),
    "memory_purgeledger": (),
    "memory_purgeproof": (),
    "memory_ledgerday": (),
    "memory_dedupverdict": ("status", "decided_by_id", "decided_at"),
    "memory_stagerun": (
        "status",
        "finished_at",
        "report",
        "error",
        "heartbeat_at",
        "progress",
        "cancel_asked_at",
    ),
    "memory_note": (
        "deleted_at",
        "retired_reason",
        "valid_to",
        "invalidated_at",
        "confidence",
        "embedding",
        "embedding_model",
        "embedded_at",
    ),
}

#: Tables the application may only read: the purge function alone writes the one, migrate the other.
READ_ONLY = ("memory_purgeledger", "django_migrations")

#: Functions of ours that the application calls: the only ways past the triggers, a look at what
#: one of them would take, and ANALYZE.
FUNCTIONS = ("argus_purge", "argus_purge_reach", "argus_let_go", "argus_analyze")


def grant(**kwargs: Any) -> None:
    """Give the application's role what it may do, and nothing more (post_migrate of memory)."""
    connection = connections[kwargs["using"]]
    role = settings.ARGUS_APP_ROLE
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_user")
        if cursor.fetchone()[0] == role:
            return  # One role for everything: the doctor says what that costs.
        for statement in statements(role, connection):
            cursor.execute(statement)


def statements(role: str, connection: BaseDatabaseWrapper) -> list[sql.Composed]:
    """The grants in order, as SQL: everything on state tables, the frozen ones narrowed."""
    app = sql.Identifier(role)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT table_name, array_agg(column_name::text) FROM information_schema.columns"
            " WHERE table_schema = 'public' GROUP BY table_name"
        )
        existing: dict[str, list[str]] = dict(cursor.fetchall())
    plain = [
        "GRANT USAGE ON SCHEMA public TO {app}",
        "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {app}",
        "GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA public TO {app}",
        "ALTER DEFAULT PRIVILEGES IN SCHEMA public"
        " GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO {app}",
        "ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT USAGE, SELECT ON SEQUENCES TO {app}",
    ]
    composed = [sql.SQL(text).format(app=app) for text in plain]
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT oid::regprocedure::text FROM pg_proc"
            " WHERE pronamespace = 'public'::regnamespace AND proname = ANY(%s) ORDER BY 1",
            [list(FUNCTIONS)],
        )
        # As they stand now: `migrate memory 0002` has one, with other arguments.
        composed += [
            sql.SQL("GRANT EXECUTE ON FUNCTION {function} TO {app}").format(
                function=sql.SQL(signature), app=app
            )
            for (signature,) in cursor.fetchall()
        ]
    for table, columns in FROZEN.items():
        if table not in existing:
            continue  # `migrate memory` alone makes no table of another app,
        named = {"app": app, "table": sql.Identifier(table)}
        composed.append(
            sql.SQL("REVOKE UPDATE, DELETE, TRUNCATE ON {table} FROM {app}").format(**named)
        )
        if made := [column for column in columns if column in existing[table]]:
            # ... and `migrate memory 0002` not all columns of its own.
            listed = sql.SQL(", ").join(map(sql.Identifier, made))
            composed.append(
                sql.SQL("GRANT UPDATE ({columns}) ON {table} TO {app}").format(
                    columns=listed, **named
                )
            )
    composed += [
        sql.SQL("REVOKE INSERT, UPDATE, DELETE, TRUNCATE ON {table} FROM {app}").format(
            app=app, table=sql.Identifier(table)
        )
        for table in READ_ONLY
        if table in existing
    ]
    return composed


def missing_triggers(connection: BaseDatabaseWrapper) -> list[str]:
    """Frozen tables whose row or TRUNCATE trigger is absent or disabled; for doctor and verify."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT c.relname, t.tgname FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid"
            " WHERE t.tgname IN ('argus_frozen', 'argus_no_truncate') AND t.tgenabled IN ('O', 'A')"
        )
        standing = set(cursor.fetchall())
    wanted = ((table, name) for table in FROZEN for name in ("argus_frozen", "argus_no_truncate"))
    return sorted(f"{table}.{name}" for table, name in wanted if (table, name) not in standing)


@dataclass(frozen=True)
class Trigger:
    """What a trigger of ours is: its kind as `pg_trigger.tgtype` has it, its function, and the
    columns that it lets through."""

    kind: int
    function: str
    columns: frozenset[str] = frozenset()


#: As pg_trigger.tgtype: before each row that goes or changes; before a TRUNCATE; before each row
#: that goes; after rows that came; after rows that went.
BEFORE_CHANGES, BEFORE_TRUNCATE, BEFORE_DELETE = 1 | 2 | 8 | 16, 2 | 32, 1 | 2 | 8
AFTER_INSERT, AFTER_DELETE = 4, 8

#: Tables by whose rows the database knows what waits, and what for.
COUNTED_ON = (
    "memory_dedupverdict", "memory_distilleditem", "memory_note", "memory_rawitem",
    "memory_searchtext", "memory_turnvector",
)  # fmt: skip


def wanted_triggers() -> dict[tuple[str, str], Trigger]:
    """Every trigger that there must be, by (table, name)."""
    wanted = {
        ("memory_searchtext", "argus_unindex"): Trigger(BEFORE_DELETE, "argus_unindex"),
    }
    for table, columns in FROZEN.items():
        frozen = Trigger(BEFORE_CHANGES, "argus_frozen", frozenset(columns))
        wanted[table, "argus_frozen"] = frozen
        wanted[table, "argus_no_truncate"] = Trigger(BEFORE_TRUNCATE, "argus_no_truncate")
    for table in COUNTED_ON:
        short = table.removeprefix("memory_")
        wanted[table, "argus_came"] = Trigger(AFTER_INSERT, f"argus_came_{short}")
        wanted[table, "argus_went"] = Trigger(AFTER_DELETE, f"argus_went_{short}")
    return wanted


#: A function that is made, with its body, or dropped.
_STATEMENT = re.compile(
    r"CREATE (?:OR REPLACE )?FUNCTION (?P<made>argus_\w+)\(.*?\bAS (?P<quote>\$\w*\$)"
    r"(?P<body>.*?)(?P=quote)|DROP FUNCTION (?:IF EXISTS )?(?P<gone>argus_\w+)",
    re.DOTALL,
)


@cache
def bodies() -> dict[str, str]:
    """The functions that the migrations leave behind, by name, with the body that each has then."""
    loader = MigrationLoader(None, ignore_no_migrations=True)
    found: dict[str, str] = {}
    done: set[tuple[str, str]] = set()
    for leaf in sorted(loader.graph.leaf_nodes()):
        for key in loader.graph.forwards_plan(leaf):
            if key in done:
                continue
            done.add(key)
            for operation in loader.graph.nodes[key].operations:
                if isinstance(operation, RunSQL) and isinstance(operation.sql, str):
                    for one in _STATEMENT.finditer(operation.sql):
                        if one["gone"]:
                            found.pop(one["gone"], None)
                        else:
                            found[one["made"]] = one["body"]
    return found
