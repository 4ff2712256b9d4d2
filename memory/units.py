"""What the name of a unit stands for: `episode:KEY`, `item:ID`, `note:ID`, `session:ID`.

Reads: episode, raw_item, note, session. Knows nothing about claims or what is done with a unit.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any
from uuid import UUID

from django.db.models import BooleanField, QuerySet
from django.db.models.expressions import RawSQL

from memory.models import Episode, Note, Principal, RawItem, Session
from memory.querysets import OwnedQuerySet, condition, mates_of

#: The ids of those who share a group with the principal, where they are known already; looked up
#: where they are not.
Mates = tuple[int, ...]

_NOTE = r"^note:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"


def owner_id(unit: str) -> int | None:
    """Whose the unit is; None when it is gone or nobody's."""
    kind, _, key = unit.partition(":")
    rows = _rows(kind, [key], None)
    return None if rows is None else rows.values_list("owner_id", flat=True).first()


def visible(units: Iterable[str], principal: Principal) -> set[str]:
    """Those of these units whose source the principal may see."""
    return _those(units, principal, deciding=False)


def decidable(
    units: Iterable[str], principal: Principal, *, mates: Mates | None = None
) -> set[str]:
    """Those of these units whose fate the principal may settle: what strangers show to everybody is
    there to be read alone."""
    return _those(units, principal, deciding=True, mates=mates)


def _those(
    units: Iterable[str], principal: Principal, *, deciding: bool, mates: Mates | None = None
) -> set[str]:
    found: set[str] = set()
    for kind, named in _by_kind(units).items():
        rows = _rows(kind, named, principal, deciding=deciding, mates=mates)
        if rows is None:
            continue
        column = "unit_key" if kind == "episode" else "pk"
        keys = rows.values_list(column, flat=True)
        found |= {str(key) if kind == "episode" else f"{kind}:{key}" for key in keys}
    return found


def owners(units: Iterable[str]) -> dict[str, int]:
    """Whose each of these units is; what is gone or nobody's is left out. One query a kind."""
    found: dict[str, int] = {}
    for kind, named in _by_kind(units).items():
        rows = _rows(kind, named, None)
        if rows is None:
            continue
        column = "unit_key" if kind == "episode" else "pk"
        for key, owner in rows.values_list(column, "owner_id"):
            found[str(key) if kind == "episode" else f"{kind}:{key}"] = owner
    return found


def seen_by(
    rows: QuerySet[Any],
    principal: Principal,
    *,
    deciding: bool = False,
    mates: Mates | None = None,
) -> QuerySet[Any]:
    """Rows with a `unit` whose source the principal may see, or (`deciding`) settle: `visible` and
    `decidable`, asked of the database, for lists that are longer than what is read of them."""
    table = rows.model._meta.db_table
    # Looked up first: to plan with their ids takes a third of what it takes to plan for them.
    mates = mates_of(principal) if mates is None else mates
    where, given = condition(_scoped(Episode, principal, deciding=deciding, mates=mates))
    # What all three share (`OwnedQuerySet`), put together once and said of each table.
    sources = {
        name: (where.replace('"memory_episode"', f'"{name}"'), given)
        for name in ("memory_episode", "memory_rawitem", "memory_note")
    }
    sources["memory_session"] = ("memory_session.owner_id = %s", [principal.pk])
    found, params = [], []
    for kind, named, source, column, key in _KINDS:
        where, given = sources[source]
        told = f"split_part(one.unit, ':', 2)::{key}" if key else "one.unit"
        # CASE: what is no such name is never cast, whatever the planner asks first. Its kind alone
        # in WHERE, which costs a tenth of a pattern.
        found.append(
            f"SELECT one.id FROM {table} one JOIN {source}"
            f" ON {source}.{column} = CASE WHEN one.unit ~ '{named}' THEN {told} END"
            f" WHERE starts_with(one.unit, '{kind}:') AND ({where})"
        )
        params += given
    # As an array, made once: of a list behind IN the planner expects a single row.
    seen = f"{table}.id = ANY(ARRAY({' UNION ALL '.join(found)}))"
    return rows.filter(RawSQL(seen, params, output_field=BooleanField()))


#: Kind of unit, what its name looks like, the table of its kind, the column that it tells, and the
#: type of what stands behind the colon; nothing where the column holds the whole name.
# Why joins, one a kind: asked row by row, the answer takes longer with every unit of a stranger.
_KINDS = (
    ("episode", "^episode:", "memory_episode", "unit_key", ""),
    ("item", "^item:[0-9]{1,18}$", "memory_rawitem", "id", "bigint"),
    ("note", _NOTE, "memory_note", "id", "uuid"),
    ("session", "^session:[0-9]{1,18}$", "memory_session", "id", "bigint"),
)


def _by_kind(units: Iterable[str]) -> dict[str, list[str]]:
    keys: dict[str, list[str]] = defaultdict(list)
    for unit in units:
        kind, _, key = unit.partition(":")
        keys[kind].append(key)
    return keys


def _rows(
    kind: str,
    keys: list[str],
    principal: Principal | None,
    *,
    deciding: bool = False,
    mates: Mates | None = None,
) -> QuerySet[Any] | None:
    """The rows that these names stand for, as far as `principal` sees or settles them (None: all of
    them)."""
    if kind == "session":
        sessions = Session.objects.filter(pk__in=_numbers(keys))
        return sessions.filter(owner=principal) if principal else sessions
    model: Any = {"episode": Episode, "item": RawItem, "note": Note}.get(kind)
    if model is None:
        return None
    rows: QuerySet[Any] = (
        _scoped(model, principal, deciding=deciding, mates=mates)
        if principal
        else model.objects.as_pipeline()
    )
    if kind == "episode":
        return rows.filter(unit_key__in=[f"episode:{key}" for key in keys])
    return rows.filter(pk__in=_primary(kind, keys))


def _scoped(
    model: Any,
    principal: Principal,
    *,
    deciding: bool,
    mates: Mates | None = None,
) -> OwnedQuerySet:
    rows: OwnedQuerySet = model.objects.all()
    if deciding:
        return rows.decidable_by(principal, mates=mates)
    return rows.visible_to(principal, mates=mates)


def _primary(kind: str, keys: list[str]) -> list[Any]:
    """Primary keys from the text of names; what is none stands for nothing."""
    if kind == "item":
        return _numbers(keys)
    made = []
    for key in keys:
        try:
            made.append(UUID(key))
        except ValueError:
            continue
    return made


def _numbers(keys: Iterable[str]) -> list[int]:
    """Ids from the text of names: a bigint has no more than 18 digits whatever they are."""
    return [int(k) for k in keys if k.isascii() and k.isdigit() and len(k) <= 18]
