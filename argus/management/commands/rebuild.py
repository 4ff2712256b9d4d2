"""`rebuild`: everything above the raw items made again, from the record and the log of replies."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.utils import timezone

from argus.rebuilding.rebuild import Report, rebuild
from memory.access import principal
from memory.management.base import (
    EXIT_PARTIAL,
    EXIT_USAGE,
    ArgusCommand,
    ended_by_sigterm,
    plain_errors,
)


class Command(ArgusCommand):
    help = (
        "Make everything above the raw items again, in a throwaway database and without asking a "
        "model, and say what comes out otherwise. Exit 0: all the same; 3: something is otherwise. "
        "With --yes the house gets it, in one transaction."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--dry-run", action="store_true", help="look only: the default")
        parser.add_argument("--yes", action="store_true", help="put what differs into the house")
        parser.add_argument("--reason", default="", help="why; needed with --yes")
        parser.add_argument("--no-progress", action="store_true")

    def handle(self, *args: Any, **options: Any) -> None:
        apply = options["yes"] and not options["dry_run"]
        if apply and not options["reason"].strip():
            raise CommandError("Say why: --reason.", returncode=EXIT_USAGE)
        with plain_errors(), ended_by_sigterm():
            report = rebuild(
                by=principal(),
                now=timezone.now(),
                apply=apply,
                reason=options["reason"],
                progress=not (options["no_progress"] or options["json"]),
            )
        self.say(report.as_json(), as_json=options["json"], line="\n".join(_lines(report)))
        if report.troubles or not (report.identical or report.done):
            self.leave(EXIT_PARTIAL)


def _lines(report: Report) -> list[str]:
    """The report for a person."""
    events = ", ".join(f"{kind} {count}" for kind, count in sorted(report.events.items()))
    lines = [f"done again: {events or 'nothing'}; no model was asked"]
    width = max(map(len, report.difference.tables), default=0)
    lines += [
        f"  {table.removeprefix('memory_'):{width}}  same {rows.same:,}  more {rows.more:,}"
        f"  less {rows.less:,}"
        for table, rows in report.difference.tables.items()
    ]
    for word, some in (
        ("appears", report.difference.appear),
        ("is not made again", report.difference.vanish),
        ("changed", report.difference.change),
    ):
        for one in some:
            columns = f" ({', '.join(one.columns)})" if one.columns else ""
            lines.append(f"  {word}{columns}: {one.note} {one.title}")
    lines += [f"  withdrawn with its note: hold {pk}, which nobody decided" for pk in report.holds]
    lines += [f"  nothing makes it again, left as it was: {unit}" for unit in report.not_kept]
    lines += [f"  could not be done again: {trouble}" for trouble in report.troubles]
    lines.append(_verdict(report))
    return lines


def _verdict(report: Report) -> str:
    if report.identical:
        return "identical" + (": nothing had to be written" if report.done else "")
    if report.done:
        return "the house has what was made"
    if report.troubles:
        return "not all could be done again: what was made is not put into the house"
    return "something is otherwise: --yes --reason WHY puts it into the house"
