"""Who looks at a page: a staff user, the principal it stands for, and what it may do.

Reads and writes: principal. Audits: act, for each page that shows the rows of all owners.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, TypeVar

from django.contrib.auth.models import User
from django.db import connection, transaction
from django.http import HttpRequest

from memory.acts import record_act
from memory.models import Principal
from memory.querysets import OwnedQuerySet, OwnerQuerySet, mates_of, may_settle

Rows = TypeVar("Rows", bound=OwnerQuerySet)

#: Where a session remembers that its user looks at the rows of all owners.
ALL_OWNERS = "all_owners"

#: The principal of a user, what its groups and it itself are allowed of ours, and with whom it
#: shares a group, itself among them.
# Why SQL: every page asks this, and the same by querysets takes longer to put together than to ask.
WHO = """
SELECT p.id, p.name, p.user_id, p.created_at, ARRAY(
    SELECT codename FROM auth_permission a
    JOIN django_content_type c ON c.id = a.content_type_id AND c.app_label = 'memory'
    WHERE a.id IN (SELECT permission_id FROM auth_user_user_permissions WHERE user_id = %(user)s)
       OR a.id IN (SELECT gp.permission_id FROM auth_group_permissions gp
                   JOIN auth_user_groups ug ON ug.group_id = gp.group_id
                   WHERE ug.user_id = %(user)s)), ARRAY(
    SELECT DISTINCT theirs.principal_id FROM memory_principal_groups mine
    JOIN memory_principal_groups theirs ON theirs.group_id = mine.group_id
    WHERE mine.principal_id = p.id)
FROM memory_principal p WHERE p.user_id = %(user)s
"""


@dataclass(frozen=True)
class Viewer:
    """A user of the pages. `all_owners`: it asked for everybody's rows, and may."""

    user: User
    principal: Principal
    allowed: frozenset[str] = frozenset()
    mates: tuple[int, ...] | None = None
    all_owners: bool = False

    def may(self, what: str) -> bool:
        """Whether it may `look`, `decide`, `operate`, `see_all` or `purge`."""
        return self.user.is_superuser or what in self.allowed

    def rows(self, rows: Rows) -> Rows:
        """What of these it sees: its own and what others show to it, or everything."""
        if self.all_owners:
            return rows.as_pipeline()
        if isinstance(rows, OwnedQuerySet):
            # Known already: a page asks for a dozen kinds of rows, and the planner knows better.
            return rows.visible_to(self.principal, mates=self.mates)
        return rows.visible_to(self.principal)

    def may_settle(self, row: Any) -> bool:
        """Whether its fate is this viewer's to settle, of a row that was read already."""
        mates = mates_of(self.principal) if self.mates is None else self.mates
        return may_settle(row.owner_id, row.visibility, by=self.principal.pk, mates=mates)

    @property
    def can_decide(self) -> bool:
        return self.may("decide")

    @property
    def can_operate(self) -> bool:
        return self.may("operate")

    @property
    def can_see_all(self) -> bool:
        return self.may("see_all")

    @property
    def can_purge(self) -> bool:
        return self.may("purge")


def viewer_of(request: HttpRequest, *, now: datetime) -> Viewer:
    """The viewer of a request of a logged-in user.

    Looking at everybody's rows is an act of its own for each page; the pieces that htmx fetches
    for it belong to that page.
    """
    user = request.user
    assert isinstance(user, User)
    with connection.cursor() as cursor:
        cursor.execute(WHO, {"user": user.pk})
        row = cursor.fetchone()
    if row is None:
        principal_of(user)
        return viewer_of(request, now=now)
    *columns, allowed, mates = row
    me = Principal.from_db(connection.alias, ("id", "name", "user_id", "created_at"), columns)
    viewer = Viewer(user, me, frozenset(allowed), tuple(mates))
    if request.session.get(ALL_OWNERS) and viewer.can_see_all:
        if not getattr(request, "htmx", False):
            record_act(me, "see_all", "owners", request.path[:200], now=now)
        return replace(viewer, all_owners=True)
    return viewer


def principal_of(user: User) -> Principal:
    """The principal of a user, made at its first page.

    A principal of the same name that keys or commands made is somebody else until an admin says
    otherwise (`manage.py person`): a name is no identity.
    """
    found = Principal.objects.filter(user=user).first()
    if found is not None:
        return found
    with transaction.atomic():
        name = user.get_username()
        if Principal.objects.filter(name=name).exists():
            name = f"{name} (user {user.pk})"
        return Principal.objects.get_or_create(user=user, defaults={"name": name})[0]
