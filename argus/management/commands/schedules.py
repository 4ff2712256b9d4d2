"""`schedules`: bring the queue's schedules in line with the settings."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from django.core.management.base import CommandParser

from argus.schedules import sync
from memory.checks import OURS
from memory.management.plain import PlainCommand


class Command(PlainCommand):
    requires_system_checks = (OURS,)
    help = "Bring the queue's schedules in line with the settings (`up` does it by itself)."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--json", action="store_true", help="one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        report = asdict(sync())
        if options["json"]:
            self.stdout.write(json.dumps(report))
        elif options["verbosity"]:
            for kind, names in report.items():
                if names:
                    self.stdout.write(f"{kind}: {', '.join(names)}")
