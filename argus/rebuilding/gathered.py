"""What a rebuild made otherwise, read out of the throwaway database: rows that go, rows that come.

Reads: the schema `was`, and what was made. Writes nothing of the house. Verify: what people decided
about, and every note, is never among what goes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from tempfile import TemporaryFile
from typing import IO, Any

import psycopg
from django.db import connection, models
from psycopg import sql

from argus.canonical import select
from argus.rebuilding.compared import ASIDE
from argus.rebuilding.record import MADE, SCHEMAS, WAS, ask, table_of
from memory.models import Note

#: Rows that stay though they were not made again, as people, or notes that stay, stand on them.
STAY = {
    "memory_episode": "EXISTS (SELECT FROM was.memory_note n WHERE n.episode_id = was.id AND NOT"
    " EXISTS (SELECT FROM public.memory_note m WHERE m.id = n.id))"
    " OR EXISTS (SELECT FROM was.memory_gaterejection g"
    " JOIN was.memory_rejectiondecision d ON d.rejection_id = g.id WHERE g.episode_id = was.id)",
    "memory_note": "true",
    "memory_evidence": "NOT EXISTS (SELECT FROM public.memory_note n WHERE n.id = was.note_id)",
    "memory_gaterejection": "EXISTS (SELECT FROM was.memory_rejectiondecision d"
    " WHERE d.rejection_id = was.id) OR EXISTS (SELECT FROM was.memory_rejectedfact f"
    " WHERE f.rejection_id = was.id)",
    "memory_dedupverdict": "EXISTS (SELECT FROM was.memory_decision d WHERE d.verdict_id = was.id)"
    " OR EXISTS (SELECT FROM was.memory_note n WHERE n.id IN (was.note_id, was.target_id)"
    " AND NOT EXISTS (SELECT FROM public.memory_note m WHERE m.id = n.id))",
}

#: Tables whose rows keep their number, or name, from one rebuild to the next: others point to them.
NUMBERED = frozenset(
    (
        "memory_episode",
        "memory_note",
        "memory_evidence",
        "memory_gaterejection",
        "memory_dedupverdict",
    )
)


@dataclass(frozen=True)
class Part:
    """What of one table goes, and what comes: rows of the columns in order, as COPY gives them."""

    model: type[models.Model]
    columns: tuple[str, ...]
    goes: tuple[Any, ...]
    comes: IO[bytes]


@dataclass(frozen=True)
class Ready:
    """All that differs. `unmade` are notes that stay, retired;
    `notes` those that come, or come otherwise."""

    parts: tuple[Part, ...]
    unmade: tuple[Any, ...]
    notes: tuple[Any, ...]


def gather() -> Ready:
    """What differs, read out of the throwaway database."""
    _equal_rows_keep_their_number()
    parts = []
    unmade: tuple[Any, ...] = ()
    changed: tuple[Any, ...] = ()
    for model in MADE:
        with _differing(model) as differs:
            stay, goes = _gone(model, differs)
            if model is Note:
                unmade = stay
                changed = tuple(
                    pk for (pk,) in ask(f"SELECT now FROM {differs} WHERE now IS NOT NULL")
                )
            columns = tuple(
                str(one.column)
                for one in model._meta.concrete_fields
                if table_of(model) in NUMBERED or not one.primary_key
            )
            parts.append(Part(model, columns, goes, _coming(model, columns, differs)))
    return Ready(tuple(parts), unmade, changed)


@contextmanager
def _differing(model: type[models.Model]) -> Iterator[str]:
    """A table of what differs, row by row: the number that it had, and the one that it has."""
    table = table_of(model)
    was = select(model, schemas=SCHEMAS, without=ASIDE).removeprefix("SELECT ")
    now = select(model, without=ASIDE).removeprefix("SELECT ")
    same = "w.id = n.id AND w.row = n.row" if table in NUMBERED else "w.row = n.row"
    differs = f"{WAS}.differs"
    ask(
        f"CREATE TABLE {differs} AS SELECT w.id AS was, n.id AS now"
        f" FROM (SELECT it.id AS id, {was}) w (id, row)"
        f" FULL JOIN (SELECT it.id AS id, {now}) n (id, row) ON {same}"
        " WHERE w.id IS NULL OR n.id IS NULL"
    )
    yield differs
    ask(f"DROP TABLE {differs}")


def _gone(model: type[models.Model], differs: str) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Rows that were not made again: those that stay all the same, and those that go."""
    table = table_of(model)
    # A row whose number is there again is overwritten, and goes nowhere.
    again = f"NOT EXISTS (SELECT FROM public.{table} n WHERE n.id = was.id)"
    gone = ask(
        f"SELECT was.id, {STAY.get(table, 'false')} FROM {WAS}.{table} was"
        f" JOIN {differs} d ON d.was = was.id WHERE {again if table in NUMBERED else 'true'}"
    )
    return tuple(pk for pk, stays in gone if stays), tuple(pk for pk, stays in gone if not stays)


def _coming(model: type[models.Model], columns: Sequence[str], differs: str) -> IO[bytes]:
    """The rows that come, in a file that has no name: after a change of the code all may differ,
    and they hold the vectors."""
    # Why no `with`: whoever enters them closes it; else it goes with the last who knows of it.
    file = TemporaryFile()  # noqa: SIM115
    query = sql.SQL(
        "COPY (SELECT {} FROM public.{} it JOIN {} d ON d.now = it.id ORDER BY it.id)"
        " TO STDOUT (FORMAT BINARY)"
    ).format(
        sql.SQL(", ").join(sql.Identifier("it", column) for column in columns),
        sql.Identifier(table_of(model)),
        sql.Identifier(*differs.split(".")),
    )
    source: psycopg.Connection = connection.connection
    with source.cursor() as cursor, cursor.copy(query) as rows:
        for block in rows:
            file.write(block)
    return file


def _equal_rows_keep_their_number() -> None:
    """Evidence has no name but what it says: a row that came out as it was keeps its number."""
    with connection.cursor() as cursor:
        cursor.execute(
            "WITH was AS (SELECT *, row_number() OVER (PARTITION BY note_id, raw_item_id, start,"
            f' "end", parent_id, origin, created_at ORDER BY id) AS n FROM {WAS}.memory_evidence),'
            " now AS (SELECT *, row_number() OVER (PARTITION BY note_id, raw_item_id, start,"
            ' "end", parent_id, origin, created_at ORDER BY id) AS n FROM public.memory_evidence)'
            " UPDATE public.memory_evidence e SET id = was.id FROM was JOIN now"
            " ON now.note_id = was.note_id AND now.n = was.n"
            " AND now.raw_item_id IS NOT DISTINCT FROM was.raw_item_id"
            " AND now.start IS NOT DISTINCT FROM was.start"
            ' AND now."end" IS NOT DISTINCT FROM was."end"'
            " AND now.parent_id IS NOT DISTINCT FROM was.parent_id"
            " AND now.origin = was.origin AND now.created_at = was.created_at"
            " WHERE e.id = now.id AND e.id <> was.id"
        )
