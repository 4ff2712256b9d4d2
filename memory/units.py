"""What the name of a unit stands for: `episode:KEY`, `item:ID`, `note:ID`, `session:ID`.

Reads: episode, raw_item, note, session. Knows nothing about claims or what is done with a unit.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any
from uuid import UUID

from django.db.models import QuerySet

from memory.models import Episode, Note, Principal, RawItem, Session


def owner_id(unit: str) -> int | None:
    """Whose the unit is; None when it is gone or nobody's."""
    kind, _, key = unit.partition(":")
    rows = _rows(kind, [key], None)
    return None if rows is None else rows.values_list("owner_id", flat=True).first()


def visible(units: Iterable[str], principal: Principal) -> set[str]:
    """Those of these units whose source the principal may see."""
    keys: dict[str, list[str]] = defaultdict(list)
    for unit in units:
        kind, _, key = unit.partition(":")
        keys[kind].append(key)
    seen: set[str] = set()
    for kind, named in keys.items():
        rows = _rows(kind, named, principal)
        if rows is None:
            continue
        column = "unit_key" if kind == "episode" else "pk"
        found = rows.values_list(column, flat=True)
        seen |= {str(key) if kind == "episode" else f"{kind}:{key}" for key in found}
    return seen


def _rows(kind: str, keys: list[str], principal: Principal | None) -> QuerySet[Any] | None:
    """The rows that these names stand for, as far as `principal` sees them (None: all of them)."""
    if kind == "session":
        sessions = Session.objects.filter(pk__in=filter(str.isdigit, keys))
        return sessions.filter(owner=principal) if principal else sessions
    model: Any = {"episode": Episode, "item": RawItem, "note": Note}.get(kind)
    if model is None:
        return None
    rows: QuerySet[Any] = (
        model.objects.visible_to(principal) if principal else model.objects.as_pipeline()
    )
    if kind == "episode":
        return rows.filter(unit_key__in=[f"episode:{key}" for key in keys])
    return rows.filter(pk__in=_primary(kind, keys))


def _primary(kind: str, keys: list[str]) -> list[Any]:
    """Primary keys from the text of names; what is none stands for nothing."""
    if kind == "item":
        return [int(key) for key in keys if key.isdigit()]
    made = []
    for key in keys:
        try:
            made.append(UUID(key))
        except ValueError:
            continue
    return made
