"""The proof of a purge: a second look for its words, in every text there is, by nothing that the
purge itself went by.

Reads: every column of every table that may hold a text (memory.scan), and files. Writes:
purge_proof. Audits: purge_proof is the audit. Knows nothing about what a purge removes.
Verify: a column that was added by hand is looked at; a row that says the same is told.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import asdict, dataclass, field
from datetime import datetime
from heapq import nsmallest
from itertools import islice
from pathlib import Path
from typing import Any

from django.db import connection
from psycopg import sql

from memory import returned
from memory.folders import file_id, in_file, walk
from memory.models import PurgeLedger, PurgeProof
from memory.scan import Columns, look, text_columns
from memory.text.numbers import Numbers
from memory.text.passages import Passages, known

#: Ids of rows that a proof tells of one column.
IDS_TOLD_MAX = 100

#: Windows that are kept to prove a purge again, as numbers.
# Why whole windows alone: a number of eight words gives nobody the words, one of a short text does.
SHINGLES_KEPT_MAX = 4_096

#: Where the words of a purge may stand because somebody said them.
RECORD = "memory_rawitem"

#: What stands for the column of what nobody could read: it may hold anything.
UNREAD = "cannot be read"

#: What stands for the column of raw items that were purged and came back.
BACK = "came back"

#: What stands for the table of files, which a proof counts, and of databases beside ours.
# Why without their names: the name of a page is a title, and a proof stays for ever.
FILES = "files"
COPIES = "databases"


@dataclass(frozen=True)
class Elsewhere:
    """Words that still stand: `place` is a table, FILES or COPIES, `count` how many rows of it,
    `ids` the first of them that may be named. `by_right`: another raw item says the same; of what
    others say by right whoever may not see it is told nothing."""

    place: str
    column: str
    ids: tuple[str, ...]
    count: int
    by_right: bool


@dataclass(frozen=True)
class Found:
    """What a look found: where, among how many columns, rows and files. `paths`: of the files, for
    whoever asked, and for nothing that stays."""

    elsewhere: tuple[Elsewhere, ...] = ()
    columns: int = 0
    rows: int = 0
    files: int = 0
    paths: tuple[str, ...] = ()
    wrongly: Set[int] = frozenset()

    @property
    def wrong(self) -> tuple[Elsewhere, ...]:
        """What does not stand there by right."""
        return tuple(one for one in self.elsewhere if not one.by_right)


@dataclass(frozen=True)
class Shown:
    """A proof that was written down, and the files that it counts."""

    row: PurgeProof
    paths: tuple[str, ...]


@dataclass(frozen=True)
class Aside:
    """What a proof is told beside what it looks at itself. `left`: what a pattern still matches,
    None where there was none; `ended`: that look came to its end; `copies`: names of databases that
    may hold a copy of the record."""

    left: Sequence[Elsewhere] | None = None
    ended: bool = True
    copies: tuple[str, ...] = ()


def search(
    words: Passages,
    *,
    folders: Sequence[Path] = (),
    owners: Collection[int] | None = None,
    back: Set[str] = frozenset(),
) -> Found:
    """Where these words stand: in the tables, and in the files below these folders. `owners`: whose
    rows are named, where not everybody's are. `back`: raw items that were purged and are here."""
    books = _Books(owners=None if owners is None else frozenset(owners))
    books.look(words, folders)
    return books.found(None, back)


def prove(
    ledger: PurgeLedger,
    words: Passages,
    *,
    again: PurgeProof | None = None,
    owners: Collection[int] | None = None,
    of: Collection[int] = (),
    twins: Collection[int] | None = None,
    folders: Sequence[Path] = (),
    files_pending: bool = False,
    aside: Aside | None = None,
    now: datetime,
) -> Shown:
    """Look for the words of a purge and write down what was found: the newest proof counts.

    `again`: the proof whose kept windows these words are, where the words themselves are gone. If
    it did not keep all of them the look is a sample: it proves nothing, and clears nothing that it
    has no number of. Words too short to be looked for prove nothing, too, nor does no look.
    `of`: whose items went; `twins`: as `memory.returned` tells them, when they had just gone.
    """
    aside = aside or Aside()
    base = measures(words, owners, of, twins) if again is None else _base(again)
    sampled = again is not None and not whole(again)
    # Nothing of what has just gone is back.
    back = frozenset[str]() if again is None else _back(again)
    found = search(words, folders=folders, owners=base["owners"], back=back)
    elsewhere = [*found.elsewhere, *(aside.left or ())]
    if again is not None and base["unkept"]:
        elsewhere += _still(again, folders)
    if aside.copies:
        elsewhere.append(Elsewhere(COPIES, UNREAD, aside.copies, len(aside.copies), False))
    numbers = kept(words, first=found.wrongly)
    if again is None:
        kept_ = set(numbers)
        base["unkept"] = sum(one not in kept_ for one in found.wrongly) + len(aside.left or ())
    looked = bool(words) and not base["too_short"] and not sampled
    row: PurgeProof = PurgeProof.objects.create(
        ledger=ledger,
        proved=not elsewhere and aside.ended and (looked or aside.left is not None),
        elsewhere=[asdict(one) for one in elsewhere],
        scanned={
            **base,
            "columns": found.columns,
            "rows": found.rows,
            "files": found.files,
            **({"sampled": True} if sampled else {}),
            **({} if aside.ended else {"pattern": "found no end"}),
        },
        shingles=numbers,
        files_pending=files_pending,
        created_at=now,
    )
    return Shown(row, found.paths)


def measures(
    words: Passages,
    owners: Collection[int] | None = None,
    of: Collection[int] | None = None,
    twins: Collection[int] | None = None,
) -> dict[str, Any]:
    """How much is looked for, in numbers, and whose rows a proof may name. `unkept`: numbers of
    words that were found and cannot be looked for again; `of`: whose items went; `twins`: raw items
    of theirs that say the same and stayed, None where that is not known."""
    return {
        "windows": len(words.windows),
        "short": words.shorts(),
        "too_short": words.left_out,
        "unkept": 0,
        "owners": None if owners is None else sorted(owners),
        "of": None if of is None else sorted(of),
        "twins": None if twins is None else sorted(twins),
    }


def whole(row: PurgeProof) -> bool:
    """Whether what this proof kept is all that it was about."""
    base = _base(row)
    some = base["short"] or base["too_short"]
    return not some and base["windows"] == len(row.shingles)


def _base(row: PurgeProof) -> dict[str, Any]:
    return {name: row.scanned.get(name, value) for name, value in measures(Passages()).items()}


def owners_of(row: PurgeProof) -> list[int] | None:
    """Ids of those whose things went; None where nobody knows. Proofs of before say whose rows they
    may name: of those it was."""
    base = _base(row)
    of: list[int] | None = base["owners"] if base["of"] is None else base["of"]
    return of


def _back(row: PurgeProof) -> frozenset[str]:
    return frozenset(map(str, returned.back(row) or ()))


def kept(words: Passages, *, first: Collection[int] = ()) -> list[int]:
    """The numbers by which a purge is proved again: those of `first`, and of the others evenly
    taken, the same ones each time."""
    windows = words.windows
    found = set(nsmallest(SHINGLES_KEPT_MAX, (one for one in first if one in windows)))
    room = SHINGLES_KEPT_MAX - len(found)
    step = -(-(len(windows) - len(found)) // room) if room else 0
    if not step:
        return sorted(found)
    others = (one for one in _in_order(windows) if one not in found)
    return sorted([*found, *islice(others, 0, None, step)])


def _in_order(windows: Set[int]) -> Iterable[int]:
    return windows if isinstance(windows, Numbers) else sorted(windows)


UNFINISHED = """
SELECT ledger_id FROM (SELECT DISTINCT ON (ledger_id) ledger_id, files_pending, elsewhere
    FROM memory_purgeproof ORDER BY ledger_id, id DESC) newest
WHERE files_pending OR EXISTS (SELECT FROM jsonb_array_elements(elsewhere) one
    WHERE NOT (one -> 'by_right')::boolean)
ORDER BY ledger_id
"""


def unfinished() -> list[int]:
    """Purges of which something is to be done: nobody looked yet, files wait, or their words stand
    where they should not. What stands by right is told with the purge, and is nothing to do."""
    with connection.cursor() as cursor:
        cursor.execute(UNFINISHED)
        return [pk for (pk,) in cursor.fetchall()]


def prove_again_all(
    proofs: Collection[PurgeProof], *, folders: Sequence[Path] = ()
) -> dict[int, Found]:
    """Where words of these proofs' purges stand now, as far as the shingles that were kept tell,
    with one look at each table; by the proof's id. Writes nothing."""
    numbers = {proof.pk: frozenset(proof.shingles) for proof in proofs}
    words = known(one for shingles in numbers.values() for one in shingles)
    books = _Books()
    if words:
        books.look(words, folders)
    return {proof.pk: books.found(numbers[proof.pk], _back(proof)) for proof in proofs}


def _still(last: PurgeProof, folders: Sequence[Path]) -> list[Elsewhere]:
    """What the last proof found and this one has no number of: it stands until it is gone."""
    tables = text_columns()
    here = {file_id(str(path)) for path in walk(folders)}
    stays = []
    for told in last.elsewhere:
        one = Elsewhere(**{**told, "ids": tuple(told["ids"])})
        # The look itself finds these again.
        if one.by_right or one.column in (UNREAD, BACK) or one.place == COPIES:
            continue
        if one.place == FILES:
            gone = one.ids and one.count == len(one.ids) and not here & set(one.ids)
        else:
            at = tables.get(one.place)
            gone = at is None or (
                one.count == len(one.ids) and not _ids(at, list(one.ids), owners=None)
            )
        if not gone:
            stays.append(one)
    return stays


def _ids(columns: Columns, ids: Sequence[str], *, owners: frozenset[int] | None) -> list[str]:
    """Those of these rows that there are; only those of these owners, and of the house."""
    statement = sql.SQL("SELECT {key}::text FROM {table} WHERE {key}::text = ANY(%s)").format(
        key=columns.id, table=columns.place
    )
    values: list[Any] = [list(ids)]
    if owners is not None and columns.owner:
        theirs = sql.SQL(" AND ({0} IS NULL OR {0} = ANY(%s))")
        statement += theirs.format(sql.Identifier(columns.owner))
        values.append(list(owners))
    statement += sql.SQL(" ORDER BY {}").format(columns.id)
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return [pk for (pk,) in cursor.fetchall()]


@dataclass
class _Books:
    """What one look at everything found. `held`: by table and column, of each row that holds some
    of it its id and the numbers; `right`: what the record still says."""

    owners: frozenset[int] | None = None
    tables: Mapping[str, Columns] = field(default_factory=dict)
    held: dict[tuple[str, str], list[tuple[str, array[int]]]] = field(default_factory=dict)
    right: Numbers = field(default_factory=Numbers)
    columns: int = 0
    rows: int = 0
    files: int = 0
    unread: list[str] = field(default_factory=list)

    def look(self, words: Passages, folders: Sequence[Path]) -> None:
        self.tables = tables = text_columns()
        # The record first: what it still says stands everywhere by right.
        for name in sorted(tables, key=lambda table: (table != RECORD, table)):
            self.columns += len(tables[name].names)
            for pk, found in look(tables[name], words):
                self.rows += 1
                for column, numbers in found.items():
                    self.held.setdefault((name, column), []).append((pk, array("q", numbers)))
                    if name == RECORD:
                        self.right.update(numbers)
        for path in walk(folders, self.unread):
            self.files += 1
            try:
                here = in_file(path, words)
            except OSError:
                self.unread.append(str(path))
                continue
            if here:
                self.held.setdefault((FILES, ""), []).append((str(path), array("q", here)))

    def found(self, among: frozenset[int] | None, back: Set[str] = frozenset()) -> Found:
        """What was found of these numbers, or of all. `back`: raw items that stand there without
        right, and give none to others."""
        told: list[Elsewhere] = []
        paths: list[str] = []
        wrongly = Numbers()
        right = self._right_but(back) if back else self.right
        for (place, column), rows in self.held.items():
            here: dict[bool, list[str]] = {False: [], True: []}
            for pk, numbers in rows:
                mine = [one for one in numbers if among is None or one in among]
                wrong = [one for one in mine if one not in right]
                wrongly.update(wrong)
                if mine and not (place == RECORD and pk in back):
                    here[not wrong].append(pk)
            for by_right, ids in here.items():
                named, count = self._told(place, ids, by_right)
                if count:
                    told.append(Elsewhere(place, column, named, count, by_right))
                    paths += ids if place == FILES else []
        if back:
            named, count = self._told(RECORD, sorted(back, key=int), by_right=False)
            told.append(Elsewhere(RECORD, BACK, named, count, by_right=False))
        told += (
            Elsewhere(name, UNREAD, table.unread[:IDS_TOLD_MAX], len(table.unread), False)
            for name, table in self.tables.items()
            if table.unread
        )
        if self.unread:
            unread = tuple(map(file_id, self.unread[:IDS_TOLD_MAX]))
            told.append(Elsewhere(FILES, UNREAD, unread, len(self.unread), False))
        return Found(
            tuple(told), self.columns, self.rows, self.files,
            (*paths, *self.unread), wrongly,
        )  # fmt: skip

    def _right_but(self, back: Set[str]) -> Numbers:
        """What the record says beside these items."""
        right = Numbers()
        for (place, _), rows in self.held.items():
            for pk, numbers in rows if place == RECORD else ():
                right.update(() if pk in back else numbers)
        return right

    def _told(self, place: str, ids: Sequence[str], by_right: bool) -> tuple[tuple[str, ...], int]:
        """The first of these rows and how many there are, for whoever is told of them."""
        some = ids[:IDS_TOLD_MAX]
        if place == FILES:
            return tuple(map(file_id, some)), len(ids)
        if self.owners is None:
            return tuple(some), len(ids)
        # Why no number either: who purges a guess would learn how many say the same in private.
        at = self.tables[place]
        if not at.owner:
            # Whose a row is that hangs on another's it does not say itself.
            return ((), 0) if by_right else (tuple(some), len(ids))
        mine = _ids(at, ids, owners=self.owners)
        return tuple(mine[:IDS_TOLD_MAX]), len(mine) if by_right else len(ids)


def named(row: PurgeProof, folders: Sequence[Path]) -> list[str]:
    """The files that a proof counts, of those that lie below these folders still."""
    ids = {pk for one in row.elsewhere if one["place"] == FILES for pk in one["ids"]}
    return [str(path) for path in walk(folders) if file_id(str(path)) in ids] if ids else []
