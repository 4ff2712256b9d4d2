"""Who may log in, and what they may: what a house took away since a backup was made is taken away
again when that comes back.

Reads: users, their groups and permissions, principals, teams of the house that goes. Writes: the
same in the one that comes. Knows nothing about passwords: those of the backup are in force.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

import psycopg
from django.contrib.auth.hashers import make_password

from memory.roles import GROUP_MARK

#: Tables that say it. Where one is missing nothing is known.
TABLES = (
    "auth_user", "auth_group", "auth_permission", "auth_user_groups", "auth_group_permissions",
    "auth_user_user_permissions", "django_content_type", "memory_principal", "memory_group",
    "memory_principal_groups",
)  # fmt: skip

#: Whoever may have a right, by number and by when they were made: two houses give the same numbers.
HOLDERS = {
    "user": "SELECT id, date_joined, username FROM public.auth_user",
    "group": "SELECT id, NULL::timestamptz, name FROM public.auth_group",
    "principal": "SELECT id, created_at, name FROM public.memory_principal",
}

PERMISSION = """
JOIN public.auth_permission p ON p.id = m.permission_id
JOIN public.django_content_type c ON c.id = p.content_type_id
"""


class Kind(NamedTuple):
    """A kind of right: who holds it, a query for (holder, what), and how it is taken away from
    %(holder)s."""

    holder: str
    held: str
    take: str


def _flag(column: str, *, also: str = "") -> Kind:
    return Kind(
        "user",
        f"SELECT id, '' FROM public.auth_user WHERE {column}",
        f"UPDATE public.auth_user SET {column} = false{also} WHERE id = %(holder)s",
    )


KINDS = {
    "login": _flag("is_active", also=", password = %(unusable)s"),
    "superuser": _flag("is_superuser"),
    "staff": _flag("is_staff"),
    "group": Kind(
        "user",
        "SELECT m.user_id, g.name FROM public.auth_user_groups m"
        " JOIN public.auth_group g ON g.id = m.group_id",
        "DELETE FROM public.auth_user_groups m USING public.auth_group g WHERE g.id = m.group_id"
        " AND m.user_id = %(holder)s AND g.name = %(what)s",
    ),
    "permission": Kind(
        "user",
        "SELECT m.user_id, c.app_label || '.' || p.codename"
        f" FROM public.auth_user_user_permissions m {PERMISSION}",
        "DELETE FROM public.auth_user_user_permissions m USING public.auth_permission p,"
        " public.django_content_type c WHERE p.id = m.permission_id AND c.id = p.content_type_id"
        " AND m.user_id = %(holder)s AND c.app_label || '.' || p.codename = %(what)s",
    ),
    # Why not those of our roles: `migrate` brings them in line with this Argus.
    "permission of a group": Kind(
        "group",
        "SELECT m.group_id, c.app_label || '.' || p.codename"
        f" FROM public.auth_group_permissions m {PERMISSION}"
        " JOIN public.auth_group g ON g.id = m.group_id"
        f" WHERE NOT starts_with(g.name, '{GROUP_MARK}')",
        "DELETE FROM public.auth_group_permissions m USING public.auth_permission p,"
        " public.django_content_type c WHERE p.id = m.permission_id AND c.id = p.content_type_id"
        " AND m.group_id = %(holder)s AND c.app_label || '.' || p.codename = %(what)s",
    ),
    "stands for": Kind(
        "user",
        "SELECT user_id, name FROM public.memory_principal WHERE user_id IS NOT NULL",
        "UPDATE public.memory_principal SET user_id = NULL"
        " WHERE user_id = %(holder)s AND name = %(what)s",
    ),
    "team": Kind(
        "principal",
        "SELECT m.principal_id, g.name FROM public.memory_principal_groups m"
        " JOIN public.memory_group g ON g.id = m.group_id",
        "DELETE FROM public.memory_principal_groups m USING public.memory_group g"
        " WHERE g.id = m.group_id AND m.principal_id = %(holder)s AND g.name = %(what)s",
    ),
}

#: Whoever has a right, as HOLDERS tells: kind, number, when they were made.
Holder = tuple[str, int, datetime | None]


@dataclass(frozen=True)
class Right:
    """What somebody could do, as a person calls it: "login", "role reviewer", "team blue"."""

    name: str
    right: str


@dataclass(frozen=True)
class Standing:
    """Who may do what: the names of all holders, and what they hold as (holder, kind, what)."""

    names: dict[Holder, str]
    held: frozenset[tuple[Holder, str, str]]


def look(at: psycopg.Connection) -> Standing | None:
    """Who may do what in this database; None where it does not say."""
    there = at.execute(
        "SELECT count(to_regclass('public.' || name)) FROM unnest(%s::text[]) name", [[*TABLES]]
    ).fetchone()
    if there != (len(TABLES),):
        return None
    names: dict[Holder, str] = {}
    whole: dict[tuple[str, int], Holder] = {}
    for holder, query in HOLDERS.items():
        for pk, made, name in at.execute(query.encode()):
            whole[holder, pk] = one = (holder, pk, made)
            names[one] = name
    held = {
        (whole[kind.holder, pk], name, what)
        for name, kind in KINDS.items()
        for pk, what in at.execute(kind.held.encode())
        # Somebody may have come since the first query, where the house still runs.
        if (kind.holder, pk) in whole
    }
    return Standing(names, frozenset(held))


def carry(was: Standing | None, at: psycopg.Connection) -> tuple[tuple[Right, ...], list[str]]:
    """Take away in this database, as its owner, what `was` does not give to the same holders any
    more: all of it, and the names of logins that `was` knows nothing of.

    Why these stay: nobody took them away where nobody is left, and a house that was emptied is a
    reason to restore one.
    """
    now = look(at)
    if was is None or now is None:
        return (), []
    taken, unknown = [], []
    for holder, kind, what in now.held - was.held:
        if holder not in was.names:
            unknown += [now.names[holder]] if kind == "login" else []
            continue
        values: dict[str, Any] = {"holder": holder[1], "what": what}
        at.execute(KINDS[kind].take.encode(), {**values, "unusable": make_password(None)})
        taken.append(Right(now.names[holder], _told(kind, what)))
    return tuple(sorted(taken, key=lambda one: (one.name, one.right))), sorted(unknown)


def by_name(rights: Iterable[Right]) -> list[str]:
    """Who lost what, a text for each holder."""
    theirs = defaultdict(list)
    for one in rights:
        theirs[one.name].append(one.right)
    return [f"{name} ({', '.join(what)})" for name, what in theirs.items()]


def _told(kind: str, what: str) -> str:
    if kind == "group" and what.startswith(GROUP_MARK):
        return f"role {what.removeprefix(GROUP_MARK)}"
    return what if kind.startswith("permission") else f"{kind} {what}".strip()
