"""The record of a rebuild: the house's rows in a throwaway database, what is made again set aside.

Writes: the throwaway database alone. What is made again lies in the schema `was`; its tables in
`public` are empty. What came from outside (turns, injections, ...) comes into `public` bit by bit,
by its time. Knows nothing about what is done with it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, LiteralString

import psycopg
from django.db import connection, models
from psycopg import sql

from argus.owner import as_owner
from argus.scratch import connected, owner_of
from memory.models import (
    Act,
    Attribution,
    CaptureReceipt,
    Centroid,
    Claim,
    Decision,
    DedupVerdict,
    DistilledItem,
    Emission,
    Episode,
    EpisodeTurn,
    Evidence,
    GateRejection,
    Group,
    Injection,
    LlmCall,
    ModelReply,
    Note,
    PathRule,
    Principal,
    Project,
    ProjectAlias,
    Proposal,
    PurgeLedger,
    PurgeProof,
    RawItem,
    RejectedFact,
    RejectionDecision,
    SegmentCheck,
    Session,
    StageRun,
    TurnVector,
)
from memory.verifying.judged import UNMADE

#: Where the rows lie as they were.
WAS = "was"

#: What is made again, in an order in which each comes after what it points to.
MADE: tuple[type[models.Model], ...] = (
    Episode,
    EpisodeTurn,
    SegmentCheck,
    Attribution,
    Centroid,
    DistilledItem,
    Note,
    Evidence,
    GateRejection,
    DedupVerdict,
)

#: What came from outside: the rows that are there when something happens are those that came
#: before it.
CAME: dict[type[models.Model], str] = {
    RawItem: "captured_at",
    Injection: "created_at",
    Emission: "created_at",
}

#: What people did and what the house noted of it: read here, and written again by the verbs.
NOTED: tuple[type[models.Model], ...] = (
    Act,
    CaptureReceipt,
    Claim,
    Decision,
    RejectedFact,
    RejectionDecision,
)

#: What is there from the beginning, the vectors and the replies of models among them.
THERE: tuple[type[models.Model], ...] = (
    Group,
    Principal,
    Principal.groups.through,
    Project,
    ProjectAlias,
    PathRule,
    Session,
    StageRun,
    ModelReply,
    TurnVector,
    Proposal,
    PurgeLedger,
    PurgeProof,
)

#: What of a table is needed, where that is not all.
NEEDED: dict[type[models.Model], LiteralString] = {
    CaptureReceipt: "session_end <> '{}'",
    Emission: "kind = 'vault'",
    ModelReply: "port IN ('distill', 'judge', 'verify')",
    LlmCall: "port IN ('distill', 'judge', 'verify') AND outcome = 'ok'",
    PurgeProof: "id IN (SELECT min(id) FROM memory_purgeproof GROUP BY ledger_id)",
}

#: Where the tables of MADE lie, for whoever reads them as they were.
SCHEMAS = {model._meta.db_table: WAS for model in MADE}

#: What may not change between the reading and the writing: what is made again and what is replayed.
WATCHED: tuple[type[models.Model], ...] = (
    *MADE,
    Act,
    Decision,
    RejectionDecision,
    RejectedFact,
    Proposal,
)

#: What is looked up by its number, as it was.
LOOKED_UP: tuple[type[models.Model], ...] = (
    Episode,
    Note,
    GateRejection,
    DedupVerdict,
    RejectedFact,
    Decision,
)

# Notes that an earlier rebuild did not make again. Of those that somebody restored since: by which
# act, and until when they were as that rebuild left them.
UNMADE_NOTES = f"""
CREATE TABLE {WAS}.unmade AS SELECT DISTINCT ON (n.id) n.id AS note, a.id AS act,
    a.created_at AS until
FROM {WAS}.memory_note n LEFT JOIN {WAS}.memory_act a ON a.kind = 'note' AND a.verb = 'restore'
    AND a.reference = n.id::text AND a.detail ->> 'was' = %(why)s AND n.retired_reason <> %(why)s
WHERE n.retired_reason = %(why)s OR a.id IS NOT NULL ORDER BY n.id, a.id DESC
"""

# What was judged of them before that, which comes over with them.
KEPT_VERDICTS = f"""
CREATE TABLE {WAS}.kept AS SELECT id, bool_or(until IS NULL) AS whole, max(until) AS until FROM (
    SELECT v.id, v.created_at, u.until
    FROM {WAS}.memory_dedupverdict v JOIN {WAS}.unmade u ON u.note = v.note_id
    UNION SELECT v.id, v.created_at, u.until
    FROM {WAS}.memory_dedupverdict v JOIN {WAS}.unmade u ON u.note = v.target_id
) one WHERE until IS NULL OR created_at <= until GROUP BY id
"""

# Whose things each purge took: its first proof (NEEDED brings no other) says so by `of`, an old one
# by `owners`; where neither names anybody they may have been everybody's. What is let go of a
# ledger, or goes by a rebuild, is no purge.
PURGED = f"""
CREATE TABLE {WAS}.purged AS SELECT one.purge, one.at, p.id AS owner FROM (
    SELECT l.id AS purge, l.created_at AS at, coalesce(
        CASE WHEN jsonb_typeof(said.scanned -> 'of') = 'array' THEN said.scanned -> 'of' END,
        CASE WHEN jsonb_typeof(said.scanned -> 'owners') = 'array'
            THEN said.scanned -> 'owners' END, '[]') AS owners
    FROM memory_purgeledger l LEFT JOIN memory_purgeproof said ON said.ledger_id = l.id
    WHERE NOT l.counts ? 'rebuild' AND NOT l.counts ? 'ledger_of'
) one JOIN memory_principal p ON one.owners = '[]' OR one.owners @> to_jsonb(p.id)
"""

#: The first number that a row gets here that the house does not have, and how many a table has for
#: itself: no two tables have the same.
FRESH_FROM, FRESH_A_TABLE = 10**15, 10**13

TABLES = """
SELECT format('CREATE TABLE %I (%s)', c.relname, string_agg(format('%I %s', a.attname,
    format_type(a.atttypid, a.atttypmod))
    || CASE WHEN a.attnotnull THEN ' NOT NULL' ELSE '' END
    || CASE WHEN a.attidentity <> '' THEN ' GENERATED BY DEFAULT AS IDENTITY' ELSE '' END
    || coalesce(' DEFAULT ' || pg_get_expr(d.adbin, d.adrelid), ''), ', ' ORDER BY a.attnum))
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace GROUP BY c.relname
"""
KEYS = """
SELECT format('ALTER TABLE %I ADD CONSTRAINT %I %s', c.relname, k.conname,
    pg_get_constraintdef(k.oid))
FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid
WHERE k.contype IN ('p', 'u') AND c.relnamespace = 'public'::regnamespace
"""
INDEXES = """
SELECT pg_get_indexdef(i.indexrelid) FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid
JOIN pg_class x ON x.oid = i.indexrelid JOIN pg_am m ON m.oid = x.relam
WHERE c.relnamespace = 'public'::regnamespace AND m.amname <> 'hnsw'
    AND NOT EXISTS (SELECT FROM pg_constraint k WHERE k.conindid = i.indexrelid)
"""

# What keeps the lists of what waits: the stages find their work by them here, too.
WAITING = """
SELECT pg_get_functiondef(p.oid) FROM pg_proc p
WHERE p.pronamespace = 'public'::regnamespace AND p.oid IN (SELECT tgfoid FROM pg_trigger
    WHERE tgname IN ('argus_came', 'argus_went'))
UNION ALL
SELECT pg_get_triggerdef(t.oid) FROM pg_trigger t WHERE t.tgname IN ('argus_came', 'argus_went')
"""


@dataclass(frozen=True)
class Mark:
    """By what one knows that nobody wrote: rows of each watched table, and the sum of the
    transactions that wrote them."""

    rows: tuple[tuple[int, int], ...]


def table_of(model: type[models.Model]) -> str:
    return str(model._meta.db_table)


def mark(cursor: Any) -> Mark:
    """The mark of the database that the cursor is in."""
    found = []
    for model in WATCHED:
        cursor.execute(
            f"SELECT count(*), coalesce(sum(xmin::text::bigint), 0) FROM {table_of(model)}"
        )
        rows, written = cursor.fetchone()
        found.append((int(rows), int(written)))
    return Mark(tuple(found))


def bring(real: dict[str, Any]) -> Mark:
    """Copy the house's rows, of one moment, into this database; the mark of that moment.

    Call as the owner of the throwaway database.
    """
    with connected(owner_of(real)) as source, connection.cursor() as cursor:
        source.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        cursor.execute(f"CREATE SCHEMA {WAS}")
        for model in (*MADE, *CAME, *NOTED):
            table = table_of(model)
            cursor.execute(f"CREATE TABLE IF NOT EXISTS {WAS}.{table} (LIKE public.{table})")
        for model in (*MADE, *CAME, *NOTED):
            _copy(model, WAS, source)
        for model in THERE:
            _copy(model, "public", source)
        # It becomes what was known of it at each moment.
        cursor.execute(f"CREATE TABLE {WAS}.memory_session AS TABLE public.memory_session")
        # Which model a unit had is told by the calls then; else the longest ledger stays away.
        cursor.execute(f"CREATE TABLE {WAS}.memory_llmcall (LIKE public.memory_llmcall)")
        if nothing_is_left():
            _copy(LlmCall, WAS, source)
        for model, column in CAME.items():
            cursor.execute(f"CREATE INDEX ON {WAS}.{table_of(model)} ({column})")
        for model in LOOKED_UP:
            cursor.execute(f"CREATE INDEX ON {WAS}.{table_of(model)} (id)")
        cursor.execute(f"CREATE INDEX ON {WAS}.memory_session (id)")
        cursor.execute(f"CREATE INDEX ON {WAS}.memory_episode (session, created_at)")
        cursor.execute(f"CREATE INDEX ON {WAS}.memory_note (unit_key)")
        cursor.execute(f"CREATE INDEX ON {WAS}.memory_evidence (note_id)")
        cursor.execute(f"CREATE INDEX ON {WAS}.memory_episodeturn (raw_item_id)")
        cursor.execute(f"CREATE INDEX ON {WAS}.memory_dedupverdict (note_id)")
        cursor.execute(f"CREATE INDEX ON {WAS}.memory_act (created_at)")
        cursor.execute(UNMADE_NOTES, {"why": UNMADE})
        cursor.execute(KEPT_VERDICTS)
        cursor.execute(PURGED)
        for made in ("unmade (note)", "kept (id)", "purged (owner, at)"):
            cursor.execute(f"CREATE INDEX ON {WAS}.{made}")
        cursor.execute("ANALYZE")
        return mark(source.cursor())


def nothing_is_left() -> bool:
    """Whether all that was made is gone: then no row says when and by which model."""
    made = (f"SELECT 1 FROM {WAS}.{table_of(model)} LIMIT 1" for model in (Episode, Note))
    return not any(ask(one) for one in made)


def arrived(*, before: datetime | None, until: datetime, but: Iterable[int] = ()) -> None:
    """What came from outside after `before` is there now; raw items of these ids are left out."""
    with connection.cursor() as cursor:
        for model, column in CAME.items():
            table = table_of(model)
            skip = " AND NOT id = ANY(%(but)s)" if model is RawItem else ""
            cursor.execute(
                f"INSERT INTO public.{table} SELECT * FROM {WAS}.{table}"
                f" WHERE {column} <= %(until)s"
                f" AND (%(before)s::timestamptz IS NULL OR {column} > %(before)s){skip}"
                " ON CONFLICT DO NOTHING",
                {"until": until, "before": before, "but": list(but)},
            )


def furnish(real: dict[str, Any]) -> None:
    """Make the house's tables in this database, which has none: columns, keys and indexes, and what
    keeps the lists of what waits.

    Without the rest, rows come in any order and may change, and the nearest of a vector are found
    by comparing all. Rows that are made get numbers that no row of the house has.
    """
    with as_owner(), connected(owner_of(real)) as source, connection.cursor() as cursor:
        for (statement,) in source.execute(TABLES).fetchall():
            cursor.execute(statement)
        for query in (KEYS, INDEXES, WAITING):
            for (statement,) in source.execute(query).fetchall():
                cursor.execute(statement)
        for place, model in enumerate(
            (Episode, GateRejection, DedupVerdict, RejectedFact, Evidence, Injection)
        ):
            first = FRESH_FROM + place * FRESH_A_TABLE
            cursor.execute(
                "SELECT setval(pg_get_serial_sequence(%s, 'id'), %s)", [table_of(model), first]
            )


def _copy(model: type[models.Model], schema: str, source: psycopg.Connection) -> None:
    table = table_of(model)
    columns = sql.SQL(", ").join(
        sql.Identifier(str(field.column)) for field in model._meta.concrete_fields
    )
    needed = sql.SQL(f" WHERE {NEEDED[model]}" if model in NEEDED else "")
    out = sql.SQL("COPY (SELECT {} FROM {}{}) TO STDOUT (FORMAT BINARY)").format(
        columns, sql.Identifier(table), needed
    )
    into = sql.SQL("COPY {}.{} ({}) FROM STDIN (FORMAT BINARY)").format(
        sql.Identifier(schema), sql.Identifier(table), columns
    )
    target: psycopg.Connection = connection.connection
    with (
        source.cursor() as reader,
        target.cursor() as writer,
        reader.copy(out) as read,
        writer.copy(into) as write,
    ):
        for block in read:
            write.write(block)


def ask(statement: str, **values: Any) -> list[tuple[Any, ...]]:
    """One statement in the throwaway database; the rows that it gives."""
    with connection.cursor() as cursor:
        cursor.execute(statement, values or None)
        return cursor.fetchall() if cursor.description else []
