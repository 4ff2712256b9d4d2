"""`manage.py note show|edit|retire|restore|pin|unpin NOTE`: see to one note in a terminal."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.core.management.base import CommandParser
from django.utils import timezone

from memory import edits, keeping
from memory.access import principal
from memory.management.base import ArgusCommand, plain_errors
from memory.models import Note, Principal
from memory.text.clean import strip_invisible

#: What each action does.
MEANS = {
    "show": "what it says and what became of it",
    "edit": "put it into other words: a new note takes its place",
    "retire": "take it out of what is recalled",
    "restore": "bring it back",
    "pin": "put it first in your contexts",
    "unpin": "take your pin away",
}


class Command(ArgusCommand):
    help = "See to one note: its words, whether it is recalled, your pin."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        make = self.actions(parser)
        for name, means in MEANS.items():
            action = make(name, help=means)
            action.add_argument("note", type=UUID)
            if name == "edit":
                action.add_argument("--title", help="without it, the title stays")
                action.add_argument("--content", help="without it, the content stays")
            if name in ("edit", "retire", "restore"):
                action.add_argument("--reason", default="")

    def handle(self, *args: Any, **options: Any) -> None:
        me = principal()
        with plain_errors():
            note = keeping.seen(options["note"], by=me)
            note = done(options["action"], note, me, options)
        report = as_json(note, pinned=keeping.pinned(note, by=me))
        self.say(report, as_json=options["json"], line=lines(report))


def done(action: str, note: Note, me: Principal, options: dict[str, Any]) -> Note:
    """Do it; the note as it is then, or the one that an edit made."""
    now = timezone.now()
    if action == "edit":
        words = {name: options[name] or getattr(note, name) for name in ("title", "content")}
        return edits.edit_note(note.pk, **words, by=me, now=now, reason=options["reason"])
    if action == "retire":
        return keeping.retire_note(note.pk, by=me, now=now, reason=options["reason"])
    if action == "restore":
        return keeping.restore_note(note.pk, by=me, now=now, reason=options["reason"])
    if action == "pin":
        keeping.pin(note.pk, by=me, now=now)
    elif action == "unpin":
        keeping.unpin(note.pk, by=me, now=now)
    return note


def as_json(note: Note, *, pinned: bool) -> dict[str, Any]:
    """A note as `--json` prints it."""
    return {
        "note": str(note.pk),
        "title": note.title,
        "content": note.content,
        "project": note.project.name if note.project else None,
        "owner": note.owner.name,
        "confidence": note.confidence,
        "valid_from": note.valid_from,
        "valid_to": note.valid_to,
        "created_at": note.created_at,
        "deleted_at": note.deleted_at,
        "retired_reason": note.retired_reason,
        "pinned": pinned,
    }


def lines(report: dict[str, Any]) -> str:
    gone = report["deleted_at"]
    state = f"{report['retired_reason'] or 'retired'} {gone:%Y-%m-%d %H:%M}" if gone else "live"
    told = f"{state}{'  pinned' if report['pinned'] else ''}  {report['project'] or 'no project'}"
    text = f"{report['note']}  {told}\n   {report['title']}\n   {report['content']}"
    return strip_invisible(text)[0]
