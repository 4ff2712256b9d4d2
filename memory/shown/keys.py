"""The list of keys: whose they are, what they may, and which other keys they made.

Reads: access_key. Knows nothing about requests, and never about a key itself: only its digest is
stored.
"""

from __future__ import annotations

from typing import Any

from django.db.models import Prefetch, Q, QuerySet

from memory.access import SCOPES
from memory.models import AccessKey, Principal
from memory.web.listing import Choice, Column, Day, Words


def visible_keys(principal: Principal, *, everyones: bool = False) -> QuerySet[AccessKey]:
    """The keys of a principal, or everybody's, with the keys in force that each made."""
    rows = AccessKey.objects.all() if everyones else AccessKey.objects.filter(principal=principal)
    children = AccessKey.objects.filter(revoked_at=None).order_by("pk")
    return rows.select_related("principal", "parent").prefetch_related(
        Prefetch("children", queryset=children, to_attr="standing")
    )


def _words(rows: Any, text: str) -> Any:
    named = Q(name__icontains=text) | Q(prefix__startswith=text)
    return rows.filter(named | Q(principal__name__icontains=text) | Q(parent__prefix=text))


def _state(rows: Any, state: str) -> Any:
    return rows.filter(revoked_at__isnull=state == "force")


def _use(rows: Any, use: str) -> Any:
    return rows.filter(last_used_at__isnull=use == "never")


FILTERS = (
    Words("q", "Name or prefix", apply=_words),
    Choice(
        "scope",
        "May",
        [(scope, scope) for scope in SCOPES],
        apply=lambda rows, scope: rows.filter(scopes__contains=[scope]),
    ),
    Choice("state", "State", [("force", "in force"), ("revoked", "revoked")], apply=_state),
    Choice("used", "Used", [("never", "never"), ("once", "at least once")], apply=_use),
    Day("since", "Made since", "created_at__gte"),
    Day("until", "Made until", "created_at__lt"),
)


def columns() -> list[Column]:
    """What an export has: everything but the digest."""
    return [
        Column("prefix", lambda row: row.prefix),
        Column("principal", lambda row: row.principal.name),
        Column("name", lambda row: row.name),
        Column("scopes", lambda row: ",".join(row.scopes)),
        Column("made_by", lambda row: row.parent.prefix if row.parent else ""),
        Column("created_at", lambda row: row.created_at),
        Column("last_used_at", lambda row: row.last_used_at),
        Column("revoked_at", lambda row: row.revoked_at),
    ]
