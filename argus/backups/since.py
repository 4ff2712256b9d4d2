"""What was taken away in a house since a backup was made, and stays away when that comes back.

Reads: purge_ledger, purge_proof, rejected_fact, access_key of the house that goes, who may do what
there (argus.backups.rights), and the numbers that it gave. Writes: the same in the one that comes.
Verify: `verify` proves these purges again, and finds words that are back.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import psycopg
from psycopg import sql

from argus.backups import rights

#: Which rows say that something was taken away. Rows of the ledger that a rebuild leaves, or the
#: end of old rows, are no purges.
TAKEN = {
    "memory_purgeledger": "NOT counts ?| ARRAY['rebuild', 'ledger_of']",
    "memory_purgeproof": "true",
    "memory_rejectedfact": "lifted_at IS NULL",
    "memory_accesskey": "revoked_at IS NOT NULL",
}

#: When that was, by the row. Asked of a backup alone that does not say which rows it has.
WHEN = {"memory_accesskey": "revoked_at"}

#: Rows of one table that a backup names as known to it.
# Why: a manifest is read whole. Where there are more, a dry run goes by the time at which the
# backup was made; what is carried over is always told by the rows themselves.
KNOWN_MAX = 10_000

# Why both: a house that came back in two places gave the same numbers twice.
KNOWN = """
EXISTS (SELECT FROM unnest(%s::bigint[], %s::timestamptz[]) AS known (id, at)
    WHERE known.id = t.id AND known.at = t.created_at)
"""

#: Rows by table, each by its number and when it was made.
Known = Mapping[str, Sequence[tuple[int, str]]]

# Of two databases of one house the first migration ran at one moment.
BORN = "SELECT applied FROM public.django_migrations ORDER BY id LIMIT 1"

COLUMNS = """
SELECT coalesce(string_agg(attname, ' ' ORDER BY attname), '') FROM pg_attribute
WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped
"""


NUMBERS = """
SELECT sequencename, last_value FROM pg_sequences
WHERE schemaname = 'public' AND last_value IS NOT NULL
"""

# Why: what is carried over names rows of the house that goes by their numbers, and somebody who
# comes later would be taken for whoever they were.
PAST = """
SELECT setval(format('public.%%I', s.sequencename)::regclass, was.last_value)
FROM pg_sequences s
JOIN unnest(%s::text[], %s::bigint[]) AS was (name, last_value) ON was.name = s.sequencename
WHERE s.schemaname = 'public' AND coalesce(s.last_value, 0) < was.last_value
"""


@dataclass(frozen=True)
class Purged:
    """A purge that the backup knows nothing of: its number, when, by whom, why, how many texts it
    removed, and the raw items of those that are back; None where that is not known."""

    number: int
    at: str
    by: str
    reason: str
    hashes: int
    back: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Carried:
    """What stays away: purges, whose texts may be back all the same; facts that are not to be
    learned; keys that open nothing; rights. `unknown`: logins that are back, of whom the house that
    goes knows nothing."""

    purges: tuple[Purged, ...] = ()
    facts: int = 0
    keys: int = 0
    rights: tuple[rights.Right, ...] = ()
    unknown: tuple[str, ...] = ()


@dataclass(frozen=True)
class Since:
    """The rows that say so, by table; each table's columns; when the house was made; who may do
    what there; the last number that each sequence gave."""

    rows: Mapping[str, Sequence[Mapping[str, Any]]]
    columns: Mapping[str, str]
    born: Any
    standing: rights.Standing | None = None
    numbers: Mapping[str, int] = field(default_factory=dict)

    def told(self) -> Carried:
        """All of it, before it is known what the backup holds."""
        purges, facts, keys = (
            self.rows.get(f"memory_{name}", ())
            for name in ("purgeledger", "rejectedfact", "accesskey")
        )
        return Carried(tuple(map(_purged, purges)), len(facts), len(keys))


def known(at: psycopg.Connection, *, most: int | None = None) -> Known:
    """What this database knows to be taken away; without tables that have more than `most` rows."""
    found = {}
    for table, where in TAKEN.items():
        if _columns(at, table):
            query = f"SELECT id, created_at FROM public.{table} WHERE {where} ORDER BY id LIMIT %s"
            rows = at.execute(query.encode(), [most if most is None else most + 1]).fetchall()
            if most is None or len(rows) <= most:
                found[table] = [(pk, made.isoformat()) for pk, made in rows]
    return found


def look(at: psycopg.Connection, but: Known, *, made_at: str | None = None) -> Since:
    """What was taken away in this database `but` what the backup knows. Of a table that is not
    named there: after that moment, or all.

    No clock tells this where it counts: a purge that runs while a backup begins has begun before,
    and the two may go by the clocks of two machines.
    """
    columns = {table: _columns(at, table) for table in (*TAKEN, "django_migrations")}
    rows = {}
    for table, where in TAKEN.items():
        values: list[Any] = []
        if table in but:
            where += f" AND NOT {KNOWN}"
            values = [[pk for pk, _ in but[table]], [made for _, made in but[table]]]
        elif made_at is not None:
            where += f" AND {WHEN.get(table, 'created_at')} > %s"
            values = [made_at]
        if columns[table]:
            query = f"SELECT to_jsonb(t) FROM public.{table} t WHERE {where} ORDER BY id"
            rows[table] = [row for (row,) in at.execute(query.encode(), values)]
    born = at.execute(BORN).fetchone() if columns["django_migrations"] else None
    return Since(rows, columns, born, rights.look(at), dict(at.execute(NUMBERS).fetchall()))


def carry(since: Since, at: psycopg.Connection) -> Carried:
    """Take it away in this database, too, as its owner. Of another house's nothing is taken over
    but that a key was revoked: it is the same key."""
    with at.transaction():
        keys = at.execute(
            "UPDATE public.memory_accesskey SET revoked_at = now()"
            " WHERE digest = ANY(%s) AND revoked_at IS NULL",
            [[row["digest"] for row in since.rows.get("memory_accesskey", ())]],
        ).rowcount
        if since.born is None or at.execute(BORN).fetchone() != since.born:
            return Carried(keys=keys)
        made = since.rows.get("memory_purgeledger", ())
        purges = _insert(at, since, "memory_purgeledger", made, "true")
        proofs = [
            {**row, "ledger_id": purges.get(row["ledger_id"], row["ledger_id"])}
            for row in since.rows.get("memory_purgeproof", ())
            if row["ledger_id"] in purges or row["ledger_id"] not in {one["id"] for one in made}
        ]
        _insert(
            at, since, "memory_purgeproof", proofs,
            "EXISTS (SELECT FROM public.memory_purgeledger l WHERE l.id = one.ledger_id)",
        )  # fmt: skip
        facts = _insert(
            at, since, "memory_rejectedfact", since.rows.get("memory_rejectedfact", ()),
            "(SELECT count(*) FROM public.memory_principal p"
            " WHERE p.id IN (one.owner_id, one.principal_id)) ="
            " (CASE WHEN one.owner_id = one.principal_id THEN 1 ELSE 2 END)"
            " AND NOT EXISTS (SELECT FROM public.memory_rejectedfact f WHERE f.lifted_at IS NULL"
            " AND f.owner_id = one.owner_id AND f.content_key = one.content_key)",
        )  # fmt: skip
        # Its words may be there no more; then it is found by `lift`.
        at.execute(
            "UPDATE public.memory_rejectedfact f SET rejection_id = NULL WHERE id = ANY(%s) AND NOT"
            " EXISTS (SELECT FROM public.memory_gaterejection g WHERE g.id = f.rejection_id)",
            [list(facts.values())],
        )
        taken, unknown = rights.carry(since.standing, at)
        at.execute(PAST, [list(since.numbers), list(since.numbers.values())])
        told = [_purged({**row, "id": purges.get(row["id"], row["id"])}) for row in made]
        return Carried(tuple(told), len(facts), keys, taken, tuple(unknown))


def _columns(at: psycopg.Connection, table: str) -> str:
    row = at.execute(COLUMNS, [f"public.{table}"]).fetchone()
    return row[0] if row is not None else ""


def _insert(
    at: psycopg.Connection,
    since: Since,
    table: str,
    rows: Sequence[Mapping[str, Any]],
    where: str,
) -> dict[int, int]:
    """Write these rows down; the numbers that they have here, by those that they had. A number that
    is another's here is not taken. None where the tables are of two forms."""
    if not rows or since.columns[table] != _columns(at, table):
        return {}
    here = {pk for (pk,) in at.execute(f"SELECT id FROM public.{table}".encode())}
    free = count(max(*here, *(row["id"] for row in rows), 0) + 1)
    numbers = {row["id"]: next(free) if row["id"] in here else row["id"] for row in rows}
    query = (
        f"INSERT INTO public.{table} SELECT one.* FROM"
        f" jsonb_populate_recordset(NULL::public.{table}, %s::jsonb) one"
        f" WHERE {where} ORDER BY one.id RETURNING id"
    )
    told = json.dumps([{**row, "id": numbers[row["id"]]} for row in rows])
    made = {pk for (pk,) in at.execute(query.encode(), [told])}
    if made:
        # The next number is a new one.
        at.execute(
            sql.SQL(
                "SELECT setval(pg_get_serial_sequence({name}, 'id'), (SELECT max(id) FROM {table}))"
            ).format(name=sql.Literal(f"public.{table}"), table=sql.Identifier("public", table))
        )
    return {was: pk for was, pk in numbers.items() if pk in made}


def _purged(row: Mapping[str, Any]) -> Purged:
    return Purged(row["id"], row["created_at"], row["actor"], row["reason"], len(row["hashes"]))
