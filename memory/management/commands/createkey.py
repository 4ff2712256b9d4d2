"""`manage.py createkey`: a key for a client, shown once."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from memory.access import SCOPES, create_key, principal
from memory.management.base import EXIT_USAGE, ArgusCommand, plain_errors


class Command(ArgusCommand):
    help = "Make an access key; it is shown once and only its digest is stored."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--scope", required=True, help=f"comma-separated: {', '.join(SCOPES)}")
        parser.add_argument("--owner", help="principal the key stands for (default: yours)")
        parser.add_argument("--name", default="", help="what it is for, e.g. the machine")

    def handle(self, *args: Any, **options: Any) -> None:
        scopes = [scope.strip() for scope in options["scope"].split(",") if scope.strip()]
        with plain_errors(refused=EXIT_USAGE):
            key, row = create_key(
                owner=options["owner"], scopes=scopes, name=options["name"], by=principal()
            )
        report = {
            "key": key,
            "prefix": row.prefix,
            "owner": row.principal.name,
            "scopes": row.scopes,
        }
        line = f"{key}\nfor {row.principal.name}, scopes {', '.join(row.scopes)}; shown this once"
        self.say(report, as_json=options["json"], line=line)
