"""`down`: stop the embedded database. The data stay."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from argus import postgres


class Command(BaseCommand):
    help = "Stop the embedded database; the data stay, and the next command starts it again."
    requires_system_checks: list[str] = []

    def handle(self, *args: Any, **options: Any) -> None:
        if not settings.ARGUS.embedded:
            self.stdout.write("The database of ARGUS_DATABASE_URL is not ours to stop.")
        elif postgres.stop(settings.ARGUS.home):
            self.stdout.write("Stopped the embedded database.")
        else:
            self.stdout.write("The embedded database was not running.")
