"""`doctor`: is it working, and if not, what helps."""

from __future__ import annotations

import json
import sys
from collections import Counter
from dataclasses import asdict
from typing import Any

from django.core.management.base import CommandParser

from argus.doctor import examine, exit_code
from memory.management.plain import PlainCommand


class Command(PlainCommand):
    help = "Is it working? Exit 0: yes; 1: something is wrong; 75: something needed is away."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--json", action="store_true", help="one JSON object")
        parser.add_argument("--strict", action="store_true", help="what to look at fails, too")

    def handle(self, *args: Any, **options: Any) -> None:
        rows = examine()
        code = exit_code(rows, strict=options["strict"])
        told = Counter(row.state for row in rows)
        if options["json"]:
            report = {"exit": code, "rows": [asdict(row) for row in rows], "states": told}
            self.stdout.write(json.dumps(report))
        else:
            for row in rows:
                fix = f" {row.fix}" if row.fix else ""
                self.stdout.write(f"{row.state:<5} {row.name:<11} {row.what}{fix}")
            self.stdout.write(f"{told['ok']} ok, {told['warn']} to look at, {told['fail']} wrong")
        if code:
            sys.exit(code)
