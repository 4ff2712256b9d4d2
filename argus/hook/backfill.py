"""All past sessions of the three clients into the record, once, as slowly as the server asks.

One request at a time, the oldest file first; `past` knows how a file is sent. Knows nothing about
formats.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime, timezone
from typing import Any, Callable

from argus.hook import deliver, locate, spool, trouble
from argus.hook.past import BackfillReport, Past, add
from argus.hook.reading import Batch, Unreadable
from argus.hook.wire import Away
from memory.transcripts import detect, walk
from memory.transcripts.turns import Skip

#: Seconds without any answer after which a backfill gives up; a later one goes on.
PATIENCE_SECONDS = 600.0
EXIT_OK, EXIT_REFUSED, EXIT_AWAY, EXIT_STOPPED = 0, 1, 75, 130

_CLIENTS = {source: client for client, source in locate.SOURCES.items()}

#: Where the clients keep their sessions, from the home.
FOLDERS = (
    ".claude/projects", ".codex/sessions", ".codex/archived_sessions", ".pi/agent/sessions",
)  # fmt: skip


#: Called with the bytes done, the bytes there are, and the report so far.
Progress = Callable[[int, int, BackfillReport], None]


def backfill(
    paths: Sequence[str] = (),
    since: str = "",
    project: str = "",
    dry_run: bool = False,
    progress: Progress = lambda done, total, report: None,
    patience: float = PATIENCE_SECONDS,
) -> BackfillReport:
    """Send every session under `paths` (default: the clients' folders), the oldest file first.

    `since`: an ISO instant with zone; turns before it are left out. `project`: the name that all
    turns get. `dry_run` counts and writes nothing. Raises FileNotFoundError for a missing path.
    """
    report = BackfillReport(dry_run=dry_run)
    files = _files(paths or _folders(), since, report)
    total = sum(size for _, size, _, _ in files)
    done = 0
    run = Past(report, since, project, patience)
    if not dry_run and spool.waiting():
        deliver.flush(patience)
    for at, (_, size, path, client) in enumerate(files):
        base = done

        def tell(batch: Batch, base: int = base, client: str = client) -> None:
            run.add(batch, locate.SOURCES[client])
            progress(base + batch.end, total, report)

        try:
            run.count(path, client, tell) if dry_run else run.send(path, client, tell)
        except OSError as error:
            add(report.passed, "unreadable")
            trouble.log(f"backfill: {path}: {error.strerror}")
        except Unreadable as error:
            add(report.passed, "unreadable")
            trouble.log(f"backfill: {path}: {error}")
        except Away as away:
            report.why = str(away)
            report.left += len(files) - at
            break
        finally:
            run.door.tally.keep()
        done += size
        progress(done, total, report)
    return report


def _folders() -> list[str]:
    places = [os.path.join(os.path.expanduser("~"), *one.split("/")) for one in FOLDERS]
    return [place for place in places if os.path.isdir(place)]


def _files(
    paths: Sequence[str], since: str, report: BackfillReport
) -> list[tuple[float, int, str, str]]:
    """(changed, bytes, path, client) of the sessions' files; the others are counted."""
    found = []
    floor = datetime.fromisoformat(since).timestamp() if since else 0.0
    for one in walk(paths):
        if isinstance(one, Skip):
            add(report.passed, one.reason)
            continue
        try:
            client = _CLIENTS.get(detect(one) or "")
            status = os.stat(str(one))
        except OSError:
            add(report.passed, "unreadable")
            continue
        if client is None or not locate.readable(str(one)):
            add(report.passed, "no_session")
        elif status.st_mtime < floor:
            add(report.passed, "before")
        else:
            found.append((status.st_mtime, status.st_size, os.path.abspath(str(one)), client))
    return sorted(found)


def command(options: Any) -> int:
    """`argus-hook backfill`: print the report; the exit code."""
    try:
        since = _instant(options.since) if options.since else ""
    except ValueError:
        print(f"argus-hook: {options.since} is no date: write 2026-11-30", file=sys.stderr)
        return EXIT_REFUSED
    shows = sys.stderr is not None and sys.stderr.isatty()
    try:
        report = backfill(
            options.paths,
            since,
            options.project or "",
            options.dry_run,
            _bar if shows else lambda done, total, report: None,
        )
    except FileNotFoundError as error:
        print(f"argus-hook: {error}", file=sys.stderr)
        return EXIT_REFUSED
    except KeyboardInterrupt:
        print("\nargus-hook: stopped; the next backfill goes on from here", file=sys.stderr)
        return EXIT_STOPPED
    if shows:
        print(file=sys.stderr)
    print(json.dumps(asdict(report)) if options.json else "\n".join(lines(report)))
    return EXIT_AWAY if report.left else EXIT_OK


def _instant(given: str) -> str:
    when = datetime.fromisoformat(given.replace("Z", "+00:00"))
    when = when if when.tzinfo else when.astimezone()
    return when.astimezone(timezone.utc).isoformat()


def _bar(done: int, total: int, report: BackfillReport) -> None:
    share = min(done / total, 1.0) if total else 1.0
    filled = "#" * int(share * 30)
    told = f"\r[{filled:<30}] {share:4.0%}  {report.files} files, {report.posted} items"
    print(told, end="", file=sys.stderr, flush=True)


def lines(report: BackfillReport) -> list[str]:
    """The report for a person."""
    would = "would be sent" if report.dry_run else "sent"
    told = [f"{report.files} files read, {report.posted} items {would}"]
    told += [f"  {name:<14} {count}" for name, count in sorted(report.sources.items())]
    if not report.dry_run:
        told.append(
            f"stored {report.stored}, known already {report.duplicates},"
            f" refused by the server {report.refused}"
        )
    for title, counts in (
        ("left out, by reason", report.reasons),
        ("secrets taken out", report.redacted),
        ("files passed over", report.passed),
    ):
        if counts:
            told.append(f"{title}:")
            told += [f"  {name:<24} {count}" for name, count in sorted(counts.items())]
    if report.why:
        told.append(f"stopped: {report.why}")
    if report.left:
        told.append(f"{report.left} files are left, run it again to go on")
    return told
