"""Roles: what people may do on the pages, as Django's groups of Django's permissions.

Reads: permission. Writes: permission, group, a user's groups. Audits: nothing; `memory.people`,
which gives roles away, does. Knows nothing about pages, nor about which rows somebody may see:
a role says what one may do, a principal whose rows one sees.
"""

from __future__ import annotations

from collections.abc import Collection

from django.apps import apps
from django.apps.registry import Apps
from django.contrib.auth.management import create_permissions
from django.contrib.auth.models import AbstractUser, Group

from memory.errors import RefusedError

#: Role -> what it may: codenames of `Principal.Meta.permissions`.
# Why no role may see the rows of all owners: that is a superuser's, by a switch, and told.
ROLES: dict[str, tuple[str, ...]] = {
    "reader": ("look",),
    "reviewer": ("look", "decide"),
    "operator": ("look", "operate"),
}

#: What the groups of the roles are called among Django's groups.
GROUP_MARK = "Argus "


def sync(using: str = "default", models: Apps = apps) -> None:
    """Bring permissions and groups in line with ROLES; after every migrate, by whoever migrates.

    A group of ours has what its role says and nothing else; other groups are left alone. `models`
    are the tables as a migration left them.
    """
    create_permissions(apps.get_app_config("memory"), verbosity=0, using=using, apps=models)
    permissions = models.get_model("auth", "Permission")._base_manager.using(using)
    groups = models.get_model("auth", "Group")._base_manager.using(using)
    ours = permissions.filter(content_type__app_label="memory", content_type__model="principal")
    for role, codenames in ROLES.items():
        group, _ = groups.get_or_create(name=group_name(role))
        group.permissions.set(ours.filter(codename__in=codenames))


def give(user: AbstractUser, roles: Collection[str]) -> None:
    """Give the user these roles and no other of ours. Raises RefusedError for an unknown one.

    It becomes staff with a role and stops being staff without one, but for superusers.
    """
    check(roles)
    kept = user.groups.exclude(name__in=[group_name(role) for role in ROLES])
    wanted = Group.objects.filter(name__in=[group_name(role) for role in roles])
    user.groups.set([*kept, *wanted])
    user.is_staff = bool(roles) or user.is_superuser
    user.save(update_fields=["is_staff"])


def check(roles: Collection[str]) -> None:
    """Raises RefusedError when one of these is no role."""
    if unknown := sorted(set(roles) - set(ROLES)):
        raise RefusedError(f"unknown role {', '.join(unknown)}: allowed are {', '.join(ROLES)}")


def roles_of(user: AbstractUser) -> list[str]:
    """The roles of a user, in the order of ROLES."""
    names = {group.name for group in user.groups.all()}
    return [role for role in ROLES if group_name(role) in names]


def group_name(role: str) -> str:
    """What the group of a role is called."""
    return f"{GROUP_MARK}{role}"
