"""`manage.py verify`: look whether the record still says what it said. Repairs nothing."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from django.core.management.base import CommandParser
from django.utils import timezone

from memory.management.base import (
    EXIT_FAILED,
    EXIT_OK,
    EXIT_PARTIAL,
    EXIT_USAGE,
    ArgusCommand,
    ended_by_sigterm,
    plain_errors,
    positive,
)
from memory.models import Finding, StageRun
from memory.shown.findings import told
from memory.stages import verify as stage
from memory.verifying.offered import checks

#: Findings printed; all that were kept are on the page.
FINDINGS_PRINTED_MAX = 20


class Command(ArgusCommand):
    help = (
        "Look whether the record still says what it said; repairs nothing. "
        "Exit 0: it does; 1: there are findings; 3: some checks were left."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--check", action="append", default=[], choices=list(checks()))
        parser.add_argument("--limit", type=positive, help="at most so many rows a check are kept")
        parser.add_argument("--dry-run", action="store_true", help="name the checks, do nothing")

    def handle(self, *args: Any, **options: Any) -> None:
        known = checks()
        if options["dry_run"]:
            says = {name: known[name].says for name in options["check"] or known}
            self.say({"checks": says}, as_json=options["json"], line=_listed(says))
            return
        with plain_errors(EXIT_USAGE), ended_by_sigterm():
            run = stage.ask(options["check"], trigger="command", now=timezone.now())
            report = stage.verify(run=run, limit=options["limit"])
        rows = Finding.objects.as_pipeline().filter(run=run).select_related("run")
        found = [as_json(one) for one in rows.order_by("pk")]
        self.say(
            {"run": run.pk, **asdict(report), "rows": found},
            as_json=options["json"],
            line=lines(run, report, found),
        )
        self.leave(EXIT_FAILED if report.findings else EXIT_PARTIAL if report.left else EXIT_OK)


def as_json(row: Finding) -> dict[str, Any]:
    """A finding as `--json` prints it; `page` is where its thing is shown, "" where nowhere."""
    shown = told(row)
    return {
        "check": row.check_name, "kind": row.kind, "reference": row.reference,
        "detail": row.detail, "page": shown.link,
    }  # fmt: skip


def lines(run: StageRun, report: stage.VerifyReport, found: list[dict[str, Any]]) -> str:
    """The table of checks, then what was found."""
    known = checks()
    wide = max((len(name) for name in report.found), default=5)
    out = [f"{'check':<{wide}} {'looked at':>10} {'found':>6} {'ms':>6}  what holds"]
    for name, count in report.found.items():
        looked, took = report.looked[name], report.milliseconds[name]
        out.append(f"{name:<{wide}} {looked:>10,} {count:>6,} {took:>6,}  {known[name].says}")
    if report.left:
        out.append(f"left for want of time: {', '.join(report.left)}")
    out += listed(found)
    much = f"{report.findings:,} finding{'s' if report.findings != 1 else ''}"
    if report.unwritten:
        much += f", {report.unwritten:,} of them only counted"
    out.append(f"run {run.pk}: {much}" if report.findings else f"run {run.pk}: nothing found")
    return "\n".join(out)


def listed(found: list[dict[str, Any]]) -> list[str]:
    """Findings, a line each, as many as a terminal has room for."""
    out = []
    for one in found[:FINDINGS_PRINTED_MAX]:
        told = ", ".join(f"{word} {value}" for word, value in one["detail"].items())
        page = f"  {one['page']}" if one["page"] else ""
        out.append(f"  {one['check']}: {one['kind']} {one['reference']} ({told}){page}")
    if more := len(found) - len(out):
        out.append(f"  and {more:,} more: see /ui/findings/")
    return out


def _listed(says: dict[str, str]) -> str:
    return "\n".join(f"{name}: {told}" for name, told in says.items())
