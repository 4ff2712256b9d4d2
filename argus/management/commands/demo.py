"""`demo`: the bundled sessions through the whole pipeline, a table per stage."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from django.core.management import call_command
from django.core.management.base import CommandParser

from argus.demo.story import play
from argus.demo.tables import pages
from memory.acts import through
from memory.checks import OURS
from memory.management.base import plain_errors
from memory.management.plain import PlainCommand


class Command(PlainCommand):
    requires_system_checks = (OURS,)
    help = (
        "Run the bundled sessions through every stage and print what the rows say. "
        "Exit 0: the story came out; 1: it did not."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--json", action="store_true", help="one JSON object")
        parser.add_argument("--vault", type=Path, help="where the demo's files go")

    def handle(self, *args: Any, **options: Any) -> None:
        if not options["json"]:
            self.stdout.write("The bundled sessions, through every stage (some ten seconds) ...")
            self.stdout.flush()
        call_command("migrate", verbosity=0)
        with plain_errors(), through("command"):
            story = play(options["vault"])
        if options["json"]:
            self.stdout.write(json.dumps(story.as_json(), default=str))
        else:
            for page in pages(story):
                self.stdout.write("\n" + page.heading, self.style.MIGRATE_HEADING)
                self.stdout.write("\n".join(page.lines))
        if not story.ok:
            sys.exit(1)
