"""Every text that the database holds: which columns there are is asked of the database itself, so
that one that was added yesterday is read like any other, and one that may not be read is known.

Reads: the catalog, and every table of every schema. Writes: nothing. Knows nothing about what is
looked for, nor about what any column means.
"""

from __future__ import annotations

import base64
import binascii
import json
import pickletools
import re
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from django.db import connection, transaction
from psycopg import sql

from memory.text.passages import Passages

#: Types of columns that hold texts, beside all that are strings to Postgres.
TEXT_TYPES = ("json", "jsonb", "xml", "bytea", "tsvector", "hstore")

#: Columns that say whose a row is, the first that a table has.
OWNING = ("owner_id", "principal_id")

#: Rows that are in memory at once.
# Why: a row may hold a raw item of a megabyte, and most hold a kilobyte.
ROWS_AT_ONCE = 500

#: Bytes of a compressed text that are unpacked at once, and how many of them are read again with
#: the next: a window may lie across.
UNPACKED_BYTES_MAX = 32 * 1024 * 1024
OVERLAP_BYTES = 64 * 1024

#: A value that a framework signed: the payload of a queued task, the data of a session.
# Why: they are base64, often of a compressed text, and hold words that nobody reads there.
SIGNED_CHARACTERS_MIN = 24
_SIGNED = re.compile(r"^\.?[A-Za-z0-9_\-=]+(:[A-Za-z0-9_\-]+){1,2}$")

#: What base64 of a pickle, or of what is compressed, begins with: the arguments of a task that ran.
PACKED = "geH"
PICKLE = b"\x80"

#: What zlib and gzip begin with, and bits of their window by which either is known.
ZLIB, GZIP = b"\x78", b"\x1f\x8b"
EITHER = 32 + zlib.MAX_WBITS
_PACKED = re.compile(r"^[A-Za-z0-9+/]+={0,2}$")

# What stands for a character in JSON and in Python.
_ESCAPED = re.compile(r'\\(?:u([0-9a-fA-F]{4})|([nrtbf"/\\]))')


@dataclass(frozen=True)
class Columns:
    """A table's columns that hold texts, and the one that names its rows ("" for none). `plain`:
    those that are a text and nothing else; `sorted_`: those that hold words by the alphabet;
    `unread`: those that we may not read; `owner`: the column that says whose a row is, or ""."""

    table: str
    key: str
    names: tuple[str, ...]
    plain: frozenset[str] = frozenset()
    sorted_: frozenset[str] = frozenset()
    unread: tuple[str, ...] = ()
    owner: str = ""
    schema: str = "public"

    @property
    def place(self) -> sql.Composable:
        """The table, for a statement."""
        return sql.Identifier(self.schema, self.table)

    @property
    def id(self) -> sql.Composable:
        """What names a row, for a statement."""
        return sql.Identifier(self.key) if self.key else sql.SQL("ctid")


# Tables and materialized views of every schema but the server's own, and of foreign tables that
# there are such. Why by the catalog: information_schema shows what one may read, and hides the
# rest. What belongs to an extension and may not be read is the extension's.
COLUMNS = """
SELECT n.nspname::text, c.relname::text, a.attname::text, t.typname::text,
    c.relkind <> 'f' AND has_schema_privilege(n.oid, 'USAGE')
        AND has_column_privilege(c.oid, a.attnum, 'SELECT') AS readable,
    (SELECT min(k.attname::text) FROM pg_index i JOIN pg_attribute k
        ON k.attrelid = c.oid AND k.attnum = ANY(i.indkey)
        WHERE i.indrelid = c.oid AND i.indisprimary HAVING count(*) = 1),
    (SELECT o.attname::text FROM pg_attribute o WHERE o.attrelid = c.oid AND NOT o.attisdropped
        AND o.attname = ANY(%(owning)s) ORDER BY array_position(%(owning)s, o.attname::text)
        LIMIT 1)
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
JOIN pg_type d ON d.oid = a.atttypid
JOIN pg_type t ON t.oid = CASE WHEN d.typtype = 'd' THEN d.typbasetype ELSE d.oid END
LEFT JOIN pg_type e ON e.oid = t.typelem AND t.typcategory = 'A'
WHERE c.relkind IN ('r', 'm', 'f') AND n.nspname <> 'information_schema'
    AND n.nspname !~ '^pg_'
    AND (coalesce(e.typcategory, t.typcategory) = 'S'
        OR coalesce(e.typname, t.typname) = ANY(%(types)s))
    AND NOT (EXISTS (SELECT FROM pg_depend p WHERE p.classid = 'pg_class'::regclass
            AND p.objid = c.oid AND p.deptype = 'e')
        AND NOT has_column_privilege(c.oid, a.attnum, 'SELECT'))
ORDER BY n.nspname <> 'public', 1, 2, a.attnum
"""


def text_columns() -> dict[str, Columns]:
    """All tables with a column that may hold a text, by name; of another schema than `public` by
    `schema.name`."""
    with connection.cursor() as cursor:
        cursor.execute(COLUMNS, {"types": list(TEXT_TYPES), "owning": list(OWNING)})
        rows = cursor.fetchall()
    tables: dict[str, Columns] = {}
    for schema, table, column, kind, readable, key, owner in rows:
        name = table if schema == "public" else f"{schema}.{table}"
        at = tables.get(name) or Columns(table, key or "", (), owner=owner or "", schema=schema)
        if not readable:
            at = replace(at, unread=(*at.unread, column))
        else:
            at = replace(at, names=(*at.names, column))
            if kind in ("text", "varchar"):
                at = replace(at, plain=at.plain | {column})
            elif kind == "tsvector":
                at = replace(at, sorted_=at.sorted_ | {column})
        tables[name] = at
    return tables


def rows_of(
    columns: Columns,
    *,
    where: sql.Composable | None = None,
    params: Collection[Any] = (),
    shortest: int = 0,
) -> Iterator[tuple[str, dict[str, Any]]]:
    """(id, value by column) of each row, from a cursor of the server's. A text of fewer bytes than
    `shortest` stays there: most columns of a row are a word."""
    few = sql.SQL("CASE WHEN octet_length({0}) >= " + str(shortest) + " THEN {0} END")
    # Words in the order in which they stood.
    spoken = sql.SQL(
        "(SELECT string_agg(w.lexeme, ' ' ORDER BY at) FROM unnest({0}) w, unnest(w.positions) at)"
    )

    def told(name: str) -> sql.Composable:
        if name in columns.sorted_:
            return spoken.format(sql.Identifier(name))
        short = shortest and name in columns.plain
        return few.format(sql.Identifier(name)) if short else sql.Identifier(name)

    if not columns.names:
        return
    statement = sql.SQL("SELECT {key}::text, {columns} FROM {table}").format(
        key=columns.id,
        columns=sql.SQL(", ").join(map(told, columns.names)),
        table=columns.place,
    )
    if where is not None:
        statement += sql.SQL(" WHERE ") + where
    # Why a transaction: else the server keeps a copy of the whole table for the cursor.
    with transaction.atomic(), connection.chunked_cursor() as cursor:
        cursor.execute(statement, list(params))
        while rows := cursor.fetchmany(ROWS_AT_ONCE):
            for pk, *values in rows:
                yield pk, dict(zip(columns.names, values, strict=True))


def look(
    columns: Columns,
    words: Passages,
    *,
    skip: Collection[str] = (),
    among: tuple[str, Sequence[int]] | None = None,
) -> Iterator[tuple[str, dict[str, set[int]]]]:
    """Of each row of a table what its columns hold: (id, numbers by column), nothing for most.
    `words`: what of a text counts; `skip`: ids of rows that are not looked at; `among`: a column,
    and what stands in it where a row is looked at, if anything does."""
    where, params = None, []
    if among is not None:
        column = sql.Identifier(among[0])
        where = sql.SQL("({0} IS NULL OR {0} = ANY(%s))").format(column)
        params = [list(among[1])]
    for pk, values in rows_of(columns, where=where, params=params, shortest=words.shortest):
        if pk in skip:
            continue
        held: dict[str, set[int]] = {}
        for name, value in values.items():
            # An object without anything in it is told as two characters.
            if value is None or (isinstance(value, str) and len(value) < words.shortest):
                continue
            if found := {one for text in texts(value) for one in words.in_text(text)}:
                held[name] = found
        yield pk, held


def texts(value: Any) -> Iterator[str]:
    """Every text in a value: of lists and objects each one by itself, keys included, of bytes what
    they were before they were compressed, of a signed value what was signed."""
    if isinstance(value, str):
        if value[:1] in ("{", "[", '"') and (inner := _json(value)) is not None:
            yield from texts(inner)
            return
        yield value
        if "\\" in value and (plain := _ESCAPED.sub(_meant, value)) != value:
            # JSON with words before it, or in a fence: its line breaks look like letters.
            yield from texts(plain)
        if len(value) >= SIGNED_CHARACTERS_MIN:
            if ":" in value and _SIGNED.match(value):
                yield from _unsigned(value.split(":")[0].removeprefix("."))
            elif value[0] in PACKED and _PACKED.match(value):
                yield from _unsigned(value)
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield str(key)
            yield from texts(inner)
    elif isinstance(value, (list, tuple)):
        for inner in value:
            yield from texts(inner)
    elif isinstance(value, (bytes, bytearray, memoryview)):
        for text in _unpacked(bytes(value)):
            yield from texts(text)


def _json(value: str) -> Any:
    # Django reads jsonb as text. A text of somebody's that happens to be JSON is none the worse.
    try:
        found = json.loads(value)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, (dict, list)) else None


def _unpacked(data: bytes) -> Iterator[str]:
    """The text of bytes that are UTF-8, compressed or not; of others what can be read in them."""
    if data[:1] == PICKLE:
        yield from _pickled(data)
    if data.startswith((ZLIB, GZIP)):
        with suppress(zlib.error):
            yield from _decompressed(data)
            return
    if data:
        yield data.decode("utf-8", "replace")


def _decompressed(data: bytes) -> Iterator[str]:
    """What was compressed, all of it, by pieces that fit into memory."""
    unpacking, last = zlib.decompressobj(EITHER), b""
    piece = unpacking.decompress(data, UNPACKED_BYTES_MAX)
    while piece:
        if not last and piece[:1] == PICKLE:
            yield from _pickled(piece)
        yield (last + piece).decode("utf-8", "replace")
        last = piece[-OVERLAP_BYTES:]
        tail = unpacking.unconsumed_tail
        if unpacking.eof and (tail := unpacking.unused_data).startswith(GZIP):
            # A log that was rotated is gzip after gzip.
            unpacking = zlib.decompressobj(EITHER)
        piece = unpacking.decompress(tail, UNPACKED_BYTES_MAX) if not unpacking.eof else b""


def _meant(found: re.Match[str]) -> str:
    code, one = found.groups()
    return chr(int(code, 16)) if code else one if one in '"/\\' else " "


def _unsigned(body: str) -> Iterator[str]:
    """The texts of what is base64, of either alphabet."""
    body = body.replace("-", "+").replace("_", "/")
    try:
        data = base64.b64decode(body + "=" * (-len(body) % 4), validate=True)
    except (binascii.Error, ValueError):
        return
    for text in _unpacked(data):
        yield from texts(text)


def _pickled(data: bytes) -> Iterator[str]:
    """The texts of a pickle, which is read and never loaded."""
    with suppress(ValueError, IndexError, KeyError, EOFError, OverflowError):
        for _, value, _ in pickletools.genops(data):
            if isinstance(value, (str, bytes, bytearray)):
                yield value if isinstance(value, str) else value.decode("utf-8", "replace")
