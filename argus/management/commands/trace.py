"""`trace NOTE|RAW`: from what it came; `--forward`: what it influenced."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from argus.trace import as_json, lines, trace
from memory.access import principal
from memory.management.base import EXIT_USAGE, ArgusCommand, plain_errors


class Command(ArgusCommand):
    help = (
        "Show from what a note (its uuid) or a raw item (its number) came, or with --forward all "
        "that it influenced: notes, verdicts, recalls, sessions, files."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("reference", metavar="NOTE|RAW")
        parser.add_argument("--forward", action="store_true", help="what came of it")

    def handle(self, *args: Any, **options: Any) -> None:
        with plain_errors(refused=EXIT_USAGE):
            tree = trace(options["reference"], by=principal(), forward=options["forward"])
        self.say(as_json(tree), as_json=options["json"], line="\n".join(lines(tree)))
