"""`up`: web server, worker and database in the foreground."""

from __future__ import annotations

import sys
from typing import Any

from django.core.management.base import CommandError

from argus.up import up
from memory.checks import OURS
from memory.errors import ConfigurationError
from memory.management.plain import PlainCommand


class Command(PlainCommand):
    requires_system_checks = (OURS,)
    help = "Serve: web server, worker and (unless ARGUS_DATABASE_URL is set) the database."

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            code = up(self._say)
        except ConfigurationError as problem:
            raise CommandError(str(problem), returncode=2) from None
        if code:
            sys.exit(code)

    def _say(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()
