"""The app that owns the record and the pipeline."""

from __future__ import annotations

from django.apps import AppConfig
from django.db.models.signals import post_migrate


class MemoryConfig(AppConfig):
    name = "memory"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register the checks, and the grants, which must follow every migrate."""
        from memory import checks, guards

        checks.register_all()
        # The one use of a signal: Django offers no other place that runs after *every* migrate.
        post_migrate.connect(guards.grant, sender=self, dispatch_uid="memory.guards.grant")
