"""The export log: what was done last to each page, what was ever written, and rows for what comes.

Reads: exported_file, emission. Writes: exported_file, emission. Knows nothing about files.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection, transaction

from exporter.models import ExportedFile
from exporter.moves import Last, Log
from exporter.plan import Row
from memory.ledger import VAULT
from memory.models import Emission, Principal, StageRun

LAST = """
SELECT DISTINCT ON (key) key, path, action, sha256, size, note_id
FROM exporter_exportedfile WHERE owner_id = %s AND (action = 'conflict') = %s
ORDER BY key, id DESC
"""

# Why one JSON array each: it is made and read in C; the model instances of a batch, and a
# parameter for each of their columns, cost four times as much.
LOG = f"""
INSERT INTO {ExportedFile._meta.db_table}
    (run_id, owner_id, created_at, note_id, kind, key, path, action, sha256, size)
SELECT %s, %s, %s, note, kind, key, path, action, sha256, size FROM json_to_recordset(%s::json)
AS new(note uuid, kind text, key text, path text, action text, sha256 text, size integer)
"""
EMIT = f"""
INSERT INTO {Emission._meta.db_table} (owner_id, kind, created_at, reference, sha256, shingles)
SELECT %s, %s, %s, reference, sha256, shingles FROM json_to_recordset(%s::json)
AS new(reference text, sha256 text, shingles bigint[])
ON CONFLICT DO NOTHING
"""
THERE = "SELECT id FROM memory_note WHERE id = ANY(%s) ORDER BY id FOR KEY SHARE"


@dataclass(frozen=True)
class Book:
    """The last row of each page, conflicts apart; `sizes` in bytes, `notes` as the row has it."""

    last: Mapping[str, Last]
    clashes: Mapping[str, tuple[str, str]]
    sizes: Mapping[str, int]
    notes: Mapping[str, UUID | None]

    def standing(self, but: Collection[str] = ()) -> list[tuple[str, str, int]]:
        """What should lie in the vault: (path, hash and bytes of our part), those keys left out."""
        return self._lying((key, one) for key, one in self._standing() if key not in but)

    def resting(self, but: Collection[str] = ()) -> list[tuple[str, str, int]]:
        """The same of what rests: a person may have taken it away."""
        rest = ((key, one) for key, one in self.last.items() if one.rests and key not in but)
        return self._lying(rest)

    def at_rest(self) -> list[UUID]:
        """The notes of pages that rest."""
        rest = (self.notes.get(key) for key, one in self.last.items() if one.rests)
        return sorted(note for note in rest if note is not None)

    def left(self) -> dict[str, set[str]]:
        """Where files of ours lay that were removed, and none does by now: by path, whose."""
        standing = {one.path for _, one in self._standing()}
        left: dict[str, set[str]] = defaultdict(set)
        for key, one in self.last.items():
            if one.action == "removed" and one.path not in standing:
                left[one.path].add(key)
        return left

    def _lying(self, some: Iterable[tuple[str, Last]]) -> list[tuple[str, str, int]]:
        return sorted((one.path, one.sha256, self.sizes[key]) for key, one in some)

    def _standing(self) -> Iterable[tuple[str, Last]]:
        return ((key, one) for key, one in self.last.items() if one.stands)


@dataclass(frozen=True)
class Echo:
    """A sample of a page that leaves for a file: `reference` is the page, `sha256` of our part."""

    reference: str
    sha256: str
    shingles: Sequence[int]


def read(owner: Principal | None) -> Book:
    """What the log says of every page of an owner."""
    if owner is None:
        return Book({}, {}, {}, {})
    rows = _rows(LAST, [owner.pk, False])
    clashes = _rows(LAST, [owner.pk, True])
    return Book(
        last={key: Last(path, action, sha) for key, path, action, sha, _, _ in rows},
        clashes={key: (path, sha) for key, path, _, sha, _, _ in clashes},
        sizes={key: size for key, _, _, _, size, _ in rows},
        notes={key: note for key, _, _, _, _, note in [*clashes, *rows]},
    )


def position(owner: Principal) -> str:
    """How long the log of an owner is and where it ends: it grew, or a purge took rows out of it,
    when this is another."""
    counted = _rows(
        "SELECT count(*), max(id) FROM exporter_exportedfile WHERE owner_id = %s", [owner.pk]
    )
    return "{}:{}".format(*counted[0])


def places(owner: Principal) -> tuple[set[str], set[str]]:
    """Where files of ours lie by the log, and where any ever lay."""
    rows = _rows(LAST, [owner.pk, False])
    lie = {path for _, path, action, _, _, _ in rows if action != "removed"}
    ever = _rows(
        "SELECT DISTINCT path FROM exporter_exportedfile"
        " WHERE owner_id = %s AND action <> 'conflict'",
        [owner.pk],
    )
    return lie, {path for (path,) in ever}


def owed(owner: Principal, mark: str) -> bool:
    """Whether files were touched since the last export of this vault that committed: a commit may
    have failed since, and where git is new to the vault there is none."""
    committed = StageRun.objects.filter(stage="export", report__place=mark)
    last = committed.exclude(report__commit="").order_by("-pk").values_list("pk", flat=True).first()
    rows = ExportedFile.objects.as_pipeline().filter(owner=owner, run__gt=last or 0)
    return rows.exclude(action="conflict").exists()


def folders(owner: Principal) -> set[str]:
    """Folders that files of ours were put into; not those where a person had moved one to."""
    paths = _rows(
        "SELECT DISTINCT path FROM exporter_exportedfile WHERE owner_id = %s"
        " AND action IN ('written', 'renamed', 'retired')",
        [owner.pk],
    )
    return {path.rpartition("/")[0] for (path,) in paths}


def history(
    book: Book, owner: Principal | None, keys: Collection[str], shas: Collection[str]
) -> Log:
    """The log with all that was ever written for these pages. Of a purged note no row is left, but
    the emissions of its page: of those `shas` are what lies in the vault now."""
    if owner is None or not keys:
        return Log(book.last, clashes=book.clashes)
    hashes: dict[str, set[str]] = defaultdict(set)
    paths: dict[str, set[str]] = defaultdict(set)
    for key, path, sha in _rows(
        "SELECT DISTINCT key, path, sha256 FROM exporter_exportedfile"
        " WHERE owner_id = %s AND key = ANY(%s) AND action <> 'conflict'",
        [owner.pk, sorted(keys)],
    ):
        hashes[key].add(sha)
        paths[key].add(path)
    for key, sha in _rows(
        "SELECT reference, sha256 FROM memory_emission"
        " WHERE owner_id = %s AND kind = %s AND sha256 = ANY(%s)",
        [owner.pk, VAULT, sorted(shas)],
    ):
        hashes[key].add(sha)
    unknown = sorted(key for key in keys if key not in book.last)
    purged = {key for key in unknown if key in hashes}
    if left := [key for key in unknown if key not in purged]:
        purged |= {
            key
            for (key,) in _rows(
                "SELECT DISTINCT reference FROM memory_emission"
                " WHERE owner_id = %s AND kind = %s AND reference = ANY(%s)",
                [owner.pk, VAULT, left],
            )
        }
    return Log(
        last=book.last,
        hashes={key: frozenset(found) for key, found in hashes.items()},
        paths={key: frozenset(found) for key, found in paths.items()},
        purged=frozenset(purged),
        clashes=book.clashes,
    )


@transaction.atomic
def write(
    run: StageRun,
    owner: Principal,
    rows: Sequence[Row],
    echoes: Sequence[Echo],
    *,
    notes: Mapping[str, UUID | None],
    now: datetime,
) -> set[str]:
    """Rows for what is about to be done, and samples of the texts that leave. `notes`: whose words
    a page's path holds, by key. The keys whose note was purged meanwhile: of those there is no row,
    and nothing may be written.
    """
    asked = {row.key: note for row in rows if (note := notes.get(row.key)) is not None}
    # A purge in the middle of it is waited for; then it waits for us.
    there = {pk for (pk,) in _rows(THERE, [sorted(set(asked.values()))])}
    gone = {key for key, note in asked.items() if note not in there}
    logged = [
        {
            "note": str(note) if (note := notes.get(row.key)) else None,
            "kind": kind_of(row.key), "key": row.key, "path": row.path, "action": row.action,
            "sha256": row.sha256, "size": row.size,
        }
        for row in rows
        if row.key not in gone
    ]  # fmt: skip
    told = [
        {"reference": one.reference, "sha256": one.sha256, "shingles": list(one.shingles)}
        for one in echoes
        if one.shingles and one.reference not in gone
    ]
    with connection.cursor() as cursor:
        if logged:
            cursor.execute(LOG, [run.pk, owner.pk, now, json.dumps(logged)])
        if told:
            cursor.execute(EMIT, [owner.pk, VAULT, now, json.dumps(told)])
    return gone


def kind_of(key: str) -> str:
    """Which kind of page has this key."""
    kind = key.partition(":")[0]
    return kind if kind in ("hub", "index") else "note"


def _rows(sql: str, parameters: list[Any]) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        return list(cursor.fetchall())
