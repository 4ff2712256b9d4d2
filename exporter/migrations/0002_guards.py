"""What was exported is append-only like every other book, and goes with the note it is about."""

from __future__ import annotations

from django.db import migrations

TABLES = ("exporter_exportedfile",)


def forward() -> str:
    return "".join(
        f"ALTER TABLE {table} ADD CONSTRAINT {table}_note FOREIGN KEY (note_id)"
        f" REFERENCES memory_note (id) ON DELETE CASCADE;"
        f"CREATE TRIGGER argus_frozen BEFORE UPDATE OR DELETE ON {table}"
        f" FOR EACH ROW EXECUTE FUNCTION argus_frozen();"
        f"CREATE TRIGGER argus_no_truncate BEFORE TRUNCATE ON {table}"
        f" FOR EACH STATEMENT EXECUTE FUNCTION argus_no_truncate();"
        for table in TABLES
    )


def back() -> str:
    return "".join(
        f"DROP TRIGGER argus_frozen ON {table}; DROP TRIGGER argus_no_truncate ON {table};"
        f"ALTER TABLE {table} DROP CONSTRAINT {table}_note;"
        for table in TABLES
    )


class Migration(migrations.Migration):
    dependencies = [("exporter", "0001_initial"), ("memory", "0007_page_guards")]

    operations = [migrations.RunSQL(forward(), reverse_sql=back())]
