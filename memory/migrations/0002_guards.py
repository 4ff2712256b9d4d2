"""Append-only by trigger, and the one way past it: the purge function and its ledger row."""

from __future__ import annotations

from django.db import migrations

# The frozen tables as they stood when this migration was written (memory.guards has today's).
FROZEN = {
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
    "memory_purgeledger": (),
    "memory_dedupverdict": ("status", "decided_by_id", "decided_at"),
    "memory_stagerun": ("status", "finished_at", "report", "error", "heartbeat_at"),
    "memory_note": (
        "deleted_at", "retired_reason", "valid_to", "invalidated_at", "confidence",
        "embedding", "embedding_model", "embedded_at",
    ),
}  # fmt: skip

# A ledger row counts only for the transaction that wrote it. The time is compared as well,
# because transaction ids start again in a cluster that was restored from a dump. The ledger is
# named with its schema, and the search path is fixed: a temporary table of the same name is no
# ledger.
FUNCTIONS = """
ALTER TABLE memory_purgeledger
    ADD COLUMN xact xid8 NOT NULL DEFAULT pg_current_xact_id(),
    ADD COLUMN xact_at timestamptz NOT NULL DEFAULT transaction_timestamp();

CREATE FUNCTION argus_frozen() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
    IF TG_OP = 'DELETE' AND EXISTS (
        SELECT 1 FROM public.memory_purgeledger
        WHERE xact = pg_current_xact_id() AND xact_at = transaction_timestamp()
    ) THEN
        RETURN OLD;
    END IF;
    IF TG_OP = 'UPDATE' AND TG_NARGS > 0
        AND to_jsonb(NEW) - TG_ARGV::text[] = to_jsonb(OLD) - TG_ARGV::text[] THEN
        RETURN NEW;
    END IF;
    RAISE EXCEPTION '% on % is refused: the table is append-only and purge is the only way',
        TG_OP, TG_TABLE_NAME USING ERRCODE = 'insufficient_privilege';
END $$;

CREATE FUNCTION argus_no_truncate() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'TRUNCATE on % is refused: the table is append-only and purge is the only way',
        TG_TABLE_NAME USING ERRCODE = 'insufficient_privilege';
END $$;
"""

# Removes raw items and all that derives from them. Units that lose a turn lose their notes and
# kept replies and become pending again; a note with evidence elsewhere keeps that evidence only.
PURGE = """
CREATE FUNCTION argus_purge(items bigint[], actor text, reason text) RETURNS jsonb
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    ledger bigint;
    touched bigint[];
    names text[];
    judged text[];
    gone uuid[];
    verdicts bigint[];
    counts jsonb;
    hashes jsonb;
BEGIN
    IF coalesce(actor, '') !~ '[^[:space:]]' OR coalesce(reason, '') !~ '[^[:space:]]' THEN
        RAISE EXCEPTION 'a purge names who and why';
    END IF;
    SELECT coalesce(jsonb_agg(sha256 ORDER BY id), '[]') INTO hashes
        FROM memory_rawitem WHERE id = ANY(items);
    SELECT coalesce(array_agg(DISTINCT episode_id), '{}') INTO touched
        FROM memory_episodeturn WHERE raw_item_id = ANY(items);
    SELECT coalesce(array_agg(unit_key), '{}') INTO names
        FROM memory_episode WHERE id = ANY(touched);
    names := names || ARRAY(SELECT 'item:' || id FROM unnest(items) AS id);
    SELECT coalesce(array_agg(n.id), '{}') INTO gone FROM memory_note n
        WHERE (n.unit_key = ANY(names)
               OR n.id IN (SELECT note_id FROM memory_evidence WHERE raw_item_id = ANY(items)))
          AND NOT EXISTS (
              SELECT 1 FROM memory_evidence e
              LEFT JOIN memory_episodeturn t ON t.raw_item_id = e.raw_item_id
              WHERE e.note_id = n.id AND NOT (e.raw_item_id = ANY(items))
                AND (t.episode_id IS NULL OR NOT (t.episode_id = ANY(touched))));
    SELECT coalesce(array_agg(v.id), '{}') INTO verdicts FROM memory_dedupverdict v
        WHERE v.note_id = ANY(gone) OR v.target_id = ANY(gone) OR EXISTS (
            SELECT 1 FROM jsonb_array_elements(v.candidates) AS shown
            WHERE (shown ->> 'note')::uuid = ANY(gone));
    names := names || ARRAY(SELECT 'note:' || id FROM unnest(gone) AS id);
    -- What a judge said of a note that stays may quote one that goes: it is judged again.
    judged := ARRAY(SELECT 'note:' || v.note_id FROM memory_dedupverdict v
        WHERE v.id = ANY(verdicts));
    counts := jsonb_build_object('raw_items', jsonb_array_length(hashes),
        'episodes', cardinality(touched), 'notes', cardinality(gone),
        'verdicts', cardinality(verdicts));
    INSERT INTO memory_purgeledger (actor, reason, counts, hashes, files_pending, created_at)
        VALUES (actor, reason, counts, hashes, false, now()) RETURNING id INTO ledger;

    DELETE FROM memory_decision WHERE verdict_id = ANY(verdicts);
    DELETE FROM memory_dedupverdict WHERE id = ANY(verdicts);
    DELETE FROM memory_evidence WHERE raw_item_id = ANY(items)
        OR note_id = ANY(gone) OR parent_id = ANY(gone);
    DELETE FROM memory_note WHERE id = ANY(gone);
    DELETE FROM memory_gaterejection
        WHERE episode_id = ANY(touched) OR raw_item_id = ANY(items);
    DELETE FROM memory_distillfailure WHERE unit = ANY(names);
    DELETE FROM memory_modelreply WHERE units ?| (names || judged);
    DELETE FROM memory_claim WHERE unit = ANY(names);
    DELETE FROM memory_segmentcheck WHERE raw_item_id = ANY(items);
    DELETE FROM memory_turnvector WHERE raw_item_id = ANY(items);
    DELETE FROM memory_distilleditem WHERE raw_item_id = ANY(items);
    DELETE FROM memory_episodeturn WHERE raw_item_id = ANY(items);
    DELETE FROM memory_attribution WHERE episode_id = ANY(touched) AND NOT EXISTS (
        SELECT 1 FROM memory_episodeturn t WHERE t.episode_id = memory_attribution.episode_id);
    UPDATE memory_episode e SET distilled_at = NULL, turn_count = t.turns,
            first_item_id = t.first_id, last_item_id = t.last_id
        FROM (SELECT episode_id, count(*) AS turns,
                     (array_agg(raw_item_id ORDER BY position))[1] AS first_id,
                     (array_agg(raw_item_id ORDER BY position DESC))[1] AS last_id
              FROM memory_episodeturn WHERE episode_id = ANY(touched) GROUP BY episode_id) t
        WHERE e.id = t.episode_id;
    DELETE FROM memory_episode e WHERE e.id = ANY(touched) AND NOT EXISTS (
        SELECT 1 FROM memory_episodeturn t WHERE t.episode_id = e.id);
    DELETE FROM memory_rawitem WHERE id = ANY(items);
    RETURN counts || jsonb_build_object('ledger', ledger);
END $$;

REVOKE EXECUTE ON FUNCTION argus_purge(bigint[], text, text) FROM PUBLIC;
"""

UNDO = """
DROP FUNCTION argus_purge(bigint[], text, text);
DROP FUNCTION argus_frozen() CASCADE;
DROP FUNCTION argus_no_truncate() CASCADE;
ALTER TABLE memory_purgeledger DROP COLUMN xact, DROP COLUMN xact_at;
"""


def triggers() -> str:
    """One row trigger and one TRUNCATE trigger a table."""
    made = []
    for table, columns in FROZEN.items():
        arguments = ", ".join(f"'{column}'" for column in columns)
        made.append(
            f"CREATE TRIGGER argus_frozen BEFORE UPDATE OR DELETE ON {table}"
            f" FOR EACH ROW EXECUTE FUNCTION argus_frozen({arguments});"
            f"CREATE TRIGGER argus_no_truncate BEFORE TRUNCATE ON {table}"
            f" FOR EACH STATEMENT EXECUTE FUNCTION argus_no_truncate();"
        )
    return "".join(made)


class Migration(migrations.Migration):
    dependencies = [("memory", "0001_initial")]

    operations = [
        migrations.RunSQL(FUNCTIONS + triggers() + PURGE, reverse_sql=UNDO),
    ]
