"""What the database refuses: the table of frozen tables, and the grants that follow from it.

Reads: nothing. Writes: grants, as the owner, after every migrate.
The triggers stand in migration 0002; a test holds them, the grants and this table together.
"""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
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
    "recall_calibration": (),
    "recall_impact": (),
    "memory_purgeledger": (),
    "memory_dedupverdict": ("status", "decided_by_id", "decided_at"),
    "memory_stagerun": ("status", "finished_at", "report", "error", "heartbeat_at"),
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
    existing = set(connection.introspection.table_names())
    plain = [
        "GRANT USAGE ON SCHEMA public TO {app}",
        "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {app}",
        "GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA public TO {app}",
        "ALTER DEFAULT PRIVILEGES IN SCHEMA public"
        " GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO {app}",
        "ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT USAGE, SELECT ON SEQUENCES TO {app}",
        "GRANT EXECUTE ON FUNCTION argus_purge(bigint[], text, text) TO {app}",
    ]
    composed = [sql.SQL(text).format(app=app) for text in plain]
    for table, columns in FROZEN.items():
        if table not in existing:
            continue  # `migrate memory` alone makes no table of another app.
        named = {"app": app, "table": sql.Identifier(table)}
        composed.append(
            sql.SQL("REVOKE UPDATE, DELETE, TRUNCATE ON {table} FROM {app}").format(**named)
        )
        if columns:
            listed = sql.SQL(", ").join(map(sql.Identifier, columns))
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
