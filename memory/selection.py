"""What somebody asks to be purged: from ids, a session, a project, a person or a pattern to the
raw items, and to the other rows that hold the words.

Reads: raw_item, note, evidence, episode, project, principal, and the tables of RELEASABLE.
Writes: nothing. Knows nothing about what goes with an item.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from django.db import DataError, OperationalError, connection, transaction
from django.db.models import Q
from psycopg import sql

from memory.attribution import family
from memory.errors import NotFound, RefusedError
from memory.models import Evidence, Note, Principal, RawItem
from memory.projects import find
from memory.scan import Columns, rows_of, text_columns, texts

#: Table -> the column that says whose a row is ("" for rows of the house). Rows of these are
#: emptied or removed when they hold the words, whatever they hang on; argus_purge says which.
RELEASABLE: dict[str, str] = {
    "memory_note": "owner_id",
    "memory_injection": "owner_id",
    "memory_act": "principal_id",
    "memory_decision": "principal_id",
    "memory_rejectiondecision": "principal_id",
    "memory_feedback": "principal_id",
    "memory_dedupverdict": "owner_id",
    "memory_gaterejection": "owner_id",
    "memory_capturereceipt": "owner_id",
    "memory_distillfailure": "owner_id",
    "memory_proposal": "owner_id",
    "memory_taskitem": "owner_id",
    "memory_taskevent": "principal_id",
    "memory_session": "owner_id",
    "recall_calibration": "principal_id",
    "memory_stagerun": "",
    "memory_claim": "",
    "memory_cooldown": "",
    "memory_purgeledger": "",
    "memory_modelreply": "",
    "django_session": "",
    "django_q_ormq": "",
    "django_q_task": "",
}

#: How long a pattern may look for what it matches.
# Why: a pattern that goes back and forth over a megabyte never ends by itself.
MATCHING_SECONDS = 60

NO_END = f"the pattern found no end in {MATCHING_SECONDS} seconds: make it simpler"

#: Characters of texts that are held against a pattern at once.
BATCH_CHARACTERS = 4_000_000

#: Characters of a pattern.
PATTERN_CHARACTERS_MAX = 1_000

#: Notes climbed from a note to what it was made of.
PARENTS_DEEP_MAX = 20


@dataclass(frozen=True)
class Selection:
    """What was asked for; one of them, but that `owner` may stand beside the others."""

    raw: tuple[int, ...] = ()
    notes: tuple[UUID, ...] = ()
    session: str = ""
    project: str = ""
    owner: str = ""
    matching: str = ""


@dataclass(frozen=True)
class Chosen:
    """Ids of raw items, and of further rows by table, as texts."""

    items: tuple[int, ...] = ()
    rows: Mapping[str, Sequence[str]] = field(default_factory=dict)


def choose(asked: Selection, *, by: Principal, everyones: bool) -> Chosen:
    """The rows that are meant. `everyones`: `by` may purge what is not theirs, and does so when
    they name ids or an owner.

    Raises NotFound for what is not there or not theirs, RefusedError for a selection of nothing, of
    two things at once, or a pattern that cannot be used.
    """
    named = [asked.raw, asked.notes, asked.session, asked.project, asked.matching]
    if sum(map(bool, named)) > 1 or not (any(named) or asked.owner):
        raise RefusedError(
            "say what is to go, in one way: raw items, notes, a session, a project, a pattern; or"
            " an owner, alone or beside one of these"
        )
    whose = _owner(asked.owner, by, everyones)
    if asked.raw or asked.notes:
        mine = None if everyones and not asked.owner else whose
        return _by_raw(asked.raw, mine) if asked.raw else _by_notes(asked.notes, mine)
    items = RawItem.objects.as_pipeline().filter(owner=whose)
    if asked.matching:
        return _by_pattern(asked.matching, whose, house=everyones)
    if asked.session:
        items = items.filter(session=asked.session)
    elif asked.project:
        here = family(find(asked.project).pk)
        items = items.filter(Q(project__in=here) | Q(placed__episode__project__in=here))
    found = tuple(items.order_by("pk").values_list("pk", flat=True))
    if asked.owner and not any(named):
        return Chosen(found, dict(_all_of(whose)))
    if not found:
        what = f"session {asked.session}" if asked.session else f"project {asked.project}"
        raise NotFound(f"nothing of yours is of the {what}")
    return Chosen(found)


def _owner(name: str, by: Principal, everyones: bool) -> Principal:
    if not name or name == by.name:
        return by
    found = Principal.objects.filter(name=name).first() if everyones else None
    if found is None:
        raise NotFound(f"no owner {name}, or not yours to purge")
    return found


def _by_raw(ids: Collection[int], whose: Principal | None) -> Chosen:
    items = RawItem.objects.as_pipeline().filter(pk__in=ids)
    items = items if whose is None else items.filter(owner=whose)
    found = set(items.values_list("pk", flat=True))
    if missing := sorted(set(ids) - found):
        raise NotFound(f"no raw item {', '.join(map(str, missing[:10]))}")
    return Chosen(tuple(sorted(found)))


def _by_notes(ids: Collection[UUID], whose: Principal | None) -> Chosen:
    """The notes, and the raw items that they were made of, by way of other notes as well."""
    notes = Note.objects.as_pipeline().filter(pk__in=ids)
    notes = notes if whose is None else notes.filter(owner=whose)
    owners = dict(notes.values_list("pk", "owner"))
    if missing := sorted(set(ids) - set(owners), key=str):
        raise NotFound(f"no note {', '.join(map(str, missing[:10]))}")
    seen, ahead, items = set(owners), set(owners), set[int]()
    for _ in range(PARENTS_DEEP_MAX):
        edges = Evidence.objects.filter(note__in=ahead).values_list(
            "raw_item", "raw_item__owner", "parent", "parent__owner"
        )
        ahead = set()
        for item, owner, parent, parents in edges:
            # What bears a note out and is somebody else's stays theirs.
            if item is not None and owner in owners.values():
                items.add(item)
            if parent is not None and parent not in seen and parents in owners.values():
                ahead.add(parent)
        seen |= ahead
        if not ahead:
            break
    return Chosen(tuple(sorted(items)), {"memory_note": sorted(map(str, owners))})


def _by_pattern(pattern: str, whose: Principal, *, house: bool) -> Chosen:
    """What of this owner holds a text that the pattern matches, and what of the house, for
    somebody to whom it belongs."""
    if len(pattern) > PATTERN_CHARACTERS_MAX:
        raise RefusedError(f"a pattern has {PATTERN_CHARACTERS_MAX} characters at most")
    tables = text_columns()
    found: dict[str, list[str]] = {}
    with transaction.atomic():
        _check(pattern)
        try:
            for table, column in {"memory_rawitem": "owner_id", **RELEASABLE}.items():
                if table in tables and (column or house):
                    ids = _matching(tables[table], pattern, (column, whose.pk) if column else None)
                    if ids:
                        found[table] = ids
        except OperationalError as error:
            raise RefusedError(NO_END) from error
    if not found:
        raise NotFound("no text of yours matches the pattern")
    items = tuple(sorted(map(int, found.pop("memory_rawitem", ()))))
    return Chosen(items, found)


def matches(pattern: str, text: str) -> bool:
    """Whether a pattern that was looked for, if any was, matches this text."""
    return bool(pattern and _matched([("", text)], pattern))


def matching(pattern: str, bodies: Sequence[str]) -> set[int]:
    """Which of these texts a pattern matches, by their place. Raises RefusedError as `choose`
    does."""
    with transaction.atomic():
        _check(pattern)
        try:
            texts_ = [(str(at), body) for at, body in enumerate(bodies)]
            return set(map(int, _matched(texts_, pattern)))
        except OperationalError as error:
            raise RefusedError(NO_END) from error


def _check(pattern: str) -> None:
    """Raises RefusedError for a pattern that Postgres does not understand, and for one that
    matches everything."""
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SELECT '' ~ %s", [pattern])
            everything = cursor.fetchone()[0]
            cursor.execute(f"SET LOCAL statement_timeout = '{MATCHING_SECONDS}s'")
    except DataError as error:
        raise RefusedError(str(error).split("\n")[0]) from error
    except ValueError as error:
        raise RefusedError(f"no pattern: {error}") from error
    if everything:
        raise RefusedError("the pattern matches every text, an empty one as well")


def _matching(columns: Columns, pattern: str, mine: tuple[str, int] | None) -> list[str]:
    """Ids of the rows of a table in which a text matches; `mine`: the column of the owner and its
    value, if only theirs count."""
    where: sql.Composable = sql.SQL("true")
    params: list[int] = []
    if mine:
        where, params = sql.SQL("{} = %s").format(sql.Identifier(mine[0])), [mine[1]]
    found: list[str] = []
    batch: list[tuple[str, str]] = []
    size = 0
    for pk, values in rows_of(columns, where=where, params=params):
        for text in (one for value in values.values() for one in texts(value)):
            batch.append((pk, text))
            size += len(text)
        if size > BATCH_CHARACTERS:
            found += _matched(batch, pattern)
            batch, size = [], 0
    found += _matched(batch, pattern)
    return list(dict.fromkeys(found))


def _matched(batch: Sequence[tuple[str, str]], pattern: str) -> list[str]:
    # Why by Postgres, of texts that were just read there: compressed and signed ones it cannot
    # read, its patterns hardly ever run away, and one that does is stopped.
    texts_ = [text.replace("\0", " ") for _, text in batch]
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT at FROM unnest(%s::text[]) WITH ORDINALITY AS one (text, at) WHERE text ~ %s",
            [texts_, pattern],
        )
        return [batch[at - 1][0] for (at,) in cursor.fetchall()]


def _all_of(whose: Principal) -> Iterator[tuple[str, list[str]]]:
    """Everything that is theirs and holds a text, for whoever leaves."""
    tables = text_columns()
    for table, column in RELEASABLE.items():
        if column and table in tables:
            where = sql.SQL("{} = %s").format(sql.Identifier(column))
            key = Columns(table, tables[table].key, tables[table].names[:1])
            if ids := [pk for pk, _ in rows_of(key, where=where, params=[whose.pk])]:
                yield table, ids
