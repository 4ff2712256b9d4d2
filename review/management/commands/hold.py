"""`manage.py hold list|approve|reject|undo`: decide held verdicts in a terminal."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser
from django.utils import timezone

from memory.access import principal
from memory.management.base import ArgusCommand, id_number, plain_errors
from memory.models import DedupVerdict
from review import holds

VERBS = {"approve": holds.approve, "reject": holds.reject, "undo": holds.undo}


class Command(ArgusCommand):
    help = "List verdicts that wait for a person, and decide them."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        make = self.actions(parser)
        listed = make("list", help="verdicts that wait, oldest first")
        listed.add_argument("--settled", action="store_true", help="decided ones, latest first")
        for name, verb in VERBS.items():
            action = make(name, help=(verb.__doc__ or "").split("\n")[0])
            action.add_argument("verdict", type=id_number)
            action.add_argument("--reason", default="")

    def handle(self, *args: Any, **options: Any) -> None:
        me = principal()
        if options["action"] == "list":
            rows = holds.settled(me) if options["settled"] else holds.pending(me)
            lines = [line(row) for row in rows] or ["nothing is held"]
            report: dict[str, Any] = {"holds": [as_json(row) for row in rows]}
        else:
            with plain_errors():
                row = VERBS[options["action"]](
                    options["verdict"], by=me, now=timezone.now(), reason=options["reason"]
                )
            report, lines = as_json(row), [f"verdict {row.pk} is now {row.status}"]
        self.say(report, as_json=options["json"], line="\n".join(lines))


def as_json(row: DedupVerdict) -> dict[str, Any]:
    """A verdict with both statements, as `--json` prints it."""
    return {
        "verdict": row.pk,
        "kind": row.verdict,
        "status": row.status,
        "new": row.note.content,
        "old": row.target.content if row.target else None,
        "old_confidence": row.target.confidence if row.target else None,
        "similarity": row.similarity,
        "reasoning": row.reasoning,
        "judge": row.model_real,
        "created_at": row.created_at,
    }


def line(row: DedupVerdict) -> str:
    old = row.target
    project = row.note.project.name if row.note.project else "no project"
    confidence = f" (confidence {old.confidence:.2f})" if old else ""
    decided = f"  {row.status}" if row.status != "pending" else ""
    decided += f" by {row.decided_by} {row.decided_at:%Y-%m-%d %H:%M}" if row.decided_at else ""
    return (
        f"{row.pk}  {row.verdict}{decided}  {project}  similarity {row.similarity or 0:.2f}\n"
        f"   old: {old.content if old else '-'}{confidence}\n"
        f"   new: {row.note.content}\n"
        f"   why: {row.reasoning}"
    )
