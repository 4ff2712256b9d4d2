"""What people say stands on notes and raw items: append-only, and gone when those are purged."""

from __future__ import annotations

from importlib import import_module

from django.db import migrations

#: Table -> (column, table it stands on, what happens when that is purged).
STANDS_ON = (
    ("memory_pin", "note_id", "memory_note", "CASCADE"),
    ("memory_rejectiondecision", "rejection_id", "memory_gaterejection", "CASCADE"),
    ("memory_rejectiondecision", "note_id", "memory_note", "CASCADE"),
    # Only hashes are left of it, and what nobody wants to learn is not to be learned again.
    ("memory_rejectedfact", "rejection_id", "memory_gaterejection", "SET NULL"),
    ("memory_taskitem", "raw_item_id", "memory_rawitem", "CASCADE"),
    ("memory_taskevent", "raw_item_id", "memory_rawitem", "CASCADE"),
    ("memory_taskevent", "item_id", "memory_taskitem", "CASCADE"),
)

#: The frozen tables that are new, and the columns of them that may change.
NEW = {
    "memory_act": (),
    "memory_rejectiondecision": (),
    "memory_taskitem": (),
    "memory_taskevent": (),
    "memory_proposal": ("status", "decided_by_id", "decided_at"),
    # Whoever purges the refusal that it came of leaves the hashes alone, with nothing to point to.
    "memory_rejectedfact": ("lifted_at", "rejection_id"),
}

RUN_BEFORE = ("status", "finished_at", "report", "error", "heartbeat_at")
RUN_NOW = (*RUN_BEFORE, "progress", "cancel_asked_at")

# What was decided before there was one list of it.
BACKFILL = """
INSERT INTO memory_act
    (principal_id, verb, kind, reference, reason, detail, door, created_at)
SELECT principal_id, action, 'verdict', verdict_id::text, reason, '{}', 'command', created_at
    FROM memory_decision ORDER BY id;
"""

# What was said of a thing that is purged may quote it.
PURGE_MORE = """
    DELETE FROM memory_act WHERE (kind = 'note' AND reference = ANY(gone::text[]))
        OR (kind = 'verdict' AND reference = ANY(verdicts::text[]))
        OR (kind = 'feed' AND reference = ANY(gone::text[]))
        OR (kind = 'unit' AND reference = ANY(names))
        OR (kind = 'rejection' AND reference IN (
            SELECT id::text FROM memory_gaterejection
            WHERE episode_id = ANY(touched) OR raw_item_id = ANY(items)))
        OR (kind = 'task' AND reference IN (
            SELECT id::text FROM memory_taskitem WHERE raw_item_id = ANY(items)));
    DELETE FROM memory_proposal WHERE unit = ANY(names);
    DELETE FROM memory_note WHERE id = ANY(gone);
"""
NOTES = "    DELETE FROM memory_note WHERE id = ANY(gone);\n"

# Who edited a note said mostly its words again: what they wrote for it goes as well, and what was
# written for that.
EDITS = """
    LOOP
        edits := ARRAY(
            SELECT DISTINCT substr(heir.unit_key, 6)::bigint
            FROM memory_dedupverdict v
            JOIN memory_note heir ON heir.id = v.note_id AND heir.unit_key LIKE 'item:%'
            WHERE v.verdict = 'refine' AND v.model_real = 'person'
              AND NOT substr(heir.unit_key, 6)::bigint = ANY(items)
              AND v.target_id IN (
                  SELECT note_id FROM memory_evidence WHERE raw_item_id = ANY(items)));
        EXIT WHEN cardinality(edits) = 0;
        items := items || edits;
    END LOOP;
"""
BEGINS = "    SELECT coalesce(jsonb_agg(sha256 ORDER BY id), '[]') INTO hashes\n"
DECLARES = "    ledger bigint;\n"


def cascades() -> str:
    return "".join(
        f"ALTER TABLE {table} ADD CONSTRAINT {table}_{column} FOREIGN KEY ({column})"
        f" REFERENCES {other} (id) ON DELETE {effect};"
        for table, column, other, effect in STANDS_ON
    )


def uncascades() -> str:
    return "".join(
        f"ALTER TABLE {table} DROP CONSTRAINT {table}_{column};"
        for table, column, _, _ in STANDS_ON
    )


def frozen(table: str, *columns: str) -> str:
    arguments = ", ".join(f"'{column}'" for column in columns)
    return (
        f"CREATE TRIGGER argus_frozen BEFORE UPDATE OR DELETE ON {table}"
        f" FOR EACH ROW EXECUTE FUNCTION argus_frozen({arguments});"
    )


def whole(table: str) -> str:
    return (
        f"CREATE TRIGGER argus_no_truncate BEFORE TRUNCATE ON {table}"
        f" FOR EACH STATEMENT EXECUTE FUNCTION argus_no_truncate();"
    )


def purge() -> str:
    """The purge function as it was, and what is new."""
    before: str = import_module("memory.migrations.0002_guards").PURGE
    function = before.partition("REVOKE")[0]
    for old, new in (
        ("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION"),
        (DECLARES, f"{DECLARES}    edits bigint[];\n"),
        (BEGINS, EDITS.lstrip("\n") + BEGINS),
        (NOTES, PURGE_MORE),
    ):
        assert function.count(old) == 1
        function = function.replace(old, new)
    return function


def unpurge() -> str:
    before: str = import_module("memory.migrations.0002_guards").PURGE
    return before.partition("REVOKE")[0].replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION")


FORWARD = (
    cascades()
    + "".join(frozen(table, *columns) + whole(table) for table, columns in NEW.items())
    + "DROP TRIGGER argus_frozen ON memory_stagerun;"
    + frozen("memory_stagerun", *RUN_NOW)
    + BACKFILL
    + purge()
)

BACK = (
    unpurge()
    + "DROP TRIGGER argus_frozen ON memory_stagerun;"
    + frozen("memory_stagerun", *RUN_BEFORE)
    + "".join(
        f"DROP TRIGGER argus_frozen ON {table}; DROP TRIGGER argus_no_truncate ON {table};"
        for table in NEW
    )
    + uncascades()
)


class Migration(migrations.Migration):
    dependencies = [("memory", "0006_pages")]

    operations = [migrations.RunSQL(FORWARD, reverse_sql=BACK)]
