"""`down`: stop the embedded database. The data stay."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError

from argus import postgres
from memory.management.plain import PlainCommand


class Command(PlainCommand):
    help = "Stop the embedded database; the data stay, and the next command starts it again."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--force", action="store_true", help="also while somebody is connected")

    def handle(self, *args: Any, **options: Any) -> None:
        home = settings.ARGUS.home
        if not settings.ARGUS.embedded:
            self.stdout.write("The database of ARGUS_DATABASE_URL is not ours to stop.")
        elif postgres.stop(home, idle_only=not options["force"]):
            self.stdout.write("Stopped the embedded database.")
        elif others := postgres.connected(home):
            # Whoever is connected starts it again with their next question.
            raise CommandError(
                f"The embedded database has {others} open connection{'s' * (others != 1)}: end "
                "`manage.py up` (Ctrl-C) and whatever else runs first, or --force."
            )
        else:
            self.stdout.write("The embedded database was not running.")
