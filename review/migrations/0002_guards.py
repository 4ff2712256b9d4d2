"""Ratings and draws are append-only, and go with the note that they are about."""

from __future__ import annotations

from django.db import migrations

FROZEN = ("review_rating", "review_draw")
STANDS_ON = ("review_card", *FROZEN)


def forward() -> str:
    return "".join(
        f"ALTER TABLE {table} ADD CONSTRAINT {table}_note FOREIGN KEY (note_id)"
        f" REFERENCES memory_note (id) ON DELETE CASCADE;"
        for table in STANDS_ON
    ) + "".join(
        f"CREATE TRIGGER argus_frozen BEFORE UPDATE OR DELETE ON {table}"
        f" FOR EACH ROW EXECUTE FUNCTION argus_frozen();"
        f"CREATE TRIGGER argus_no_truncate BEFORE TRUNCATE ON {table}"
        f" FOR EACH STATEMENT EXECUTE FUNCTION argus_no_truncate();"
        for table in FROZEN
    )


def back() -> str:
    return "".join(
        f"DROP TRIGGER argus_frozen ON {table}; DROP TRIGGER argus_no_truncate ON {table};"
        for table in FROZEN
    ) + "".join(f"ALTER TABLE {table} DROP CONSTRAINT {table}_note;" for table in STANDS_ON)


class Migration(migrations.Migration):
    dependencies = [("review", "0001_initial"), ("memory", "0007_page_guards")]

    operations = [migrations.RunSQL(forward(), reverse_sql=back())]
