"""People of the pages: who may log in, in which role, and for which principal they stand.

Reads and writes: user, its groups, principal, group (teams). Audits: act, in the same transaction.
Knows nothing about pages; the rows somebody sees follow from the principal, never from the name.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from django.contrib.auth.models import User
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import transaction

from memory import roles
from memory.access import revoke_all
from memory.acts import record_act
from memory.errors import NotFound, RefusedError
from memory.models import Group, Principal

#: Random bytes of a password that is made here.
# Why: 16 characters to type once; 96 bits, which nobody guesses through a door that locks.
PASSWORD_BYTES = 12


@dataclass(frozen=True)
class Person:
    """Somebody who may log in."""

    name: str
    principal: str
    roles: list[str]
    teams: list[str]
    superuser: bool
    active: bool
    last_login: datetime | None


def listed() -> list[Person]:
    """Everybody who may or might log in, by name."""
    users = User.objects.order_by("username").select_related("principal")
    return [_person(user) for user in users.prefetch_related("groups", "principal__groups")]


@transaction.atomic
def add(
    name: str,
    given: Collection[str],
    *,
    by: Principal,
    now: datetime,
    principal: str = "",
    teams: Collection[str] = (),
    superuser: bool = False,
    password: str = "",
) -> tuple[Person, str]:
    """Let a person log in, in these roles, standing for a principal; the person and the password.

    Without `principal` a new one of the same name is made. One that is there already has rows and
    keys of somebody, and a name is no proof of being that one: it must be named. RefusedError
    when it was not, when it is another user's, when the name is taken, and for a password that is
    easily guessed; NotFound for a principal that is not there.
    """
    roles.check(given)
    if not given and not superuser:
        raise RefusedError(f"a person needs a role: {', '.join(roles.ROLES)}")
    user = User.objects.select_for_update().filter(username=name).first()
    if user is not None and user.is_active:
        raise RefusedError(f"there is a user {name} already: see `manage.py person list`")
    stands_for = _principal(name, principal)
    user = user or User(username=name)
    user.is_active, user.is_superuser = True, superuser
    made = password or secrets.token_urlsafe(PASSWORD_BYTES)
    _set_password(user, made)
    roles.give(user, given)
    stands_for.user = user
    stands_for.save(update_fields=["user"])
    for team in teams:
        Group.objects.get_or_create(name=team)[0].members.add(stands_for)
    detail = {"roles": sorted(given), "teams": sorted(teams), "superuser": superuser}
    record_act(by, "add", "person", stands_for.name, now=now, detail={"user": name, **detail})
    return _person(User.objects.get(pk=user.pk)), "" if password else made


@transaction.atomic
def set_roles(name: str, given: Collection[str], *, by: Principal, now: datetime) -> Person:
    """Give a person these roles and no others. Raises NotFound, RefusedError for an unknown role
    or none: who shall do nothing is removed."""
    roles.check(given)
    user = _user(name)
    if not given and not user.is_superuser:
        raise RefusedError(f"a person needs a role; `manage.py person remove {name}` ends access")
    before = roles.roles_of(user)
    roles.give(user, given)
    detail = {"user": name, "before": before, "after": sorted(given)}
    record_act(by, "role", "person", _stands_for(user), now=now, detail=detail)
    return _person(user)


@transaction.atomic
def join(name: str, teams: Collection[str], *, by: Principal, now: datetime) -> list[str]:
    """Put somebody into teams, which are made where there are none: they see each other's `team`
    rows, and settle them. The teams they are in then. `name`: a person's, or a principal's that
    nobody logs in for. Raises NotFound, RefusedError for no team."""
    return _regroup(name, by=by, now=now, joined=teams)


@transaction.atomic
def leave(name: str, teams: Collection[str], *, by: Principal, now: datetime) -> list[str]:
    """Take somebody out of teams; those they are in then. What they decided there stays. `name` as
    for `join`. Raises NotFound also for a team that they are not in, RefusedError for no team."""
    return _regroup(name, by=by, now=now, left=teams)


@transaction.atomic
def remove(name: str, *, by: Principal, now: datetime, keep_keys: bool = False) -> int:
    """End a person's access: no login, no open session, and no key in force unless `keep_keys`.

    What they captured and decided stays, with their principal. The number of keys that fell.
    Raises NotFound; RefusedError for the last superuser, without whom nobody sees to the rest.
    """
    user = _user(name)
    others = User.objects.filter(is_superuser=True, is_active=True).exclude(pk=user.pk)
    if user.is_superuser and not others.exists():
        raise RefusedError(f"{name} is the last superuser: make another one first")
    stands_for = Principal.objects.filter(user=user).first()
    fell = 0
    if stands_for is not None:
        # Freed, so that the next user of this name has to say whether it is the same person.
        Principal.objects.filter(pk=stands_for.pk).update(user=None)
        fell = 0 if keep_keys else revoke_all(stands_for, now=now)
    # The row stays: Django's own log of the admin would go with it.
    user.is_active = user.is_staff = user.is_superuser = False
    user.set_unusable_password()
    user.save()
    user.groups.clear()
    reference = stands_for.name if stands_for else ""
    record_act(by, "remove", "person", reference, now=now, detail={"user": name, "keys": fell})
    return fell


def _regroup(
    name: str, *, by: Principal, now: datetime, joined: Collection[str] = (),
    left: Collection[str] = (),
) -> list[str]:  # fmt: skip
    given = {one.strip() for one in (*joined, *left)}
    if not given or "" in given:
        raise RefusedError("name at least one team")
    stands_for = Principal.objects.filter(user__username=name).first()
    stands_for = stands_for or Principal.objects.filter(name=name, user=None).first()
    if stands_for is None:
        raise NotFound(f"there is nobody called {name}: see `manage.py person list`")
    before = _teams(stands_for)
    if missing := given.difference(before) if left else ():
        known = ", ".join(before) or "no team"
        raise NotFound(f"{name} is not in {', '.join(sorted(missing))}, but in {known}")
    for team in given if joined else ():
        stands_for.groups.add(Group.objects.get_or_create(name=team)[0])
    for row in Group.objects.filter(name__in=given) if left else ():
        stands_for.groups.remove(row)
    after = _teams(stands_for)
    if after != before:
        detail = {"before": before, "after": after}
        record_act(by, "team", "person", stands_for.name, now=now, detail=detail)
    return after


def _teams(stands_for: Principal) -> list[str]:
    return sorted(team.name for team in stands_for.groups.all())


def _principal(name: str, named: str) -> Principal:
    """Whom the person will stand for, locked; a new one when none was named."""
    found = Principal.objects.select_for_update().filter(name=named or name).first()
    if found is None:
        if named:
            raise NotFound(f"there is no principal {named}: leave --principal out to make one")
        return Principal.objects.create(name=name)
    if found.user_id is not None:
        raise RefusedError(f"the principal {found.name} stands for another user already")
    if not named:
        raise RefusedError(
            f"there is a principal {name} already, with rows and keys of somebody: say "
            f"--principal {name} if it is the same person, else take another name"
        )
    return found


def _set_password(user: User, password: str) -> None:
    try:
        validate_password(password, user)
    except ValidationError as error:
        raise RefusedError(" ".join(error.messages)) from None
    user.set_password(password)
    user.save()


def _user(name: str) -> User:
    user = User.objects.select_for_update().filter(username=name, is_active=True).first()
    if user is None:
        raise NotFound(f"there is no user {name}: see `manage.py person list`")
    return user


def _stands_for(user: User) -> str:
    return Principal.objects.filter(user=user).values_list("name", flat=True).first() or ""


def _person(user: User) -> Person:
    stands_for: Principal | None = getattr(user, "principal", None)
    return Person(
        name=user.username,
        principal=stands_for.name if stands_for else "",
        roles=roles.roles_of(user),
        teams=_teams(stands_for) if stands_for else [],
        superuser=user.is_superuser,
        active=user.is_active,
        last_login=user.last_login,
    )
