"""`manage.py reconcile`: replay the record against its notes. Changes no note."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from django.conf import settings
from django.core.management.base import CommandParser
from django.utils import timezone

from memory import reconciling
from memory.management.base import (
    EXIT_AWAY,
    EXIT_FAILED,
    EXIT_OK,
    EXIT_PARTIAL,
    EXIT_USAGE,
    ArgusCommand,
    ended_by_sigterm,
    plain_errors,
    positive,
)
from memory.management.commands.verify import as_json, listed
from memory.models import Finding, StageRun
from memory.stages import reconcile as stage

#: What each check of one unit holds.
OF_A_UNIT = {
    "gate": "today's gate lets every note of the unit through",
    "source": "what the notes quote would be captured today",
    "notes": "distilled again, the unit has the notes that it has",
}

#: What ended a run early, in words.
STOPS = {
    "budget": "the model tokens of today are spent; it goes on at midnight UTC",
    "away": "what is asked is away",
    "time": "the time was over",
    "cancelled": "somebody said to stop",
}


class Command(ArgusCommand):
    help = (
        "Replay the record against its notes, on a sample or whole; changes no note. "
        "Exit 0: they agree; 1: there are findings; 3: it was not done whole; 75: a model is away."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        which = parser.add_mutually_exclusive_group()
        which.add_argument("--full", action="store_true", help="every unit there is")
        which.add_argument("--sample", type=positive, help="so many units, by chance")
        which.add_argument("--unit", help="this one: episode:KEY or item:ID")
        parser.add_argument("--limit", type=positive, help="at most this many units")
        parser.add_argument("--dry-run", action="store_true", help="name what would be looked at")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["dry_run"]:
            with plain_errors(EXIT_USAGE):
                stage.check_unit(options["unit"])
            size = options["sample"] or settings.ARGUS.reconcile_sample
            units = options["unit"] or ("all" if options["full"] else size)
            self.say({"units": units, "checks": _says()}, as_json=options["json"])
            return
        with plain_errors(EXIT_USAGE), ended_by_sigterm():
            asked = {name: options[name] for name in ("sample", "full", "unit")}
            run = stage.ask(trigger="command", now=timezone.now(), **asked)
            report = stage.reconcile(run=run, limit=options["limit"])
        rows = Finding.objects.as_pipeline().filter(run=run).select_related("run")
        found = [as_json(one) for one in rows.order_by("pk")]
        self.say(
            {"run": run.pk, **asdict(report), "rows": found},
            as_json=options["json"],
            line=lines(run, report, found),
        )
        self.leave(code(report))


def code(report: stage.ReconcileReport) -> int:
    """Findings come before what was not done: they are there whatever the rest says."""
    if report.findings:
        return EXIT_FAILED
    if report.stopped == "away":
        return EXIT_AWAY
    cut = report.stopped or report.left or report.content_failures
    return EXIT_PARTIAL if cut else EXIT_OK


def lines(run: StageRun, report: stage.ReconcileReport, found: list[dict[str, Any]]) -> str:
    """The table of checks, then what was found and why it ended."""
    wide = max(len(name) for name in report.found)
    out = [f"{'check':<{wide}} {'looked at':>10} {'found':>6}  what holds"]
    for name, says in _says().items():
        out.append(f"{name:<{wide}} {report.looked[name]:>10,} {report.found[name]:>6,}  {says}")
    out += listed(found)
    told = f"run {run.pk}: {report.units:,} unit{'s' if report.units != 1 else ''} replayed, "
    told += f"{report.findings:,} found, {report.proposals:,} proposals made"
    if report.content_failures:
        told += f", {report.content_failures:,} answers of no use"
    if report.left:
        told += f", {report.left:,} left"
    out.append(f"{told}; stopped: {STOPS[report.stopped]}" if report.stopped else told)
    return "\n".join(out)


def _says() -> dict[str, str]:
    return {check.name: check.says for check in reconciling.SWEEPS} | OF_A_UNIT
