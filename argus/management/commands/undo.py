"""`undo --run ID`: the verdicts and notes of one stage run, taken back by new rows."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from django.core.management.base import CommandParser
from django.utils import timezone

from argus.undo import lines, undo_run
from memory.access import principal
from memory.management.base import (
    EXIT_PARTIAL,
    EXIT_USAGE,
    ArgusCommand,
    plain_errors,
    positive,
)


class Command(ArgusCommand):
    help = (
        "Take back what one run of distill, dedup or the whole pipeline did; nothing is deleted. "
        "It acts at once, as each thing that it does has a way back, which it names; what has none "
        "(purge, rebuild) needs --yes. Exit 2: no such run; 3: something was built on it since, "
        "and was left."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--run", type=positive, required=True, help="the run's id")
        parser.add_argument("--dry-run", action="store_true", help="tell what would be undone")
        parser.add_argument("--reason", default="")

    def handle(self, *args: Any, **options: Any) -> None:
        asked: dict[str, Any] = {"by": principal(), "reason": options["reason"]}
        with plain_errors(refused=EXIT_USAGE):
            report = undo_run(options["run"], now=timezone.now(), dry_run=True, **asked)
            if not options["dry_run"]:
                if report.done:
                    # What is about to be done stands there whatever comes of it.
                    self.stderr.write(lines(report)[0])
                report = undo_run(options["run"], now=timezone.now(), **asked)
        self.say(asdict(report), as_json=options["json"], line="\n".join(lines(report)))
        self.leave(EXIT_PARTIAL if report.partial else 0)
