"""What may be let go of a ledger after a time: by a function of its own, with a row on the ledger
of purges, and sums of each day that stay. And what the planner remembers, for whoever purged."""

from __future__ import annotations

from django.db import migrations

# What the planner remembers of a column are values of it, the longest among them.
ANALYZE = """
CREATE FUNCTION argus_analyze() RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    one record;
BEGIN
    FOR one IN SELECT c.oid::regclass::text AS name FROM pg_class c
        WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r'
          AND c.relowner = (SELECT oid FROM pg_roles WHERE rolname = current_user) ORDER BY 1
    LOOP
        EXECUTE format('ANALYZE %s', one.name);
    END LOOP;
END $$;

REVOKE EXECUTE ON FUNCTION argus_analyze() FROM PUBLIC;
"""


#: Ledger -> (table, what of a row may go, counts of its days: name -> an aggregate, or a column
#: whose values are counted by themselves).
LEDGERS = {
    "injection": ("memory_injection", "true", ("outcome", "mode"), {}),
    "receipt": (
        "memory_capturereceipt",
        # When a session ended stands nowhere else, and whoever makes the episodes anew asks.
        "session_end = '{}'",
        ("source",),
        {"seen": "sum(seen)", "stored": "sum(stored)", "duplicates": "sum(duplicates)"},
    ),
    "llm_call": (
        "memory_llmcall",
        "true",
        ("stage", "outcome", "model_real"),
        {
            "tokens_in": "sum(tokens_in)",
            "tokens_out": "sum(tokens_out)",
            "milliseconds": "sum(milliseconds)",
        },
    ),
    "segment_check": (
        "memory_segmentcheck",
        # A border of an open tail is looked at again, and known again by its row.
        "raw_item_id IN (SELECT t.raw_item_id FROM memory_episodeturn t)",
        ("check_kind", "outcome"),
        {"fired": "count(*) FILTER (WHERE fired)"},
    ),
    "stage_run": (
        "memory_stagerun",
        # What rows point at stays, and the last of each stage that ended well.
        """status <> 'running' AND finished_at IS NOT NULL AND id NOT IN (
            SELECT max(id) FROM memory_stagerun WHERE status = 'done' GROUP BY stage)
        """,
        ("stage", "status"),
        {},
    ),
}  # fmt: skip


# Runs that no row was made by: of whatever table, the database knows.
NAMED_RUNS = """
        FOR edge IN SELECT k.conrelid::regclass::text AS name, a.attname::text AS col
            FROM pg_constraint k JOIN pg_attribute a ON a.attrelid = k.conrelid
                AND a.attnum = k.conkey[1]
            WHERE k.contype = 'f' AND k.confrelid = 'memory_stagerun'::regclass
        LOOP
            EXECUTE format('SELECT ARRAY(SELECT unnest($1) EXCEPT SELECT %I FROM %s)',
                edge.col, edge.name) INTO going USING going;
        END LOOP;"""


def let_go() -> str:
    branches = []
    for ledger, (table, which, by, sums) in LEDGERS.items():
        at = "started_at" if ledger == "stage_run" else "created_at"
        named_runs = NAMED_RUNS if ledger == "stage_run" else ""
        parts = ["SELECT day, 'rows' AS name, count(*) AS n FROM gone GROUP BY day"]
        parts += [
            f"SELECT day, '{name}', {made} FROM gone GROUP BY day" for name, made in sums.items()
        ]
        parts += [
            f"SELECT day, '{column} ' || {column}, count(*) FROM gone"
            f" WHERE {column} <> '' GROUP BY day, {column}"
            for column in by
        ]
        counts = "\n            UNION ALL ".join(parts)
        branches.append(f"""
    IF name = '{ledger}' THEN
        going := ARRAY(
            SELECT one.id FROM {table} one WHERE one.{at} < since AND ({which}));{named_runs}
        FOR edge IN
            WITH gone AS (SELECT (x.{at} AT TIME ZONE 'UTC')::date AS day, x.* FROM {table} x
                WHERE x.id = ANY(going)),
            counted AS ({counts})
            SELECT c.day AS day, jsonb_object_agg(c.name, c.n) AS told FROM counted c GROUP BY c.day
        LOOP
            days := days || jsonb_build_object(edge.day::text, edge.told);
        END LOOP;
    END IF;""")
    known = ", ".join(f"'{ledger}'" for ledger in LEDGERS)
    cases = " ".join(f"WHEN '{ledger}' THEN '{table}'" for ledger, (table, *_) in LEDGERS.items())
    return f"""
CREATE FUNCTION argus_let_go(name text, before date, actor text, reason text) RETURNS jsonb
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
#variable_conflict use_column
DECLARE
    ledger bigint;
    going bigint[] := '{{}}';
    since timestamptz := before::timestamp AT TIME ZONE 'UTC';
    days jsonb := '{{}}';
    counts jsonb := '{{}}';
    told jsonb;
    edge record;
    many bigint;
BEGIN
    IF coalesce(actor, '') !~ '[^[:space:]]' OR coalesce(reason, '') !~ '[^[:space:]]' THEN
        RAISE EXCEPTION 'a purge names who and why';
    END IF;
    IF name NOT IN ({known}) THEN
        RAISE EXCEPTION 'there is no ledger % that may be let go', name;
    END IF;
    IF before > (now() AT TIME ZONE 'UTC')::date THEN
        RAISE EXCEPTION 'a day that is not over has no sum';
    END IF;
    PERFORM pg_advisory_xact_lock(hashtext('argus_purge'));
    INSERT INTO memory_purgeledger (actor, reason, counts, hashes, files_pending, created_at)
        VALUES (actor, reason, '{{}}', '[]', false, now()) RETURNING id INTO ledger;
{"".join(branches)}
    INSERT INTO memory_ledgerday AS old (ledger, day, counts, created_at)
        SELECT argus_let_go.name, d.key::date, d.value, now() FROM jsonb_each(days) d
    ON CONFLICT (ledger, day) DO UPDATE SET counts = (
        SELECT jsonb_object_agg(k.key, coalesce((old.counts ->> k.key)::bigint, 0)
                + coalesce((excluded.counts ->> k.key)::bigint, 0))
        FROM (SELECT jsonb_object_keys(old.counts) AS key
              UNION SELECT jsonb_object_keys(excluded.counts)) k);
    IF name = 'injection' THEN
        -- What somebody said of a note holds without the recall that they said it of.
        UPDATE memory_feedback SET injection_id = NULL
            WHERE injection_id = ANY(going);
        FOR edge IN SELECT k.conrelid::regclass::text AS name, a.attname::text AS col
            FROM pg_constraint k JOIN pg_attribute a ON a.attrelid = k.conrelid
                AND a.attnum = k.conkey[1]
            WHERE k.contype = 'f' AND k.confrelid = 'memory_injection'::regclass
              AND k.conrelid <> 'memory_feedback'::regclass
        LOOP
            EXECUTE format('DELETE FROM %s WHERE %I = ANY($1)',
                edge.name, edge.col) USING going;
            GET DIAGNOSTICS many = ROW_COUNT;
            counts := argus_added(counts, edge.name, many);
        END LOOP;
    END IF;
    EXECUTE format('DELETE FROM %I WHERE id = ANY($1)', CASE name
        {cases} END)
        USING going;
    GET DIAGNOSTICS many = ROW_COUNT;
    counts := argus_added(counts, name, many);
    told := jsonb_build_object('ledger_of', name, 'before', before, 'tables', counts);
    UPDATE memory_purgeledger SET counts = told WHERE id = ledger;
    RETURN told || jsonb_build_object('ledger', ledger, 'days', days);
END $$;

REVOKE EXECUTE ON FUNCTION argus_let_go(text, date, text, text) FROM PUBLIC;
"""


UNDO = "DROP FUNCTION argus_let_go(text, date, text, text); DROP FUNCTION argus_analyze();"


class Migration(migrations.Migration):
    dependencies = [("memory", "0012_emission_reference")]

    operations = [migrations.RunSQL(ANALYZE + let_go(), reverse_sql=UNDO)]
