"""`import-data FILE`: an export of a person becomes this person's."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser
from django.utils import timezone

from argus.portable.enter import enter, lines
from argus.whole import file_name
from memory.access import principal
from memory.management.base import (
    EXIT_PARTIAL,
    EXIT_USAGE,
    ArgusCommand,
    ended_by_sigterm,
    plain_errors,
)


class Command(ArgusCommand):
    help = (
        "Bring in what `export-data` wrote, as what ARGUS_PRINCIPAL owns: raw items by capture, "
        "live notes through the write gate, feedback and pins. A second time brings nothing. "
        "Exit 2: no export; 3: some of it was refused, or the file is cut off."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("file", type=file_name)
        parser.add_argument(
            "--dry-run", action="store_true", help="judge everything, store nothing"
        )
        parser.add_argument(
            "--shared", action="store_true", help="with the visibility that the file says"
        )
        parser.add_argument(
            "--rejected-facts", action="store_true",
            help="also what is never to be learned again: hashes that nobody can read",
        )  # fmt: skip
        parser.add_argument("--no-progress", action="store_true")

    def handle(self, *args: Any, **options: Any) -> None:
        with plain_errors(refused=EXIT_USAGE), ended_by_sigterm():
            report = enter(
                options["file"],
                me=principal(),
                now=timezone.now(),
                shared=options["shared"],
                facts=options["rejected_facts"],
                dry_run=options["dry_run"],
                progress=not (options["no_progress"] or options["json"]),
            )
        self.say(report.as_json(), as_json=options["json"], line=lines(report))
        self.leave(EXIT_PARTIAL if report.partial else 0)
