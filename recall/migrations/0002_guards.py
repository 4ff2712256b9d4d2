"""Calibrations and impacts are append-only, like every other book."""

from __future__ import annotations

from django.db import migrations

TABLES = ("recall_calibration", "recall_impact")


def triggers() -> str:
    return "".join(
        f"CREATE TRIGGER argus_frozen BEFORE UPDATE OR DELETE ON {table}"
        f" FOR EACH ROW EXECUTE FUNCTION argus_frozen();"
        f"CREATE TRIGGER argus_no_truncate BEFORE TRUNCATE ON {table}"
        f" FOR EACH STATEMENT EXECUTE FUNCTION argus_no_truncate();"
        for table in TABLES
    )


def undo() -> str:
    return "".join(
        f"DROP TRIGGER argus_frozen ON {table}; DROP TRIGGER argus_no_truncate ON {table};"
        for table in TABLES
    )


class Migration(migrations.Migration):
    dependencies = [("recall", "0001_initial"), ("memory", "0004_search_guards")]

    operations = [migrations.RunSQL(triggers(), reverse_sql=undo())]
