"""The roof: it has commands, settings, the board and the admin site, and no tables."""

from __future__ import annotations

from typing import Any

from django.apps import AppConfig, apps
from django.db.models.signals import post_migrate


class ArgusConfig(AppConfig):
    name = "argus"
    verbose_name = "Argus"

    def ready(self) -> None:
        """Register what must follow every migrate: the roles that people are given."""
        # Why memory's: of an app without tables, as we are, Django tells nobody.
        memory = apps.get_app_config("memory")
        post_migrate.connect(sync_roles, sender=memory, dispatch_uid="argus.roles")


def sync_roles(using: str, apps: Any, **kwargs: Any) -> None:
    """Permissions and groups as the roles have them (post_migrate of memory)."""
    from memory import roles

    # Why the tables as far as they are: `migrate memory` alone may make those of users by half.
    if {"auth", "contenttypes"} <= {config.label for config in apps.get_app_configs()}:
        roles.sync(using, apps)
