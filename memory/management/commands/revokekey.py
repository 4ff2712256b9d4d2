"""`manage.py revokekey PREFIX`: a key stops working at once."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser
from django.utils import timezone

from memory.access import principal, revoke_key
from memory.management.base import ArgusCommand, plain_errors


class Command(ArgusCommand):
    help = "Revoke the key with this prefix (`manage.py keys` lists them)."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("prefix")

    def handle(self, *args: Any, **options: Any) -> None:
        with plain_errors():
            row = revoke_key(options["prefix"], now=timezone.now(), by=principal())
        report = {"prefix": row.prefix, "revoked_at": row.revoked_at}
        self.say(report, as_json=options["json"], line=f"revoked {row}")
