"""Reconcile: the record replayed against what was distilled of it, on a sample or whole.

Reads: raw_item, episode, note, evidence, model_reply. Writes: finding; proposal, where distilling a
unit again would change its notes: a person applies or drops it on the page of the episode.
Audits: stage_run (its report names the sample), llm_call.
Verify: no note changes; a unit whose replies were kept asks no model; the day's budget stops it.
Outside the pipeline. Asks the distiller as the pipeline does, as background work.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime

from django.conf import settings
from django.db import connection
from tqdm import tqdm

from memory import edits, findings, reconciling
from memory.access import principal
from memory.audit import Clock, beat, open_run, stage
from memory.differing import differ
from memory.errors import BudgetExhausted, ContentError, InfraError, NotFound
from memory.findings import Found
from memory.llm.ports import Origin
from memory.making import ITEM_KINDS, Unit, load
from memory.models import Note, Principal, StageRun
from memory.redistill import Stopped
from memory.verifying.check import Look, taken

#: Findings of one check that are kept as rows; the others are counted.
FINDINGS_A_CHECK_MAX = 1_000

#: Units read at once by a whole replay.
UNITS_AT_ONCE = 500

# A sample is told by the run's number alone: whoever asks again which units it was gets the same,
# and the last one tells how far it came.
SAMPLE = """
SELECT unit FROM (
    SELECT unit_key AS unit FROM memory_episode WHERE distilled_at IS NOT NULL
    UNION ALL SELECT 'item:' || i.id FROM memory_rawitem i
    JOIN memory_distilleditem d ON d.raw_item_id = i.id WHERE i.kind = ANY(%s::text[])
) t ORDER BY md5(unit || ':' || %s::text), unit LIMIT %s
"""
AFTER = """
SELECT unit FROM (
    SELECT unit_key AS unit FROM memory_episode WHERE distilled_at IS NOT NULL
    UNION ALL SELECT 'item:' || i.id FROM memory_rawitem i
    JOIN memory_distilleditem d ON d.raw_item_id = i.id WHERE i.kind = ANY(%s::text[])
) t WHERE unit > %s ORDER BY unit LIMIT %s
"""
REST = f"SELECT count(*) FROM ({AFTER}) rest"


@dataclass(frozen=True)
class ReconcileReport:
    """Units replayed (`sampled` names them, where they are few; `after` is the last one), findings
    by check, proposals made. Not done: units `left`, those whose answer nobody got or could read
    (`unread` names the first); `stopped` says why it ended early: budget, away, time or cancelled.
    """

    units: int = 0
    findings: int = 0
    found: dict[str, int] = field(default_factory=dict)
    looked: dict[str, int] = field(default_factory=dict)
    proposals: int = 0
    content_failures: int = 0
    transient_failures: int = 0
    left: int = 0
    unwritten: int = 0
    stopped: str = ""
    sampled: tuple[str, ...] = ()
    after: str = ""
    unread: tuple[str, ...] = ()


def ask(
    *,
    trigger: str,
    now: datetime,
    sample: int | None = None,
    full: bool = False,
    unit: str | None = None,
) -> StageRun:
    """A run over a sample of this size (none: the setting's), over all units, or over one, for
    `reconcile(run=...)`. Raises NotFound for a unit that there is not."""
    check_unit(unit)
    run = open_run("reconcile", trigger=trigger, now=now)
    size = sample or settings.ARGUS.reconcile_sample
    run.progress = {"unit": unit} if unit else {"full": True} if full else {"sample": size}
    return run


def check_unit(unit: str | None) -> None:
    """Raises NotFound for a unit that there is not."""
    if unit is not None and load_unit(unit) is None:
        raise NotFound(
            f"no unit {unit or '(an empty name)'}: it is episode:KEY or item:ID, as a finding"
            " or the page of an episode names it"
        )


def load_unit(name: str) -> Unit | None:
    """The unit of this name, `episode:KEY` or `item:ID`; None for what is no such name, too."""
    kind, _, key = name.partition(":")
    fits = kind == "episode" or (kind == "item" and key.isascii() and key.isdigit())
    return load(name) if fits and len(key) <= 64 else None


@stage
def reconcile(
    run: StageRun, *, clock: Clock, limit: int | None, until: datetime | None
) -> ReconcileReport:
    """Sweep the whole record by statements, then replay units one by one; `limit` bounds those."""
    replay = Replay(run, clock, limit, until)
    replay.sweep()
    replay.units()
    return replay.report()


class Replay:
    """One run's way through the units that it was asked for."""

    def __init__(
        self, run: StageRun, clock: Clock, limit: int | None, until: datetime | None
    ) -> None:
        self.run, self.clock, self.limit, self.until = run, clock, limit, until
        self.asked = dict(run.progress)
        self.by: Principal = principal()
        self.counts: Counter[str] = Counter()
        self.found = dict.fromkeys((*(c.name for c in reconciling.SWEEPS), *findings.OF_A_UNIT), 0)
        self.looked = dict(self.found)
        self.names: list[str] = []
        self.unread: list[str] = []
        self.last, self.stopped = "", ""

    def sweep(self) -> None:
        """What one statement can say of the whole record."""
        if self.asked.get("unit"):
            return
        for check in reconciling.SWEEPS:
            look = Look(self.clock(), FINDINGS_A_CHECK_MAX)
            self._keep(check.name, taken(check, look))
            self.found[check.name] += look.beyond
            self.counts["unwritten"] += look.beyond
            self.looked[check.name] += look.looked

    def units(self) -> None:
        """Each unit once, until something stops it."""
        silent = None if self.run.trigger_source == "command" else True
        for name in tqdm(self._names(), desc="reconcile", unit=" units", disable=silent,
                         leave=False):  # fmt: skip
            if self.stopped or self._over():
                if self.asked.get("full"):
                    self.counts["left"] = _count_after(self.last)
                    break
                self.counts["left"] += 1
                continue
            self._replay(name)
            self.last = name

    def _over(self) -> bool:
        if self.limit is not None and self.counts["units"] >= self.limit:
            return True
        if self.until is not None and self.clock() >= self.until:
            self.stopped = "time"
        elif beat(self.run, {**self.asked, "units": self.counts["units"]}):
            self.stopped = "cancelled"
        return bool(self.stopped)

    def _names(self) -> Iterator[str]:
        if one := self.asked.get("unit"):
            yield str(one)
        elif self.asked.get("full"):
            last = ""
            while page := _names_of(AFTER, last, UNITS_AT_ONCE):
                yield from page
                last = page[-1]
        else:
            size = self.asked.get("sample") or settings.ARGUS.reconcile_sample
            yield from _names_of(SAMPLE, str(self.run.pk), size)

    def _replay(self, name: str) -> None:
        unit = load(name)
        if unit is None:
            return  # Purged since it was named.
        now = self.clock()
        rows = Note.objects.as_pipeline().live(now).filter(unit_key=unit.key).defer("embedding")
        notes = list(rows.prefetch_related("evidence", "accepted"))
        for check in ("gate", "source"):
            self.looked[check] += len(notes)
        self._keep("gate", list(reconciling.refused(unit, notes)))
        self._keep("source", list(reconciling.poisoned(unit, notes)))
        read = False
        try:
            self._again(unit, now=now)
            read = True
        except BudgetExhausted:
            self.stopped = "budget"
        except InfraError:
            self.stopped = "away"
            self.counts["transient_failures"] += 1
        except ContentError:
            self.counts["content_failures"] += 1
        except Stopped:
            self.stopped = "cancelled"
        if not read and len(self.unread) < findings.UNITS_NAMED_MAX:
            self.unread.append(unit.key)
        self.counts["units"] += 1
        if len(self.names) < findings.UNITS_NAMED_MAX:
            self.names.append(unit.key)

    def _again(self, unit: Unit, *, now: datetime) -> None:
        """Distill it again and keep what would change. Not a person's own words: nobody distilled
        them."""
        if unit.source.source == edits.SOURCE:
            return

        def pulse() -> None:
            if beat(self.run, {**self.asked, "units": self.counts["units"]}):
                raise Stopped

        level = unit.source.confidentiality
        origin = Origin("reconcile", unit.key, level, self.run.pk, pulse=pulse)
        self.looked["notes"] += 1
        difference = differ(self.run, unit, by=self.by, origin=origin, now=now)
        if difference is None:
            return
        self.counts["proposals"] += int(difference.fresh)
        kind, key = ("episode", unit.episode.pk) if unit.episode else ("item", unit.source.pk)
        detail = {"unit": unit.key, **difference.counts}
        if difference.proposal is not None:
            detail["proposal"] = difference.proposal.pk
        elif unit.episode is None:
            # Its page has nowhere to decide one: told, so that nobody looks for it.
            detail["no_proposal"] = "of a document"
        self._keep("notes", [Found(kind, str(key), unit.source.owner_id, detail)])

    def _keep(self, check: str, found: list[Found]) -> None:
        """Write what a check found, as far as rows of it are wanted."""
        room = max(FINDINGS_A_CHECK_MAX - self.found[check], 0)
        findings.write(self.run, check, found[:room], now=self.clock())
        self.found[check] += len(found)
        self.counts["unwritten"] += len(found[room:])

    def report(self) -> ReconcileReport:
        few = len(self.names) < findings.UNITS_NAMED_MAX
        return ReconcileReport(
            **self.counts,
            findings=sum(self.found.values()),
            found=self.found,
            looked=self.looked,
            stopped=self.stopped,
            sampled=tuple(self.names) if few else (),
            after=self.last,
            unread=tuple(self.unread),
        )


def _count_after(name: str) -> int:
    """How many units come after this one."""
    with connection.cursor() as cursor:
        cursor.execute(REST, [list(ITEM_KINDS), name, None])
        return int(cursor.fetchone()[0])


def _names_of(sql: str, word: str, most: int) -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute(sql, [list(ITEM_KINDS), word, most])
        return [unit for (unit,) in cursor.fetchall()]
