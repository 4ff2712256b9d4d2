"""What waits for a stage is kept by the database: to find it, stages went through all there is."""

from __future__ import annotations

import django.db.models.deletion
from django.db import migrations, models

#: Thing -> its rows of what waits, the column of both that names it, and what of it may be missing:
#: word -> (table of the row that is missing, of which things).
WAITS = {
    "memory_note": (
        "memory_waitingnote",
        "note_id",
        {"text": ("memory_searchtext", "true"), "verdict": ("memory_dedupverdict", "true")},
    ),
    "memory_rawitem": (
        "memory_waitingitem",
        "raw_item_id",
        {
            "text": ("memory_searchtext", "true"),
            "vector": ("memory_turnvector", "true"),
            "distilled": (
                "memory_distilleditem",
                "thing.kind IN ('document', 'event', 'synthesis')",
            ),
        },
    ),
}


def enter(thing: str, word: str, source: str) -> str:
    """The statement that enters what waits, of the things that `source` names."""
    waiting, column, lacks = WAITS[thing]
    made, which = lacks[word]
    return (
        f"INSERT INTO public.{waiting} (lacks, {column}) SELECT DISTINCT '{word}', thing.id"
        f" FROM {source} WHERE {which} AND NOT EXISTS (SELECT FROM public.{made} made"
        f" WHERE made.{column} = thing.id) ON CONFLICT DO NOTHING;"
    )


def function(name: str, statements: list[str]) -> str:
    # Nested loops: a plan that was made when much waited would go through all that ever does.
    body = "\n    ".join(statements)
    return f"""
CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, public, pg_temp SET enable_hashjoin = off SET enable_mergejoin = off
AS $$
BEGIN
    {body}
    RETURN NULL;
END $$;
"""


def trigger(name: str, table: str, event: str) -> str:
    rows = "NEW" if event == "INSERT" else "OLD"
    return (
        f"CREATE TRIGGER {name} AFTER {event} ON {table} REFERENCING {rows} TABLE AS changed"
        f" FOR EACH STATEMENT EXECUTE FUNCTION {name}_{table.removeprefix('memory_')}();\n"
    )


def triggers() -> str:
    """Whatever order rows come and go in, what waits is what lacks its row."""
    came: dict[str, list[str]] = {}
    went: dict[str, list[str]] = {}
    for thing, (waiting, column, lacks) in WAITS.items():
        came[thing] = [enter(thing, word, "changed AS thing") for word in lacks]
        went[thing] = [
            f"DELETE FROM public.{waiting} w USING changed WHERE w.lacks = '{word}'"
            f" AND w.{column} = changed.id;"
            for word in lacks
        ]
        for word, (made, _) in lacks.items():
            came.setdefault(made, []).append(
                f"DELETE FROM public.{waiting} w USING changed WHERE w.lacks = '{word}'"
                f" AND w.{column} = changed.{column};"
            )
            source = f"changed JOIN public.{thing} thing ON thing.id = changed.{column}"
            went.setdefault(made, []).append(enter(thing, word, source))
    return "".join(
        function(f"{name}_{table.removeprefix('memory_')}", statements)
        + trigger(name, table, event)
        for name, event, tables in (
            ("argus_came", "INSERT", came),
            ("argus_went", "DELETE", went),
        )
        for table, statements in tables.items()
    )


#: Those that wait when this is migrated.
FILL = "\n".join(
    enter(thing, word, f"public.{thing} thing")
    for thing, (_, _, lacks) in WAITS.items()
    for word in lacks
)

TABLES = sorted({*WAITS, *(made for _, _, lacks in WAITS.values() for made, _ in lacks.values())})

UNDO = "".join(
    f"DROP FUNCTION {name}_{table.removeprefix('memory_')}() CASCADE;\n"
    for name in ("argus_came", "argus_went")
    for table in TABLES
)

# What waits comes and goes: a few thousand rows that went are all there is to read over.
TIDY = "".join(
    f"ALTER TABLE {waiting} SET (autovacuum_vacuum_scale_factor = 0,"
    " autovacuum_vacuum_threshold = 1000, autovacuum_analyze_scale_factor = 0,"
    " autovacuum_analyze_threshold = 1000);\n"
    for waiting, _, _ in WAITS.values()
)


def waiting(name: str, thing: str) -> migrations.CreateModel:
    key = models.CompositePrimaryKey(
        "lacks", thing, blank=True, editable=False, primary_key=True, serialize=False
    )
    of = models.ForeignKey(
        db_constraint=False,
        db_index=False,
        on_delete=django.db.models.deletion.DO_NOTHING,
        related_name="waits",
        to=f"memory.{thing.replace('_', '')}",
    )
    return migrations.CreateModel(
        name=name, fields=[("pk", key), ("lacks", models.TextField()), (thing, of)]
    )


class Migration(migrations.Migration):
    dependencies = [("memory", "0014_purge_of_many")]

    operations = [
        waiting("WaitingNote", "note"),
        waiting("WaitingItem", "raw_item"),
        migrations.RunSQL(triggers() + TIDY, reverse_sql=UNDO),
        migrations.RunSQL(FILL, reverse_sql=migrations.RunSQL.noop),
    ]
