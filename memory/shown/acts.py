"""The list of acts: whose somebody sees, how it is narrowed, where the thing of an act is shown.

Reads: act, access_key, principal. Knows nothing about requests, nor about what a thing is: only
the name of its page.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.db.models import Q, QuerySet
from django.urls import NoReverseMatch, reverse

from memory.models import AccessKey, Act, Principal
from memory.models.act import DOORS
from memory.text.seen import visible
from memory.web.listing import Choice, Column, Day, Filter, Words
from memory.web.marks import CUT

#: Kind of thing -> (page of one, what its id is), or (list, parameter that finds one), or (list,
#: where on it such things stand).
# Why not the things' own rows: what was done stays on the list when the thing is gone.
PLACES: dict[str, tuple[str, Any]] = {
    "verdict": ("review-hold", int),
    "note": ("note", UUID),
    "rejection": ("rejection", int),
    "rejected_fact": ("rejections", {"shelf": "forbid"}),
    "project": ("project", int),
    "injection": ("injection", int),
    "run": ("run", int),
    "task": ("task", int),
    "feed": ("note", UUID),
    "key": ("keys", "q"),
    "unit": ("parked", "q"),
    "floors": ("floors", ""),
    "ranker": ("floors", ""),
    "person": ("audit", "q"),
    "owners": ("", ""),
    "purge": ("purge", "done"),
    "ledger": ("purge", ""),
    "database": ("", ""),
    "data": ("", ""),
}

#: Characters of an id, and of a reason or a detail, in a row; an export has all of them.
REFERENCE_CHARACTERS_MAX, REASON_CHARACTERS_MAX = 80, 400

#: People offered as a filter.
PEOPLE_MAX = 200


@dataclass(frozen=True)
class Told:
    """An act as a page shows it: `link` leads to its thing, "" where there is no such page."""

    act: Act
    link: str
    reference: str
    reason: str
    detail: str


def visible_acts(principal: Principal, *, everyones: bool = False) -> QuerySet[Act]:
    """What somebody did, and what others did to its keys and its roles; everybody's acts for a
    superuser who asked. Not what group mates did to their own rows: reasons are words of theirs."""
    rows = Act.objects.select_related("principal", "key")
    if everyones:
        return rows
    prefixes = AccessKey.objects.filter(principal=principal).values("prefix")
    keys = Q(kind="key", reference__in=prefixes)
    person = Q(kind="person", reference=principal.name)
    return rows.filter(Q(principal=principal) | keys | person)


def filters(*, everyones: bool) -> tuple[Filter, ...]:
    """How the list is narrowed; by person only where there is more than one."""
    people: tuple[Filter, ...] = ()
    if everyones:
        names = Principal.objects.order_by("name").values_list("name", flat=True)[:PEOPLE_MAX]
        people = (
            Choice(
                "who",
                "Who",
                [(name, name) for name in names],
                apply=lambda rows, name: rows.filter(principal__name=name),
            ),
        )
    return (
        Words("q", "Id or reason", apply=_words),
        *people,
        Words("verb", "Did", apply=lambda rows, verb: rows.filter(verb__istartswith=verb)),
        Choice("kind", "To a", [(kind, kind) for kind in PLACES]),
        Choice("door", "By way of", [(door, door) for door in DOORS]),
        Day("since", "Since", "created_at__gte"),
        Day("until", "Until", "created_at__lt"),
    )


def _words(rows: Any, text: str) -> Any:
    return rows.filter(Q(reference=text) | Q(reason__icontains=text))


COLUMNS = (
    Column("id", lambda act: act.pk),
    Column("at", lambda act: act.created_at),
    Column("who", lambda act: act.principal.name),
    Column("verb", lambda act: act.verb),
    Column("kind", lambda act: act.kind),
    Column("reference", lambda act: act.reference),
    Column("reason", lambda act: act.reason),
    Column("door", lambda act: act.door),
    Column("key", lambda act: act.key.prefix if act.key else ""),
    Column("detail", lambda act: act.detail),
)


def told(act: Act) -> Told:
    """The act with the address of its thing, and its words cut to what a row has room for."""
    parts = [f"{name.replace('_', ' ')} {_value(one)}" for name, one in act.detail.items() if one]
    return Told(
        act,
        link(act.kind, act.reference),
        _shown(act.reference, REFERENCE_CHARACTERS_MAX),
        _shown(act.reason, REASON_CHARACTERS_MAX),
        _shown(", ".join(parts), REASON_CHARACTERS_MAX),
    )


def _shown(text: str, most: int) -> str:
    return visible(text if len(text) <= most else f"{text[:most]}{CUT}")


def _value(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value))
    if isinstance(value, dict):
        return ", ".join(f"{name} {one}" for name, one in value.items())
    return str(value)


def link(kind: str, reference: str, places: Mapping[str, tuple[str, Any]] = PLACES) -> str:
    """The address of the page of a thing of this kind with this id, "" where there is none."""
    place, form = places.get(kind, ("", ""))
    if not place or not reference:
        return ""
    try:
        if isinstance(form, str):
            form = {form: reference} if form else {}
        if isinstance(form, dict):
            query = f"?{urlencode(form)}" if form else ""
            return f"{reverse(f'admin:{place}')}{query}"
        return reverse(f"admin:{place}", args=[form(reference)])
    except (ValueError, NoReverseMatch):
        return ""
