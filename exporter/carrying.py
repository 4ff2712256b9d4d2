"""Steps carried out, wave by wave: rows, then files, then what they replace.

Reads: note, for what was purged meanwhile. Writes: files of the vault, emission. Audits:
exported_file, before each file is touched.
Knows nothing about why a step is taken.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from itertools import groupby
from uuid import UUID

from exporter import logbook, progress
from exporter.folder import Folder, Put
from exporter.logbook import Echo
from exporter.plan import Step
from exporter.render import echo
from exporter.report import TROUBLES_TOLD_MAX, ExportReport, Trouble
from exporter.wanted import Wanted
from memory.audit import Clock, beat
from memory.models import Principal, StageRun

#: Files whose rows are logged at once, before any of them is touched.
# Why: each such step waits for the database's disk; all that a killed export has logged and not
# written is a part of one.
# Calibrate: `python -m tests.bench vault`, first export, with half and twice as many.
FILES_AT_ONCE = 250


@dataclass(frozen=True)
class Work:
    """What is to be done, and what is needed for it."""

    wanted: Wanted
    steps: list[Step]
    notes: Mapping[str, UUID | None]

    def report(self, counts: Mapping[str, int]) -> ExportReport:
        """The counts, with those of the pages."""
        wanted = self.wanted
        stuck = [one for one in self.steps if one.action == "conflict"]
        told = [Trouble(one.path, one.why, one.fix) for one in stuck[:TROUBLES_TOLD_MAX]]
        return ExportReport(
            written=counts.get("written", 0),
            unchanged=counts.get("unchanged", 0),
            removed=counts.get("removed", 0),
            renamed=counts.get("renamed", 0),
            retired=counts.get("retired", 0),
            pending=counts.get("pending", 0),
            conflicts=len(stuck),
            linked=wanted.linked,
            clusters=len(wanted.hubs),
            largest=wanted.largest,
            refused=wanted.refused,
            troubles=tuple(told),
        )


@dataclass
class Carrying:
    """Carry steps out, wave by wave: rows, then files, then what they replace."""

    run: StageRun
    owner: Principal
    folder: Folder
    work: Work
    clock: Clock
    limit: int | None
    until: datetime | None
    counts: Counter[str] = field(default_factory=Counter)
    ended: int = 0

    def report(self) -> ExportReport:
        """What was done so far; the rest is pending."""
        rest = sum(1 for step in self.work.steps[self.ended :] if _waits(step))
        return self.work.report(self.counts + Counter(pending=rest))

    def out(self) -> ExportReport:
        """Do all of it, or as much as the bounds allow."""
        told = dict.fromkeys(("done", "total"), 0) | {"total": len(self.work.steps)}
        waves = groupby(self.work.steps, key=lambda step: step.wave)
        with progress.bar(len(self.work.steps)) as tell:
            for _, wave in waves:
                for batch in _batches(list(wave)):
                    now = self._allowed(batch)
                    self._do(now)
                    self.ended += len(batch)
                    told["done"] += len(batch)
                    tell(len(batch))
                    beat(self.run, told)
        return self.report()

    def _allowed(self, batch: Sequence[Step]) -> list[Step]:
        """Of a batch what may be done yet; the rest is pending."""
        over = self.run.cancel_asked_at is not None
        over = over or (self.until is not None and self.clock() >= self.until)
        done: list[Step] = []
        for step in batch:
            if step.action == "pending" or not _touches(step):
                done.append(step)
            elif over or (self.limit is not None and self.counts["touched"] >= self.limit):
                self.counts["pending"] += 1
            else:
                self.counts["touched"] += 1
                done.append(step)
        return done

    def _do(self, batch: Sequence[Step]) -> None:
        rows = [row for step in batch for row in step.rows]
        echoes = [one for step in batch if step.data and (one := self._echo(step))]
        gone: set[str] = set()
        if rows or echoes:
            gone = logbook.write(
                self.run, self.owner, rows, echoes, notes=self.work.notes, now=self.clock()
            )
        self.counts["pending"] += sum(1 for step in batch if step.key in gone)
        batch = [step for step in batch if step.key not in gone]
        puts = [
            Put(step.path, step.data, step.expect, step.words)
            for step in batch
            if step.data is not None
        ]
        left = self.folder.put(puts)
        done = [step for step in batch if step.path not in left or step.data is None]
        if unlink := [one for step in done for one in step.unlink]:
            left |= self.folder.remove(unlink, self._ours)
        for step in batch:
            if step.path in left or any(path in left for path, _ in step.unlink):
                self.counts["pending"] += 1
            else:
                count(step, self.counts)

    @cached_property
    def _ours(self) -> set[str]:
        """Folders that go when they are empty: not one that a person made, also when a page of ours
        was all that it held."""
        return logbook.folders(self.owner)

    def _echo(self, step: Step) -> Echo | None:
        """The sample of a page that is about to be written; also of one that is laid to rest, whose
        note may be purged later: by then the log knows nothing of it."""
        told = ("written", "renamed", "retired")
        if step.action not in told or step.key.startswith("index:"):
            return None
        ours = [row.sha256 for row in step.rows if (row.key, row.path) == (step.key, step.path)]
        return Echo(step.key, ours[0], echo(self.work.wanted, step.key)) if ours else None


def _batches(steps: list[Step]) -> Iterator[list[Step]]:
    return (steps[at : at + FILES_AT_ONCE] for at in range(0, len(steps), FILES_AT_ONCE))


def _touches(step: Step) -> bool:
    return step.data is not None or bool(step.unlink)


def _waits(step: Step) -> bool:
    return _touches(step) or step.action == "pending"


def count(step: Step, counts: Counter[str]) -> None:
    if step.action != "conflict":
        counts[step.action] += 1
    counts["removed"] += step.left
