"""`manage.py rejection list|accept|confirm|forbid|undo|lift`: decide what the gate refused."""

from __future__ import annotations

import sys
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.utils import timezone

from memory.access import principal
from memory.management.base import EXIT_USAGE, ArgusCommand, id_number, plain_errors
from memory.models import GateRejection, RejectedFact
from review import rejections
from review.grounding import Words
from review.shown import rejections as shown
from review.shown.rejected_facts import wordless_facts

#: Refusals that are listed.
LISTED_MAX = 50


class Command(ArgusCommand):
    help = "List what the gate refused, and decide about it."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        make = self.actions(parser)
        listed = make("list", help="refusals that wait for a decision, latest first")
        which = listed.add_mutually_exclusive_group()
        which.add_argument("--decided", action="store_true", help="those that were decided")
        which.add_argument(
            "--facts", action="store_true", help="what is forbidden without a refusal to be read"
        )
        for name, verb in rejections.VERBS.items():
            action = make(name, help=(verb.__doc__ or "").split("\n")[0])
            action.add_argument(
                "rejection", type=id_number, nargs="?" if name == "forbid" else None
            )
            action.add_argument("--reason", default="")
            if name == "forbid":
                action.add_argument(
                    "--words", help="a statement that was not refused; - reads it, so that it"
                    " stands in no history"
                )  # fmt: skip
            if name == "accept":
                action.add_argument("--quote", default="", help="the words of the record")
                action.add_argument(
                    "--item", type=id_number, default=0, help="the raw item they are in"
                )
                action.add_argument("--title", default="", help="in place of the candidate's")
        lift = make("lift", help="let a fact be learned again that `list --facts` names")
        lift.add_argument("fact", type=id_number)
        lift.add_argument("--reason", default="")

    def handle(self, *args: Any, **options: Any) -> None:
        me, action = principal(), options["action"]
        if action == "forbid" and (options["rejection"] is None) == (options["words"] is None):
            raise CommandError("name a REJECTION, or --words", returncode=EXIT_USAGE)
        if action == "forbid" and options["words"] is not None:
            words = sys.stdin.read() if options["words"] == "-" else options["words"]
            with plain_errors(refused=EXIT_USAGE):
                fact = rejections.forbid_words(
                    words.strip(), by=me, now=timezone.now(), reason=options["reason"]
                )
            report: dict[str, Any] = {"fact": fact, "action": action}
            lines = [f"rejected fact {fact}: what says this again is refused (lift {fact} ends it)"]
        elif action == "lift":
            with plain_errors():
                rejections.lift(
                    options["fact"], by=me, now=timezone.now(), reason=options["reason"]
                )
            report = {"fact": options["fact"], "action": action}
            lines = [f"rejected fact {options['fact']} may be learned again"]
        elif action == "list" and options["facts"]:
            facts = wordless_facts(RejectedFact.objects.visible_to(me))
            lines = [fact_line(one) for one in facts.shown]
            if facts.more:
                lines.append("there are more: they come up as these are lifted")
            lines = lines or ["nothing is forbidden without words"]
            report = {"facts": [fact_as_json(one) for one in facts.shown], "more": facts.more}
        elif action == "list":
            rows = shown.decided(GateRejection.objects.visible_to(me)).exclude(decided=None)
            if not options["decided"]:
                rows = shown.waiting(GateRejection.objects.visible_to(me))
            found = shown.refusals(list(rows.order_by("-pk")[:LISTED_MAX]))
            lines = [line(one) for one in found] or ["nothing waits for a decision"]
            report = {"rejections": [as_json(one) for one in found]}
        else:
            more: dict[str, Any] = {}
            if action == "accept":
                more["words"] = Words(options["quote"], options["item"], options["title"])
            with plain_errors():
                made = rejections.VERBS[action](
                    options["rejection"],
                    by=me,
                    now=timezone.now(),
                    reason=options["reason"],
                    **more,
                )
            note = str(made.note_id) if made.note_id else None
            report = {"rejection": made.rejection_id, "action": action, "note": note}
            lines = [f"rejection {made.rejection_id} is {rejections.PAST[action]}"]
        self.say(report, as_json=options["json"], line="\n".join(lines))


def as_json(one: shown.Refusal) -> dict[str, Any]:
    """A refusal as `--json` prints it."""
    return {
        "rejection": one.pk,
        "reason": one.row.reason,
        "detail": one.row.detail,
        "title": one.candidate.title,
        "content": one.candidate.content,
        "quote": one.candidate.source_ref,
        "unit": one.unit,
        "decided": one.decision.action if one.decision else None,
        "created_at": one.row.created_at,
    }


def fact_as_json(fact: RejectedFact) -> dict[str, Any]:
    """A rejected fact as `--json` prints it."""
    return {"fact": fact.pk, "by": fact.principal.name, "created_at": fact.created_at}


def fact_line(fact: RejectedFact) -> str:
    return f"{fact.pk}  forbidden by {fact.principal}  {fact.created_at:%Y-%m-%d %H:%M}"


def line(one: shown.Refusal) -> str:
    decided = ""
    if one.decision:
        decided = f"  {rejections.PAST[one.decision.action]} by {one.decision.principal}"
    return (
        f"{one.pk}  {one.row.reason}{decided}  {one.row.created_at:%Y-%m-%d %H:%M}\n"
        f"   said: {one.candidate.content}\n"
        f"   why: {one.row.detail}"
    )
