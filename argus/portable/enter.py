"""`import-data`: an export of a person becomes this person's, as far as this house's rules let it.

Reads: the file. Writes: raw_item (by `capture`), note and evidence (through the gate), feedback,
pin, rejected_fact. Audits: capture_receipt, gate_rejection, act.
Whoever imports is the owner, whatever the file says; nobody else sees it unless they say so. Comes
in: raw items, live notes, feedback, pins; rejected facts where asked for, since nobody can read
what they keep from being learned. The rest is counted and stays text.
Verify: a second import of the same file brings nothing; no line costs another one.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

from django.db import DataError, IntegrityError, transaction
from django.db.models import F, Q
from django.utils import timezone
from tqdm import tqdm

from argus.portable import lines as foreign
from argus.portable.kinds import PLAIN
from argus.portable.leave import FORMAT
from argus.portable.lines import Line, Names, moment, text
from argus.portable.notes import UNSEEN, bring
from memory.acts import record_act
from memory.borders import TIME_GAP_MINUTES
from memory.envelope import SessionEnd
from memory.errors import Conflict, NotFound, RefusedError
from memory.files import CHARACTERS_A_BATCH, ITEMS_A_BATCH
from memory.gate import CONTENT_CHARACTERS_MAX
from memory.identities import Known
from memory.intake import Incoming, Invalid
from memory.keeping import pin
from memory.models import Feedback, Principal, RejectedFact, Session
from memory.models.note import FEEDBACKS
from memory.models.record import CONFIDENTIALITIES, KINDS, VISIBILITIES
from memory.stages.capture import capture
from recall.feedback import give_feedback

#: Kinds of lines; any other is counted as OTHER, however many a file makes up.
KNOWN = frozenset({"project", "raw_item", "note", "end", *PLAIN})
OTHER = "unknown"

#: Bad lines that are listed; all are counted.
BAD_LINES_LISTED_MAX = 100

#: Windows of a rejected fact that are taken.
# Why: a statement has no more words than that; a longer list is no statement's.
WINDOWS_MAX = CONTENT_CHARACTERS_MAX // 2

_KEY = re.compile(r"[0-9a-f]{64}")


@dataclass
class EnterReport:
    """What came in of each kind, by what became of it; `kept_as_text`: what stays in the file.
    `whole`: its last line was there and counted right."""

    raw_items: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    notes: Counter[str] = field(default_factory=Counter)
    others: Counter[str] = field(default_factory=Counter)
    kept_as_text: Counter[str] = field(default_factory=Counter)
    bad_lines: list[dict[str, Any]] = field(default_factory=list)
    bad: int = 0
    whole: bool = False
    dry_run: bool = False

    @property
    def partial(self) -> bool:
        refused = set(self.notes) - {"made", "known", "retired", UNSEEN}
        return bool(self.bad or self.refused or refused or not self.whole)

    def as_json(self) -> dict[str, Any]:
        return {
            name: dict(value) if isinstance(value, Counter) else value
            for name, value in vars(self).items()
        }


class Entering:
    """One import on its way: the raw items at hand, and what the file's names mean here."""

    def __init__(
        self, me: Principal, names: Names, *, shared: bool, facts: bool, dry_run: bool
    ) -> None:
        self.me, self.names, self.shared, self.facts = me, names, shared, facts
        self.report = EnterReport(dry_run=dry_run)
        self.counts: Counter[str] = Counter()
        self._ended = False
        self._known = Known() if dry_run else None
        self._batch: list[tuple[Any, Incoming | Invalid]] = []
        self._characters = 0

    def take(self, line: Line) -> None:
        """One line, whatever it is."""
        # What stands behind the end was written by nobody's export.
        self.report.whole &= not self._ended
        if line.told is None:
            self._bad(line, line.wrong)
            return
        kind = line.told["kind"] if line.told["kind"] in KNOWN else OTHER
        if kind == "end":
            told = line.told.get("counts") == dict(self.counts)
            self.report.whole, self._ended = told and not self._ended, True
            return
        self.counts[kind] += 1
        if kind == "raw_item":
            self._item(line.told)
            return
        self.flush()
        try:
            self._once_more(kind, line.told)
        except DataError:
            # What PostgreSQL cannot hold costs its own line alone.
            self._bad(line, "holds what no row can hold")
        except IntegrityError:
            self._bad(line, "another import brought it at the same time: import the file again")

    def _once_more(self, kind: str, told: dict[str, Any]) -> None:
        """Who comes second with a row looks again, and finds it known."""
        try:
            with transaction.atomic():
                self._told(kind, told)
        except IntegrityError:
            with transaction.atomic():
                self._told(kind, told)

    def _bad(self, line: Line, reason: str) -> None:
        self.report.bad += 1
        if len(self.report.bad_lines) < BAD_LINES_LISTED_MAX:
            self.report.bad_lines.append({"line": line.number, "reason": reason})

    def _told(self, kind: str, told: dict[str, Any]) -> None:
        if kind == "note":
            self._note(told)
        elif kind in ("feedback", "pin", "rejected_fact"):
            self.report.others[f"{kind} {self._other(kind, told)}"] += 1
        else:
            self.report.kept_as_text[kind] += 1

    def _item(self, told: dict[str, Any]) -> None:
        one = _incoming(told, shared=self.shared)
        self._batch.append((told.get("id"), one))
        self._characters += len(told["body"]) if isinstance(one, Incoming) else 0
        if len(self._batch) >= ITEMS_A_BATCH or self._characters >= CHARACTERS_A_BATCH:
            self.flush()

    def flush(self) -> None:
        """Capture the raw items at hand."""
        if not self._batch:
            return
        batch, self._batch, self._characters = self._batch, [], 0
        dry = self._known is not None
        report = capture(
            [one for _, one in batch], owner=self.me, now=timezone.now(), dry_run=dry,
            known=self._known, client={"name": "import-data"},
        )  # fmt: skip
        self.report.raw_items.update(stored=report.stored, duplicates=report.duplicates)
        self.report.refused.update(report.refused)
        for (name, one), outcome in zip(batch, report.outcomes, strict=True):
            if outcome.id is None:
                continue
            self.names.put("raw_item", name, outcome.id)
            if isinstance(one, Incoming) and one.kind == "turn":
                # Known ones, too: an import that was killed ended none of its sessions.
                self.names.put("session", one.session, "")

    def _note(self, told: dict[str, Any]) -> None:
        came = bring(told, self.names, me=self.me, now=timezone.now(), dry_run=self.report.dry_run)
        self.report.notes[came.outcome] += 1
        if came.id is not None:
            self.names.put("note", told.get("id"), came.id)

    def _other(self, kind: str, told: dict[str, Any]) -> str:
        """Feedback, a pin or a rejected fact; what became of it."""
        if kind == "rejected_fact":
            return self._fact(told)
        note = self.names.get("note", told.get("note_id"))
        if note is None:
            return "left"
        if self.report.dry_run:
            return "looked at"
        try:
            if kind == "pin":
                return "made" if pin(UUID(note), by=self.me, now=timezone.now()) else "known"
            return self._feedback(UUID(note), told)
        except (NotFound, Conflict, RefusedError):
            return "left"

    def _feedback(self, note: UUID, told: dict[str, Any]) -> str:
        """What was said of a note comes in when nothing was said of it here before."""
        if self.names.get("said", str(note)) is None:
            before = Feedback.objects.filter(principal=self.me, note=note).exists()
            self.names.put("said", str(note), int(before))
        word = text(told.get("verdict"))
        project = text(told.get("project")) or None
        if word not in FEEDBACKS or (told.get("project_id") is not None and project is None):
            return "left"
        if self.names.get("said", str(note)) == "1":
            return "known"
        give_feedback(
            note, word, principal=self.me, now=timezone.now(), project=project,
            reason=text(told.get("reason")),
        )  # fmt: skip
        return "made"

    def _fact(self, told: dict[str, Any]) -> str:
        """A rejected fact, by its hashes, where asked for; one lifted there or here is left."""
        key, windows = text(told.get("content_key")), _windows(told.get("shingles"))
        if not self.facts or told.get("lifted_at") or not _KEY.fullmatch(key) or not windows:
            return "left"
        if RejectedFact.objects.visible_to(self.me).filter(owner=self.me, content_key=key).exists():
            return "known"
        if not self.report.dry_run:
            RejectedFact.objects.create(
                owner=self.me, content_key=key, shingles=windows, principal=self.me,
                created_at=timezone.now(),
            )  # fmt: skip
        return "made"

    def end_sessions(self, now: datetime) -> None:
        """Sessions whose last turn here was said long ago are over: their tails may close."""
        before = now - timedelta(minutes=TIME_GAP_MINUTES)
        for session, _ in self.names.all("session"):
            rows = Session.objects.filter(owner=self.me, key=session)
            goes_on = rows.filter(last_turn_at__gte=before)
            unended = rows.filter(Q(ended_at=None) | Q(ended_at__lt=F("last_captured_at")))
            if session and unended.exists() and not goes_on.exists():
                end = SessionEnd(session, "imported")
                capture([], owner=self.me, now=now, session_end=end)


def enter(
    path: Path, *, me: Principal, now: datetime, shared: bool = False, facts: bool = False,
    dry_run: bool = False, progress: bool = False,
) -> EnterReport:  # fmt: skip
    """Bring in what an export holds, as `me`'s. `shared`: with the visibility that the file says;
    else nobody else sees it. `facts`: its rejected facts, too.

    A line that is none is counted and costs no other. Raises RefusedError for a file that is no
    export, or one of a later form.
    """
    try:
        size = path.stat().st_size
        source = path.open("rb")
    except OSError as error:
        raise RefusedError(f"{path} cannot be read: {error.strerror}") from error
    bar = tqdm(total=size, unit="B", unit_scale=True, leave=False,
               disable=None if progress else True)  # fmt: skip
    with source, Names() as names, bar:
        entering = Entering(me, names, shared=shared, facts=facts, dry_run=dry_run)
        rows = foreign.read(source)
        _head(path, next(rows, None))
        for line in rows:
            entering.take(line)
            bar.update(line.end - bar.n)
        entering.flush()
        report = entering.report
        if not dry_run:
            entering.end_sessions(now)
            _tell(report, me, now=now)
    return report


def _head(path: Path, line: Line | None) -> None:
    told = line.told if line else None
    if told is None or told["kind"] != "argus":
        raise RefusedError(f"{path} is no export of Argus: its first line does not say so")
    if told.get("format") != FORMAT:
        raise RefusedError(f"{path} has another form than {FORMAT}: use a newer Argus")


@transaction.atomic
def _tell(report: EnterReport, me: Principal, *, now: datetime) -> None:
    made = {"raw_items": report.raw_items["stored"], "notes": report.notes["made"]}
    made |= {f"{kind}s": report.others[f"{kind} made"] for kind in ("pin", "rejected_fact")}
    made |= {"feedback": report.others["feedback made"]}
    if any(made.values()):
        record_act(me, "import", "data", now=now, detail=made)


def _incoming(told: dict[str, Any], *, shared: bool) -> Incoming | Invalid:
    """A raw item as capture takes it; whose it is and what it is called here is not the file's to
    say."""
    body, kind, goes = told.get("body"), told.get("item"), told.get("confidentiality")
    if not isinstance(body, str) or not text(told.get("source")):
        return Invalid("a raw item has a source and a body")
    if kind not in KINDS or goes not in CONFIDENTIALITIES:
        return Invalid("unknown kind or confidentiality", body)
    seen = told.get("visibility")
    at, timed = moment(told.get("occurred_at")), told.get("timed") is not False
    maps: dict[str, Any] = {name: told.get(name) or {} for name in ("metadata", "locator")}
    if at is None or not all(isinstance(one, dict) for one in maps.values()):
        return Invalid("no instant, or no metadata", body)
    plain = ("source", "role", "session", "cwd", "project", "record_id")
    fields: dict[str, Any] = {name: text(told.get(name)) for name in plain}
    return Incoming(
        body=body, kind=kind, **fields, **maps,
        original_timestamp=at if timed else None, first_captured=None if timed else at,
        visibility=seen if shared and seen in VISIBILITIES else "private", confidentiality=goes,
    )  # fmt: skip


def _windows(told: Any) -> list[int] | None:
    """The windows of a rejected fact, or None for what are none."""
    if not isinstance(told, list) or not 0 < len(told) <= WINDOWS_MAX:
        return None
    fit = all(type(one) is int and -(2**63) <= one < 2**63 for one in told)
    return told if fit else None


def lines(report: EnterReport) -> str:
    """The report for people."""
    verb = "would bring in" if report.dry_run else "brought in"
    notes = Counter(report.notes)
    told = [
        f"{verb} {report.raw_items['stored']:,} raw items"
        f" ({report.raw_items['duplicates']:,} known) and {notes.pop('made', 0):,} notes"
        f" ({notes.pop('known', 0):,} known)"
    ]
    if later := notes.pop(UNSEEN, 0):
        told.append(f"notes of raw items that come with the file, judged only then: {later:,}")
    if gone := notes.pop("retired", 0):
        told.append(f"notes that were no longer live, left in the file: {gone:,}")
    groups = {
        "raw items refused": report.refused, "notes refused": notes, "besides": report.others,
        "kept as text": report.kept_as_text,
    }  # fmt: skip
    for name, counts in groups.items():
        if counts:
            told.append(f"{name}: {', '.join(f'{n:,} {word}' for word, n in counts.items())}")
    if n := report.others["rejected_fact left"]:
        told.append(f"{n:,} rejected facts were left: --rejected-facts takes those still in force")
    if report.others["rejected_fact made"]:
        told.append("rejected facts by hash alone: `rejection list --facts`, and `lift` by number")
    told += [f"bad line {one['line']}: {one['reason']}" for one in report.bad_lines[:20]]
    if report.bad > 20:
        told.append(f"... {report.bad:,} bad lines in all")
    if not report.whole:
        told.append("the file does not end as an export does: it was cut off, or changed")
    return "\n".join(told)
