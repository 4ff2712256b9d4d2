"""`manage.py capture PATH...`: transcripts, exports, bookmarks and documents into the record."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError, CommandParser

from memory.access import principal
from memory.files import FileTally, Rule, capture_files, no_rule
from memory.management.base import EXIT_PARTIAL, EXIT_USAGE, ArgusCommand, plain_errors, summary
from memory.transcripts import SOURCES


class Command(ArgusCommand):
    help = (
        "Capture files, or whole directories: Claude Code, Codex and pi transcripts, Telegram "
        "exports, bookmarks, Markdown and text. A second run stores nothing."
    )

    def rule(self) -> Rule:
        """What the people of this machine keep out; argus knows where they say so."""
        return no_rule

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("paths", nargs="+", metavar="PATH")
        parser.add_argument("--source", choices=SOURCES, help="read every file as this")
        parser.add_argument(
            "--project", default="", help="the project of everything in these files"
        )
        parser.add_argument(
            "--dry-run", action="store_true", help="judge everything, store nothing"
        )
        parser.add_argument("--no-progress", action="store_true")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            with plain_errors():
                tally = capture_files(
                    options["paths"],
                    owner=principal(),
                    source=options["source"],
                    project=options["project"],
                    dry_run=options["dry_run"],
                    progress=not (options["no_progress"] or options["json"]),
                    rule=self.rule(),
                )
        except FileNotFoundError as error:
            raise CommandError(str(error), returncode=EXIT_USAGE) from error
        self.say(
            tally.as_json(), as_json=options["json"], line=self.line(tally, options["dry_run"])
        )
        self.leave(EXIT_PARTIAL if tally.bad_lines or tally.unreadable else 0)

    def line(self, tally: FileTally, dry_run: bool) -> str:
        head = "would store" if dry_run else "stored"
        report = tally.as_json()
        bad = report.pop("bad_lines")
        report[head] = report.pop("stored")
        lines = [summary({head: report.pop(head), **report})]
        lines += [f"bad line {one['path']}:{one['line']}: {one['reason']}" for one in bad[:20]]
        if len(bad) > 20:
            lines.append(f"... and {len(bad) - 20} more bad lines (--json lists all)")
        return "\n".join(lines)
