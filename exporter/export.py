"""Export: the vault is brought to what it shall hold, file by file, and nothing else is touched.

Reads: note, evidence, raw_item, project, dedup_verdict, exported_file, and the vault itself.
Writes: files of the vault, emission. Audits: exported_file, before each file is touched; stage_run.
Verify: a second export writes nothing; what a person wrote is where it was; an export that was
killed anywhere is finished by the next one, byte for byte.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.utils import timezone

from exporter import git, known, layout, lineage, logbook, plan
from exporter.carrying import Carrying, Work, count
from exporter.folder import Folder, VaultAway
from exporter.found import Scan
from exporter.links import aimed, members
from exporter.logbook import Book
from exporter.mark import fingerprint, place_mark
from exporter.moves import Log
from exporter.place import Place, place
from exporter.plan import Step
from exporter.render import render
from exporter.report import TROUBLES_TOLD_MAX
from exporter.report import ExportReport as ExportReport
from exporter.resting import resting
from exporter.wanted import gather
from memory.access import principal
from memory.audit import Clock, stage
from memory.models import Principal, StageRun

#: What an export that finds nothing to do tells again.
SAME = ("linked", "clusters", "largest", "refused", "conflicts", "pending")


@dataclass(frozen=True)
class Change:
    """What an export would do to one file. `was`: where it lies now, if it moves."""

    action: str
    path: str
    before: bytes | None
    after: bytes | None
    was: str = ""


@dataclass(frozen=True)
class Preview:
    """What an export would do, all of it."""

    report: ExportReport
    changes: tuple[Change, ...]


@stage
def export(
    run: StageRun, *, clock: Clock, limit: int | None, until: datetime | None
) -> ExportReport:
    """Bring the vault in force up to date; at most `limit` files are touched, none after `until`.

    Raises NoVault without one, Conflict while another export has it in hand, VaultAway when its
    folder cannot be written (what was written stays, the next export goes on), GitAway, Inside;
    the last three with a report of what was done.
    """
    where = place()
    owner = principal(where.owner)
    with Folder.hold(where.folder, where.owner) as folder:
        book = logbook.read(owner)
        # Taken before anything is read: what comes in meanwhile is new to the next export.
        made_of = fingerprint(where, owner, now=clock(), resting=book.at_rest())
        mark = f"{place_mark(where)}:{made_of}"
        nothing = _nothing_new(f"{mark}:{logbook.position(owner)}", book, folder)
        if nothing is not None:
            report, stuck = nothing
        else:
            # Whatever comes of it, what was kept holds no more; it may name what is gone.
            folder.keep(None)
            scan = folder.scan()
            work = _work(where, owner, book, folder, scan, now=clock())
            carrying = Carrying(run, owner, folder, work, clock, limit, until)
            try:
                report = carrying.out()
            except VaultAway as error:
                error.report = replace(carrying.report(), place=where.mark)
                raise
            stuck = {step.path for step in work.steps if step.action == "conflict"}
            _keep(f"{mark}:{logbook.position(owner)}", report, work, book, scan, folder)
        report = replace(report, place=where.mark)
        _answer_for(folder, report)
        if where.git and (_changed(report) or logbook.owed(owner, where.mark)):
            try:
                report = replace(report, commit=_commit(where, owner, report, stuck))
            except (git.GitAway, git.Inside) as error:
                error.report = report
                raise
        return report


def preview(*, now: datetime | None = None) -> Preview:
    """What an export would do now. Nothing is written: no file, no row, no lock. Raises NoVault."""
    where, now = place(), now or timezone.now()
    owner = Principal.objects.filter(name=where.owner).first()
    if owner is None:
        return Preview(ExportReport(), ())
    with Folder.look(where.folder, where.owner) as folder:
        scan = folder.scan() if folder else Scan()
        work = _work(where, owner, logbook.read(owner), folder, scan, now=now)
        changes = tuple(_changes(work.steps, folder))
    counts = Counter[str]()
    for step in work.steps:
        count(step, counts)
    return Preview(work.report(counts), changes)


def _work(
    where: Place, owner: Principal, book: Book, folder: Folder | None, scan: Scan, *, now: datetime
) -> Work:
    """Decide everything. Reads alone."""
    # Where the index of a project is, the project is; one that was laid to rest is nowhere.
    kept = {
        key: one.path.rpartition("/")[0]
        for key, one in book.last.items()
        if key.startswith("index:") and one.stands
    }
    wanted = gather(where, owner, now=now, kept=kept, lying=scan.folders)
    pages = {page.key for page in wanted.pages}
    gone = {one.key for one in scan.files.values() if one.key is not None} - pages
    unseen = lineage.unseen(where, owner, {key: book.notes.get(key) for key in gone})
    log = replace(_log(book, owner, scan), unseen=unseen)
    scan = aimed(scan, log, folder)
    heirs = lineage.heirs(wanted, gone, members(scan, log, folder, gone))
    settled = layout.settle(
        wanted.pages, log, scan, heirs,
        keep_retired=where.retired == "keep", lowercase=where.lowercase,
    )  # fmt: skip
    rest = {
        move.key: book.notes.get(move.key)
        for move in settled.moves
        if move.fate == "retired" and not log.bare(move.key)
    }
    made = render(wanted, settled.paths) | resting(where, owner, wanted.projects, rest, now=now)
    return Work(wanted, plan.steps(settled, made, log), {**book.notes, **wanted.of})


def _log(book: Book, owner: Principal, scan: Scan) -> Log:
    """The log, with the past of every page whose file is not as it was left."""
    keys = layout.doubtful(scan, book.last)
    shas = {one.managed for one in scan.files.values() if one.key in keys}
    return logbook.history(book, owner, keys, shas)


def _answer_for(folder: Folder, report: ExportReport) -> None:
    """All else is exported when some of it may not be written; that is no success."""
    if not folder.refused:
        return
    files = "1 file" if len(folder.refused) == 1 else f"{len(folder.refused):,} files"
    why = ", ".join(sorted(set(folder.refused.values())))
    away = VaultAway(f"{files} of the vault cannot be written ({why}); all else is")
    named = sorted(folder.refused)
    more = f" and {len(named) - TROUBLES_TOLD_MAX:,} more" if named[TROUBLES_TOLD_MAX:] else ""
    away.told = f"{away}: {', '.join(named[:TROUBLES_TOLD_MAX])}{more}"
    away.report = report
    raise away


def _changed(report: ExportReport) -> bool:
    return bool(report.written or report.removed or report.renamed or report.retired)


def _nothing_new(mark: str, book: Book, folder: Folder) -> tuple[ExportReport, set[str]] | None:
    """The report of an export that finds everything as the last one of this vault left it, and the
    files that it leaves alone; None where there is something to do, or nobody knows."""
    last = known.recall(folder)
    if last is None or last.mark != mark or not known.same(last, folder):
        return None
    lie = folder.holds(book.standing(last.keys), book.resting(last.keys))
    # A page that left may come back, by a backup or from another machine.
    if lie is None or folder.comes_back(book.left()):
        return None
    told = ExportReport(unchanged=lie, troubles=tuple(last.troubles))
    counts: dict[str, Any] = {word: last.counts.get(word, 0) for word in SAME}
    return replace(told, **counts), set(last.watched)


def _keep(
    mark: str, report: ExportReport, work: Work, book: Book, scan: Scan, folder: Folder
) -> None:
    """Leave word for the next export, unless there is something for it to do."""
    waiting = sum(1 for step in work.steps if step.action == "pending")
    watched = known.watched(work.steps, book.last, scan, folder)
    if report.pending > waiting or watched is None:
        return
    counts = {word: getattr(report, word) for word in SAME}
    left = known.Known(mark, counts, list(report.troubles), known.stuck(work.steps), watched)
    folder.keep(known.dumped(left))


def _commit(where: Place, owner: Principal, report: ExportReport, stuck: set[str]) -> str:
    """Commit our files, but those that are `stuck`: what lies there is somebody's."""
    said = ", ".join(
        f"{count} {word}"
        for word in ("written", "renamed", "removed", "retired")
        if (count := getattr(report, word))
    )
    lie, ever = logbook.places(owner)
    message = f"Export: {said}" if said else "Export"
    return git.commit(where.folder, lie - stuck, ever - stuck, message=message)


def _changes(steps: Sequence[Step], folder: Folder | None) -> Iterator[Change]:
    """What the steps would do, in their order."""

    def lies(path: str) -> bytes | None:
        return folder.read(path) if folder and path else None

    for step in steps:
        if step.data is not None:
            before = lies(step.was or (step.path if step.expect else ""))
            yield Change(step.action, step.path, before, step.data, step.was)
        for path, _ in step.unlink:
            if path != step.was:
                yield Change("removed", path, lies(path), None)
