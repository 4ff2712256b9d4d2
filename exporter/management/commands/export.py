"""`manage.py export`: bring the vault up to date, or show what would change."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from exporter.export import Change, ExportReport, export, preview
from exporter.place import around_vault, place
from exporter.progress import watched
from memory.errors import ArgusError, InfraError
from memory.management.base import (
    EXIT_AWAY,
    EXIT_PARTIAL,
    EXIT_USAGE,
    ArgusCommand,
    ended_by_sigterm,
    plain_errors,
    summary,
)

#: Lines of one file's difference that are printed.
# Why: a first export is all new, and nobody reads ten thousand lines to learn that.
# Calibrate: a note of the demo, whole.
DIFF_LINES_MAX = 60


class Command(ArgusCommand):
    help = (
        "Write live notes as Markdown files under ARGUS_VAULT; what has not changed is not "
        "written. Exit 3: files were left alone, because somebody changed them above `## Notes`, "
        "or wait for the next export."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "--dry-run", action="store_true", help="print what would change, write nothing"
        )
        parser.add_argument("--git", action="store_true", help="commit what changed")
        parser.add_argument("--no-progress", action="store_true")

    def handle(self, *args: Any, **options: Any) -> None:
        with plain_errors(refused=EXIT_USAGE):
            target = place()
            if options["dry_run"]:
                report = self.show(target.folder, as_json=options["json"])
            else:
                quiet = options["no_progress"] or options["json"]
                target = replace(target, git=target.git or options["git"])
                seen = nullcontext() if quiet else watched()
                with around_vault(target), ended_by_sigterm(), seen:
                    report = self.done(target.folder, as_json=options["json"])
        self.leave(code_of(report))

    def done(self, folder: Path, *, as_json: bool) -> ExportReport:
        """Export and print what was done, also before something was in the way."""
        try:
            report = export()
        except ArgusError as error:
            if error.report is not None and as_json:
                code = EXIT_AWAY if isinstance(error, InfraError) else EXIT_USAGE
                words = {"error": error.told or str(error), "exit": code}
                self.say({"vault": folder, **asdict(error.report), **words}, as_json=True)
                self.leave(code)
            if error.report is not None:
                self.stdout.write(counts(folder, error.report))
            raise
        told = {"vault": folder, **asdict(report)}
        self.say(told, as_json=as_json, line=counts(folder, report))
        return report

    def show(self, folder: Path, *, as_json: bool) -> ExportReport:
        """Print what an export would change now."""
        looked = preview()
        if as_json:
            changes = [
                {
                    "action": one.action, "path": one.path, "was": one.was,
                    "diff": "".join(diff(one)),
                }
                for one in looked.changes
            ]  # fmt: skip
            self.say({"vault": folder, "changes": changes, **asdict(looked.report)}, as_json=True)
            return looked.report
        for one in looked.changes:
            self.stdout.write("\n".join(shown(one)))
        self.stdout.write(counts(folder, looked.report))
        return looked.report


def code_of(report: ExportReport) -> int:
    """3 while there is a file that an export has yet to write. A cluster without a page is none:
    nobody can settle it."""
    return EXIT_PARTIAL if report.conflicts or report.pending else 0


def shown(change: Change) -> Iterator[str]:
    """One change for a person: what and where, then the lines that differ."""
    moved = f" (was {change.was})" if change.was else ""
    yield f"{change.action} {change.path}{moved}"
    lines = [one.rstrip("\n") for one in diff(change)]
    yield from lines[:DIFF_LINES_MAX]
    if len(lines) > DIFF_LINES_MAX:
        yield f"... and {len(lines) - DIFF_LINES_MAX} more lines (--json has all)"


def diff(change: Change) -> Iterable[str]:
    """The unified difference of a file as it lies there and as it would be."""
    names = (
        f"a/{change.was or change.path}" if change.before is not None else "/dev/null",
        f"b/{change.path}" if change.after is not None else "/dev/null",
    )
    return difflib.unified_diff(_lines(change.before), _lines(change.after), *names)


def _lines(data: bytes | None) -> list[str]:
    # Not splitlines(): titles may hold what it takes for the end of a line.
    text = (data or b"").decode("utf-8", "replace")
    lines = text.split("\n")
    last = [f"{lines[-1]}\n"] if lines[-1] else []
    return [f"{one}\n" for one in lines[:-1]] + last


def counts(folder: Path, report: ExportReport) -> str:
    """The report for people: the counts, then each file that was left alone and what to do."""
    told = asdict(report)
    left = told.pop("troubles")
    # For the machine alone.
    del told["place"]
    lines = [f"{folder}: {summary(told)}"]
    lines += [f"left alone: {one['path']}: {one['why']}; {one['fix']}" for one in left]
    if report.conflicts > len(left):
        lines.append(f"... and {report.conflicts - len(left)} more")
    return "\n".join(lines)
