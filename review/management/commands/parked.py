"""`manage.py parked list|release`: what was set aside, and setting it free, in a terminal."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from django.core.management.base import CommandParser
from django.utils import timezone

from memory.access import principal
from memory.management.base import ArgusCommand, plain_errors
from review import parked


class Command(ArgusCommand):
    help = "List units that were set aside after too many failures, and set them free."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        action = self.actions(parser)
        action("list", help="parked units, oldest first")
        release = action("release", help="let the stages try a unit again")
        release.add_argument("unit", help="as `list` names it")
        release.add_argument("--reason", default="")

    def handle(self, *args: Any, **options: Any) -> None:
        me = principal()
        if options["action"] == "list":
            found = parked.waiting(me)
            lines = [line(one) for one in found] or ["nothing is parked"]
        else:
            with plain_errors():
                found = parked.release(
                    options["unit"], by=me, now=timezone.now(), reason=options["reason"]
                )
            lines = [f"{one.stage} will try {one.unit} again" for one in found]
        report = {"parked": [asdict(one) for one in found]}
        self.say(report, as_json=options["json"], line="\n".join(lines))


def line(one: parked.Parked) -> str:
    reply = " ".join(one.reply.split())
    said = f"\n   said: {reply}" if reply else ""
    return f"{one.stage}  {one.unit}  {one.parked_at:%Y-%m-%d %H:%M}\n   why: {one.reason}{said}"
