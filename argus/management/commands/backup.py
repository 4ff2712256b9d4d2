"""`backup`: the whole database into one file; `--check` reads one from end to end."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.utils import timezone

from argus.backups import backup
from argus.whole import check_name, file_name
from memory.access import principal
from memory.management.base import (
    EXIT_OK,
    EXIT_PARTIAL,
    EXIT_USAGE,
    ArgusCommand,
    ended_by_sigterm,
    plain_errors,
)


class Command(ArgusCommand):
    help = (
        "Write the whole database into one file, as of one moment. Not inside: the vault, "
        "ARGUS_HOME with its secret key, the environment. Exit 0: it is there, whole; 3: its "
        "hashes fit, and there is no program here that reads its dump."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "file", nargs="?", type=file_name, help="default: argus-TIME.backup in this folder"
        )
        parser.add_argument(
            "--check", action="store_true", help="read FILE: its hashes, and its dump"
        )
        parser.add_argument("--force", action="store_true", help="write over FILE")
        parser.add_argument("--no-progress", action="store_true")

    def handle(self, *args: Any, **options: Any) -> None:
        now = timezone.now()
        if options["check"] and options["file"] is None:
            raise CommandError("--check needs the FILE that it reads", returncode=EXIT_USAGE)
        path = options["file"] or Path(backup.NAME.format(at=now))
        if options["check"] and not path.exists():
            raise CommandError(f"there is no file {path}", returncode=EXIT_USAGE)
        if not options["check"]:
            with plain_errors(refused=EXIT_USAGE):
                check_name(path, force=options["force"])
        with plain_errors(), ended_by_sigterm():
            if options["check"]:
                report, verb = backup.check(path), "whole:"
            else:
                progress = not (options["no_progress"] or options["json"])
                report = backup.back_up(
                    path, by=principal(), now=now, force=options["force"], progress=progress
                )
                verb = "wrote"
        self.say(asdict(report), as_json=options["json"], line=backup.lines(report, verb=verb))
        self.leave(EXIT_PARTIAL if report.unread else EXIT_OK)
