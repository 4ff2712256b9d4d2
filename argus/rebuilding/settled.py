"""What a rebuild made, put into the house: what differs and no more, in one transaction, as owner.

Reads: the house. Writes: the tables of MADE, search_text.
Audits: act, and where rows go a row of the purge ledger, without which no trigger lets them go.
Verify: nobody wrote between the reading and the writing; notes and whatever people decided about
are never removed.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db import connection, models
from django.db.models import Q
from django.utils import timezone
from psycopg import sql
from psycopg.types.json import Jsonb

from argus.owner import as_owner
from argus.rebuilding.gathered import NUMBERED, Part, Ready
from argus.rebuilding.record import FRESH_FROM, WATCHED, Mark, mark, table_of
from memory.acts import record_act
from memory.audit import is_alive
from memory.errors import Conflict
from memory.models import (
    Claim,
    Decision,
    DedupVerdict,
    Note,
    Principal,
    StageRun,
)
from memory.purge import patient
from memory.retire import retire
from memory.searchtexts import index_notes
from memory.verifying.judged import UNMADE

#: Bytes read of a table's file at once.
BLOCK_BYTES = 1 << 16

#: What the decision says of a hold that a rebuild withdrew.
# Why no `undo`: the next rebuild does again what people did, and this follows from its own rows.
WITHDRAWN = "rebuild"


def refuse_at_work() -> None:
    """Raises Conflict while somebody is at work on what is made again."""
    for run in StageRun.objects.filter(status="running").order_by("pk"):
        worker = run.worker or str(run.progress.get("worker", ""))
        if is_alive(worker):
            raise Conflict(
                f"run {run.pk} ({run.stage}) is at work as {worker or 'an unknown worker'}: stop"
                " `manage.py up` and every `qcluster`, or cancel the run, and rebuild again"
            )
    for held in Claim.objects.filter(lease_until__gt=timezone.now()).order_by("pk"):
        if is_alive(held.worker.partition("/")[0]):
            raise Conflict(
                f"{held.unit} is in the hand of {held.worker}: wait until its lease ends, at"
                f" {held.lease_until:%Y-%m-%d %H:%M:%S}Z, or stop that worker"
            )


def settle(
    ready: Ready | None,
    before: Mark,
    *,
    by: Principal,
    now: datetime,
    reason: str,
    counts: dict[str, int],
) -> None:
    """Put it into the house, with the act that says so: all of it or nothing. Raises Conflict when
    somebody is at work, wrote since the house was read, or has in hand what this waits for."""
    with as_owner(), patient():
        with connection.cursor() as cursor:
            tables = ", ".join(table_of(model) for model in WATCHED)
            cursor.execute(f"LOCK TABLE {tables} IN SHARE ROW EXCLUSIVE MODE")
            refuse_at_work()
            if mark(cursor) != before:
                raise Conflict("the house changed while it was rebuilt: rebuild again")
            if ready is not None:
                _write(cursor, ready, by=by, now=now, reason=reason, counts=counts)
        record_act(by, "rebuild", "house", "", now=now, reason=reason, detail=counts)


def _write(
    cursor: Any,
    ready: Ready,
    *,
    by: Principal,
    now: datetime,
    reason: str,
    counts: dict[str, int],
) -> None:
    # Without this row of this transaction the triggers refuse.
    cursor.execute(
        "INSERT INTO memory_purgeledger (actor, reason, counts, hashes, files_pending, created_at)"
        " VALUES (%s, %s, %s, '[]', false, %s)",
        [by.name, f"rebuild: {reason}", Jsonb({"rebuild": counts}), now],
    )
    _bring(cursor, ready)
    _move_search(cursor, ready)
    for part in reversed(ready.parts):
        if part.goes:
            cursor.execute(
                f"DELETE FROM {table_of(part.model)} WHERE {_key(part.model)} = ANY(%s)",
                [list(part.goes)],
            )
    for part in ready.parts:
        _enter(cursor, part)
    retire(ready.unmade, reason=UNMADE, now=now)
    # The next rebuild knows them by it, whatever they were retired for before.
    Note.objects.as_pipeline().filter(pk__in=ready.unmade).update(retired_reason=UNMADE)
    _withdraw_holds(ready, by=by, now=now, reason=reason)
    _find_again(cursor, ready)


def _withdraw_holds(ready: Ready, *, by: Principal, now: datetime, reason: str) -> None:
    """What waits for a person about a note that goes as not made again waits no longer: nobody
    would ever be asked, and nothing would say so. It can be approved when the note was restored."""
    rows = DedupVerdict.objects.as_pipeline().filter(
        Q(note__in=ready.unmade) | Q(target__in=ready.unmade), status="pending"
    )
    for row in rows.order_by("pk"):
        row.status, row.decided_by, row.decided_at = "undone", by, now
        row.save(update_fields=["status", "decided_by", "decided_at"])
        Decision.objects.create(
            verdict=row, principal=by, action=WITHDRAWN, reason=reason,
            status_before="pending", status_after="undone", created_at=now,
        )  # fmt: skip
        detail = {"kind": row.verdict, "before": "pending", "after": "undone"}
        record_act(by, WITHDRAWN, "verdict", row.pk, now=now, reason=reason, detail=detail)


def _move_search(cursor: Any, ready: Ready) -> None:
    """What is searched of a note that changed is made anew."""
    if ready.notes:
        cursor.execute("DELETE FROM memory_searchtext WHERE note_id = ANY(%s)", [list(ready.notes)])


def _find_again(cursor: Any, ready: Ready) -> None:
    if ready.notes:
        while index_notes(only=ready.notes):
            pass
    # Turns whose episode changed get its project; those that lost theirs wait for `segment`.
    cursor.execute(
        "UPDATE memory_searchtext s SET settled = false FROM memory_episodeturn t"
        " JOIN memory_episode e ON e.id = t.episode_id WHERE s.raw_item_id = t.raw_item_id"
        " AND s.project_id IS DISTINCT FROM e.project_id"
    )
    cursor.execute(
        "UPDATE memory_session s SET pending = true WHERE NOT s.pending AND EXISTS ("
        " SELECT FROM memory_rawitem r WHERE r.owner_id = s.owner_id AND r.source = s.source"
        " AND r.session = s.key AND r.kind = 'turn' AND NOT EXISTS ("
        "  SELECT FROM memory_episodeturn t WHERE t.raw_item_id = r.id))"
    )


def _bring(cursor: Any, ready: Ready) -> None:
    """What comes, into tables of this transaction beside the house's, and its numbers with it: a
    number of the house for each row that has one of the throwaway database."""
    cursor.execute("CREATE TEMP TABLE numbers (fresh bigint PRIMARY KEY, id bigint) ON COMMIT DROP")
    for part in ready.parts:
        table = table_of(part.model)
        columns = sql.SQL(", ").join(map(sql.Identifier, part.columns))
        names = {"coming": _coming(part), "table": sql.Identifier(table), "columns": columns}
        cursor.execute(
            sql.SQL(
                "CREATE TEMP TABLE {coming} ON COMMIT DROP AS SELECT {columns} FROM {table} LIMIT 0"
            ).format(**names)
        )
        into = sql.SQL("COPY {coming} ({columns}) FROM STDIN (FORMAT BINARY)").format(**names)
        with part.comes, cursor.copy(into) as rows:
            part.comes.seek(0)
            while block := part.comes.read(BLOCK_BYTES):
                rows.write(block)
        if table in NUMBERED and part.model is not Note:
            cursor.execute(
                sql.SQL(
                    "INSERT INTO numbers SELECT id, nextval(pg_get_serial_sequence(%s, 'id'))"
                    " FROM (SELECT id FROM {coming} WHERE id >= %s ORDER BY id) fresh"
                ).format(**names),
                [table, FRESH_FROM],
            )


def _enter(cursor: Any, part: Part) -> None:
    """Rows that come; one that is there already (a note) is overwritten."""
    coming = _coming(part)
    for column in part.columns:
        if _numbered(part.model, column):
            cursor.execute(
                sql.SQL(
                    "UPDATE {coming} c SET {column} = n.id FROM numbers n"
                    " WHERE c.{column} = n.fresh"
                ).format(coming=coming, column=sql.Identifier(column)),
            )
    names = sql.SQL(", ").join(map(sql.Identifier, part.columns))
    sets = sql.SQL(", ").join(
        sql.SQL("{0} = excluded.{0}").format(sql.Identifier(name)) for name in part.columns
    )
    cursor.execute(
        sql.SQL(
            "INSERT INTO {table} ({names}) SELECT {names} FROM {coming}"
            " ON CONFLICT ({key}) DO UPDATE SET {sets}"
        ).format(
            table=sql.Identifier(table_of(part.model)),
            names=names,
            coming=coming,
            key=sql.Identifier(_key(part.model)),
            sets=sets,
        )
    )


def _numbered(model: type[models.Model], column: str) -> bool:
    """Whether a column names rows by numbers that the throwaway database may have given."""
    field = next(one for one in model._meta.concrete_fields if one.column == column)
    other = field.related_model if isinstance(field, models.ForeignKey) else None
    named = model if field.primary_key else other
    if not isinstance(named, type) or named is Note:
        return False
    return table_of(named) in NUMBERED


def _coming(part: Part) -> sql.Identifier:
    return sql.Identifier(f"coming_{table_of(part.model)}")


def _key(model: type[models.Model]) -> str:
    return str(model._meta.pk.column)
