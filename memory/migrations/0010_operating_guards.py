"""Findings, proofs of purges and the days of ledgers are append-only like every other book."""

from __future__ import annotations

from django.db import migrations

TABLES = ("memory_finding", "memory_purgeproof", "memory_ledgerday")


def forward() -> str:
    return "".join(
        f"CREATE TRIGGER argus_frozen BEFORE UPDATE OR DELETE ON {table}"
        f" FOR EACH ROW EXECUTE FUNCTION argus_frozen();"
        f"CREATE TRIGGER argus_no_truncate BEFORE TRUNCATE ON {table}"
        f" FOR EACH STATEMENT EXECUTE FUNCTION argus_no_truncate();"
        for table in TABLES
    )


def back() -> str:
    return "".join(
        f"DROP TRIGGER argus_frozen ON {table}; DROP TRIGGER argus_no_truncate ON {table};"
        for table in TABLES
    )


class Migration(migrations.Migration):
    dependencies = [("memory", "0009_operating")]

    operations = [migrations.RunSQL(forward(), reverse_sql=back())]
