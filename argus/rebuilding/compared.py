"""What a rebuild made otherwise than it was: counts a table, and the notes for a person.

Reads: a throwaway database, the schema `was` beside what was made. Knows nothing about what is done
with a difference.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from django.db import connection, models

from argus.canonical import Digest, digests, kept, select
from argus.rebuilding.record import MADE, SCHEMAS, WAS, ask, table_of
from memory.models import Note

#: Columns that are not compared: by which run a row was made, and vectors, which are brought over.
ASIDE = ("run_id", "embedding")

#: Notes named of each kind of difference.
NOTES_NAMED_MAX = 10


@dataclass(frozen=True)
class Rows:
    """A table: rows that are the same, that there are more, and that are there no more. A changed
    row is one of each."""

    same: int
    more: int
    less: int


@dataclass(frozen=True)
class Told:
    """A note that is otherwise now, and in which columns, where it was there before."""

    note: str
    title: str
    columns: tuple[str, ...] = ()


@dataclass(frozen=True)
class Difference:
    """What came out: rows by table; notes that appear, that are not made again, that changed; how
    many of each there are in all."""

    tables: Mapping[str, Rows]
    appear: tuple[Told, ...]
    vanish: tuple[Told, ...]
    change: tuple[Told, ...]
    notes: Mapping[str, int]

    @property
    def nothing(self) -> bool:
        return not any(one.more or one.less for one in self.tables.values())


def compare() -> Difference:
    """Hold what was made against what was. In the throwaway database."""
    tables = {table_of(model): _rows(model) for model in MADE}
    found = {"appear": _notes(APPEAR), "vanish": _notes(VANISH), "change": _notes(_change())}
    named = {kind: tuple(told) for kind, (_, told) in found.items()}
    return Difference(tables, **named, notes={kind: many for kind, (many, _) in found.items()})


def made() -> dict[str, Digest]:
    """The digests of what was made."""
    return digests(MADE)


def _rows(model: type[models.Model]) -> Rows:
    was = select(model, schemas=SCHEMAS, without=ASIDE)
    now = select(model, without=ASIDE)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT coalesce(sum(least(was, now)), 0), coalesce(sum(greatest(now - was, 0)), 0),"
            " coalesce(sum(greatest(was - now, 0)), 0) FROM (SELECT row, sum(was) AS was,"
            f" sum(now) AS now FROM (SELECT row, 1 AS was, 0 AS now FROM ({was}) w (row)"
            f" UNION ALL SELECT row, 0, 1 FROM ({now}) n (row)) each GROUP BY row) counted"
        )
        return Rows(*map(int, cursor.fetchone()))


APPEAR = f"""
SELECT n.id, n.title, ARRAY[]::text[] FROM memory_note n
WHERE NOT EXISTS (SELECT FROM {WAS}.memory_note w WHERE w.id = n.id) ORDER BY n.created_at, n.id
"""

VANISH = f"""
SELECT w.id, w.title, ARRAY[]::text[] FROM {WAS}.memory_note w
WHERE NOT EXISTS (SELECT FROM memory_note n WHERE n.id = w.id) ORDER BY w.created_at, w.id
"""


def _change() -> str:
    columns = [str(one.column) for one in kept(Note, ASIDE)]
    # An episode is told by its number here, which stays with it.
    differs = ", ".join(
        f"CASE WHEN n.{name} IS DISTINCT FROM w.{name} THEN '{name}' END" for name in columns
    )
    return (
        f"SELECT * FROM (SELECT n.id, n.title, array_remove(ARRAY[{differs}], NULL) AS changed"
        f" FROM memory_note n JOIN {WAS}.memory_note w ON w.id = n.id) both_of_them"
        " WHERE cardinality(changed) > 0 ORDER BY id"
    )


def _notes(query: str) -> tuple[int, list[Told]]:
    """How many notes it finds, and the first of them."""
    found = ask(f"SELECT count(*) OVER (), one.* FROM ({query}) one LIMIT {NOTES_NAMED_MAX}")
    told = [Told(str(pk), title, tuple(columns)) for _, pk, title, columns in found]
    return int(found[0][0]) if found else 0, told
