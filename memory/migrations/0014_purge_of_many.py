"""A purge of many rows takes as long as they are many, and empties what it could not: the reason of
an earlier purge, and what a run reported."""

from __future__ import annotations

from importlib import import_module

from django.db import migrations

PURGE = import_module("memory.migrations.0011_purge")

# Why not `units ?| names`: it compares each unit with each name, and a session has thousands.
REPLIES = """id IN (SELECT reply.id FROM memory_modelreply reply
            CROSS JOIN LATERAL jsonb_array_elements_text(
                CASE jsonb_typeof(reply.units) WHEN 'array' THEN reply.units ELSE '[]' END) AS unit
            WHERE unit IN (SELECT unnest(names || judged)))"""

# Counts, checks and units are what others go by; what has a space in it, or letters and digits, may
# be a text. `argus_findings` would be a lie without them.
TERSE = """
CREATE FUNCTION argus_terse(value jsonb) RETURNS jsonb LANGUAGE sql IMMUTABLE
SET search_path = public, pg_temp AS $$ SELECT CASE jsonb_typeof(value)
    WHEN 'object' THEN (SELECT coalesce(jsonb_object_agg(one.key, argus_terse(one.value)), '{}')
        FROM jsonb_each(value) one WHERE one.key ~ '^[a-z_]{1,30}$')
    WHEN 'array' THEN (SELECT coalesce(jsonb_agg(argus_terse(one.value) ORDER BY one.at), '[]')
        FROM jsonb_array_elements(value) WITH ORDINALITY AS one (value, at))
    WHEN 'string' THEN CASE
        WHEN value #>> '{}' ~ '^([a-z_-]{0,15}|[a-z]{1,10}:[0-9a-f-]{1,64}|[-0-9T:.+Z]{1,40})$'
        THEN value ELSE '""' END
    ELSE value END $$;

REVOKE EXECUTE ON FUNCTION argus_terse(jsonb) FROM PUBLIC;
"""

RUN = "error = '', progress = '{}'"
RUN_TERSE = f"{RUN}, report = argus_terse(report)"

# It says who and when, and what went; a ledger's row without a reason would be refused.
REASONS = """    IF rows ? 'memory_purgeledger' THEN
        UPDATE memory_purgeledger SET reason = '[emptied]' WHERE id <> ledger
            AND id::text IN (SELECT jsonb_array_elements_text(rows -> 'memory_purgeledger'));
        GET DIAGNOSTICS many = ROW_COUNT;
        counts := argus_added(counts, 'memory_purgeledger (emptied)', many);
    END IF;
"""
LAST = "    -- What is distilled again:"

# Why: a plan for whatever arrays come looks through them once for each row; one that is made for
# these arrays looks up. Postgres makes the first from the sixth call of a connection on.
FUNCTIONS = (PURGE.SIGNATURE, "argus_purge_reach(bigint[], jsonb)")


def purge() -> str:
    """The function as 0011 made it, but for these."""
    made: str = PURGE.purge()
    made = made[made.index("CREATE FUNCTION argus_purge(") : made.index("REVOKE EXECUTE")]
    for old, new in (
        ("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION"),
        ("units ?| (names || judged)", REPLIES),
        (RUN, RUN_TERSE),
        (LAST, REASONS + LAST),
    ):
        assert made.count(old) == 1, old
        made = made.replace(old, new)
    return made


def before() -> str:
    made: str = PURGE.purge()
    made = made[made.index("CREATE FUNCTION argus_purge(") : made.index("REVOKE EXECUTE")]
    return (
        made.replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION")
        + "".join(f"ALTER FUNCTION {one} RESET plan_cache_mode;" for one in FUNCTIONS)
        + "DROP FUNCTION argus_terse(jsonb);"
    )


PLANS = "".join(
    f"ALTER FUNCTION {one} SET plan_cache_mode = force_custom_plan;\n" for one in FUNCTIONS
)


class Migration(migrations.Migration):
    dependencies = [("memory", "0013_let_go")]

    operations = [migrations.RunSQL(TERSE + purge() + PLANS, reverse_sql=before())]
