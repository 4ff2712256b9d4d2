"""`restore`: a backup becomes the database, or nothing happens."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.utils import timezone

from argus.backups.restore import restore
from argus.backups.told import lines
from argus.whole import file_name
from memory.management.base import EXIT_USAGE, ArgusCommand, ended_by_sigterm, plain_errors


class Command(ArgusCommand):
    help = (
        "Put the content of a backup in the place of the database's, as the owner. Restore only "
        "what you backed up: a dump can hold any program. Exit 0: it is back and was compared."
    )
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("file", type=file_name)
        parser.add_argument("--force", action="store_true", help="also where there is content")
        parser.add_argument(
            "--dry-run", action="store_true", help="look at both, change nothing; needs no --force"
        )
        parser.add_argument("--reason", default="")
        parser.add_argument("--no-progress", action="store_true")

    def handle(self, *args: Any, **options: Any) -> None:
        if not options["file"].exists():
            raise CommandError(f"there is no file {options['file']}", returncode=EXIT_USAGE)
        with plain_errors(), ended_by_sigterm():
            report = restore(
                options["file"],
                now=timezone.now(),
                force=options["force"],
                dry_run=options["dry_run"],
                progress=not (options["no_progress"] or options["json"]),
                reason=options["reason"],
            )
        self.say(asdict(report), as_json=options["json"], line=lines(report))
