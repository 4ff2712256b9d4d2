"""A purge takes along all that derives, counts it by table, and empties what must stay.

A permission says who may purge on the pages.
"""

from __future__ import annotations

from importlib import import_module

from django.db import migrations

#: Rows that hold words of a purge by somebody's mouth, and are needed for what else they say: they
#: stay, and these columns are emptied.
# Why emptied: an injection counts in the share of recalls that found nothing, a receipt in what was
# captured, an act in who did what; none of them needs the words for it.
EMPTIED = {
    "memory_injection": (
        # What says how it was asked stays: whoever asks of the past is told of what is retired.
        "query = '', cwd = '', options = CASE jsonb_typeof(options) WHEN 'object' THEN"
        " (SELECT coalesce(jsonb_object_agg(key, value), '{}') FROM jsonb_each(options)"
        " WHERE key IN ('id', 'as_of', 'known_at', 'read')) ELSE '{}' END"
    ),
    "memory_act": "reason = '', detail = '{}'",
    "memory_decision": "reason = ''",
    "memory_rejectiondecision": "reason = ''",
    "memory_feedback": "reason = ''",
    "memory_dedupverdict": "reasoning = ''",
    "memory_stagerun": "error = '', progress = '{}'",
    "memory_claim": "parked_reason = ''",
    "memory_cooldown": "reason = ''",
    "memory_session": "ended_reason = ''",
    "memory_capturereceipt": (
        "refusals = CASE jsonb_typeof(refusals) WHEN 'array' THEN"
        " (SELECT coalesce(jsonb_agg(one - 'excerpt'), '[]')"
        " FROM jsonb_array_elements(refusals) AS one WHERE jsonb_typeof(one) = 'object')"
        " ELSE '[]' END, misses = '[]', client_range = '{}', session_end ="
        " CASE jsonb_typeof(session_end) WHEN 'object' THEN session_end - 'reason' ELSE '{}' END"
    ),
    "recall_calibration": "reason = ''",
}

#: Rows that are nothing without their words: they go.
DELETED = (
    "memory_gaterejection",
    "memory_distillfailure",
    "memory_modelreply",
    "memory_proposal",
    "memory_taskevent",
    "memory_taskitem",
    "django_session",
    "django_q_ormq",
    "django_q_task",
)

# As it was, but that a transaction with a row on the ledger may change what it may delete.
# Why: it could delete the row and write it anew, which is the same and harder to read.
FROZEN = """
CREATE OR REPLACE FUNCTION argus_frozen() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
    IF TG_OP = 'UPDATE' AND TG_NARGS > 0
        AND to_jsonb(NEW) - TG_ARGV::text[] = to_jsonb(OLD) - TG_ARGV::text[] THEN
        RETURN NEW;
    END IF;
    IF EXISTS (
        SELECT 1 FROM public.memory_purgeledger
        WHERE xact = pg_current_xact_id() AND xact_at = transaction_timestamp()
    ) THEN
        IF TG_OP = 'DELETE' THEN RETURN OLD; END IF;
        RETURN NEW;
    END IF;
    RAISE EXCEPTION '% on % is refused: the table is append-only and purge is the only way',
        TG_OP, TG_TABLE_NAME USING ERRCODE = 'insufficient_privilege';
END $$;
"""

# The units that the items are of: of every stage.
UNITS = """
    SELECT coalesce(array_agg(DISTINCT episode_id), '{}') INTO touched
        FROM memory_episodeturn WHERE raw_item_id = ANY(items);
    SELECT coalesce(array_agg(unit_key), '{}') INTO names
        FROM memory_episode WHERE id = ANY(touched);
    names := names || ARRAY(SELECT 'item:' || id FROM unnest(items) AS id);
    sessions := ARRAY(SELECT DISTINCT s.id FROM memory_rawitem r
        JOIN memory_session s
            ON s.owner_id = r.owner_id AND s.source = r.source AND s.key = r.session
        WHERE r.id = ANY(items));
    names := names || ARRAY(SELECT 'session:' || id FROM unnest(sessions) AS id);
"""

# The item that a unit is, if it is one.
# Why a CASE: a condition beside it keeps nobody from trying the others first.
OF_ITEM = "CASE WHEN heir.unit_key ~ '^item:[0-9]+$' THEN substr(heir.unit_key, 6)::bigint END"

# What goes: all that the items bear out, what came of that, and what was said of it. `rows` are
# more rows that hold the words, by table, with their ids as texts: those of notes go as well, with
# all that stands on them; others are emptied, or go.
WHAT = """
    LOOP
        edits := ARRAY(
            SELECT DISTINCT {of_item}
            FROM memory_dedupverdict v
            JOIN memory_note heir ON heir.id = v.note_id AND heir.unit_key LIKE 'item:%'
            WHERE v.verdict = 'refine' AND v.model_real = 'person'
              AND NOT {of_item} = ANY(items)
              AND v.target_id IN (
                  SELECT note_id FROM memory_evidence WHERE raw_item_id = ANY(items)));
        EXIT WHEN cardinality(edits) = 0;
        items := items || edits;
    END LOOP;
    SELECT coalesce(jsonb_agg(sha256 ORDER BY id), '[]'), array_agg(DISTINCT owner_id)
        INTO hashes, owners FROM memory_rawitem WHERE id = ANY(items);
{units}    -- A worker that has one of these in hand ends first, or finds that it has it no more.
    PERFORM FROM memory_claim WHERE unit = ANY(names) ORDER BY id FOR UPDATE;
    -- Whoever is about to write something that stands on these waits, and then finds them gone.
    PERFORM FROM memory_rawitem WHERE id = ANY(items) ORDER BY id FOR UPDATE;
    -- Who ended meanwhile made something of them.
{units}    gone := ARRAY(SELECT n.id FROM memory_note n
        WHERE (n.unit_key = ANY(names)
               OR n.id IN (SELECT note_id FROM memory_evidence WHERE raw_item_id = ANY(items)))
          AND NOT EXISTS (
              SELECT 1 FROM memory_evidence e
              LEFT JOIN memory_episodeturn t ON t.raw_item_id = e.raw_item_id
              WHERE e.note_id = n.id AND NOT (e.raw_item_id = ANY(items))
                AND (t.episode_id IS NULL OR NOT (t.episode_id = ANY(touched)))));
    gone := ARRAY(SELECT unnest(gone) UNION SELECT n.id FROM memory_note n
        WHERE n.id::text IN (SELECT jsonb_array_elements_text(rows -> 'memory_note')));
    -- What was made of notes alone, and of none that stays.
    LOOP
        children := ARRAY(SELECT DISTINCT c.note_id FROM memory_evidence c
            WHERE c.parent_id = ANY(gone) AND NOT c.note_id = ANY(gone) AND NOT EXISTS (
                SELECT 1 FROM memory_evidence o WHERE o.note_id = c.note_id
                  AND NOT coalesce(o.raw_item_id = ANY(items), false)
                  AND NOT coalesce(o.parent_id = ANY(gone), false)));
        EXIT WHEN cardinality(children) = 0;
        gone := gone || children;
    END LOOP;
    verdicts := ARRAY(SELECT v.id FROM memory_dedupverdict v
        WHERE v.note_id = ANY(gone) OR v.target_id = ANY(gone) OR EXISTS (
            SELECT 1 FROM jsonb_array_elements(
                CASE jsonb_typeof(v.candidates) WHEN 'array' THEN v.candidates ELSE '[]' END
            ) AS shown WHERE shown ->> 'note' = ANY(gone::text[])));
    names := names || ARRAY(SELECT 'note:' || id FROM unnest(gone) AS id);
    -- What a judge said of a note that stays may quote one that goes: it is judged again.
    judged := ARRAY(SELECT 'note:' || v.note_id FROM memory_dedupverdict v
        WHERE v.id = ANY(verdicts));
    refused := ARRAY(SELECT id FROM memory_gaterejection
        WHERE episode_id = ANY(touched) OR raw_item_id = ANY(items)
           OR id::text IN (SELECT jsonb_array_elements_text(rows -> 'memory_gaterejection')));
    tasks := ARRAY(SELECT id FROM memory_taskitem WHERE raw_item_id = ANY(items));
""".replace("{units}", UNITS.lstrip("\n")).replace("{of_item}", OF_ITEM)

#: Table -> which of its rows go, in the order in which they may.
GOES = (
    ("memory_decision", "verdict_id = ANY(verdicts)"),
    ("memory_dedupverdict", "id = ANY(verdicts)"),
    (
        "memory_evidence",
        "raw_item_id = ANY(items) OR note_id = ANY(gone) OR parent_id = ANY(gone)",
    ),
    (
        "memory_act",
        """(kind IN ('note', 'feed') AND reference = ANY(gone::text[]))
            OR (kind = 'verdict' AND reference = ANY(verdicts::text[]))
            OR (kind = 'unit' AND reference = ANY(names))
            OR (kind = 'rejection' AND reference = ANY(refused::text[]))
            OR (kind = 'task' AND reference = ANY(tasks::text[]))""",
    ),
    ("memory_proposal", "unit = ANY(names)"),
    ("memory_distillfailure", "unit = ANY(names)"),
    ("memory_modelreply", "units ?| (names || judged)"),
    (
        "memory_claim",
        "unit = ANY(names) AND NOT (unit LIKE 'session:%' AND dismissed_at IS NOT NULL)",
    ),
    ("memory_segmentcheck", "raw_item_id = ANY(items)"),
    ("memory_turnvector", "raw_item_id = ANY(items)"),
    ("memory_distilleditem", "raw_item_id = ANY(items)"),
    ("memory_episodeturn", "raw_item_id = ANY(items)"),
    (
        "memory_attribution",
        """episode_id = ANY(touched) AND NOT EXISTS (SELECT 1 FROM memory_episodeturn t
            WHERE t.episode_id = memory_attribution.episode_id)""",
    ),
    (
        # The mean of a project's episodes is theirs as well: the next ones make it anew.
        "memory_centroid",
        """(owner_id, project_id) IN (
            SELECT owner_id, project_id FROM memory_episode WHERE id = ANY(touched))""",
    ),
)  # fmt: skip

EPISODES = """
    UPDATE memory_episode e SET distilled_at = NULL, turn_count = t.turns,
            first_item_id = t.first_id, last_item_id = t.last_id
        FROM (SELECT episode_id, count(*) AS turns,
                     (array_agg(raw_item_id ORDER BY position))[1] AS first_id,
                     (array_agg(raw_item_id ORDER BY position DESC))[1] AS last_id
              FROM memory_episodeturn WHERE episode_id = ANY(touched) GROUP BY episode_id) t
        WHERE e.id = t.episode_id;
    UPDATE memory_claim SET parked_reason = ''
        WHERE unit = ANY(names) AND unit LIKE 'session:%' AND dismissed_at IS NOT NULL;
"""

# What hangs on a note, a refusal or a raw item by a foreign key that cascades goes before it, so
# that it is counted: which tables these are, of whatever app, the database knows.
HANGING = """
    FOR edge IN SELECT k.conrelid::regclass::text AS name, a.attname::text AS col,
            k.confrelid::regclass::text AS target
        FROM pg_constraint k JOIN pg_attribute a ON a.attrelid = k.conrelid
            AND a.attnum = k.conkey[1]
        WHERE k.contype = 'f' AND k.confdeltype = 'c' AND cardinality(k.conkey) = 1
          AND k.confrelid IN ('memory_note'::regclass, 'memory_rawitem'::regclass,
              'memory_taskitem'::regclass, 'memory_gaterejection'::regclass)
        ORDER BY k.confrelid = 'memory_taskitem'::regclass DESC, 1, 2
    LOOP
        EXECUTE format('DELETE FROM %s WHERE %I = ANY($1::%s)', edge.name, edge.col,
                CASE edge.target WHEN 'memory_note' THEN 'uuid[]' ELSE 'bigint[]' END)
            USING CASE edge.target WHEN 'memory_note' THEN gone::text[]
                WHEN 'memory_rawitem' THEN items::text[]
                WHEN 'memory_taskitem' THEN tasks::text[] ELSE refused::text[] END;
        GET DIAGNOSTICS many = ROW_COUNT;
        counts := argus_added(counts, edge.name, many);
    END LOOP;
"""

LAST = (
    ("memory_note", "id = ANY(gone)"),
    ("memory_gaterejection", "id = ANY(refused)"),
    (
        "memory_episode",
        """id = ANY(touched) AND NOT EXISTS (
            SELECT 1 FROM memory_episodeturn t WHERE t.episode_id = memory_episode.id)""",
    ),
    ("memory_rawitem", "id = ANY(items)"),
    (
        "memory_session",
        """id = ANY(sessions) AND NOT EXISTS (
            SELECT 1 FROM memory_rawitem r WHERE r.owner_id = memory_session.owner_id
              AND r.source = memory_session.source AND r.session = memory_session.key)
          AND NOT EXISTS (
            SELECT 1 FROM memory_claim c WHERE c.unit = 'session:' || memory_session.id)""",
    ),
    # Hashes of words that no text has any more.
    ("memory_term", "owner_id = ANY(owners) AND texts <= 0"),
)

FORGOTTEN = """
    UPDATE memory_collection SET speakers = '{}' WHERE owner_id = ANY(owners) AND texts <= 0;
"""

SIGNATURE = "argus_purge(bigint[], text, text, jsonb)"


# The same without a change: what would go, for whoever wants to look first.
REACH = """
CREATE FUNCTION argus_purge_reach(items bigint[], rows jsonb DEFAULT '{}') RETURNS jsonb
LANGUAGE plpgsql STABLE SET search_path = public, pg_temp AS $$
#variable_conflict use_column
DECLARE
    hashes jsonb;
    edits bigint[];
    owners bigint[];
    touched bigint[];
    sessions bigint[];
    names text[];
    judged text[];
    gone uuid[];
    children uuid[];
    verdicts bigint[];
    refused bigint[];
    tasks bigint[];
BEGIN
{what}
    RETURN jsonb_build_object('item_ids', items, 'note_ids', gone, 'episode_ids', touched,
        'refused_ids', refused, 'owner_ids', coalesce(owners, '{}'), 'units', names);
END $$;

REVOKE EXECUTE ON FUNCTION argus_purge_reach(bigint[], jsonb) FROM PUBLIC;
"""


def reach() -> str:
    looks = "\n".join(line for line in WHAT.split("\n") if not line.endswith("FOR UPDATE;"))
    return REACH.replace("{what}", looks)


def counted(table: str, statement: str) -> str:
    return (
        f"    {statement};\n    GET DIAGNOSTICS many = ROW_COUNT;\n"
        f"    counts := argus_added(counts, '{table}', many);\n"
    )


def deleted(pairs: tuple[tuple[str, str], ...]) -> str:
    return "".join(counted(table, f"DELETE FROM {table} WHERE {where}") for table, where in pairs)


def named(table: str) -> str:
    """More rows of a table, by their ids as texts; the table may not be there yet."""
    key = "session_key" if table == "django_session" else "id"
    which = f"{key}::text IN (SELECT jsonb_array_elements_text($1))"
    if table in EMPTIED:
        statement = f"UPDATE {table} SET {EMPTIED[table]} WHERE {which}"
        name = f"{table} (emptied)"
    else:
        statement, name = f"DELETE FROM {table} WHERE {which}", table
    return (
        f"    IF rows ? '{table}' THEN\n"
        f"        EXECUTE $q${statement}$q$ USING rows -> '{table}';\n"
        f"        GET DIAGNOSTICS many = ROW_COUNT;\n"
        f"        counts := argus_added(counts, '{name}', many);\n    END IF;\n"
    )


def purge() -> str:
    more = "".join(
        named(table) for table in (*EMPTIED, *DELETED) if table != "memory_gaterejection"
    )
    return f"""
CREATE FUNCTION argus_added(counts jsonb, name text, n bigint) RETURNS jsonb LANGUAGE sql IMMUTABLE
AS $$ SELECT CASE WHEN n = 0 THEN counts
    ELSE counts || jsonb_build_object(name, coalesce((counts ->> name)::bigint, 0) + n) END $$;

CREATE FUNCTION argus_purge(items bigint[], actor text, reason text, rows jsonb DEFAULT '{{}}')
RETURNS jsonb
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
#variable_conflict use_column
DECLARE
    ledger bigint;
    edits bigint[];
    owners bigint[];
    touched bigint[];
    sessions bigint[];
    names text[];
    judged text[];
    gone uuid[];
    children uuid[];
    verdicts bigint[];
    refused bigint[];
    tasks bigint[];
    counts jsonb := '{{}}';
    told jsonb;
    hashes jsonb;
    edge record;
    many bigint;
BEGIN
    IF coalesce(actor, '') !~ '[^[:space:]]' OR coalesce(reason, '') !~ '[^[:space:]]' THEN
        RAISE EXCEPTION 'a purge names who and why';
    END IF;
    -- One purge at a time: two that meet at a unit would wait for each other.
    PERFORM pg_advisory_xact_lock(hashtext('argus_purge'));
{WHAT}
    told := jsonb_build_object('raw_items', jsonb_array_length(hashes),
        'episodes', cardinality(touched), 'notes', cardinality(gone),
        'verdicts', cardinality(verdicts));
    INSERT INTO memory_purgeledger (actor, reason, counts, hashes, files_pending, created_at)
        VALUES (actor, reason, told, hashes, false, now()) RETURNING id INTO ledger;

{deleted(GOES)}{EPISODES}{HANGING}{deleted(LAST)}{FORGOTTEN}{more}
    -- What is distilled again: whoever asks what waits for long must know since when.
    told := told || jsonb_build_object('tables', counts, 'units', (SELECT
        coalesce(jsonb_agg(unit_key ORDER BY id), '[]') FROM memory_episode
        WHERE id = ANY(touched)));
    UPDATE memory_purgeledger SET counts = told WHERE id = ledger;
    RETURN told || jsonb_build_object('ledger', ledger, 'note_ids', to_jsonb(gone),
        'item_ids', to_jsonb(items), 'units', to_jsonb(names));
END $$;

REVOKE EXECUTE ON FUNCTION {SIGNATURE} FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION argus_added(jsonb, text, bigint) FROM PUBLIC;
"""


def before() -> str:
    """The functions as they were."""
    replaced: str = import_module("memory.migrations.0008_purge_sessions").purge()
    functions: str = import_module("memory.migrations.0002_guards").FUNCTIONS
    frozen = functions[functions.index("CREATE FUNCTION argus_frozen()") :]
    frozen = frozen[: frozen.index("CREATE FUNCTION argus_no_truncate")]
    return (
        f"DROP FUNCTION {SIGNATURE};"
        "DROP FUNCTION argus_added(jsonb, text, bigint);"
        "DROP FUNCTION argus_purge_reach(bigint[], jsonb);"
        + replaced
        + "REVOKE EXECUTE ON FUNCTION argus_purge(bigint[], text, text) FROM PUBLIC;"
        + frozen.replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION")
    )


FORWARD = f"DROP FUNCTION argus_purge(bigint[], text, text);{FROZEN}{reach()}{purge()}"


class Migration(migrations.Migration):
    dependencies = [("memory", "0010_operating_guards")]

    operations = [
        migrations.RunSQL(FORWARD, reverse_sql=before()),
        migrations.AlterModelOptions(
            name="principal",
            options={
                "permissions": [
                    ("look", "May look at every page"),
                    ("decide", "May decide what waits for a person"),
                    ("operate", "May run stages, set parked units free and see to keys"),
                    ("see_all", "May ask for the rows of all owners"),
                    ("purge", "May remove raw items and all that derives from them, for ever"),
                ]
            },
        ),
    ]
