"""`export-data DIR|FILE`: everything that a person owns, as lines of JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from django.core.management.base import CommandParser
from django.utils import timezone

from argus.portable.leave import leave, lines
from argus.whole import check_name, file_name
from memory.access import principal
from memory.management.base import EXIT_USAGE, ArgusCommand, ended_by_sigterm, plain_errors


class Command(ArgusCommand):
    help = (
        "Write everything that ARGUS_PRINCIPAL owns into one file of JSON lines, for `import-data` "
        "or for whatever else reads JSON. Keys, vectors and what is others' stay here."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("path", type=file_name, metavar="DIR|FILE")
        parser.add_argument("--force", action="store_true", help="write over FILE")
        parser.add_argument("--no-progress", action="store_true")

    def handle(self, *args: Any, **options: Any) -> None:
        if not options["path"].is_dir():
            with plain_errors(refused=EXIT_USAGE):
                check_name(options["path"], force=options["force"])
        with plain_errors(), ended_by_sigterm():
            report = leave(
                options["path"],
                me=principal(),
                now=timezone.now(),
                force=options["force"],
                progress=not (options["no_progress"] or options["json"]),
            )
        self.say(asdict(report), as_json=options["json"], line=lines(report))
