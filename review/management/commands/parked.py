"""`manage.py parked list|release|dismiss|bring-back`: what was set aside, in a terminal."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from django.core.management.base import CommandParser
from django.utils import timezone

from memory.access import principal
from memory.management.base import ArgusCommand, plain_errors
from review import parked
from review.shown.parked import Parked, described

VERBS = {
    "release": (
        parked.release,
        "let the stages try a unit again",
        "{0.stage} will try {0.unit} again",
    ),
    "dismiss": (parked.dismiss, "leave a unit parked, off the list", "{0.unit} stays parked"),
    "bring-back": (parked.bring_back, "take a dismissal back", "{0.unit} is on the list again"),
}


class Command(ArgusCommand):
    help = "List units that were set aside after too many failures, and set them free."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        action = self.actions(parser)
        listed = action("list", help="parked units, oldest first")
        listed.add_argument("--dismissed", action="store_true", help="those that were dismissed")
        for name, (_, told, _) in VERBS.items():
            one = action(name, help=told)
            one.add_argument("unit", help="as `list` names it")
            one.add_argument("--reason", default="")

    def handle(self, *args: Any, **options: Any) -> None:
        me = principal()
        if options["action"] == "list":
            found = described(parked.waiting(me, dismissed=options["dismissed"]))
            lines = [line(one) for one in found] or ["nothing is parked"]
        else:
            verb, _, told = VERBS[options["action"]]
            with plain_errors():
                done = verb(options["unit"], by=me, now=timezone.now(), reason=options["reason"])
            found = described(done)
            lines = [told.format(one) for one in found]
        report = {"parked": [asdict(one) for one in found]}
        self.say(report, as_json=options["json"], line="\n".join(lines))


def line(one: Parked) -> str:
    reply = " ".join(one.reply.split())
    said = f"\n   said: {reply}" if reply else ""
    return f"{one.stage}  {one.unit}  {one.parked_at:%Y-%m-%d %H:%M}\n   why: {one.reason}{said}"
