"""Purge: raw items and all that derives from them go for ever, in one transaction.

Reads: everything that may hold their words. Writes: by the function argus_purge alone, which the
database trusts to. Audits: purge_ledger (by that function), purge_proof, act. Knows nothing about
files, pages and what other apps keep: their rows go by their foreign keys.
Verify: memory.proof.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import IntegrityError, OperationalError, connection, transaction

from memory import proof, rejected, returned
from memory.acts import record_act, tidy_reason
from memory.errors import Conflict, RefusedError
from memory.models import Evidence, Note, Principal, PurgeLedger, PurgeProof, RawItem
from memory.scan import look, text_columns
from memory.selection import RELEASABLE, Selection, choose, matches
from memory.text.numbers import Numbers
from memory.text.passages import Passages

#: Rows that are read at once.
ROWS_AT_ONCE = 500

#: Tables whose rows are things of their own and not what was said of one.
THINGS = ("memory_note", "memory_taskitem", "memory_taskevent")

#: How long a purge, or a look at one, waits for whoever has a row in hand.
LOCK_SECONDS = 30

#: Times that a purge is tried when somebody writes something that stands on what goes, meanwhile.
TRIES_MAX = 3


@dataclass(frozen=True)
class Reach:
    """What hangs on what was asked for, as ids; `named`: rows by table that it names itself."""

    selection: Selection
    items: tuple[int, ...]
    notes: tuple[UUID, ...]
    episodes: tuple[int, ...]
    owners: tuple[int, ...]
    named: Mapping[str, Sequence[str]]

    @property
    def nothing(self) -> bool:
        return not self.items and not any(self.named.values())


@dataclass(frozen=True)
class Plan:
    """What would go, as ids. `everything`: its words; `words`: those that nothing else of the same
    owners says, by which rows of theirs are known that quote them. `forbidden`: notes that would be
    learned again, from items that stay. `everyones`: it was asked for so. `counts`: rows by table,
    where they were asked for."""

    selection: Selection
    items: tuple[int, ...]
    notes: tuple[UUID, ...]
    owners: tuple[int, ...]
    rows: Mapping[str, Sequence[str]]
    words: Passages
    everything: Passages
    forbidden: tuple[UUID, ...] = ()
    everyones: bool = False
    counts: Mapping[str, int] = field(default_factory=dict)

    @property
    def nothing(self) -> bool:
        return not self.items and not any(self.rows.values())

    def told_of(self, by: Principal) -> list[int] | None:
        """Ids of those whose rows whoever purges is told of; None: everybody's."""
        return None if self.everyones else sorted({*self.owners, by.pk})

    def unwanted(self, *, forbid: bool) -> set[UUID]:
        """Notes whose words are refused from then on: those of `forbidden`, and where all are
        asked for, all that go."""
        return {*self.forbidden, *(self.notes if forbid else ())}


@dataclass(frozen=True)
class Purged:
    """What went: the number of the ledger's row, rows by table, statements that were forbidden, and
    those of its notes that were before."""

    ledger: int
    counts: Mapping[str, int]
    forbidden: int
    known: int
    proof: PurgeProof


def may_purge_all(principal: Principal) -> bool:
    """Whether this one may purge what is not theirs."""
    user = principal.user
    return user is not None and user.is_active and user.has_perm("memory.see_all")


def reach(asked: Selection, *, by: Principal, everyones: bool = False) -> Reach:
    """Look what hangs on it: no row is locked, and no text is read but for a pattern. What quotes
    it elsewhere `plan` finds. Raises as `choose` does."""
    chosen = choose(asked, by=by, everyones=everyones)
    reached = _call("argus_purge_reach", list(chosen.items), dict(chosen.rows))
    return Reach(
        asked,
        tuple(reached["item_ids"]),
        tuple(map(UUID, reached["note_ids"])),
        tuple(reached["episode_ids"] or ()),
        tuple(reached["owner_ids"]),
        chosen.rows,
    )


def plan(asked: Selection, *, by: Principal, everyones: bool = False, counted: bool = True) -> Plan:
    """Look what would go, and change nothing. `counted`: to the row, by table, from a purge that is
    undone. Raises as `choose` does; RefusedError for more words than can be known, Conflict where
    others are at work on them."""
    reached = reach(asked, by=by, everyones=everyones)
    items, notes = reached.items, reached.notes
    # Where no item goes, what goes is a note's.
    owners = reached.owners or _owners_of(notes)
    everything = _passages(items, notes)
    said = _said_elsewhere(everything, items)
    own = _said_elsewhere(everything.only(said), items, owners) if said else said
    words = everything.without(own)
    quoting = _quoting(words, everything.without(said), owners)
    rows = _merged(reached.named, dict(quoting))
    # What a note says of a turn that stays is that turn's.
    everything = everything.without(said.without(_said_in(everything.only(said), items)))
    again = _learned_again(rows.get("memory_note", ()), items)
    made = Plan(asked, items, notes, owners, rows, words, everything, again, everyones)
    return replace(made, counts=_rehearse(made)) if counted else made


def purge(what: Plan, *, by: Principal, reason: str, now: datetime, forbid: bool = False) -> Purged:
    """Remove it. `forbid`: what the notes say is never to be learned again by whoever owned them;
    that of `what.forbidden` is not in any case.

    Raises RefusedError without a reason, for one that says the very words, and where there is
    nothing to remove; Conflict when others kept writing on what was to go.
    """
    reason = tidy_reason(reason)
    if not reason:
        raise RefusedError("a purge needs a reason: it is all that is left of it")
    if what.nothing:
        raise RefusedError("there is nothing to purge")
    if what.everything.in_text(reason) or matches(what.selection.matching, reason):
        raise RefusedError("the reason says what is to be purged: it would stay in the ledger")
    for left in reversed(range(TRIES_MAX)):
        try:
            return _carry_out(what, by=by, reason=reason, now=now, forbid=forbid)
        except (IntegrityError, OperationalError) as error:
            if isinstance(error, OperationalError) and not _in_each_others_way(error):
                raise
            if not left:
                raise Conflict(
                    "others kept writing on what was to go: nothing was purged, try again"
                ) from error
    raise AssertionError


@transaction.atomic
def _carry_out(what: Plan, *, by: Principal, reason: str, now: datetime, forbid: bool) -> Purged:
    _wait_no_longer()
    forbidden, known = _forbid(what.unwanted(forbid=forbid), by=by, now=now)
    told = _call("argus_purge", list(what.items), by.name, reason, dict(what.rows))
    if not told["tables"]:
        raise Conflict("all of it is gone by now: somebody else purged it")
    ledger = PurgeLedger.objects.get(pk=told["ledger"])
    row = PurgeProof.objects.create(
        # Nobody has looked yet. It stands here for whoever finds that nobody ever did.
        ledger=ledger,
        proved=False,
        scanned=proof.measures(
            what.everything, what.told_of(by), what.owners, returned.twins(ledger, what.owners)
        ),
        shingles=proof.kept(what.everything),
        files_pending=True,
        created_at=now,
    )
    record_act(
        by, "purge", "purge", told["ledger"], now=now, reason=reason,
        detail={"items": len(what.items), "notes": told["notes"], "forbidden": forbidden},
    )  # fmt: skip
    return Purged(told["ledger"], told["tables"], forbidden, known, row)


def _owners_of(notes: Sequence[UUID]) -> tuple[int, ...]:
    rows = Note.objects.as_pipeline().filter(pk__in=notes).order_by("owner")
    return tuple(rows.values_list("owner", flat=True).distinct())


def forget_statistics() -> None:
    """What the planner remembers are values of columns: have it look again."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT argus_analyze()")


def _rehearse(what: Plan) -> dict[str, int]:
    """Rows by table, from the purge itself, which is then undone: what is told is what would be."""
    with patient():
        told = _call("argus_purge", list(what.items), "nobody", "a look", dict(what.rows))
        transaction.set_rollback(True)
    counts: dict[str, int] = told["tables"]
    return counts


@contextmanager
def patient() -> Iterator[None]:
    """One transaction that waits for whoever has a row in hand, or is at a purge, and not for ever.
    Raises Conflict where they were longer."""
    try:
        with transaction.atomic():
            _wait_no_longer()
            yield
    except OperationalError as error:
        if not _in_each_others_way(error):
            raise
        raise Conflict(
            f"others were at work on what would go for more than {LOCK_SECONDS} seconds, a purge"
            " maybe: nothing was changed, try again later"
        ) from error


def _wait_no_longer() -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"SET LOCAL lock_timeout = '{LOCK_SECONDS}s'")


def _in_each_others_way(error: OperationalError) -> bool:
    # Deadlock, or a lock that did not come.
    return getattr(error.__cause__, "sqlstate", "") in ("40P01", "55P03")


def _call(function: str, *arguments: Any) -> dict[str, Any]:
    given = [json.dumps(one) if isinstance(one, dict) else one for one in arguments]
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {function}({', '.join(['%s'] * len(given))})", given)
        answer: dict[str, Any] = json.loads(cursor.fetchone()[0])
    return answer


def _learned_again(notes: Iterable[str], items: Sequence[int]) -> tuple[UUID, ...]:
    """Notes that go for what they say, of items that stay: whoever distills these again would make
    the same note."""
    stay = Evidence.objects.filter(note__in=map(UUID, notes), raw_item__isnull=False)
    found = stay.exclude(raw_item__in=items).order_by("note").values_list("note", flat=True)
    return tuple(found.distinct())


def _passages(items: Sequence[int], notes: Sequence[UUID]) -> Passages:
    """The words of what is to go."""
    words = Passages()
    for body in _bodies(items):
        words.add(body)
    for some in _parts(notes):
        found = Note.objects.as_pipeline().filter(pk__in=some)
        for content, *others in found.values_list("content", "title", "question", "answer"):
            words.add(content)
            for text in others:
                # Why not the short ones: a title like "The job queue" stands in many a text.
                words.add(text, short=False)
    return words


def _bodies(items: Sequence[int]) -> Iterator[str]:
    for some in _parts(items):
        rows = RawItem.objects.as_pipeline().filter(pk__in=some)
        yield from rows.values_list("body", flat=True)


def _said_in(words: Passages, items: Sequence[int]) -> Numbers:
    """What of these words the items say."""
    said = Numbers()
    for body in _bodies(items) if words else ():
        said.update(words.in_text(body))
    return said


def _parts(rows: Sequence[Any]) -> Iterator[Sequence[Any]]:
    return (rows[at : at + ROWS_AT_ONCE] for at in range(0, len(rows), ROWS_AT_ONCE))


def _said_elsewhere(
    words: Passages, items: Iterable[int], owners: Sequence[int] | None = None
) -> Numbers:
    """What of these words the rest of the record says as well: of these owners, or of all."""
    record = text_columns()[proof.RECORD]
    skip = frozenset(map(str, items))
    whose = None if owners is None else ("owner_id", owners)
    said = Numbers()
    for _, held in look(record, words, skip=skip, among=whose):
        for numbers in held.values():
            said.update(numbers)
    return said


def _quoting(
    own: Passages, alone: Passages, owners: Sequence[int]
) -> Iterator[tuple[str, list[str]]]:
    """Rows that hold these words whatever they hang on: of the owners of what goes, who say them
    nowhere else (`own`), and of the house, where nobody else does (`alone`)."""
    tables = text_columns()
    for table, column in RELEASABLE.items():
        words = own if column else alone
        if table not in tables or not words:
            continue
        where = (column, owners) if column else None
        # Why: a note, or a task, that happens to say three of the same words is none of it.
        known = words.long() if table in THINGS else words
        found = [pk for pk, held in look(tables[table], known, among=where) if held]
        if found:
            yield table, found


def _merged(
    first: Mapping[str, Sequence[str]], second: Mapping[str, Sequence[str]]
) -> dict[str, list[str]]:
    return {
        table: sorted({*first.get(table, ()), *second.get(table, ())})
        for table in {**first, **second}
    }


def _forbid(notes: Collection[UUID], *, by: Principal, now: datetime) -> tuple[int, int]:
    """What these notes say is refused from now on: how many, and how many were refused already. One
    without a word is known by nothing, and neither."""
    made, known = 0, 0
    for note in Note.objects.as_pipeline().filter(pk__in=notes).select_related("owner"):
        try:
            rejected.forbid(note.content, owner=note.owner, by=by, now=now)
        except Conflict:
            known += 1
        except RefusedError:
            continue
        else:
            made += 1
    return made, known
