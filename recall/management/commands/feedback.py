"""`manage.py feedback list|useful|wrong|outdated|never|withdrawn`: say what a note was worth."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.core.management.base import CommandParser
from django.utils import timezone

from memory.access import principal
from memory.management.base import ArgusCommand, id_number, plain_errors
from memory.models.note import FEEDBACKS
from memory.text.clean import strip_invisible
from recall.feedback import Said, give_feedback, given

#: What each word does.
MEANS = {
    "useful": "the note helped",
    "wrong": "what the note says is not so",
    "outdated": "what the note says is no longer so",
    "never": "recall shows the note to no agent of yours again",
    "withdrawn": "take back what you said",
}

assert set(MEANS) == set(FEEDBACKS)


class Command(ArgusCommand):
    help = "Say of a note whether it was useful; `never` silences it at once. It counts for you."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        make = self.actions(parser)
        make("list", help="what you said and did not take back, latest first")
        for verdict, means in MEANS.items():
            action = make(verdict, help=means)
            action.add_argument("note", type=UUID)
            action.add_argument("--project", help="there alone; without it and --cwd: everywhere")
            action.add_argument("--cwd", default="", help="in the project of this folder alone")
            action.add_argument("--injection", type=id_number, help="the recall that gave the note")
            action.add_argument("--reason", default="")

    def handle(self, *args: Any, **options: Any) -> None:
        me = principal()
        if options["action"] == "list":
            rows = given(me)
            report: dict[str, Any] = {"feedback": [_as_json(*row) for row in rows]}
            lines = [line(*row) for row in rows] or ["nothing was said"]
        else:
            named = {key: options[key] for key in ("project", "cwd", "injection", "reason")}
            with plain_errors():
                said = give_feedback(
                    options["note"], options["action"], principal=me, now=timezone.now(), **named
                )
            report, lines = said.as_json(), [line(said)]
        self.say(report, as_json=options["json"], line="\n".join(lines))


def _as_json(said: Said, title: str) -> dict[str, Any]:
    return {**said.as_json(), "title": title}


def line(said: Said, title: str = "") -> str:
    """One word as a line: when, what, where, of which note and why."""
    told = f"{said.created_at:%Y-%m-%d %H:%M}  {said.verdict:<9}  {said.project or 'everywhere'}"
    parts = [told, str(said.note), title, f"({said.reason})" if said.reason else ""]
    return strip_invisible(" ".join("  ".join(filter(None, parts)).splitlines()))[0]
